"""Refusals of what matrix products, sums and functions work on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.refusals import Cases, image
from tests.models import Builder

cases = Cases()


@cases(
    "error: node 'fc' (Gemm): bias 'bias' must be a constant, not computed at run time "
    "[constant-parameter]\n"
    "  remedy: make it an initializer",
)
def bias_at_run_time(b: Builder) -> str:
    d = image(b, 4)
    bias = b.dequantize(b.input("b", ["M", 1], "uint8"), 1.0, name="bias")
    return b.node("Gemm", d, b.weights(np.ones((4, 1), int)), bias, name="fc")


@cases(
    "error: node 'fc' (Gemm): bias 'b' must be finite, not inf [finite-constant]\n"
    "  remedy: export the model again",
)
def bias_not_finite(b: Builder) -> str:
    return b.node("Gemm", image(b, 4), b.weights(np.ones((4, 2), int)), b.constant([1.0, np.inf], name="b"), name="fc")


@cases(
    "error: node 'add' (Add): the constant 'c' must be finite, not nan [finite-constant]\n"
    "  remedy: export the model again",
)
def addend_not_finite(b: Builder) -> str:
    return b.node("Add", image(b, 4), b.constant(np.nan, name="c"), name="add")


@cases(
    "error: node 'fc' (Gemm): alpha must be finite, not inf [finite-constant]\n"
    "  remedy: export the model again",
)
def factor_not_finite(b: Builder) -> str:
    return b.node("Gemm", image(b, 4), b.weights(np.ones((4, 2), int)), alpha=float("inf"), name="fc")


@cases(
    "error: node 'clip' (Clip): min 'low' must be finite, not nan [finite-constant]\n"
    "  remedy: export the model again",
)
def clip_bound_not_finite(b: Builder) -> str:
    return b.requantize(b.node("Clip", image(b, 4), b.constant(np.nan, name="low"), name="clip"), 1.0)


@cases(
    "error: node 'clip' (Clip): min 'low' must be finite, not inf [finite-constant]\n"
    "  remedy: export the model again",
)
def clip_bound_of_the_wrong_sign(b: Builder) -> str:
    return b.requantize(b.node("Clip", image(b, 4), b.constant(np.inf, name="low"), name="clip"), 1.0)


@cases(
    "error: node 'fc' (MatMul): weights 'w' must be quantized (integers behind a DequantizeLinear), not float "
    "[quantized-weights]\n"
    "  remedy: quantize the weights too",
)
def weights_not_quantized(b: Builder) -> str:
    return b.node("MatMul", image(b, 4), b.constant(np.ones((4, 2)), name="w"), name="fc")


@cases(
    "error: node 'relu' (Relu): input 'q' must be the result of DequantizeLinear (or of operators behind it), "
    "not an integer tensor without a scale [quantized-operand]\n"
    "  remedy: quantize the model so that QuantizeLinear and DequantizeLinear stand before this node",
)
def relu_of_integers(b: Builder) -> str:
    return b.node("Relu", b.quantize(b.input("x", ["N", 3]), 0.5, 3, "int8", name="q"), name="relu")


@cases(
    "error: node 'relu' (Relu): input 'w' must be the result of DequantizeLinear (or of operators behind it), "
    "not a constant [quantized-operand]\n"
    "  remedy: quantize the model so that QuantizeLinear and DequantizeLinear stand before this node",
)
def relu_of_a_constant(b: Builder) -> str:
    return b.node("Relu", b.weights([[1, 2]], name="w"), name="relu")


@cases(
    "error: node 'fc' (MatMul): input 'relu' must be quantized after Relu, not left in float [quantized-operand]\n"
    "  remedy: insert QuantizeLinear and DequantizeLinear on 'relu'",
)
def product_behind_a_function(b: Builder) -> str:
    return b.node("MatMul", b.node("Relu", image(b, 4), name="relu"), b.weights(np.ones((4, 2), int)), name="fc")


@cases(
    "error: node 'fc' (MatMul): input 'dequantizelinear1' must have one scale and one integer zero point, not "
    "several or a fraction [quantized-operand]\n"
    "  remedy: insert QuantizeLinear and DequantizeLinear with a scalar scale on 'dequantizelinear1'",
)
def product_of_several_scales(b: Builder) -> str:
    d = b.requantize(b.input("x", ["N", 4]), [0.5, 1.0, 1.0, 1.0], [0, 0, 0, 0])
    return b.node("MatMul", d, b.weights(np.ones((4, 2), int)), name="fc")


@cases(
    "error: node 'fc' (MatMul): input 'add' must have one scale and one integer zero point, not several or a "
    "fraction [quantized-operand]\n"
    "  remedy: insert QuantizeLinear and DequantizeLinear with a scalar scale on 'add'",
)
def product_of_a_fraction(b: Builder) -> str:
    d = b.node("Add", image(b, 4), b.constant(0.1), name="add")
    return b.node("MatMul", d, b.weights(np.ones((4, 2), int)), name="fc")


@cases(
    "error: node 'fc' (MatMul): weights 'yd' must be constant, not computed at run time [constant-weights]\n"
    "  remedy: make them an initializer",
)
def product_of_two_streams(b: Builder) -> str:
    y = b.dequantize(b.input("y", ["N", 4, 2], "int8"), 1.0, 0, "int8", name="yd")
    return b.node("MatMul", image(b, 3, 4), y, name="fc")


@cases(
    "error: node 'fc' (MatMul): weights 'w' must have one scale, or one for each index of output axis 1, not "
    "along another axis [weight-scale-axis]\n"
    "  remedy: quantize the weights per tensor or per output channel",
)
def weight_scale_along_inputs(b: Builder) -> str:
    w = b.weights(np.ones((4, 2), int), [1.0, 2.0, 3.0, 4.0], axis=0, name="w")
    return b.node("MatMul", image(b, 4), w, name="fc")


@cases(
    "error: node 'fc' (Gemm): bias 'b' must have one element an output (2), not shape [2, 1] [bias-shape]\n"
    "  remedy: give one bias for each output",
)
def bias_along_the_frame(b: Builder) -> str:
    bias = b.constant(np.ones((2, 1)), name="b")
    return b.node("Gemm", image(b, 4), b.weights(np.ones((4, 2), int)), bias, name="fc")


@cases(
    "error: node 'fc' (MatMul): the scale of 'd' must be greater than 0, not 0 [scale-range]\n"
    "  remedy: calibrate the model again",
)
def scale_of_zero_before_a_product(b: Builder) -> str:
    d = b.dequantize(b.input("x", ["N", 4], "uint8"), 0.0, 0, name="d")
    return b.node("MatMul", d, b.weights(np.ones((4, 2), int)), name="fc")


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
    "error: node 'fc' (MatMul): weights 'w' must be a matrix, not of 3 axes [matmul-rank]\n"
    "  remedy: use one matrix for all frames",
)
def weights_of_rank_3(b: Builder) -> str:
    return b.node("MatMul", image(b, 2, 3), b.weights(np.ones((1, 3, 4), int), name="w"), name="fc")


@cases(
    "error: node 'add' (Add): one operand must be a constant, not both computed at run time [add-constant]\n"
    "  remedy: sums of two streams are not supported yet",
)
def sum_of_two_streams(b: Builder) -> str:
    d = image(b, 4)
    return b.node("Add", d, d, name="add")


@cases(
    "error: node 'add' (Add): a constant behind Relu must be the same for all elements, not vary [add-constant]\n"
    "  remedy: quantize before the addition",
)
def constant_that_varies_behind_a_function(b: Builder) -> str:
    return b.node("Add", b.node("Relu", image(b, 2)), b.constant([1.0, 2.0]), name="add")


@cases(
    "error: node 'add' (Add): the constant must broadcast to one frame [1], not have shape [2] [add-constant]\n"
    "  remedy: use a bias of one element a channel",
)
def constant_that_widens_the_frame(b: Builder) -> str:
    return b.node("Add", image(b, 1), b.constant([1.0, 2.0]), name="add")


@cases(
    "error: node 'add' (Add): the constant must broadcast to one frame [2], not have shape [1, 1, 2] "
    "[add-constant]\n"
    "  remedy: use a bias of one element a channel",
)
def constant_that_adds_axes(b: Builder) -> str:
    return b.node("Add", image(b, 2), b.constant([[[1.0, 2.0]]]), name="add")


@pytest.mark.parametrize("name", list(cases))
def test_refusal(name: str) -> None:
    cases.verify(name)
