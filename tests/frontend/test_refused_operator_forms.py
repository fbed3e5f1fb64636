"""Refusals of what ONNX allows and hardware has no form for: operands that are all constant, scales and zero points
that vary along several axes, integers that the host computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.frontend.refusals import Cases, image
from tests.models import Builder

MS, QX = "com.microsoft", "qonnx.custom_op.general"
cases = Cases()


def rows(b: Builder, *shape: int, axis: int = 1) -> str:
    """A dequantized input with a scale for each index of an axis."""
    scales = np.arange(1, shape[axis - 1] + 1) * 0.1
    return b.requantize(b.input("x", ["N", *shape]), scales, np.zeros(len(scales)), axis=axis)


def resize(b: Builder, *inputs: str, **attributes: Any) -> str:
    return b.node("Resize", *inputs, name="resize", **attributes)


@cases(
    "error: node 'pad' (Pad): input 'dequantizelinear2' must be computed at run time, not be a constant "
    "[stream-operand]\n"
    "  remedy: fold the node",
)
def constant_padded(b: Builder) -> str:
    return b.node(
        "Add",
        image(b, 4),
        b.node("Pad", b.weights(np.ones((1, 2), int)), b.constant([0, 1, 0, 1], "int64"), name="pad"),
    )


@cases(
    "error: node 'pad' (Pad): a padded tensor must have one zero point, and one scale unless padded with 0, "
    "not one per channel [pad-scale]\n"
    "  remedy: quantize per tensor before the node",
)
def padded_with_several_zero_points(b: Builder) -> str:
    x = b.dequantize(
        b.quantize(b.input("x", ["N", 3, 4]), [0.1, 0.2, 0.3], [1, 2, 3], axis=1), [0.1, 0.2, 0.3], [1, 2, 3], axis=1
    )
    return b.node("Pad", x, b.constant([0, 0, 1, 0, 0, 1], "int64"), name="pad")


@cases(
    "error: node 'pad' (Pad): the inputs of Pad must be rational numbers, not the result of Log for -1.5 "
    "[exact-levels]\n"
    "  remedy: insert QuantizeLinear and DequantizeLinear before 'pad'",
)
def padded_behind_a_logarithm(b: Builder) -> str:
    return b.node("Pad", b.node("Log", image(b, 4)), b.constant([0, 1, 0, 1], "int64"), name="pad")


@cases(
    "error: node 'trilu' (Trilu): the inputs of Trilu must be rational numbers, not the result of Log for "
    "-1.5 [exact-levels]\n"
    "  remedy: insert QuantizeLinear and DequantizeLinear before 'trilu'",
)
def triangle_of_a_logarithm(b: Builder) -> str:
    return b.node("Trilu", b.node("Log", image(b, 3, 3)), name="trilu")


@cases(
    "error: node 'trilu' (Trilu): the inputs of Trilu must be rational numbers, not the result of Exp for "
    "-1.5 [exact-levels]\n"
    "  remedy: insert QuantizeLinear and DequantizeLinear before 'trilu'",
)
def triangle_of_an_exponential(b: Builder) -> str:
    return b.node("Trilu", b.node("Exp", image(b, 3, 3)), name="trilu")


@cases(
    "error: node 'trilu' (Trilu): the zero points of a constant must be integers, to represent 0 "
    "[zero-point-fraction]\n"
    "  remedy: compute the triangle before quantizing the constant",
)
def triangle_of_a_constant_that_has_no_zero(b: Builder) -> str:
    return b.node(
        "Add",
        image(b, 3, 3),
        b.node("Trilu", b.node("Add", b.weights(np.ones((3, 3), int)), b.constant(0.3)), name="trilu"),
    )


@cases(
    "error: node 'resize' (Resize): roi must have 8 elements, a start and an end for each axis, not 3 "
    "[resize-roi]\n"
    "  remedy: correct the constant",
)
def resize_of_another_rank_s_roi(b: Builder) -> str:
    return resize(
        b,
        image(b),
        b.constant([0, 0, 1], name="roi"),
        b.constant([1, 1, 2, 2]),
        coordinate_transformation_mode="tf_crop_and_resize",
    )


@cases(
    "error: node 'resize' (Resize): mode must be nearest for a bool tensor, not linear [resize-bool]\n"
    "  remedy: resize integers or reals",
)
def resize_of_bools(b: Builder) -> str:
    return b.node(
        "Cast",
        resize(b, b.node("Greater", image(b), b.constant(1.0)), "", b.constant([1, 1, 2, 2]), mode="linear"),
        to=1,
    )


@cases(
    "error: node 'resize' (Resize): weights must have a small common denominator, as for scales such as 2, "
    "1.5 or 0.5, not one of more than 40 bits in all [resize-weights]\n"
    "  remedy: give sizes instead of scales: their ratios are exact",
)
def resize_with_wide_weights(b: Builder) -> str:
    return resize(b, image(b), "", b.constant([1, 1, 0.3333, 0.37777]), mode="linear")


@cases(
    "error: node 'g' (GatherND): indices 'c4' must be vectors of 1 to 3 positions after -1 axes shared with "
    "'dequantizelinear1', not of shape [1, 3, 1] [indices-shape]\n"
    "  remedy: correct the constant, or batch_dims",
)
def gather_nd_of_negative_batch(b: Builder) -> str:
    return b.node(
        "GatherND",
        b.requantize(b.input("x", [1, 3]), 0.5),
        b.constant(np.zeros((1, 3, 1)), "int64"),
        batch_dims=-1,
        name="g",
    )


@cases(
    "error: node 'g' (GatherND): indices 'c4' must have the first 2 axes of 'dequantizelinear1', [1, 3], not "
    "[1, 2] [indices-shape]\n"
    "  remedy: correct the constant, or batch_dims",
)
def gather_nd_of_other_batches(b: Builder) -> str:
    return b.node(
        "GatherND",
        b.requantize(b.input("x", [1, 3, 4]), 0.25),
        b.constant(np.zeros((1, 2, 1)), "int64"),
        batch_dims=2,
        name="g",
    )


@cases(
    "error: node 'conv' (ConvTranspose): input 'dequantizelinear1' must have one scale and zero point per "
    "channel, not one per pixel [channel-scale]\n"
    "  remedy: quantize before the convolution",
)
def transposed_convolution_of_scales_per_pixel(b: Builder) -> str:
    return b.node("ConvTranspose", rows(b, 2, 2, 2, axis=3), b.weights(np.ones((2, 2, 3, 3), int)), name="conv")


@cases(
    "error: node 'mm' (MatMul): input 'mul2' must have scales and zero points that are the same in each row "
    "or in each column, not ones that differ in both [row-scale]\n"
    "  remedy: quantize per tensor before the matrix product",
)
def product_of_scales_per_row_and_column(b: Builder) -> str:
    return b.node(
        "MatMul", b.node("Mul", rows(b, 2, 3), b.constant([1, 2, 3])), b.weights(np.ones((3, 2), int)), name="mm"
    )


@cases(
    "error: node 'mm' (MatMul): input 'mul2' must have one scale per row, not per column, before a batch of "
    "matrices [row-scale]\n"
    "  remedy: quantize per tensor before the matrix product",
)
def batched_product_of_scales_per_column(b: Builder) -> str:
    return b.node(
        "MatMul",
        b.node("Mul", image(b, 2, 2, 3), b.constant([1.0, 2.0, 3.0])),
        b.weights(np.ones((2, 3, 2), int)),
        name="mm",
    )


@cases(
    "error: node 'e' (Einsum): one of the operands must be computed at run time, not all be constants "
    "[stream-operand]\n"
    "  remedy: compute the result when the model is exported",
)
def einsum_of_constants(b: Builder) -> str:
    return b.node(
        "Add",
        image(b, 2),
        b.node(
            "Einsum", b.weights(np.ones((1, 2), int)), b.weights(np.ones((2, 2), int)), equation="ij,jk->ik", name="e"
        ),
    )


@cases(
    "error: node 'e' (Einsum): axis 'j' of input 'dequantizelinear2' must have 3 elements, not 2 "
    "[einsum-sizes]\n"
    "  remedy: correct the shapes, or the equation",
)
def einsum_of_other_sizes(b: Builder) -> str:
    return b.node("Einsum", image(b, 3), b.weights(np.ones((2, 2), int)), equation="ij,jk->ik", name="e")


@cases(
    "error: node 'e' (Einsum): a frame of 'e' and 1 more of its shape must hold at most 8388608 elements, "
    "whose order the compiler keeps in memory, not 108000000000 [1, 4, 3000, 3000, 3000] [frame-size]\n"
    "  remedy: compile the model for smaller frames, tiles of an image for example",
    "error: node 'e' (Einsum): the product of constants must have at most 8388608 elements, not 27000000000 "
    "[contraction-size]\n"
    "  remedy: multiply them when the model is exported",
)
def einsum_of_large_constants(b: Builder) -> str:
    return b.node(
        "Einsum",
        image(b, 4),
        b.weights(np.ones((1, 3000), int)),
        b.weights(np.ones((1, 3000), int)),
        b.weights(np.ones((1, 3000), int)),
        equation="ni,ab,cd,ef->nibdf",
        name="e",
    )


@cases(
    "error: node 'p' (AveragePool): the pool's input must have one scale and zero point per channel, not one "
    "per pixel [pool-scale]\n"
    "  remedy: quantize before the pool",
)
def pool_of_scales_per_pixel(b: Builder) -> str:
    x = b.node("Mul", image(b, 1, 2, 2), b.constant([[[1.0, 2.0], [3.0, 4.0]]]))
    return b.node("AveragePool", x, kernel_shape=[2, 2], name="p")


@cases(
    "error: node 'conv' (Conv): weights 'dequantizelinear3' must be constant, not computed at run time "
    "[constant-weights]\n"
    "  remedy: make them an initializer, or leave the node to the host, before the first or after the last "
    "quantizer",
)
def weights_computed_at_run_time(b: Builder) -> str:
    return b.node("Conv", image(b, 2, 4, 4), b.requantize(b.input("w", [1, 2, 3, 3]), 0.5), name="conv")


@cases(
    "error: node 'c' (CumSum): axis must be a scalar, not of shape [1] [axis-scalar]\n  remedy: squeeze it",
)
def sum_along_a_vector_of_axes(b: Builder) -> str:
    return b.node("CumSum", image(b, 4), b.constant([1], "int64"), name="c")


@cases(
    "error: node 'c' (CumSum): axis must lie in [-2, 1], not be 2 [axis-range]\n  remedy: correct the constant",
)
def sum_along_no_axis(b: Builder) -> str:
    return b.node("CumSum", image(b, 4), b.constant(2, "int64"), name="c")


@cases(
    "error: node 'dp' (Dropout): the output 'mask' must be absent, not used [inference-mode]\n"
    "  remedy: export for inference",
)
def mask_of_a_dropout(b: Builder) -> str:
    y = b.node("Dropout", image(b), outputs=["mask"], name="dp")
    return b.node("Where", "mask", y, b.constant(0.0))


@cases(
    "error: node 'cast' (Cast): a dequantized constant must stay real, not become int32 [cast-types]\n"
    "  remedy: cast before quantizing",
)
def dequantized_constant_cast(b: Builder) -> str:
    return b.node(
        "Add", image(b, 2), b.node("Cast", b.node("Cast", b.weights(np.ones((1, 2), int)), to=6, name="cast"), to=1)
    )


@cases(
    "error: node 'w' (Where): the condition 'isnan1' must be computed in hardware [integer-operand]\n"
    "  remedy: compare quantized values",
)
def choice_by_the_host(b: Builder) -> str:
    return b.node(
        "Where", b.node("IsNaN", b.node("Exp", b.input("f", ["N", 3]))), image(b, 3), b.constant(0.0), name="w"
    )


@cases(
    "error: node 'q' (QuantizeLinear): zero point must be an integer, not a fraction [zero-point-type]\n"
    "  remedy: round it",
)
def zero_point_that_is_no_integer(b: Builder) -> str:
    return b.node("QuantizeLinear", image(b, 3), b.constant(0.5), b.constant(1.5, "float8e4m3fn"), name="q")


@cases(
    "error: node 'a' (QLinearAdd): one operand must be computed at run time, not both be constant "
    "[stream-operand]\n"
    "  remedy: compute the node's result when the model is exported",
)
def sum_of_quantized_constants(b: Builder) -> str:
    c = b.constant([1, 2], "uint8")
    s = b.constant(0.5)
    z = b.constant(1, "uint8")
    y = b.node("QLinearAdd", c, s, z, c, s, z, s, z, domain=MS, name="a")
    b.declare("a", [2], "uint8")
    return b.node("Add", image(b, 2), b.dequantize(y, 0.5))


@cases(
    "error: node 'a' (QLinearConcat): one operand must be computed at run time, not all be constant "
    "[stream-operand]\n"
    "  remedy: compute the node's result when the model is exported",
)
def quantized_constants_joined(b: Builder) -> str:
    c = b.constant([[1, 2]], "uint8")
    s = b.constant(0.5)
    z = b.constant(1, "uint8")
    y = b.node("QLinearConcat", s, z, c, s, z, c, s, z, axis=1, domain=MS, name="a")
    b.declare("a", [1, 4], "uint8")
    return b.node("Add", image(b, 4), b.dequantize(y, 0.5))


@cases(
    "error: node 'a' (QGemm): alpha must not be 0 [gemm-alpha]\n  remedy: remove the product",
)
def quantized_product_times_0(b: Builder) -> str:
    s = b.constant(0.5)
    z = b.constant(1, "uint8")
    q = b.quantize(b.input("x", ["N", 2]), 0.5, 1)
    b.declare("a", ["N", 2], "uint8")
    y = b.node("QGemm", q, s, z, b.constant(np.ones((2, 2)), "uint8"), s, z, "", s, z, alpha=0.0, domain=MS, name="a")
    return b.dequantize(y, 0.5)


@cases(
    "error: node 'a' (NhwcMaxPool): input 'cast1' must be an integer tensor in hardware [integer-operand]\n"
    "  remedy: put QuantizeLinear before it",
)
def pool_of_the_host_s_integers(b: Builder) -> str:
    b.declare("a", ["N", 1, 1, 2], "uint8")
    return b.dequantize(
        b.node(
            "NhwcMaxPool",
            b.node("Cast", b.node("Exp", b.input("f", ["N", 2, 2, 2])), to=2),
            kernel_shape=[2, 2],
            domain=MS,
            name="a",
        ),
        0.5,
    )


@cases(
    "error: node 'conv' (QLinearConv): scale 'c2' must have one element where there is a bias, not 2 "
    "[scale-shape]\n"
    "  remedy: give one scale for the input",
)
def bias_over_scales_per_channel(b: Builder) -> str:
    q = b.quantize(b.input("x", ["N", 2, 4, 4]), [0.5, 0.25], [0, 0], axis=1)
    s = b.constant([0.5, 0.25])
    z = b.constant([0, 0], "uint8")
    w = b.constant(np.ones((3, 2, 3, 3)), "int8")
    o = b.constant(0.5)
    oz = b.constant(0, "uint8")
    wz = b.constant(0, "int8")
    return b.dequantize(
        b.node("QLinearConv", q, s, z, w, o, wz, o, oz, b.constant([1, 2, 3], "int32"), name="conv"), 0.5
    )


@cases(
    "error: node 'a' (QLinearLeakyRelu): input 'c0' must be computed at run time, not a constant "
    "[stream-operand]\n"
    "  remedy: fold the node, or swap the operands",
)
def function_of_a_quantized_constant(b: Builder) -> str:
    c = b.constant([1, 2], "uint8")
    s = b.constant(0.5)
    z = b.constant(1, "uint8")
    y = b.node("QLinearLeakyRelu", c, s, z, s, z, domain=MS, name="a")
    b.declare("a", [2], "uint8")
    return b.node("Add", image(b, 2), b.dequantize(y, 0.5))


@cases(
    "error: node 'a' (ConvInteger): input 'cast1' must be an integer tensor, not a real one "
    "[quantized-operand]\n"
    "  remedy: put a QuantizeLinear before it",
)
def convolution_of_the_host_s_integers(b: Builder) -> str:
    return b.node(
        "Cast",
        b.node(
            "ConvInteger",
            b.node("Cast", b.node("Exp", b.input("f", ["N", 2, 4, 4])), to=2),
            b.constant(np.ones((3, 2, 3, 3)), "uint8"),
            name="a",
        ),
        to=1,
    )


@cases(
    "error: node 'ci' (ConvInteger): weights 'quantizelinear1' must be constant and input 'quantizelinear0' "
    "must not [constant-weights]\n"
    "  remedy: make them an initializer, or leave the node to the host, before the first or after the last "
    "quantizer",
)
def convolution_of_two_streams(b: Builder) -> str:
    return b.node(
        "Cast",
        b.node(
            "ConvInteger",
            b.quantize(b.input("x", ["N", 2, 4, 4]), 0.5),
            b.quantize(b.input("w", [1, 2, 3, 3]), 0.5),
            name="ci",
        ),
        to=1,
    )


@cases(
    "error: node 't' (Trunc): the output scale must be one for the tensor, not several [trunc-scale]\n"
    "  remedy: use Quant",
)
def truncated_to_several_scales(b: Builder) -> str:
    x = image(b, 2)
    b.declare("t", ["N", 2])
    return b.node(
        "Trunc",
        x,
        b.constant(0.5),
        b.constant(0.0),
        b.constant(8.0),
        b.constant([0.5, 1.0]),
        b.constant(4.0),
        domain=QX,
        name="t",
    )


@cases(
    "error: node 'log2', 't' (requantize): for inputs in [0, 255] the function must have a value everywhere, "
    "but it takes the logarithm of a number that is not positive [decidable-function]\n"
    "  remedy: keep its input where it is defined, with a Clip or another zero point say, or change its "
    "constants",
)
def truncated_logarithm(b: Builder) -> str:
    x = b.node("Log", image(b, 2))
    b.declare("t", ["N", 2])
    return b.node("Trunc", x, b.constant(0.5), b.constant(0.0), b.constant(8.0), b.constant(4.0), domain=QX, name="t")


@cases(
    "error: node 't' (MultiThreshold): out_scale must not be 0 [scale-range]\n"
    "  remedy: leave the node out: its result is out_bias everywhere",
)
def thresholds_of_scale_0(b: Builder) -> str:
    x = image(b, 2)
    b.declare("t", ["N", 2])
    return b.node("MultiThreshold", x, b.constant([[1.0, 2.0]]), domain=QX, out_scale=0.0, name="t")


@cases(
    "error: node 't' (Quant): the scale of an input must vary along one axis at most, not along several "
    "[input-scale]\n"
    "  remedy: quantize the input per tensor",
)
def input_of_scales_per_pixel(b: Builder) -> str:
    b.declare("t", ["N", 2, 2])
    return b.node(
        "Quant",
        b.input("x", ["N", 2, 2]),
        b.constant([[[0.1, 0.2], [0.3, 0.4]]]),
        b.constant(0.0),
        b.constant(4.0),
        domain=QX,
        name="t",
        signed=1,
        narrow=0,
        rounding_mode="ROUND",
    )


@cases(
    "error: node 'q' (DequantizeLinear): scale must broadcast over 'quantizelinear0' of shape [1, 3], not "
    "have shape [1, 2] [scale-shape]\n"
    "  remedy: give one per tensor, or one per index of an axis",
)
def scale_that_does_not_broadcast(b: Builder) -> str:
    return b.node("DequantizeLinear", b.quantize(b.input("x", ["N", 3]), 0.5), b.constant([[0.5, 0.5]]), name="q")


@cases(
    "error: node 'pad' (Pad): the frame axis must not be padded, not by [1, -1] [frame-axis]\n"
    "  remedy: pad within a frame",
)
def frames_moved_by_a_pad(b: Builder) -> str:
    return b.node("Pad", image(b, 3), b.constant([1, 0, -1, 0], "int64"), name="pad")


@cases(
    "error: node 'u' (MaxUnpool): input 'dequantizelinear1' must have frames, channels and spatial axes, not 2 axes "
    "[pool-rank]\n"
    "  remedy: reshape it to (frames, channels, ...)",
)
def unpooled_without_spatial_axes(b: Builder) -> str:
    made = helper.make_node("MaxUnpool", [image(b, 4), b.constant(np.zeros((1, 4)), "int64")], ["u"], name="u")
    made.attribute.append(helper.make_attribute("kernel_shape", [], attr_type=onnx.AttributeProto.INTS))
    b.nodes.append(made)
    return "u"


@cases(
    "error: node 'g' (GatherND): indices 'c4' must be vectors of 1 to 2 positions after 0 axes shared with "
    "'dequantizelinear1', not of shape [1, 0] [indices-shape]\n"
    "  remedy: correct the constant, or batch_dims",
)
def gathered_without_positions(b: Builder) -> str:
    return b.node("GatherND", image(b, 3), b.constant(np.zeros((1, 0)), "int64"), name="g")


@cases(
    "error: node 'm' (Mod): input 'cast3' must be an integer tensor in hardware or a constant, not a result of the "
    "host [integer-operand]\n"
    "  remedy: quantize it, or cast the other operand to float and quantize the result",
)
def remainder_by_the_host_s_integers(b: Builder) -> str:
    x = b.node("Cast", b.quantize(b.input("x", ["N", 3]), 0.5), to=6)
    return b.node("Cast", b.node("Mod", x, b.node("Cast", b.node("Exp", b.input("f", ["N", 3])), to=6), name="m"), to=1)


@cases(
    "error: node 'o' (OneHot): axis must lie within a frame, not be the frame axis 0 [frame-axis]\n"
    "  remedy: put the new axis behind the first one, and transpose on the host",
)
def one_hot_in_front_of_the_frames(b: Builder) -> str:
    x = b.node("Cast", b.quantize(b.input("f", ["N"]), 1.0), to=7)
    return b.node("OneHot", x, b.constant(1, "int64"), b.constant([0.0, 1.0]), axis=0, name="o")


@pytest.mark.parametrize("name", list(cases))
def test_refusal(name: str) -> None:
    cases.verify(name)
