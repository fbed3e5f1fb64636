"""The rules about the operators of ONNX-ML: one engine that asks the clauses of each node's operator.

An operator's record names its clauses (the fact ``clauses``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from weakref import WeakKeyDictionary

import onnx

from hwflow.errors import Severity
from hwflow.onnxspec.clauses.graphs.operators import calls_function
from hwflow.onnxspec.clauses.ml.node_reading import (
    CLASSES,
    INPUTS,
    LENGTHS,
    TREES,
    VALUES,
    NodeReading,
    OperatorClauses,
    run,
)
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, at_node
from hwflow.onnxspec.graphs.node_forms import NodeForm
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.schemas import Operator, find_operator
from hwflow.onnxspec.graphs.scopes import Scope
from hwflow.onnxspec.graphs.typeforms import TypeForm

_MOST_NODES = 2000  # that are checked, at up to 0.4 ms each: the largest pipelines have some hundreds
_Reading = tuple[Scope, int, OperatorClauses, NodeReading]


def _clauses(context: Context, scope: Scope, form: NodeForm) -> tuple[OperatorClauses, Operator] | None:
    """Return the clauses of nodes of that form, and its signature."""
    clauses = facts_of(form.domain, form.op_type).clauses
    version = scope.opsets.get(form.domain)
    if clauses is None or version is None or calls_function(context, form):
        return None
    operator = find_operator(form.op_type, version, form.domain)
    return None if operator is None else (clauses, operator)


def _constants(scope: Scope) -> Callable[[str], onnx.TensorProto | None]:
    """Return what finds an initializer by its name."""
    tensors = {} if scope.graph is None else {tensor.name: tensor for tensor in scope.graph.initializer}
    return tensors.get


def _readings(context: Context) -> Iterator[_Reading]:
    """Yield the nodes whose operators have clauses."""
    for number, (scope, forms) in enumerate(context.node_forms):
        clauses = {key: found for key, form in forms.by_key.items() if (found := _clauses(context, scope, form))}
        if not clauses:
            continue
        form = partial(_inferred, context, number)
        constant = _constants(scope)
        for index, key in enumerate(forms.keys):
            if key in clauses:
                of_operator, signature = clauses[key]
                yield scope, index, of_operator, NodeReading(scope.nodes[index], signature, form, constant)


def _inferred(context: Context, number: int, name: str) -> TypeForm:
    """Return the type of a value of a scope."""
    return context.inference.form(number, name)


class _Found:
    """The nodes with clauses, and what is wrong with their attributes: found at once for all rules, as the checks of a
    node share what they read."""

    def __init__(self, context: Context) -> None:
        self.readings = list(islice(_readings(context), _MOST_NODES + 1))
        self.left = self.readings[_MOST_NODES:]  # the first node beyond
        del self.readings[_MOST_NODES:]
        self.faults = [
            (scope, index, fault)
            for scope, index, clauses, reading in self.readings
            for fault in run(clauses.attributes, reading)
        ]


_FOUND: WeakKeyDictionary[Context, _Found] = WeakKeyDictionary()


def _found(context: Context) -> _Found:
    found = _FOUND.get(context)
    if found is None:
        found = _FOUND[context] = _Found(context)
    return found


def _of_attributes(rule: str, context: Context) -> Iterator[Hit]:
    if rule == VALUES:
        for scope, index, _, _ in _found(context).left:
            message = f"at most {_MOST_NODES} nodes of ai.onnx.ml are checked, but there are more from here on"
            yield at_node(scope, index, message, "split the model", Severity.WARNING)
    for scope, index, fault in _found(context).faults:
        if fault.rule == rule:
            yield at_node(scope, index, fault.message, fault.remedy, fault.severity)


def _of_inputs(context: Context) -> Iterator[Hit]:
    found = _FOUND.pop(context, None) or _Found(context)
    for scope, index, clauses, reading in found.readings:
        for fault in run(clauses.inputs, reading):
            yield at_node(scope, index, fault.message, fault.remedy, fault.severity)


_AGAIN = "correct the attribute, or export the model again"

RULES = (
    Rule(VALUES, "own", partial(_of_attributes, VALUES), _AGAIN),
    Rule(LENGTHS, "own", partial(_of_attributes, LENGTHS), "correct the lists, or export the model again"),
    Rule(TREES, "own", partial(_of_attributes, TREES), "correct the trees, or export the model again"),
    Rule(CLASSES, "own", partial(_of_attributes, CLASSES), _AGAIN),
)
LATE_RULES = (Rule(INPUTS, "own", _of_inputs, "correct the attribute, or the input"),)
