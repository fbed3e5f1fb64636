"""Resize and Upsample: every form against ONNX's reference evaluator (or what stands in for it where it is wrong)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwflow.api.checking import check
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder, kind_of
from tests.reference_agreement import agree_with_reference

SHAPE = [2, 4, 6]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
TRANSFORMATIONS = [
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
]
APART = 0.3719
"""The scale of a quantizer to whose ties multiples of 0.5, and thirds and so on of it, do not come near."""


def resized(
    opset: int = 19, shape: Sequence[int] = SHAPE, *, roi: Sequence[float] = (), scales: Sequence[float] = (),
    sizes: Sequence[int] = (), scale: Any = 0.5, zero: Any = 3, axis: int = 1, to: float = APART, **attributes: Any,
) -> Builder:
    """Quantized numbers through a Resize named 'n', and out through a requantizer."""
    b = Builder(opset, 9)
    along = {"axis": axis} if np.ndim(scale) else {}
    x = b.requantize(b.input("x", ["N", *shape]), scale, zero, "int8", **along)
    inputs = [b.constant(roi) if roi or opset == 11 else "", b.constant(scales) if scales or opset == 11 else ""]
    if opset < 11:
        inputs = inputs[1:]
    if sizes:
        inputs.append(b.constant(sizes, "int64"))
    b.output(b.requantize(b.node("Resize", x, *inputs, name="n", **attributes), to, -7, "int8"))
    return b


def operators(builder: Builder) -> list[str]:
    """Of the dataflow graph, which agrees with the reference."""
    return [node.op for node in agree_with_reference(builder).nodes]


@pytest.mark.parametrize("sizes", [[1, 2, 7, 3], [1, 3, 4, 13], [1, 1, 1, 1]], ids=str)
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_nearest(transformation: str, rounding: str, sizes: list[int]) -> None:
    crop = {"roi": [0, 0, 0.1, -0.2, 1, 1, 0.8, 1.1]} if transformation == "tf_crop_and_resize" else {}
    builder = resized(
        sizes=sizes, coordinate_transformation_mode=transformation, nearest_mode=rounding, extrapolation_value=-3.5,
        **crop,
    )
    assert operators(builder) == ["rearrange", "requantize"]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    "scales", [[1, 1, 2, 2], [1, 1, 0.5, 4], [1, 2, 1, 1.5], [1, 0.5, 1.25, 2]], ids=str
)
def test_scales(scales: list[float], mode: str) -> None:
    agree_with_reference(resized(scales=scales, mode=mode))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_a_scale_that_float32_rounds(mode: str) -> None:
    """0.6 is 0.60000002384: no coordinate is the one of 3/5."""
    agree_with_reference(resized(shape=[1, 30], scales=[1, 1, 0.6], mode=mode))


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_weights(mode: str, transformation: str) -> None:
    crop = {"roi": [0, 0, 0.125, -0.25, 1, 1, 0.75, 1.5]} if transformation == "tf_crop_and_resize" else {}
    builder = resized(
        sizes=[1, 2, 7, 3], mode=mode, coordinate_transformation_mode=transformation, extrapolation_value=-3.5,
        cubic_coeff_a=-0.5, **crop,
    )
    agree_with_reference(builder)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(("antialias", "exclude"), [(1, 0), (0, 1), (1, 1)])
def test_antialias_and_exclude_outside(mode: str, antialias: int, exclude: int) -> None:
    attributes = {"antialias": antialias, "exclude_outside": exclude}
    agree_with_reference(resized(sizes=[1, 2, 2, 4], mode=mode, **attributes))
    agree_with_reference(resized(sizes=[1, 2, 4, 12], mode=mode, **attributes))


@pytest.mark.parametrize("shape", [[5], [2, 3], [2, 3, 2, 2], [1, 1, 1]], ids=str)
def test_ranks(shape: list[int]) -> None:
    agree_with_reference(resized(shape=shape, scales=[1, *[2] * len(shape)], mode="linear"))


def test_an_axis_of_one_element() -> None:
    assert operators(resized(shape=[2, 1, 3], scales=[1, 1, 4, 1], mode="linear")) == ["rearrange", "requantize"]


def test_nothing_to_do() -> None:
    assert operators(resized(scales=[1, 1, 1, 1], mode="cubic")) == ["requantize"]


@pytest.mark.parametrize("axes", [[2, 3], [3, 2], [-1, -2], [-1, 1]], ids=str)
def test_axes(axes: list[int]) -> None:
    agree_with_reference(resized(scales=[2, 1.5], axes=axes))
    agree_with_reference(resized(sizes=[5, 3], axes=axes, mode="linear"))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_aspect_ratio(mode: str, policy: str) -> None:
    agree_with_reference(resized(sizes=[9, 7], axes=[2, 3], keep_aspect_ratio_policy=policy, mode=mode))


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_operator_sets(opset: int) -> None:
    agree_with_reference(resized(opset, scales=[1, 1, 2, 1.5], nearest_mode="ceil"))
    agree_with_reference(resized(opset, sizes=[1, 2, 3, 12], mode="linear"))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [[1, 1, 2, 2], [1, 1, 0.5, 1.5]], ids=str)
def test_operator_set_10(scales: list[float], mode: str) -> None:
    agree_with_reference(resized(10, scales=scales, mode=mode))


def test_a_transformation_of_operator_set_11_alone() -> None:
    agree_with_reference(resized(11, scales=[1, 1, 2, 1.5], coordinate_transformation_mode="tf_half_pixel_for_nn"))


def test_operator_set_10_by_hand(tmp_path: Path) -> None:
    """ONNX 1.5's test resize_downsample_nearest: rows of 1 to 4 and 5 to 8 by 0.6 give 1 and 3."""
    model = resized(10, [1, 2, 4], scales=[1, 1, 0.6, 0.6], scale=1.0, zero=0, to=1.0).load(tmp_path)
    (found,) = golden.evaluate(model.quantized, {"x": np.arange(1, 9).reshape(1, 1, 2, 4)}).values()
    assert found.tolist() == [[[[1 - 7, 3 - 7]]]]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("scales", [[1.0, 1.0, 2.0, 3.0], [1.0, 1.5, 1.0, 1.25]], ids=str)
def test_upsample(scales: list[float], opset: int, mode: str, tmp_path: Path) -> None:
    """In QONNX, whose quantizers need no operator set of ONNX."""
    b = Builder(opset, 8)

    def quant(x: str, scale: float, shape: Sequence[int]) -> str:
        parameters = [b.constant(v) for v in (scale, 3.0, 8.0)]
        return b.declare(b.node("Quant", x, *parameters, domain="qonnx.custom_op.general"), ["N", *shape])

    x = quant(b.input("x", ["N", *SHAPE]), 0.5, SHAPE)
    shape = [int(n * s) for n, s in zip(SHAPE, scales[1:], strict=True)]
    if opset == 7:
        y = b.node("Upsample", x, mode=mode, scales=scales)
    else:
        y = b.node("Upsample", x, b.constant(scales), mode=mode)
    b.output(quant(b.declare(y, ["N", *shape]), APART, shape))
    result = compare(b.load(tmp_path), frames=3)
    assert (len(result.rows), result.mismatches) == (1, 0)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32"])
def test_integers_are_copied(kind: str) -> None:
    b = Builder(13)
    q = b.quantize(b.input("x", ["N", *SHAPE]), 0.5, 3, "int8")
    y = b.node("Resize", b.node("Cast", q, to=kind_of(kind)), "", b.constant([1, 1, 2, 1.5]))
    b.output(b.node("Cast", y, to=kind_of("int32")))
    agree_with_reference(b)


def test_bools_are_copied() -> None:
    b = Builder(13)
    q = b.quantize(b.input("x", ["N", *SHAPE]), 0.5, 3, "int8")
    y = b.node("Resize", b.node("Cast", q, to=kind_of("bool")), "", b.constant([1, 1, 2, 2]))
    b.output(b.node("Cast", y, to=kind_of("int8")))
    agree_with_reference(b)


@pytest.mark.parametrize(("mode", "kind"), [("linear", "int8"), ("cubic", "uint8"), ("cubic", "int8")])
def test_means_of_integers_are_rounded(mode: str, kind: str) -> None:
    """Ties to even; a cubic mean saturates."""
    b = Builder(13)
    q = b.quantize(b.input("x", ["N", *SHAPE]), 0.5, 3, kind)
    b.output(b.dequantize(b.node("Resize", q, "", b.constant([1, 1, 2, 2]), mode=mode), 0.5, 3, kind))
    agree_with_reference(b)


def test_the_extrapolation_value_of_integers() -> None:
    """It saturates."""
    b = Builder(13)
    q = b.quantize(b.input("x", ["N", 5]), 0.5, 3, "int8")
    more = b.constant([0, -0.5, 1, 2]), "", b.constant([1, 9], "int64")
    y = b.node("Resize", q, *more, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=300.0)
    b.output(b.dequantize(y, 0.5, 3, "int8"))
    agree_with_reference(b)


def test_scales_of_channels_stay() -> None:
    agree_with_reference(resized(scales=[1, 1, 2, 2], mode="linear", scale=[0.5, 2.0], zero=[4, -3]))
    agree_with_reference(resized(scales=[1, 2, 2, 1], scale=[0.5, 2.0], zero=[4, -3]))


def test_between_a_relu_and_a_convolution() -> None:
    """Without quantizers between: the zero point is multiplied, the Relu tabulated."""
    b = Builder(19, 9)
    x = b.node("Relu", b.requantize(b.input("x", ["N", *SHAPE]), 0.5, 3, "int8"))
    y = b.node("Resize", x, "", b.constant([1, 1, 2, 2]), mode="linear")
    c = b.node("Conv", y, b.weights(np.arange(54).reshape(3, 2, 3, 3) - 20, 0.5), pads=[1, 1, 1, 1])
    b.output(b.requantize(c, 16.0, 5, "int8"))
    agree_with_reference(b)


def test_sums_move_behind_what_is_cropped() -> None:
    """Linear within the region of interest along one axis, one element outside of it along another."""
    builder = resized(
        sizes=[1, 2, 6, 1], roi=[0, 0, 0.25, 0.5, 1, 1, 1.5, 0.5], mode="linear", extrapolation_value=2.5,
        coordinate_transformation_mode="tf_crop_and_resize",
    )
    assert operators(builder) == ["rearrange", "position_sum", "rearrange", "position_sum", "rearrange", "requantize"]


def test_an_element_that_floats_miss(tmp_path: Path) -> None:
    """Element 8 of 17, made of 7, lies at (7 * 8 - 5) / 17 = 3."""
    model = resized(shape=[7], sizes=[1, 17], nearest_mode="floor", scale=1.0, zero=0, to=1.0).load(tmp_path)
    (found,) = golden.evaluate(model.quantized, {"x": np.arange(7)[None]}).values()
    assert found.tolist() == [[max(0, (7 * k - 5) // 17) - 7 for k in range(17)]]
    result = compare(model, frames=2)
    assert (result.mismatches, result.unexplained) == (0, 0)


REFUSED: dict[str, tuple[Callable[[], Builder], str]] = {
    "frames": (
        lambda: resized(scales=[1.5, 1, 2, 1]),
        "the frame axis 0 must keep its scale of 1 [frame-axis]\n  remedy: resize within a frame: leave axis 0 out",
    ),
    "mode": (
        lambda: resized(scales=[1, 1, 2, 2], mode="bilinear"),
        "mode must be nearest, linear or cubic, not 'bilinear' [resize-mode]\n  remedy: correct the attribute",
    ),
    "transformation": (
        lambda: resized(18, scales=[1, 1, 2, 2], coordinate_transformation_mode="half_pixel_symmetric"),
        "coordinate_transformation_mode must be half_pixel, pytorch_half_pixel, align_corners, asymmetric or "
        "tf_crop_and_resize, not 'half_pixel_symmetric' [resize-mode]\n  remedy: correct the attribute",
    ),
    "old_transformation": (
        lambda: resized(13, scales=[1, 1, 2, 2], coordinate_transformation_mode="tf_half_pixel_for_nn"),
        "coordinate_transformation_mode must be half_pixel, pytorch_half_pixel, align_corners, asymmetric or "
        "tf_crop_and_resize, not 'tf_half_pixel_for_nn' [resize-mode]\n  remedy: correct the attribute",
    ),
    "weights": (
        lambda: resized(scales=[1, 1, 0.6, 1.7], mode="linear"),
        "weights must have a small common denominator, as for scales such as 2, 1.5 or 0.5, not one of more "
        "than 40 bits in all [resize-weights]\n  remedy: give sizes instead of scales: their ratios are exact",
    ),
    "outside": (
        lambda: resized(scales=[1, 1, 2, 2], nearest_mode="floor", exclude_outside=1),
        "exclude_outside must be 0 where the nearest element is outside: no weight is left to normalize "
        "[resize-outside]\n  remedy: leave the attribute out",
    ),
    "region": (
        lambda: resized(
            scales=[1, 1, 2, 2], roi=[0, 0, 0, 0, 1, 1, 0.5, 1], coordinate_transformation_mode="tf_crop_and_resize"
        ),
        "axis 2 of the result must have 4 elements, not 8 as by onnx's shape inference [resize-size]\n"
        "  remedy: give sizes instead of scales",
    ),
    "scale": (
        lambda: resized(scales=[1, 1, 2, 1], mode="linear", scale=[0.5, 1, 2, 4], zero=[1, 2, 3, 4], axis=2),
        "a resized tensor must have one scale and zero point along the resized axes, not several "
        "[resize-scale]\n  remedy: quantize per tensor or per channel before the node",
    ),
    "extrapolation": (
        lambda: resized(
            sizes=[1, 2, 9, 6], roi=[0, 0, -0.5, 0, 1, 1, 1, 1], extrapolation_value=0.3,
            coordinate_transformation_mode="tf_crop_and_resize",
        ),
        "the constant must be a multiple of the operand's scale, not 0.300000012 [pad-value]\n"
        "  remedy: pad with a number that the preceding quantizer can represent",
    ),
}


def test_upsample_does_not_shrink(tmp_path: Path) -> None:
    b = Builder(9, 8)
    y = b.node("Upsample", b.input("x", ["N", 2, 4], "int8"), b.constant([1.0, 1.0, 0.5]), name="n")
    b.output(b.node("Upsample", y, b.constant([1.0, 1.0, 2.0])))
    assert [str(f) for f in check(b.save(tmp_path))] == [
        "unsupported: node 'n' (Upsample): scales must be at least 1, not 0.5 [upsample-scale]\n"
        "  remedy: use Resize to shrink an axis"
    ]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    make, text = REFUSED[name]
    assert [str(f) for f in check(make().save(tmp_path))] == [f"unsupported: node 'n' (Resize): {text}"]
