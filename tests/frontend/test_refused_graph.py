"""Refusals of whole models, inputs, outputs and frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.api.checking import check
from hwflow.errors import ModelRefused
from hwflow.frontend.lower import lower
from hwflow.frontend.unquantized import refuse_unquantized
from hwflow.onnxspec.graphs.scopes import scopes
from tests.frontend.refusals import DECLARE, FLOAT_MODEL, QUANTIZE, Cases, conv, image
from tests.models import Builder
from tests.onnxspec.resolving.resolved import resolve

cases = Cases()

SMALLER = "[frame-size]\n  remedy: compile the model for smaller frames, tiles of an image for example"


@cases(
    "error: node 'fc' (MatMul): input 'x' must be the result of DequantizeLinear (or of operators after it), "
    "not a float graph input [quantized-operand]\n"
    f"  remedy: {QUANTIZE}, or {DECLARE}",
)
def float_input_meets_quantized_weights(b: Builder) -> str:
    return b.node("MatMul", b.input("x", ["N", 4]), b.weights(np.ones((4, 2), int)), name="fc")


@cases(
    FLOAT_MODEL,
    quantized=False,
)
def float_model(b: Builder) -> str:
    x = b.input("x", ["N", 2, 4, 4])
    c = b.node("Conv", x, b.constant(np.ones((3, 2, 3, 3))), name="conv")
    return b.node("Relu", c, name="relu")


@cases(
    FLOAT_MODEL,
    quantized=False,
)
def float_model_with_unsupported_operators(b: Builder) -> str:
    x = b.node("Tanh", b.input("x", ["N", 4]), name="tanh")
    return b.node("Softmax", b.node("Relu", x, name="relu"), name="softmax")


@cases(
    "error: node 'drawn' (Bernoulli): operator must be one that hwflow supports, not Bernoulli: it draws random "
    "numbers [supported-operator]\n  remedy: export the model for inference, or feed them as an input",
    "error: node 'again' (Bernoulli): operator must be one that hwflow supports, not Bernoulli: it draws random "
    "numbers [supported-operator]\n  remedy: export the model for inference, or feed them as an input",
    "error: node 'other' (RandomNormalLike): operator must be one that hwflow supports, not RandomNormalLike: it draws "
    "random numbers [supported-operator]\n  remedy: export the model for inference, or feed them as an input",
)
def unsupported_operators(b: Builder) -> None:
    d = image(b, 4)
    s = b.node("Bernoulli", d, name="drawn")
    t = b.node("Bernoulli", b.requantize(s, 0.5), name="again")
    w = b.weights(np.ones((4, 2), int))
    other = b.requantize(b.node("RandomNormalLike", d, name="other"), 0.5)
    b.output(b.node("MatMul", b.requantize(t, 0.5), w), b.node("MatMul", other, w))


@cases(
    "error: node 'div' (Div): the divisor must be known to differ from 0, not lie in [0, 128] [divisor-zero]\n"
    "  remedy: add a positive epsilon to it, subtract the maximum before Exp, or quantize the divisor's Reciprocal",
)
def refused_nodes_do_not_cascade(b: Builder) -> str:
    a = b.node("Div", image(b), b.requantize(b.input("y", ["N", 2, 4, 4]), 0.5), name="div")
    c = conv(b, b.requantize(b.node("Relu", a), 0.5))
    p = b.node("MaxPool", b.node("Clip", b.quantize(c, 0.5), b.constant(1, "uint8")), kernel_shape=[1, 1])
    f = b.node("Flatten", b.dequantize(b.node("Transpose", p, perm=[0, 2, 3, 1]), 0.5), name="flat")
    return b.requantize(b.node("Gemm", f, b.weights(np.ones((12, 1), int))), 1.0)


@cases(
    "error: input 'x': the input must have a leading frame axis, not be a scalar [frame-axis]\n"
    "  remedy: reshape to (frames, ...)",
)
def scalar_input(b: Builder) -> str:
    return b.node("Add", b.requantize(b.input("y", ["N", 2]), 0.5), b.requantize(b.input("x", []), 0.5))


@cases(
    FLOAT_MODEL,
    "error: input 'x': element type must be one of bfloat16, float16, float32, float64, int2, uint2, int4, uint4, "
    "int8, uint8, int16, "
    "uint16, int32, uint32, bool, not int64 [input-type]\n"
    "  remedy: convert the input on the host",
    quantized=False,
)
def wide_input(b: Builder) -> str:
    return b.node("Identity", b.input("x", ["N", 2], "int64"), name="id")


@cases(
    "error: node 'reshape' (Reshape): the result must keep the frame axis first, not have shape [2, 2] "
    "[frame-axis]\n"
    "  remedy: reshape to (frames, ...)",
)
def frame_axis_reshaped(b: Builder) -> str:
    return b.node("Reshape", image(b, 4), b.constant([2, 2], "int64"), name="reshape")


@cases(
    "error: node 'reshape' (Reshape): the result must keep the frame axis first, not have shape [2, 2] "
    "[frame-axis]\n"
    "  remedy: reshape to (frames, ...)",
)
def frame_axis_reshaped_on_the_host(b: Builder) -> str:
    return b.requantize(b.node("Reshape", b.input("x", ["N", 4]), b.constant([2, 2], "int64"), name="reshape"), 0.5)


@cases(
    "error: node 'transpose' (Transpose): perm must leave the frame axis 0 first, not be [1, 0, 2] "
    "[frame-axis]\n"
    "  remedy: transpose within a frame",
)
def frame_axis_transposed(b: Builder) -> str:
    return b.node("Transpose", image(b, 1, 4), perm=[1, 0, 2], name="transpose")


@cases(
    "error: node 'transpose' (Transpose): perm must be a permutation of the 3 axes, not [0, 1] [transpose-perm]\n"
    "  remedy: correct the attribute",
)
def perm_that_is_no_permutation(b: Builder) -> str:
    return b.node("Transpose", image(b, 1, 4), perm=[0, 1], name="transpose")


@cases(
    "error: model 'model': at least one output must be computed by hardware, not none: all are constants "
    "[hardware-operator]\n"
    "  remedy: there is nothing to compile",
)
def constant_outputs(b: Builder) -> None:
    image(b, 4)
    b.constant([[1.0]], name="c")
    b.output("c", b.weights([[1]], name="d"))


@cases(
    FLOAT_MODEL,
    quantized=False,
)
def input_as_float_output(b: Builder) -> str:
    b.requantize("x", 0.5)
    return b.input("x", ["N", 4])


@cases(
    "error: output 'y': the output must be quantized or follow from quantized values, not have scales that "
    "vary along two axes [quantized-output]\n"
    "  remedy: put QuantizeLinear and DequantizeLinear before the output",
    quantized=False,
)
def output_with_scales_along_two_axes(b: Builder) -> str:
    d = b.dequantize(b.input("x", ["N", 2, 2], "uint8"), [0.5, 1.0], [0, 0], axis=1)
    both = b.node("Mul", d, b.constant([1.0, 2.0]))
    return b.node("Concat", both, both, axis=1, name="y")


@cases(
    "error: node 'fc' (dense): its sums must lie within 62 bits, not in [-18446744065119617024, "
    "18446744056529682436] [accumulator-range]\n"
    "  remedy: quantize the operands to fewer bits, or insert QuantizeLinear and DequantizeLinear before the node",
)
def sums_of_too_many_bits(b: Builder) -> str:
    d = b.dequantize(b.input("x", ["N", 4], "int32"), 0.5, None)
    w = b.weights(np.full((4, 2), 2**31 - 1), 0.5, None, "int32")
    return b.node("MatMul", d, w, name="fc")


@cases(
    "error: node 'wide_input' (dense): inputs must have at most 32 bits, not 34 [operand-width]\n"
    "  remedy: quantize them to fewer bits",
)
def operands_of_too_many_bits(b: Builder) -> str:
    """Sums of four 32-bit inputs are the inputs of the second product."""
    d = b.dequantize(b.input("x", ["N", 4], "int32"), 0.5, None)
    first = b.node("MatMul", d, b.weights(np.ones((4, 2), int)), name="sums")
    return b.node("MatMul", first, b.weights(np.ones((2, 2), int)), name="wide_input")


@cases(
    "error: node 'drawn' (Bernoulli): operator must be one that hwflow supports, not Bernoulli: it draws random "
    "numbers [supported-operator]\n  remedy: export the model for inference, or feed them as an input",
    "error: node 'first' (Div): the divisor must be known to differ from 0, not lie in [-1.5, 126] [divisor-zero]\n"
    "  remedy: add a positive epsilon to it, subtract the maximum before Exp, or quantize the divisor's Reciprocal",
    "error: node 'fc' (MatMul): weights 'w' must be quantized (by a DequantizeLinear or a Quant), not float "
    "[quantized-weights]\n"
    "  remedy: quantize the weights too",
)
def faults_behind_refused_nodes(b: Builder) -> str:
    d = image(b, 4)
    drawn = b.requantize(b.node("Bernoulli", d, name="drawn"), 1.0)
    first = b.requantize(b.node("Div", drawn, d, name="first"), 1.0)
    second = b.requantize(b.node("Div", first, drawn, name="second"), 1.0)
    return b.node("MatMul", second, b.constant([[1.0, 0.1], [0.1, 1.0], [1, 1], [1, 1]], name="w"), name="fc")


@cases(
    "error: node 'r' (Reshape): 'r' [1, 1] must have as many elements as 'dequantizelinear1' [N, 2, 4, 3], which no "
    "size of its variables gives [SHP-10]\n"
    "  remedy: correct the size that is wrong, or give different sizes different variables",
)
def reshape_to_another_size(b: Builder) -> str:
    return b.requantize(b.node("Reshape", image(b, 2, 4, 3), b.constant([1, 1], "int64"), name="r"), 0.5)


@cases(
    "error: node 'r' (Reshape): 'r' [1, 1] must have as many elements as 'dequantizelinear1' [N, 2, 4, 3], which no "
    "size of its variables gives [SHP-10]\n"
    "  remedy: correct the size that is wrong, or give different sizes different variables",
)
def reshape_of_two_scales_to_another_size(b: Builder) -> str:
    d = b.requantize(b.input("x", ["N", 2, 4, 3]), [0.25, 0.5], [0, 0], axis=1)
    return b.requantize(b.node("Reshape", d, b.constant([1, 1], "int64"), name="r"), 0.5)


@cases(
    "error: input 'x': a frame of 'x' and 1 more of its shape must hold at most 8388608 elements, whose order the "
    f"compiler keeps in memory, not 1152921504606846976 [1, 1073741824, 1073741824] {SMALLER}",
    quantized=False,
)
def frames_of_absurd_size(b: Builder) -> str:
    return b.node("Relu", b.input("x", ["N", 1 << 30, 1 << 30], "int8"), name="relu")


@cases(
    "error: node 'large' (Conv): a frame of 'large' and 2 more of its shape must hold at most 8388608 elements, whose "
    f"order the compiler keeps in memory, not 12576768 [1, 3, 2048, 2047] {SMALLER}",
    *(
        f"error: node '{name}' (Conv): weights 'w' must be quantized (by a DequantizeLinear or a Quant), not float "
        "[quantized-weights]\n  remedy: quantize the weights too"
        for name in ("large", "small")
    ),
)
def frames_of_great_size_hide_nothing(b: Builder) -> str:
    x = b.requantize(b.input("x", ["N", 1, 2048, 2048]), 0.5, 3)
    w = b.constant(np.broadcast_to([0.1, 1.0], (3, 1, 1, 2)), name="w")
    large = b.node("Conv", x, w, name="large")
    pooled = b.node("MaxPool", b.requantize(large, 0.5), kernel_shape=[2, 2], strides=[2, 2])
    return b.node("Conv", b.node("Slice", pooled, *(b.constant([v], "int64") for v in (0, 1, 1))), w, name="small")


@cases(
    "error: node 'fc' (MatMul): weights 'w' must be quantized (by a DequantizeLinear or a Quant), not float "
    "[quantized-weights]\n"
    "  remedy: quantize the weights too",
    quantized=False,
)
def everything_left_to_the_host(b: Builder) -> str:
    fc = b.node("MatMul", image(b, 2), b.constant([[0.1], [1.0]], name="w"), name="fc")
    return b.node("Softmax", fc, name="softmax")


@pytest.mark.parametrize("name", list(cases))
def test_refusal(name: str) -> None:
    cases.verify(name)


def test_a_float_model_is_refused_alike_before_and_after_its_shapes_are_resolved() -> None:
    """Large float models are not resolved (see refuse_unquantized): the findings must be those that lowering gives."""
    b = Builder(21, 10)
    x = b.input("x", ["N", 2, 4, 4])
    b.node("Bernoulli", x, name="dead")
    shape = b.node("Concat", b.node("Shape", x, start=0, end=1), b.constant([32], "int64"), axis=0)
    flat = b.node("Reshape", b.node("Tanh", x, name="tanh"), shape)
    table = b.node("Sqrt", b.constant(np.ones((32, 3))), name="constant")
    b.output(b.node("Softmax", b.node("MatMul", flat, table), name="softmax"))
    model = b.build()
    with pytest.raises(ModelRefused) as early:
        refuse_unquantized(model, tuple(scopes(model)))
    with pytest.raises(ModelRefused) as late:
        lower(resolve(model, {}))
    assert early.value.findings == late.value.findings
    assert [f.where for f in late.value.findings] == ["model 'model'"]


def test_many_values_are_no_large_frame(tmp_path: Path) -> None:
    """80 M elements in all, of 4 M each."""
    b = Builder(21, 10)
    x = b.input("x", ["N", 1, 2048, 2048], "int8")
    for _ in range(19):
        x = b.node("Relu", x)
    b.output(x)
    assert not [finding for finding in check(b.save(tmp_path)) if finding.severity != "warning"]


def test_large_weights_are_no_frame(tmp_path: Path) -> None:
    """9 M of them, which a frame must not have."""
    b = Builder(21, 10)
    weights = b.weights(np.ones((3000, 3000), np.int8), 0.5)
    b.output(b.requantize(b.node("MatMul", b.requantize(b.input("x", ["N", 3000]), 0.5), weights), 0.5))
    assert not [finding for finding in check(b.save(tmp_path)) if finding.rule == "frame-size"]
