"""Which attributes a handler honours, its operator's record declares. Any other one is refused, so that what hardware
does never depends on an attribute that nobody has looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from hwflow.display import show
from hwflow.errors import Finding
from hwflow.onnxspec.graphs.attribute_values import defaults
from hwflow.onnxspec.graphs.schemas import find_schema
from hwflow.onnxspec.resolving.resolved_model import Attribute, OnnxNode
from hwflow.onnxspec.shapes.dialect_forms import form_of
from hwflow.operators.record import Operator

_IDLE = frozenset({"consumed_inputs"})
"""Attributes that never mean anything: which inputs a runtime of operator set 1 might overwrite."""


def not_honoured(node: OnnxNode, operator: Operator) -> Iterator[Finding]:
    """What the handler of a node does not honour: each attribute that is not declared and differs from its default, or
    has a value that the handler does not take."""
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
    """The attributes of a node that its dialect does not have: neither hardware nor the host knows what they mean."""
    form = form_of(node.domain, node.op_type)
    for name, value in sorted(node.attributes.items()):
        if form is not None and name not in form.attributes:
            yield _finding(node, name, "absent: no attribute of the operator is called that", value, "leave it out")


def _left_alone(name: str, standard: Mapping[str, Attribute]) -> str:
    return f"{_shown(standard[name])}, its default" if name in standard else "absent"


_TO_HOST = "leave the node to the host, before the first or behind the last quantizer"
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
