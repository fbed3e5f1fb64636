"""The rules about the operators of ONNX-ML: one engine that asks the clauses of each node's operator.

An operator's record names its clauses (the fact ``clauses``); those of operators without one are in
:mod:`hwflow.onnxspec.clauses.ml.unrecorded`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from weakref import WeakKeyDictionary

import onnx

from hwflow.onnxspec.clauses.graphs.operators import calls_function
from hwflow.onnxspec.clauses.ml.node_reading import (
    CLASSES,
    INPUTS,
    LENGTHS,
    TREES,
    VALUES,
    Check,
    Fault,
    NodeReading,
    OperatorClauses,
    Unreadable,
)
from hwflow.onnxspec.clauses.ml.unrecorded import UNRECORDED
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, at_node
from hwflow.onnxspec.graphs.node_forms import NodeForm
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.schemas import Operator, find_operator
from hwflow.onnxspec.graphs.scopes import Scope
from hwflow.onnxspec.graphs.typeforms import TypeForm

_Place = tuple[Scope, int, Fault]


def _clauses(context: Context, scope: Scope, form: NodeForm) -> tuple[OperatorClauses, Operator] | None:
    """Return the clauses of nodes of that form, and its signature."""
    clauses = facts_of(form.domain, form.op_type).clauses or UNRECORDED.get((form.domain, form.op_type))
    version = scope.opsets.get(form.domain)
    if clauses is None or version is None or calls_function(context, form):
        return None
    operator = find_operator(form.op_type, version, form.domain)
    return None if operator is None else (clauses, operator)


def _run(checks: Iterable[Check], reading: NodeReading) -> Iterator[Fault]:
    for check in checks:
        try:
            yield from check(reading)
        except Unreadable:
            continue


def _constants(scope: Scope) -> Callable[[str], onnx.TensorProto | None]:
    """Return what finds an initializer by its name."""
    tensors = {} if scope.graph is None else {tensor.name: tensor for tensor in scope.graph.initializer}
    return tensors.get


def _nothing(name: str) -> None:
    """Return None: what attributes alone decide needs no constant."""


def _untyped(name: str) -> TypeForm:
    return ()


def _faults(context: Context, inputs: bool) -> Iterator[_Place]:
    """Yield the faults of all nodes: of their attributes, or of their ``inputs``."""
    for number, (scope, forms) in enumerate(context.node_forms):
        clauses = {key: found for key, form in forms.by_key.items() if (found := _clauses(context, scope, form))}
        if not clauses:
            continue
        form: Callable[[str], TypeForm] = partial(context.inference.form, number) if inputs else _untyped
        constant = _constants(scope) if inputs else _nothing
        for index, key in enumerate(forms.keys):
            if key not in clauses:
                continue
            of_operator, signature = clauses[key]
            checks = of_operator.inputs if inputs else of_operator.attributes
            for fault in _run(checks, NodeReading(scope.nodes[index], signature, form, constant)):
                yield scope, index, fault


# The checks of a node share what they read, so they run at once, for all rules about attributes.
_FOUND: WeakKeyDictionary[Context, list[_Place]] = WeakKeyDictionary()


def _of_attributes(rule: str, context: Context) -> Iterator[Hit]:
    found = _FOUND.get(context)
    if found is None:
        found = _FOUND[context] = list(_faults(context, inputs=False))
    for scope, index, fault in found:
        if fault.rule == rule:
            yield at_node(scope, index, fault.message, fault.remedy, fault.severity)


def _of_inputs(context: Context) -> Iterator[Hit]:
    for scope, index, fault in _faults(context, inputs=True):
        yield at_node(scope, index, fault.message, fault.remedy, fault.severity)


_AGAIN = "correct the attribute, or export the model again"

RULES = (
    Rule(VALUES, "own", partial(_of_attributes, VALUES), _AGAIN),
    Rule(LENGTHS, "own", partial(_of_attributes, LENGTHS), "correct the lists, or export the model again"),
    Rule(TREES, "own", partial(_of_attributes, TREES), "correct the trees, or export the model again"),
    Rule(CLASSES, "own", partial(_of_attributes, CLASSES), _AGAIN),
)
INPUT_RULES = (Rule(INPUTS, "own", _of_inputs, "correct the attribute, or the input"),)
