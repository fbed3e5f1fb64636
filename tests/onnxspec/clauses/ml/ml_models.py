"""Models of one operator of ai.onnx.ml, and twins of them: the same attributes but for a few."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx
from onnx import TensorProto, helper

from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.twins import Twin

FLOAT, DOUBLE, INT64, STRING = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING
U8, INT32, FLOAT16 = TensorProto.UINT8, TensorProto.INT32, TensorProto.FLOAT16
ML = "ai.onnx.ml"
CORRECT = "correct the attribute, or export the model again"
LISTS = "correct the lists, or export the model again"
TREES_AGAIN = "correct the trees, or export the model again"
INPUT = "correct the attribute, or the input"


def vector(
    values: Sequence[float] | Sequence[str], kind: int = DOUBLE, dims: Sequence[int] | None = None
) -> TensorProto:
    """A tensor attribute."""
    return helper.make_tensor("t", kind, [len(values)] if dims is None else dims, values)


def strings(name: str, values: Iterable[bytes]) -> onnx.AttributeProto:
    """A list of strings, empty too."""
    return onnx.AttributeProto(name=name, type=onnx.AttributeProto.STRINGS, strings=values)


def single(
    op_type: str,
    attributes: Mapping[str, Any],
    version: int = 3,
    inputs: Sequence[onnx.ValueInfoProto] | None = None,
    outputs: Sequence[onnx.ValueInfoProto] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> onnx.ModelProto:
    """A model of one node, called n; by default from x [N, 2] to y [N, ?]. Attributes that are None are absent."""
    ends = [value("x", ["N", 2])] if inputs is None else inputs
    out = [value("y", ["N", None])] if outputs is None else outputs
    made = node(
        op_type,
        [*(info.name for info in ends), *(constants or {})],
        [info.name for info in out],
        name="n",
        domain=ML,
        **{name: entries for name, entries in attributes.items() if entries is not None and not is_empty(entries)},
    )
    for name, entries in attributes.items():
        if is_empty(entries):
            made.attribute.append(strings(name, ()))
    return model([made], ends, out, constants, opsets={"": 21, ML: version})


def is_empty(entries: Any) -> bool:
    return isinstance(entries, list) and not entries


def said(rule: str, op_type: str, message: str, remedy: str, severity: str = "error") -> str:
    """The full text of a finding."""
    return f"{severity}: node 'n' ({op_type}): {message} [{rule}]\n  remedy: {remedy}"


def twin(
    name: str, rule: str, op_type: str, legal: Mapping[str, Any], changed: Mapping[str, Any],
    findings: Sequence[tuple[str, ...]], **more: Any,
) -> Twin:
    """A twin whose bad model has ``changed`` attributes. ``findings``: message, remedy and, unless error, severity."""
    return Twin(
        rule,
        name=f"{op_type}: {name}",
        bad=single(op_type, {**legal, **changed}, **more),
        good=single(op_type, legal, **more),
        findings=[said(rule, op_type, *parts) for parts in findings],
    )

