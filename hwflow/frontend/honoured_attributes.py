"""Check a node's attributes against its operator's record. An attribute that the record does not declare is refused, so
that no attribute is ever ignored silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from hwflow.display import show
from hwflow.errors import Finding
from hwflow.onnxspec.graphs.attribute_values import defaults
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.schemas import find_schema
from hwflow.onnxspec.resolving.resolved_model import Attribute, OnnxNode
from hwflow.operators.record import Operator

_IDLE = frozenset({"consumed_inputs"})
"""Attributes without a meaning: the inputs that a runtime of operator set 1 may overwrite."""


def not_honoured(node: OnnxNode, operator: Operator) -> Iterator[Finding]:
    """Yield a finding for each attribute that the record does not declare and that differs from its default, or whose
    value the handler does not take."""
    schema = find_schema(node.op_type, node.version, node.domain)
    standard = {} if schema is None else defaults(schema)
    for name, value in sorted(node.attributes.items()):
        known = schema is None or name in schema.attributes
        if name in _IDLE:
            continue
        if not known or name not in operator.honours:
            if name not in standard or not _same(value, standard[name]):
                yield _finding(node, name, _left_alone(name, standard), value)
            continue
        values = operator.honours[name]
        if values is not None and value not in values:
            *most, last = map(_shown, values)
            yield _finding(node, name, f"{', '.join(most)} or {last}" if most else last, value, _OTHER_VALUE)


def not_defined(node: OnnxNode) -> Iterator[Finding]:
    """Yield a finding for each attribute that the node's dialect does not define: it has no meaning."""
    form = facts_of(node.domain, node.op_type).form
    for name, value in sorted(node.attributes.items()):
        if form is not None and name not in form.attributes:
            yield _finding(node, name, "absent: the operator has no attribute of that name", value, "leave it out")


def _left_alone(name: str, standard: Mapping[str, Attribute]) -> str:
    return f"{_shown(standard[name])}, its default" if name in standard else "absent"


_TO_HOST = "leave the node to the host, before the first or after the last quantizer"
_REMEDY = f"write the node with other operators, or {_TO_HOST}"
_OTHER_VALUE = f"use such a value, or {_TO_HOST}"


def _finding(node: OnnxNode, name: str, wanted: str, value: Attribute, remedy: str = _REMEDY) -> Finding:
    message = f"attribute {show(name)} must be {wanted}, not {_shown(value)}"
    return Finding("supported-attribute", node.where, message, remedy)


def _same(value: Attribute, default: Attribute) -> bool:
    if isinstance(value, np.ndarray) or isinstance(default, np.ndarray):
        return np.array_equal(np.asarray(value), np.asarray(default))
    return value == default


_MOST_SHOWN = 60  # characters


def _shown(value: Attribute) -> str:
    if isinstance(value, np.ndarray):
        return f"a tensor of shape {list(value.shape)}"
    text = f"{show(value)}" if isinstance(value, str) else str(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
