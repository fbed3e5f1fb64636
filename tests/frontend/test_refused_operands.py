"""Refusals of what matrix products, sums and functions work on."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from tests.frontend.refusals import DECLARE, QUANTIZE, Cases, image
from tests.models import Builder

cases = Cases()


@cases(
    "error: node 'conv' (Conv): bias 'bias' must be a constant, not computed at run time "
    "[constant-parameter]\n"
    "  remedy: make it an initializer, or leave the node to the host, before the first or after "
    "the last quantizer",
)
def bias_at_run_time(b: Builder) -> str:
    bias = b.dequantize(b.input("b", ["M"], "uint8"), 1.0, name="bias")
    return b.node("Conv", image(b, 4, 2, 2), b.weights(np.ones((1, 4, 1, 1), int)), bias, name="conv")


@cases(
    "error: node 'fc' (Gemm): bias 'b' must be finite, not inf [finite-constant]\n"
    "  remedy: use a finite number (for an infinity, one that saturates the next quantizer)",
)
def bias_not_finite(b: Builder) -> str:
    return b.node("Gemm", image(b, 4), b.weights(np.ones((4, 2), int)), b.constant([1.0, np.inf], name="b"), name="fc")


@cases(
    "error: node 'add' (Add): the constant 'c' must be finite, not nan [finite-constant]\n"
    "  remedy: use a finite number (for an infinity, one that saturates the next quantizer)",
)
def addend_not_finite(b: Builder) -> str:
    return b.node("Add", image(b, 4), b.constant(np.nan, name="c"), name="add")


@cases(
    "error: node 'fc' (Gemm): alpha must be finite, not inf [finite-constant]\n"
    "  remedy: give it a finite number",
)
def factor_not_finite(b: Builder) -> str:
    return b.node("Gemm", image(b, 4), b.weights(np.ones((4, 2), int)), alpha=float("inf"), name="fc")


@cases(
    "error: node 'clip' (Clip): min 'low' must have one element, not 0 [clip-bound]\n"
    "  remedy: give one bound for all elements"
)
def clip_empty_bound(b: Builder) -> str:
    return b.requantize(b.node("Clip", image(b, 4), b.constant([], name="low"), name="clip"), 1.0)


@cases(
    "error: node 'clip' (Clip): min 'low' must be finite, not nan [finite-constant]\n"
    "  remedy: use a finite number (for an infinity, one that saturates the next quantizer)",
)
def clip_bound_not_finite(b: Builder) -> str:
    return b.requantize(b.node("Clip", image(b, 4), b.constant(np.nan, name="low"), name="clip"), 1.0)


@cases(
    "error: node 'clip' (Clip): min 'low' must be finite, not inf [finite-constant]\n"
    "  remedy: use a finite number (for an infinity, one that saturates the next quantizer)",
)
def clip_bound_of_the_wrong_sign(b: Builder) -> str:
    return b.requantize(b.node("Clip", image(b, 4), b.constant(np.inf, name="low"), name="clip"), 1.0)


@cases(
    "error: node 'fc' (MatMul): weights 'w' must be quantized (by a DequantizeLinear or a Quant), not float "
    "[quantized-weights]\n"
    "  remedy: quantize the weights too",
)
def weights_not_quantized(b: Builder) -> str:
    return b.node("MatMul", image(b, 4), b.constant(0.1 + np.arange(8).reshape(4, 2), name="w"), name="fc")


@cases(
    "error: node 'half' (Div): the divisor must not be 0 [divisor-zero]\n"
    "  remedy: divide by another number: division by 0 gives no real number",
    "error: node 'more' (Mul): the constant 'c' must be finite, not inf [finite-constant]\n"
    "  remedy: use a finite number (for an infinity, one that saturates the next quantizer)",
    "error: node 'inverse' (Div): a quantized constant must be combined with a constant that broadcasts over it, and "
    "not be a divisor [constant-arithmetic]\n"
    "  remedy: compute the weights before quantizing them",
)
def arithmetic_on_weights(b: Builder) -> str:
    x, w = image(b, 4), b.weights(np.ones((4, 4), int))
    x = b.node("MatMul", x, b.node("Div", w, b.constant(np.zeros(4)), name="half"))
    x = b.node("MatMul", x, b.node("Mul", w, b.constant(np.inf, name="c"), name="more"))
    return b.node("MatMul", x, b.node("Div", b.constant(np.ones((4, 4))), w, name="inverse"))


@cases(
    "error: node 'sign' (Sign): input 'q' must be the result of DequantizeLinear (or of operators after it), "
    "not an integer tensor without a scale [quantized-operand]\n"
    "  remedy: quantize the model so that QuantizeLinear and DequantizeLinear precede this node",
)
def function_of_integers(b: Builder) -> str:
    return b.node("Sign", b.quantize(b.input("x", ["N", 3]), 0.5, 3, "int8", name="q"), name="sign")


@cases(
    "error: node 'relu' (Relu): input 'w' must be computed at run time, not be a constant [stream-operand]\n"
    "  remedy: fold the node, or swap its operands if it has several (those of a matrix product transposed)",
)
def relu_of_a_constant(b: Builder) -> str:
    return b.node("Relu", b.weights([[1, 2]], name="w"), name="relu")


@cases(
    "error: node 'fc' (MatMul): input 'square' must be the result of DequantizeLinear (or of operators after it), "
    "not a float tensor [quantized-operand]\n"
    f"  remedy: {QUANTIZE}, or {DECLARE}",
)
def product_of_what_the_host_makes(b: Builder) -> str:
    x = b.input("x", ["N", 4])
    return b.node("MatMul", b.node("Mul", x, x, name="square"), b.weights(np.ones((4, 2), int)), name="fc")


@cases(
    "error: node 'fc' (MatMul): the inputs of MatMul must be rational numbers, not the result of Tanh for -1.5 "
    "[exact-levels]\n"
    "  remedy: insert QuantizeLinear and DequantizeLinear before 'fc'",
)
def product_behind_an_irrational_function(b: Builder) -> str:
    return b.node("MatMul", b.node("Tanh", image(b, 4), name="tanh"), b.weights(np.ones((4, 2), int)), name="fc")


@cases(
    "error: node 'fc' (MatMul): the inputs of MatMul must be quantized after Sigmoid, not left in "
    "float [quantized-operand]\n"
    "  remedy: insert QuantizeLinear and DequantizeLinear before 'fc'",
)
def product_behind_a_function_of_sums(b: Builder) -> str:
    sums = b.node("MatMul", image(b, 4), b.weights(np.ones((4, 4), int)))
    return b.node("MatMul", b.node("Sigmoid", sums), b.weights(np.ones((4, 2), int)), name="fc")


@cases(
    "error: node 'fc' (MatMul): the inputs of MatMul must be multiples, up to 32768 times, of a common divisor, "
    "not results of LeakyRelu (greatest common divisor: at most 3.73e-09) [exact-levels]\n"
    "  remedy: insert QuantizeLinear and DequantizeLinear before 'fc'",
)
def product_behind_a_function_of_many_levels(b: Builder) -> str:
    leaky = b.node("LeakyRelu", image(b, 4), alpha=0.1)
    return b.node("MatMul", leaky, b.weights(np.ones((4, 2), int)), name="fc")


@cases(
    # 1 / 16 * 13421773 / 2 ** 27: the negative half, which comes first, is as regular as can be
    "error: node 'fc' (MatMul): the inputs of MatMul must be multiples, up to 32768 times, of a common divisor, "
    "not results of LeakyRelu (greatest common divisor: at most 4.66e-10) [exact-levels]\n"
    "  remedy: insert QuantizeLinear and DequantizeLinear before 'fc'",
)
def product_behind_many_levels_of_wide_integers(b: Builder) -> str:
    wide = b.requantize(b.input("x", ["N", 4]), 1 / 16, 0, "int16")
    return b.node("MatMul", b.node("LeakyRelu", wide, alpha=0.1), b.weights(np.ones((4, 2), int)), name="fc")


@cases(
    "error: node 'fc' (MatMul): 'x' and 'y', both computed at run time, must have the same number of axes, "
    "those of matrices behind the frame axis, not 2 and 3 [frame-axis]\n"
    "  remedy: reshape both to (frames, ..., rows, columns)",
)
def product_of_streams_of_other_ranks(b: Builder) -> str:
    x = b.dequantize(b.input("i", ["N", 4], "int8"), 1.0, 0, "int8", name="x")
    y = b.dequantize(b.input("j", ["N", 4, 2], "int8"), 1.0, 0, "int8", name="y")
    return b.node("MatMul", x, y, name="fc")


@cases(
    "error: node 'fc' (Gemm): bias 'b' must have one element per output (2), not shape [2, 1] [bias-shape]\n"
    "  remedy: give one bias per output",
)
def bias_along_the_frame(b: Builder) -> str:
    bias = b.constant(np.ones((2, 1)), name="b")
    return b.node("Gemm", image(b, 4), b.weights(np.ones((4, 2), int)), bias, name="fc")


@cases(
    "error: node 'fc' (Gemm): transA must be 0, not 1 [gemm-trans-a]\n"
    "  remedy: transpose the first operand in the model",
)
def transposed_first_operand(b: Builder) -> str:
    return b.node("Gemm", image(b, 1), b.weights(np.ones((1, 2), int)), transA=1, name="fc")


@cases(
    "error: node 'fc' (Gemm): alpha must not be 0 [gemm-alpha]\n"
    "  remedy: remove the product",
)
def alpha_of_zero(b: Builder) -> str:
    return b.node("Gemm", image(b, 1), b.weights(np.ones((1, 2), int)), alpha=0.0, name="fc")


@cases(
    "error: node 'fc' (MatMul): input 'dequantizelinear1' must have axes besides the frame axis, which must "
    "not be summed over [frame-axis]\n"
    "  remedy: reshape to (frames, ...)",
)
def product_over_frames(b: Builder) -> str:
    return b.node("MatMul", b.requantize(b.input("x", ["N"]), 0.5), b.weights(np.ones((1, 1), int)), name="fc")


@cases(
    "error: node 'fc' (MatMul): the result must keep the frame axis first, not have shape [5, 2, 4] [frame-axis]\n"
    "  remedy: reshape to (frames, ...)",
)
def matrices_of_several_frames(b: Builder) -> str:
    return b.node("MatMul", image(b, 2, 3), b.weights(np.ones((5, 3, 4), int), name="w"), name="fc")


@cases(
    "error: node 'fc' (MatMul): the scales of weights 'w' within one output (and those of their factors) must "
    "have a common divisor that makes the weights integers of at most 40 bits, not of 50 [weight-scales]\n"
    "  remedy: use one scale per output, or scales that are powers of two apart",
)
def weight_scales_without_a_common_divisor(b: Builder) -> str:
    """0.1 and 3e-9 as float32 are 13421773 * 2**-27 and 13510799 * 2**-52."""
    w = b.weights(np.ones((2, 2), int), [0.1, 3e-9], axis=0, name="w")
    return b.node("MatMul", image(b, 2), w, name="fc")


@cases(
    "error: node 'add' (Add): the result must keep the frame axis first, not have shape [3, 2] [frame-axis]\n"
    "  remedy: reshape to (frames, ...)",
)
def constant_along_the_frames(b: Builder) -> str:
    return b.node("Add", image(b, 2), b.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), name="add")


@cases(
    "error: node 'add' (Add): the constant 'c4' must have no axes in front of the frame axis of 'dequantizelinear1', "
    "not shape [1, 1, 2] [frame-axis]\n"
    "  remedy: reshape it to [1, 2]",
)
def constant_that_adds_axes(b: Builder) -> str:
    return b.node("Add", image(b, 2), b.constant([[[1.0, 2.0]]]), name="add")


@cases(
    "error: node 'add' (Add): the scales of streams that are added must not be 0 [scale-range]\n"
    "  remedy: calibrate the model again",
)
def addends_of_scale_zero(b: Builder) -> str:
    y = b.dequantize(b.input("y", ["N", 4], "uint8"), 0.0)
    return b.node("Add", image(b, 4), y, name="add")


def sums(b: Builder) -> str:
    """An int32 tensor."""
    x = b.input("x", ["N", 4], "int8")
    return b.node("MatMulInteger", x, b.constant(np.ones((4, 3), int), "int8"), name="sums")


@cases(
    "error: node 'cast' (Cast): the target type must hold every value of int32 (or be real), not int8 [cast-types]\n"
    "  remedy: cast to a wider type",
)
def sums_in_a_narrow_type(b: Builder) -> str:
    return b.node("Cast", b.node("Cast", sums(b), to=TensorProto.INT8, name="cast"), to=TensorProto.FLOAT)


@cases(
    "error: node 'cast' (Cast): the target type must hold every value of the constant (or be real), not int8 "
    "[cast-types]\n"
    "  remedy: cast to a wider type",
)
def constant_that_wraps_around(b: Builder) -> str:
    levels = b.quantize(b.constant([[200.0], [1.0], [2.0], [3.0]]), 1.0)
    weights = b.dequantize(b.node("Cast", levels, to=TensorProto.INT8, name="cast"), 1.0, 0, "int8")
    return b.node("MatMul", image(b, 4), weights)


@cases(
    "error: node 'div' (Div): input 'sums' must be of a real type, not int32: products of integers wrap around, "
    "quotients lose their fraction [integer-arithmetic]\n"
    "  remedy: put a Cast to float before it",
)
def quotient_of_sums(b: Builder) -> str:
    return b.node("Cast", b.node("Div", sums(b), b.constant(7, "int32"), name="div"), to=TensorProto.FLOAT)


@pytest.mark.parametrize("name", list(cases))
def test_refusal(name: str) -> None:
    cases.verify(name)
