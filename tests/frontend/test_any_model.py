"""Whatever the model: the front end and the passes make a graph of it, or findings. No other exception, ever."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import shape_inference

from hwflow.api.checking import check
from tests.models import Builder

SCALES = st.sampled_from([0.5, 1.0, 2.0, 0.1, 0.0, -1.0, float("inf"), float("nan"), 1e-30, 1e30])
SHAPES = st.lists(st.integers(1, 3), max_size=5)
NUMBERS = st.sampled_from([0.0, 1.5, -2.0, float("inf"), float("-inf"), float("nan")])
KINDS = st.sampled_from([*["float"] * 4, "uint8", "int8", "int4", "uint16", "int32", "bool", "int64"])


def maybe(draw: st.DrawFn, name: str, values: st.SearchStrategy[Any]) -> dict[str, Any]:
    return {name: draw(values)} if draw(st.booleans()) else {}


def pairs(low: int, high: int, count: int = 2) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(low, high), min_size=count, max_size=count)


def window(draw: st.DrawFn) -> dict[str, Any]:
    found = maybe(draw, "strides", pairs(1, 4)) | maybe(draw, "dilations", pairs(1, 3))
    found |= maybe(draw, "pads", pairs(0, 3, 4))
    return found | maybe(draw, "auto_pad", st.sampled_from(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "ODD"]))


def shape_of(b: Builder, name: str) -> list[int] | None:
    """The shape of a value by shape inference; None if the node does not fit."""
    b.output(name)
    try:
        kind = shape_inference.infer_shapes(b.build(), check_type=True, strict_mode=True).graph.output[0].type
    except (shape_inference.InferenceError, onnx.checker.ValidationError):
        return None
    finally:
        b.outputs.clear()
    return [d.dim_value for d in kind.tensor_type.shape.dim] if kind.HasField("tensor_type") else None


def add_node(draw: st.DrawFn, b: Builder, op: str, values: list[str]) -> str:
    x = draw(st.sampled_from(values))
    known = [max(0, size) for size in shape_of(b, x) or []]  # onnx goes below 0 for a window larger than the image
    match op:
        case "QuantizeLinear" | "DequantizeLinear":
            shape = draw(st.sampled_from([(), (1,), (2,), (3,), (1, 2)]))
            scale = np.full(shape, draw(SCALES))
            method = b.quantize if op == "QuantizeLinear" else b.dequantize
            zero = draw(st.sampled_from([None, 0, np.zeros(shape, int)]))
            more = maybe(draw, "axis", st.integers(-6, 6))
            return method(x, scale, zero, draw(st.sampled_from(["uint8", "int8"])), **more)
        case "Conv":
            shape = draw(st.lists(st.integers(1, 3), min_size=len(known), max_size=len(known)))
            shape[1:2] = draw(st.sampled_from([known[1:2], shape[1:2]]))
            bias = [b.constant(np.full(draw(st.integers(1, 3)), draw(NUMBERS)))] if draw(st.booleans()) else []
            more = maybe(draw, "group", st.integers(1, 2)) | window(draw)
            return b.node("Conv", x, b.weights(np.ones(shape, int), draw(SCALES)), *bias, **more)
        case "MaxPool":
            more = maybe(draw, "ceil_mode", st.integers(0, 1)) | window(draw)
            return b.node("MaxPool", x, kernel_shape=draw(pairs(1, 3)), **more)
        case "Gemm" | "MatMul":
            w = b.weights(np.ones([*known[-1:], *draw(SHAPES)], int), draw(SCALES))
            more = {} if op == "MatMul" else maybe(draw, "alpha", NUMBERS) | maybe(draw, "transA", st.integers(0, 1))
            return b.node(op, *draw(st.permutations([x, w])), **more)
        case "Add":
            other = draw(st.sampled_from([*values, b.constant(np.full(draw(SHAPES), draw(NUMBERS)))]))
            return b.node("Add", *draw(st.permutations([x, other])))
        case "Clip":
            return b.node("Clip", x, b.constant(draw(NUMBERS)), b.constant(draw(NUMBERS)))
        case "Reshape":
            return b.node("Reshape", x, b.constant(draw(st.lists(st.integers(-1, 4), max_size=4)), "int64"))
        case "Squeeze" | "Unsqueeze":
            return b.node(op, x, b.constant([draw(st.integers(-3, 4))], "int64"))
        case "Flatten":
            return b.node("Flatten", x, axis=draw(st.integers(-3, 3)))
        case "Transpose":
            return b.node("Transpose", x, **maybe(draw, "perm", st.permutations(range(draw(st.integers(1, 4))))))
    return b.node(op, x)


OPERATORS = (
    "QuantizeLinear", "DequantizeLinear", "Conv", "MaxPool", "Gemm", "MatMul", "Add", "Clip", "Reshape", "Squeeze",
    "Unsqueeze", "Flatten", "Transpose", "Relu", "Identity", "Softmax",
)  # fmt: skip


@st.composite
def models(draw: st.DrawFn) -> Builder:
    b = Builder(21, 10)
    kind = draw(KINDS)
    values = [b.input("x", draw(st.sampled_from([["N"], ["N"], ["N"], []])) + draw(st.just([2, 4, 3]) | SHAPES), kind)]
    if kind == "float" and draw(st.integers(0, 4)):
        values = [b.requantize(values[0], 0.5, 3)]
    elif kind in ("uint8", "int8"):
        values.append(b.dequantize(values[0], 0.5, 3, kind))
    for op in draw(st.lists(st.sampled_from(OPERATORS), min_size=1, max_size=6)):
        before = len(b.nodes)
        made = [add_node(draw, b, op, values)]
        if draw(st.booleans()):
            made.append(b.requantize(made[0], 0.25, 1))
        if shape_of(b, made[-1]) is None:  # onnx's own validation refuses it: of no interest here
            del b.nodes[before:]
        else:
            values += made
    b.output(*dict.fromkeys(draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))))
    return b


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(models())
def test_any_model(builder: Builder) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for finding in check(builder.save(Path(folder))):
            assert finding.rule and finding.where and finding.message and finding.remedy
