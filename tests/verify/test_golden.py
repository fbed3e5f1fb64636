"""Golden model of quantized graphs against exact rational arithmetic, every integer and every output."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.errors import ModelRefused
from hwflow.loaded_model import load
from hwflow.verify import golden
from tests.agreement import agree
from tests.models import Builder

KINDS = ("uint8", "int8", "uint4", "int4", "uint16", "int16")
FLOATS = (1.0, 0.5, 0.25, 0.1, 0.037, 3.0)


def integers(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    bits = int(kind.lstrip("uint"))
    low, high = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return rng.integers(low, high + 1, shape)


@pytest.mark.parametrize("opset", range(13, 22))
@pytest.mark.parametrize("per_channel", [False, True])
def test_convolution(opset: int, per_channel: bool) -> None:
    b = Builder(opset)
    d = b.requantize(b.input("x", ["N", 2, 4, 5]), 0.5, 3)
    scale = [0.25, 0.0, 0.7] if per_channel else 0.3
    zero = [1, 2, -3] if per_channel else -5
    w = b.weights(np.arange(54).reshape(3, 2, 3, 3) - 27, scale, zero, axis=0)
    c = b.node("Conv", d, w, b.constant([0.3, -2.7, 11.1]), pads=[1, 0, 2, 1], strides=[2, 1])
    y = b.requantize(b.node("Relu", c), 9.5, 7)
    b.output(y)
    agree(b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight_kind", ["int8", "uint8", "int4", "uint4"])
def test_element_types(kind: str, weight_kind: str) -> None:
    b, rng = Builder(21), np.random.default_rng(1)
    x = b.requantize(b.input("x", ["N", 6]), 0.25, 5, kind)
    w = b.weights(integers(rng, weight_kind, (6, 4)), [0.1, 0.2, 0.3, 0.4], [1, 2, 3, 4], weight_kind, axis=1)
    b.output(b.requantize(b.node("Gemm", x, w, b.constant([1.0, -1.5, 2.25, 0.0])), 1.5, 3, kind))
    agree(b)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("op", ["Conv", "MaxPool", "AveragePool"])
def test_auto_pad(auto_pad: str, op: str) -> None:
    for strides, dilations in (([1, 1], [1, 1]), ([2, 3], [1, 1]), ([1, 1], [2, 1]), ([2, 1], [1, 2])):
        b = Builder()
        d = b.requantize(b.input("x", ["N", 2, 5, 6]), 0.5, 9)
        common = {"auto_pad": auto_pad, "strides": strides, "dilations": dilations}
        if op == "Conv":
            y = b.node("Conv", d, b.weights(np.arange(24).reshape(2, 2, 3, 2) - 11), **common)
        elif op == "MaxPool":
            y = b.node("MaxPool", d, kernel_shape=[3, 2], **common)
        else:
            y = b.node("AveragePool", d, kernel_shape=[3, 2], auto_pad=auto_pad, strides=strides, count_include_pad=1)
        b.output(b.requantize(y, 5.0, 100))
        agree(b)


@pytest.mark.parametrize("zero_point", [0.0, 1.0, -0.25])
def test_one_signed_bit(zero_point: float) -> None:
    """Two signs, where x / scale + zero point is at least 0 or not."""
    b = Builder()
    d = b.requantize(b.input("x", ["N", 9]), 0.25, 0, "int8")
    parameters = [b.constant(v) for v in (0.5, zero_point, 1.0)]
    b.output(b.declare(b.node("Quant", d, *parameters, domain="qonnx.custom_op.general", signed=1), ["N", 9]))
    agree(b)


@pytest.mark.parametrize("opset", [13, 19, 21])
def test_ceil_mode(opset: int) -> None:
    for kernel, strides, pads in (([2, 2], [2, 2], [0] * 4), ([3, 2], [2, 3], [1, 1, 1, 0]), ([2, 3], [4, 2], [0] * 4)):
        b = Builder(opset)
        q = b.quantize(b.input("x", ["N", 2, 5, 6]), 0.5, 9, "int8")
        pool = b.node("MaxPool", q, kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=1)
        b.output(pool)
        agree(b)


def test_int32_bias_and_bias_forms() -> None:
    for values, scale in (([7, -1000, 3], 0.05), ([7, -1000, 3], [0.05, 0.1, 0.2]), ([12], [0.5])):
        b = Builder()
        d = b.requantize(b.input("x", ["N", 1, 3, 3]), 0.5, 3)
        w = b.weights(np.arange(12).reshape(3, 1, 2, 2), 0.1)
        bias = b.weights(values, scale, np.zeros(np.shape(scale), int), "int32", axis=0)
        if len(values) == 1:
            gemm = b.node("Gemm", b.node("Flatten", d), b.weights(np.arange(36).reshape(9, 4) - 18), bias)
            b.output(b.requantize(gemm, 2.0, 4))
        else:
            b.output(b.requantize(b.node("Conv", d, w, bias), 2.0, 4))
        agree(b)


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 2.0), (-1.5, 0.0), (2.0, -0.25)])
def test_gemm(transposed: int, alpha: float, beta: float) -> None:
    b = Builder()
    x = b.requantize(b.input("x", ["N", 5]), 0.5, 101)
    shape = (3, 5) if transposed else (5, 3)
    axis = 0 if transposed else 1
    w = b.weights(np.arange(15).reshape(shape) - 7, [0.1, 0.2, 0.3], [0, 1, -1], axis=axis)
    bias = b.constant([[1.25, -3.0, 7.75]])
    b.output(b.requantize(b.node("Gemm", x, w, bias, alpha=alpha, beta=beta, transB=transposed), 3.0, 120))
    agree(b)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("bias_first", [False, True])
def test_matmul_and_bias(shape: tuple[int, ...], bias_first: bool) -> None:
    b = Builder()
    x = b.requantize(b.input("x", ["N", *shape]), 0.5, 3)
    w = b.weights(np.arange(20).reshape(4, 5) - 9, [0.1, 0.2, 0.3, 0.4, 0.5], [0] * 5, axis=1)
    product, bias = b.node("MatMul", x, w), b.constant([0.5, -1.0, 30.0, 0.0, 2.0])
    total = b.node("Add", bias, product) if bias_first else b.node("Add", product, bias)
    b.output(b.requantize(b.node("Relu", total), 1.0, 2))
    agree(b)


def test_weights_through_shape_operators() -> None:
    """Exporters put a Transpose behind the weights' DequantizeLinear."""
    b = Builder()
    x = b.requantize(b.input("x", ["N", 4]), 0.5, 3)
    w = b.weights(np.arange(12).reshape(3, 4) - 5, [0.1, 0.2, 0.3], [1, 2, 3], axis=0)
    y = b.requantize(b.node("MatMul", x, b.node("Transpose", w, perm=[1, 0])), 0.5, 9)
    flat = b.weights(np.arange(6), 0.5, 2)
    matrix = b.node("Reshape", flat, b.constant([3, 2], "int64"))
    b.output(b.node("MatMul", y, matrix))
    agree(b)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_clip_between_quantize_and_dequantize(kind: str) -> None:
    """Narrow ranges; with min above max everything becomes max."""
    for low, high in ((3, 6), (None, 4), (2, None), (6, 3), (None, None)):
        b = Builder(21)
        q = b.quantize(b.input("x", ["N", 5]), 0.5, 3, kind)
        limits = ["" if v is None else b.constant(v, kind) for v in (low, high)]
        c = b.node("Clip", q, *limits)
        b.output(c, b.dequantize(c, 0.5, 3, kind))
        agree(b)


def test_functions_before_a_quantizer() -> None:
    for low, high in ((-1.0, 2.6), (0.0, np.inf), (-np.inf, 1.25), (2.0, -2.0), (None, 3.0)):
        b = Builder()
        d = b.requantize(b.input("x", ["N", 6]), 0.25, 10, "int8")
        limits = ["" if v is None else b.constant(v) for v in (low, high)]
        clipped = b.node("Clip", d, *limits)
        b.output(b.quantize(clipped, 0.5, 1), b.quantize(b.node("Add", b.node("Relu", d), b.constant(0.75)), 0.5, 1))
        agree(b)


def test_clip_with_attributes() -> None:
    b = Builder(10)
    d = b.requantize(b.input("x", ["N", 6]), 0.25, 10, "int8")
    b.output(b.quantize(b.node("Clip", d, min=-1.5, max=2.25), 0.5, 1), b.quantize(b.node("Clip", d), 0.5, 1))
    agree(b)


def test_chain_of_quantizers() -> None:
    b = Builder()
    x = b.input("x", ["N", 3, 4])
    first = b.requantize(x, 0.5, 3)
    second = b.requantize(first, [0.3, 1.0, 2.0], [0, 200, 7], "uint8", axis=1)
    third = b.requantize(second, 1.5, -3, "int8")
    b.output(b.requantize(third, 1.5, -3, "int8"), second)
    agree(b)


def test_branches_that_share_a_dequantizer() -> None:
    b = Builder()
    d = b.requantize(b.input("x", ["N", 2, 4, 4]), 0.5, 3)
    left = b.requantize(b.node("Conv", d, b.weights(np.ones((2, 2, 3, 3), int), 0.1)), 0.5, 9)
    right = b.requantize(b.node("MaxPool", d, kernel_shape=[2, 2]), 0.25, 0)
    b.output(left, right, d)
    agree(b)


def test_integer_input_and_accumulator_output() -> None:
    b = Builder()
    d = b.dequantize(b.input("x", ["N", 4], "int8"), 0.1, -3, "int8")
    b.output(b.node("Gemm", d, b.weights(np.arange(12).reshape(4, 3) - 6, [1.0, 0.5, 0.0], [0] * 3, axis=1)))
    model = agree(b)
    assert [n.op for n in model.quantized.nodes] == ["dense"]


def test_int32_input_is_quantized_as_it_is() -> None:
    b = Builder()
    b.output(b.quantize(b.input("x", ["N", 4], "int32"), 1000.0, 3, "int8"))
    agree(b)


def test_ties_round_to_even_before_the_zero_point_is_added() -> None:
    """(q - 1) / 2 for q = 0 .. 7 rounds to 0 0 0 1 2 2 2 3 (-0.5 0 0.5 1 1.5 2 2.5 3); then 3 is added."""
    b = Builder()
    b.output(b.quantize(b.dequantize(b.input("x", ["N", 8], "uint8"), 1.0, 1), 2.0, 3))
    result = golden.evaluate(agree(b).quantized, {"x": np.arange(8)[None]})
    assert next(iter(result.values())).tolist() == [[3, 3, 3, 4, 5, 5, 5, 6]]


def test_scalar_and_one_element_parameters_mix() -> None:
    b = Builder()
    q = b.quantize(b.input("x", ["N", 4]), [0.5], [3])
    d = b.node("DequantizeLinear", q, b.constant(0.5), b.constant([3], "uint8"))
    b.output(b.node("QuantizeLinear", d, b.constant([0.25]), b.constant(1, "int8")))
    agree(b)


def test_defaults_of_quantizers() -> None:
    b = Builder(21)
    x = b.input("x", ["N", 4])
    b.output(b.quantize(x, 0.5, None), b.node("QuantizeLinear", x, b.constant(0.5), output_dtype=5))  # int16
    agree(b)


def test_constant_that_a_quantizer_makes() -> None:
    b = Builder()
    d = b.requantize(b.input("x", ["N", 4]), 0.5, 3)
    w = b.requantize(b.constant(np.linspace(-3, 3, 12).reshape(4, 3)), [0.1, 0.2, 0.25], [0, 0, 0], "int8", axis=1)
    again = b.requantize(w, 0.3, 1, "int8")
    b.output(b.node("MatMul", d, w), b.node("MatMul", d, again))
    agree(b)


@pytest.mark.parametrize("scale", [0.0, [0.0, 0.5, 0.0]])
def test_zero_scale(scale: float | list[float]) -> None:
    b = Builder()
    zero = [9, 8, 7] if isinstance(scale, list) else 9
    d = b.dequantize(b.input("x", ["N", 3], "uint8"), scale, zero, axis=1)
    b.output(b.quantize(b.node("Relu", d), 0.25, 3))
    agree(b)


def test_shape_operators() -> None:
    b = Builder()
    d = b.requantize(b.input("x", ["N", 2, 3, 4]), [0.5, 0.25], [3, 4], axis=1)
    moved = b.node("Transpose", d, perm=[0, 2, 3, 1])
    wide = b.node("Unsqueeze", moved, b.constant([1], "int64"))
    back = b.node("Identity", b.node("Squeeze", wide, b.constant([1], "int64")))
    flat = b.node("Flatten", b.node("Transpose", back, perm=[0, 3, 1, 2]))
    again = b.node("Reshape", flat, b.constant([0, 4, -1], "int64"))
    b.output(again, moved, b.node("Flatten", d, axis=0))
    agree(b)


def test_integers_through_shape_operators() -> None:
    b = Builder()
    q = b.quantize(b.input("x", ["N", 2, 3, 4]), 0.5, 3)
    moved = b.node("Transpose", q, perm=[0, 2, 3, 1])
    b.output(b.node("Reshape", moved, b.constant([1, 24], "int64")), moved)
    agree(b)


@pytest.mark.parametrize("shape", [("N",), ("N", 1), ("N", 2, 1, 2, 3), ("N", 1, 1, 1, 1)])
def test_ranks(shape: tuple[str | int, ...]) -> None:
    b = Builder()
    d = b.requantize(b.input("x", shape), 0.5, 3)
    clipped = b.node("Clip", d, b.constant(0.0))
    b.output(b.requantize(clipped, 1.0, 2), d, b.node("Transpose", d, perm=[*range(len(shape))]))
    agree(b)


def test_a_frame_of_one_element_is_reshaped() -> None:
    b = Builder()
    d = b.requantize(b.input("x", ["N", 1]), 0.5, 3)
    flat = b.node("Squeeze", d, b.constant([1], "int64"))
    b.output(flat, b.node("Unsqueeze", flat, b.constant([1, 2], "int64")))
    agree(b)


def test_input_as_output_and_output_used_inside() -> None:
    b = Builder()
    x = b.input("x", ["N", 3], "uint8")
    first = b.requantize(b.node("Relu", b.dequantize(x, 0.5, 100)), 0.5, 3)
    b.output(x, first, b.requantize(first, 1.0, 0), b.node("Identity", x))
    agree(b)


def test_unused_inputs_and_two_inputs() -> None:
    b = Builder()
    b.input("unused", ["N", 3], "bool")
    b.output(b.requantize(b.input("x", ["N", 3]), 0.5, 3), b.dequantize(b.input("y", ["N", 2], "int8"), 0.5, 3, "int8"))
    model = agree(b)
    assert [p.name for p in model.quantized.inputs] == ["x", "y"]  # as the model has them


def test_one_input_quantized_twice() -> None:
    b = Builder()
    x = b.input("x", ["N", 3])
    b.output(b.requantize(x, 0.5, 3), b.requantize(x, 1.0, 3))
    model = agree(b)
    assert [p.name for p in model.quantized.inputs] == ["x", "quantizelinear2"]


def test_a_dynamic_quantizer_of_a_constant_is_folded(tmp_path: Path) -> None:
    """Its range is known: weights [-1.0, 0.5, 1.55] have the scale 2.55 / 255 = 0.01 and the zero point 100."""
    b = Builder()
    x = b.requantize(b.input("x", ["N", 3]), 0.25, 5)
    q = b.node("DynamicQuantizeLinear", b.constant([[-1.0], [0.5], [1.55]]), outputs=["scale", "zero"])
    b.output(b.requantize(b.node("MatMul", x, b.node("DequantizeLinear", q, "scale", "zero")), 0.5, 3))
    (dense,) = [n for n in b.load(tmp_path).quantized.nodes if n.op == "dense"]
    assert dense.attributes.weights.tolist() == [[-100, 50, 155]]


def test_a_truncation_of_sums(tmp_path: Path) -> None:
    """floor(sum / 16) of sums from -12 to 1008 (four of -3 to 252): 11 bits hold them, with and without sign."""
    b = Builder()
    x = b.dequantize(b.input("x", ["N", 4], "uint8"), 0.5, 3)
    sums = b.node("MatMul", x, b.weights(np.ones((4, 1), int)), name="fc")
    b.declare("fc", ["N", 1])
    parameters = [b.constant(v) for v in (0.5, 0.0, 11.0, 7.0)]
    b.node("Trunc", sums, *parameters, name="t", domain="qonnx.custom_op.general")
    b.output(b.declare("t", ["N", 1]))
    graph = b.load(tmp_path).quantized
    frames = np.array([[0, 0, 0, 0], [3, 3, 3, 3], [7, 7, 7, 7], [255, 255, 255, 255]])
    assert golden.evaluate(graph, {"x": frames})["t"].tolist() == [[-1], [0], [1], [63]]


def test_float_operators_before_the_quantizer_stay_on_the_host() -> None:
    b = Builder()
    x, y = b.input("x", ["N", 3]), b.input("y", ["N", 3])
    left, right = b.node("Relu", x), b.node("Identity", y)
    b.output(b.requantize(b.node("Add", left, right), 0.5, 3))
    graph = agree(b).quantized
    assert graph.prefix == ("relu0", "identity1", "add2", "quantizelinear3")
    assert [port.value.origin for port in graph.inputs] == ["quantizelinear3"]


def test_convolution_of_accumulators() -> None:
    b = Builder()
    d = b.dequantize(b.input("x", ["N", 1, 3, 3], "int4"), 0.5, 0, "int4")
    c = b.node("Conv", d, b.weights(np.arange(4).reshape(1, 1, 2, 2), 0.5))
    b.output(b.requantize(b.node("Conv", c, b.weights([[[[3]], ], [[[-2]]]], 0.25)), 1.0, 9))
    b.opset = 21
    b.ir_version = 10
    agree(b)


@st.composite
def convolutions(draw: st.DrawFn) -> Builder:
    b = Builder(draw(st.integers(13, 21)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    few = st.integers(1, 3)
    channels, outputs, kernel = draw(few), draw(few), [draw(few), draw(few)]
    size = [draw(st.integers(1, 6)) for _ in kernel]
    dilations, strides = [draw(st.integers(1, 2)) for _ in kernel], [draw(few) for _ in kernel]
    pads = [draw(st.integers(0, 3)) for _ in range(4)]
    for axis in range(2):  # the window fits
        span = (kernel[axis] - 1) * dilations[axis] + 1
        pads[axis + 2] += max(0, span - size[axis] - pads[axis] - pads[axis + 2])
    kind = draw(st.sampled_from(KINDS[:2]))
    weight_kind = draw(st.sampled_from(KINDS[:2]))
    zero = int(integers(rng, kind, (1,))[0])
    x = b.requantize(b.input("x", ["N", channels, *size]), draw(st.sampled_from(FLOATS)), zero, kind)
    scales: Any = draw(st.sampled_from(FLOATS))
    zeros: Any = int(integers(rng, weight_kind, (1,))[0])
    if draw(st.booleans()):
        scales, zeros = rng.choice([0.0, *FLOATS], outputs), integers(rng, weight_kind, (outputs,))
    w = b.weights(integers(rng, weight_kind, (outputs, channels, *kernel)), scales, zeros, weight_kind, axis=0)
    inputs = [x, w]
    if draw(st.booleans()):
        inputs.append(b.constant(rng.normal(0, 50, outputs)))
    y = b.node("Conv", *inputs, pads=pads, strides=strides, dilations=dilations)
    if draw(st.booleans()):
        y = b.node("Relu", y)
    out_kind = draw(st.sampled_from(KINDS[:2]))
    y = b.requantize(y, draw(st.sampled_from([16.0, 7.3, 100.0])), int(integers(rng, out_kind, (1,))[0]), out_kind)
    b.output(y)
    return b


@settings(max_examples=40, deadline=None)
@given(convolutions(), st.integers(0, 100))
def test_any_convolution(builder: Builder, seed: int) -> None:
    agree(builder, seed)


@st.composite
def chains(draw: st.DrawFn) -> Builder:
    """Dense layers, functions, quantizers and shape operators in any order."""
    b = Builder(21)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    shape = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(1, 3)))]
    y = b.requantize(b.input("x", ["N", *shape]), draw(st.sampled_from(FLOATS)), 3, draw(st.sampled_from(KINDS)))
    steps = ["dense", "relu", "add", "channels", "flatten", "transpose"]
    for step in draw(st.lists(st.sampled_from(steps), max_size=5)):
        if step == "dense":
            outputs = draw(st.integers(1, 3))
            scales = rng.choice(FLOATS, outputs)
            w = b.weights(integers(rng, "int8", (shape[-1], outputs)), scales, [0] * outputs, axis=1)
            y, shape = b.node("MatMul", y, w), [*shape[:-1], outputs]
        elif step == "relu":
            y = b.node("Relu", y)
        elif step == "add":
            y = b.node("Add", y, b.constant(draw(st.sampled_from([0.5, -3.25, 0.1]))))
        elif step == "channels":
            axis = draw(st.integers(1, len(shape)))
            size = shape[axis - 1]
            y = b.requantize(b.requantize(y, 4.0, 9), rng.choice(FLOATS, size), rng.integers(0, 255, size), axis=axis)
        elif step == "flatten":
            y, shape = b.node("Flatten", y), [int(np.prod(shape))]
        elif len(shape) > 1:
            order = draw(st.permutations(range(len(shape))))
            y, shape = b.node("Transpose", y, perm=[0, *(a + 1 for a in order)]), [shape[a] for a in order]
        if draw(st.booleans()):
            y = b.requantize(y, draw(st.sampled_from([1.0, 10.0, 0.3])), int(rng.integers(0, 255)))
    b.output(b.requantize(y, 2.5, 77))
    return b


@settings(max_examples=60, deadline=None)
@given(chains(), st.integers(0, 100))
def test_any_chain(builder: Builder, seed: int) -> None:
    """Refusals are fine (a scale per channel before a product), wrong integers and other exceptions are not."""
    try:
        agree(builder, seed)
    except ModelRefused as refused:
        assert {f.rule for f in refused.findings} <= {
            "quantized-operand", "one-channel-axis", "stream-order", "operand-width", "weight-scales",
            "accumulator-range", "exact-levels", "row-scale",
        }


def test_inputs_say_what_their_integers_mean(tmp_path: Path) -> None:
    b = Builder()
    quantized = b.requantize(b.input("real", ["N", 4]), 0.5, 3)
    integers = b.dequantize(b.input("integers", ["N", 4], "uint8"), 0.25, 7)
    for x in (quantized, integers):
        b.output(b.requantize(b.node("MatMul", x, b.weights(np.ones((4, 2), int))), 1.0))
    ports = load(b.save(tmp_path)).quantized.inputs
    assert [(p.name, p.scale, p.zero_point) for p in ports] == [
        ("real", (Fraction(1, 2),), (Fraction(3),)),
        ("integers", (Fraction(1, 4),), (Fraction(7),)),
    ]
