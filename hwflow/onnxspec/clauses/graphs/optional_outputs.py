"""The clause about optional outputs that an operator does not compute: a node must not name them.

Some operators do not compute optional outputs in a mode that the node itself states, according to their records
(``output_modes``). The others with optional outputs in onnx's schemas compute every one that a node names:

* BatchNormalization 7 and 9 train where the node names the further outputs; nothing else indicates the mode.
* Dropout from 7 computes the mask in both modes (all ones when nothing is dropped, by version 12).
* RNN, GRU and LSTM before 7 may omit Y where output_sequence is 0, but need not.
* Attention computes present_key and present_value even without past ones, as its function definition shows.
* LayerNormalization, MaxPool, SoftmaxCrossEntropyLoss and Unique have no modes.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.graphs.operators import operator_of
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, at_node
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.scopes import Node, Scope


def _integer(node: Node, name: str) -> int | None:
    """Return the attribute's value, 0 where it is absent; None where it refers to the enclosing function's."""
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
            stated = facts_of(form.domain, form.op_type).output_modes
            if stated and any(form.outputs[1:]):
                operator = operator_of(context, scope, form)
                mode = None if operator is None else stated.get(operator.since)
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
                yield at_node(
                    scope, index,
                    f"output {position} ({formal}) of {operator} must have no name, as it is not computed with "
                    f"{mode.attribute}={value}, but it is {show(name)}",
                    # A name that nothing reads is harmless where onnx accepts it: old exporters wrote them.
                    severity=Severity.ERROR if mode.refused or name in read else Severity.WARNING,
                )


RULES = (Rule("OPT-06", "MUST", _not_computed, "leave the output out"),)
