"""Refusals of the QOperator, com.microsoft and QONNX dialects, and of float operators between quantizers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.refusals import Cases, image
from tests.models import Builder

cases = Cases()
QONNX, MICROSOFT = "qonnx.custom_op.general", "com.microsoft"


def quant(b: Builder, x: str, bits: float = 4, scale: float = 0.5, **attributes: object) -> str:
    """A QONNX quantizer called 'quant'."""
    parameters = b.constant(scale), b.constant(0.0), b.constant(bits)
    b.node("Quant", x, *parameters, name="quant", domain=QONNX, **attributes)
    return b.declare("quant", ["N", 4])


@cases(
    "error: node 'quant' (Quant): bitwidth must be one integer from 1 to 16, not [17.0] [bit-width]\n"
    "  remedy: quantize to fewer bits",
)
def quantizer_of_too_many_bits(b: Builder) -> str:
    return quant(b, image(b, 4), 17)


@cases(
    "error: node 'quant' (Quant): bitwidth must be one integer from 1 to 16, not [nan] [bit-width]\n"
    "  remedy: quantize to fewer bits",
)
def quantizer_of_bits_that_are_no_number(b: Builder) -> str:
    return quant(b, image(b, 4), np.nan)


@cases(
    "error: node 'quant' (Quant): rounding_mode must be one of ROUND, CEIL, FLOOR, UP, DOWN, HALF_UP, HALF_DOWN, "
    "ROUND_TO_ZERO, not 'STOCHASTIC' [rounding-mode]\n"
    "  remedy: use one of these",
)
def unknown_rounding_mode(b: Builder) -> str:
    return quant(b, image(b, 4), rounding_mode="stochastic")


@cases(
    "error: node 'quant' (Quant): scale must be greater than 0, not -0.5 [scale-range]\n"
    "  remedy: calibrate the model again",
)
def negative_scale_of_a_quantizer(b: Builder) -> str:
    return quant(b, image(b, 4), scale=-0.5)


@cases(
    "error: node 't' (MultiThreshold): thresholds must have shape [1 or 4, number], not [3, 2] [threshold-shape]\n"
    "  remedy: give one row of thresholds, or one per channel",
)
def thresholds_of_other_channels(b: Builder) -> str:
    b.node("MultiThreshold", image(b, 4), b.constant(np.zeros((3, 2))), name="t", domain=QONNX)
    return b.declare("t", ["N", 4])


@cases(
    "error: node 'dynamic' (DynamicQuantizeMatMul): operator must be one that hwflow supports, not "
    "com.microsoft.DynamicQuantizeMatMul: it measures its input's range at run time, and hardware's scales must be "
    "known when it is compiled [supported-operator]\n"
    "  remedy: quantize statically, for example with 'hwflow quantize' and calibration data",
    quantized=False,
)
def operator_that_not_even_the_host_runs(b: Builder) -> str:
    """It reads a float input, as what the host makes does, and nothing is left for hardware."""
    w, scale = b.constant(np.ones((4, 2), int), "int8"), b.constant(0.5)
    b.node("DynamicQuantizeMatMul", b.input("x", ["N", 4]), w, scale, name="dynamic", domain=MICROSOFT)
    return b.declare("dynamic", ["N", 2])


@cases(
    "error: node 't' (Trunc): the output scale must be a power of two times the scale, not 3 times [trunc-scale]\n"
    "  remedy: use Quant, which takes any scales",
)
def truncation_to_another_grid(b: Builder) -> str:
    parameters = [b.constant(v) for v in (0.5, 0.0, 8.0, 1.5, 4.0)]
    b.node("Trunc", quant(b, image(b, 4), 8), *parameters, name="t", domain=QONNX)
    return b.declare("t", ["N", 4])


@cases(
    "error: node 't' (Trunc): the output scale must be a power of two times the scale, not 1e+83 times [trunc-scale]\n"
    "  remedy: use Quant, which takes any scales",
)
def truncation_to_a_grid_far_away(b: Builder) -> str:
    parameters = [b.constant(v) for v in (np.float32(1e-45), 0.0, 8.0, np.float32(1.4012985e38), 4.0)]
    b.node("Trunc", quant(b, image(b, 4), 8), *parameters, name="t", domain=QONNX)
    return b.declare("t", ["N", 4])


@cases(
    "error: node 'quant' (Quant): bitwidth must be one integer from 1 to 16, not [nan] [bit-width]\n"
    "  remedy: quantize to fewer bits",
)
def bits_that_are_no_number(b: Builder) -> str:
    return quant(b, image(b, 4), float("nan"))


@cases(
    "error: node 'quant' (Quant): bitwidth must be one integer from 1 to 16, not [2.5] [bit-width]\n"
    "  remedy: quantize to fewer bits",
)
def half_a_bit(b: Builder) -> str:
    return quant(b, image(b, 4), 2.5)


@cases(
    "error: node 'm' (MatMul): the zero points of weights 'w' must leave integers of at most 40 bits, not of 152 "
    "[weight-zero-point]\n"
    "  remedy: use zero points that are small integers",
)
def zero_point_of_weights_with_many_digits(b: Builder) -> str:
    parameters = b.constant(0.5), b.constant(np.float32(1e-45)), b.constant(4.0)
    b.node("Quant", b.constant(np.ones((4, 4), np.float32)), *parameters, name="w", domain=QONNX)
    b.declare("w", [4, 4])
    return b.node("MatMul", image(b, 4), "w", name="m")


@cases(
    "error: node 'c' (QLinearConv): bias 'b' must have one element per output (2), not shape [1, 2] [bias-shape]\n"
    "  remedy: give one bias per output",
    quantized=False,
)
def bias_of_two_axes(b: Builder) -> str:
    scale, zero = b.constant(0.5), b.constant(0, "uint8")
    bias = b.constant(np.ones((1, 2)), "int32", "b")
    w = b.constant(np.ones((2, 1, 1, 1)), "int8"), scale, b.constant(0, "int8")
    return b.node("QLinearConv", b.input("x", ["N", 1, 2, 2], "uint8"), scale, zero, *w, scale, zero, bias, name="c")


@cases(
    "error: node 'y' (Celu): alpha must not be 0 [divisor-zero]\n"
    "  remedy: give it another value: the operator divides by it",
)
def celu_that_divides_by_zero(b: Builder) -> str:
    return b.node("Celu", image(b, 4), alpha=0.0, name="y")


@cases(
    "error: node 't' (requantize): for inputs in [0, 1020] the function must stay between the levels -17 and 17, but "
    "it reaches 17 [decidable-function]\n"
    "  remedy: keep its input where it is defined, with a Clip or another zero point say, or change its constants",
)
def truncation_of_sums_beyond_its_input(b: Builder) -> None:
    """Sums of four of -3 to 252 reach 1008, which 8 bits do not hold: 63 after four bits are dropped."""
    sums = b.node("MatMul", image(b, 4), b.weights(np.ones((4, 1), int)), name="fc")
    b.declare("fc", ["N", 1])
    parameters = [b.constant(v) for v in (0.5, 0.0, 8.0, 4.0)]
    b.node("Trunc", sums, *parameters, name="t", domain=QONNX)
    b.output(b.declare("t", ["N", 1]))


@cases(
    "error: node 'y' (DynamicQuantizeLinear): the range must be known when the model is compiled, not follow each "
    "input [static-range]\n"
    "  remedy: quantize statically, with QuantizeLinear and calibration data",
)
def range_that_follows_the_input(b: Builder) -> str:
    return b.node("DynamicQuantizeLinear", image(b, 4), name="y", outputs=["scale", "zero"])


@cases(
    "error: node 'sums' (MatMulInteger): sums must stay below 2**31 in magnitude, not reach 4278190080 [int32-sums]\n"
    "  remedy: sum fewer products",
)
def sums_beyond_int32(b: Builder) -> str:
    """255 * 128 * 131072."""
    x = b.input("x", ["N", 131072], "uint8")
    w = b.constant(np.full((131072, 1), -128), "int8")
    return b.node("Cast", b.node("MatMulInteger", x, w, name="sums"), to=1)


@cases(
    "error: node 'sums' (MatMulInteger): sums must stay below 2**31 in magnitude, not reach 4278190080 [int32-sums]\n"
    "  remedy: sum fewer products",
)
def sums_of_two_streams_beyond_int32(b: Builder) -> str:
    """255 * 128 * 131072."""
    x, w = b.input("x", ["N", 1, 131072], "uint8"), b.input("w", ["N", 131072, 1], "int8")
    return b.node("Cast", b.node("MatMulInteger", x, w, name="sums"), to=1)


@cases(
    "error: node 'g' (QGemm): transA must be 0, not 1 [gemm-trans-a]\n"
    "  remedy: transpose the first operand in the model",
)
def gemm_with_a_transposed_stream(b: Builder) -> str:
    half, zero, w = b.constant(0.5), b.constant(0, "uint8"), b.constant(np.ones((1, 3)), "uint8")
    x = b.input("x", ["N", 1], "uint8")
    b.node("QGemm", x, half, zero, w, half, zero, "", half, zero, name="g", domain=MICROSOFT, transA=1)
    return b.declare("g", ["N", 3], "uint8")


@cases(
    "error: node 'bn' (BatchNormalization): var + epsilon must be greater than 0, not -1 [variance-range]\n"
    "  remedy: take the statistics of a trained model: the root of the sum is a divisor",
)
def normalization_by_a_negative_variance(b: Builder) -> str:
    one = b.constant([1.0, 1.0])
    return b.node("BatchNormalization", image(b), one, one, one, b.constant([-1.0, 1.0]), name="bn", epsilon=0.0)


@cases(
    "error: node 'div' (Div): the divisor must not be 0 [divisor-zero]\n"
    "  remedy: divide by another number: division by 0 gives no real number",
)
def division_by_zero(b: Builder) -> str:
    return b.node("Div", image(b, 2), b.constant([1.0, 0.0]), name="div")


@cases(
    "error: node 'cast' (Cast): reals must become integers of at most 16 bits, not int32 [cast-types]\n"
    "  remedy: use QuantizeLinear",
)
def reals_cast_to_wide_integers(b: Builder) -> str:
    return b.node("Cast", image(b, 4), name="cast", to=6)


@cases(
    "error: node 'sqrt', 'last' (requantize): for inputs in [0, 255] the function must have a value everywhere, but it "
    "takes the square root of a negative number [decidable-function]\n"
    "  remedy: keep its input where it is defined, with a Clip or another zero point say, or change its constants",
)
def root_of_negative_numbers(b: Builder) -> str:
    return b.node("Sqrt", image(b, 4), name="sqrt")


@pytest.mark.parametrize("name", list(cases))
def test_refusal(name: str) -> None:
    cases.verify(name)
