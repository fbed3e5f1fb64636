"""The clause about optional outputs that an operator does not compute: no node may name them.

Of onnx's schemas that have optional outputs, those of the table leave them out in a mode that the node itself states.
The others compute every output that a node names:

* BatchNormalization 7 and 9 train where the node names the further outputs; there is no other sign of the mode.
* Dropout from 7 makes the mask in both modes (all ones when it does not drop anything, says version 12).
* RNN, GRU and LSTM before 7 may leave Y away where output_sequence is 0, but need not.
* Attention computes present_key and present_value without past ones too, as its definition by a function shows.
* LayerNormalization, MaxPool, SoftmaxCrossEntropyLoss and Unique have no modes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx import AttributeProto

from hwflow.display import show
from hwflow.onnxspec.clauses.graphs.operators import operator_of
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule
from hwflow.onnxspec.graphs.scopes import NODES, Node, Scope


@dataclass(frozen=True)
class _Mode:
    """Outputs from the second on are not computed while ``attribute`` (an int, 0 by default) is ``off``."""

    attribute: str
    off: bool  # whether the attribute is other than 0 then
    refused: bool  # whether onnx refuses such a node whoever reads the outputs


_TEST = _Mode("is_test", off=True, refused=False)
_NO_TRAINING = _Mode("training_mode", off=False, refused=True)

# By operator of ai.onnx and the version that its definition came with. Source: the texts of onnx's schemas.
_MODES = {
    ("BatchNormalization", 1): _TEST,
    ("BatchNormalization", 6): _TEST,
    ("BatchNormalization", 14): _NO_TRAINING,
    ("BatchNormalization", 15): _NO_TRAINING,
    ("Dropout", 1): _TEST,
    ("Dropout", 6): _TEST,
}
_OP_TYPES = frozenset(op_type for op_type, _ in _MODES)


def _integer(node: Node, name: str) -> int | None:
    """The attribute's value, 0 where it is absent; None where the function around the node decides."""
    for attribute in node.attributes:
        if attribute.name == name:
            if attribute.ref_attr_name or attribute.type not in (AttributeProto.INT, AttributeProto.UNDEFINED):
                return None
            return int(attribute.i)
    return 0


def _read_names(scope: Scope) -> frozenset[str]:
    return frozenset(name for node in scope.nodes for name in node.reads).union(scope.outputs)


def _not_computed(context: Context) -> Iterator[Hit]:
    for scope, forms in context.node_forms:
        modes = {}
        for key, form in forms.by_key.items():
            if form.domain == "" and form.op_type in _OP_TYPES and any(form.outputs[1:]):
                operator = operator_of(context, scope, form)
                mode = None if operator is None else _MODES.get((form.op_type, operator.since))
                if operator is not None and mode is not None:
                    modes[key] = operator, mode
        if not modes:
            continue
        read = _read_names(scope)
        for index, key in enumerate(forms.keys):
            if key not in modes:
                continue
            operator, mode = modes[key]
            node = scope.nodes[index]
            value = _integer(node, mode.attribute)
            if value is None or (value != 0) != mode.off:
                continue
            for position, name in enumerate(node.outputs[1 : len(operator.outputs)], 1):
                if not name:
                    continue
                formal = operator.outputs[position].name
                yield Hit(
                    scope.at(NODES, index),
                    scope.where(index),
                    f"output {position} ({formal}) of {operator} must have no name, as it is not computed with "
                    f"{mode.attribute}={value}, but it is {show(name)}",
                    # A name that nothing reads does no harm where onnx lets it pass: old exporters wrote them.
                    severity="error" if mode.refused or name in read else "warning",
                )


RULES = (Rule("OPT-06", "MUST", _not_computed, "leave the output out"),)
