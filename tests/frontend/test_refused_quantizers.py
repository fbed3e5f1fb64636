"""Refusals of QuantizeLinear, DequantizeLinear and Clip."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.refusals import Cases
from tests.models import Builder

cases = Cases()


@cases(
    "error: node 'q' (QuantizeLinear): scale 's' must be a constant, not computed at run time "
    "[constant-parameter]\n"
    "  remedy: make it an initializer, or leave the node to the host, before the first or after "
    "the last quantizer",
)
def scale_at_run_time(b: Builder) -> str:
    return b.node("QuantizeLinear", b.input("x", ["N", 3]), b.input("s", [1]), name="q")


@cases(
    "error: node 'd' (DequantizeLinear): zero point 'z' must be a constant, not computed at run time "
    "[constant-parameter]\n"
    "  remedy: make it an initializer, or leave the node to the host, before the first or after "
    "the last quantizer",
)
def zero_point_at_run_time(b: Builder) -> str:
    q = b.quantize(b.input("x", ["N", 3]), 0.5, 3)
    return b.node("DequantizeLinear", q, b.constant([0.5]), b.input("z", [1], "uint8"), name="d")


@cases(
    "error: node 'q' (QuantizeLinear): scale must have one element per block of 2 along axis 1 of 'x', shape "
    "[1, 2], not [1, 3] [scale-shape]\n"
    "  remedy: correct block_size or the scale",
)
def blocked_scales_of_another_shape(b: Builder) -> str:
    return b.quantize(b.input("x", ["N", 4]), [[0.5, 1.0, 1.0]], [[0, 0, 0]], axis=1, block_size=2, name="q")


@cases(
    "error: node 'q' (QuantizeLinear): zero point must have the scale's shape [2], not [] [zero-point-shape]\n"
    "  remedy: give both the same shape",
)
def zero_points_of_another_shape(b: Builder) -> str:
    return b.quantize(b.input("x", ["N", 2]), [0.5, 1.0], 0, name="q")


@cases(
    "error: node 'q' (QuantizeLinear): scale must be finite, not inf [scale-range]\n"
    "  remedy: calibrate the model again",
)
def scale_infinite(b: Builder) -> str:
    return b.quantize(b.input("x", ["N", 2]), [0.5, np.inf], [0, 0], name="q")


@cases(
    "error: node 'd' (DequantizeLinear): scale must be finite, not nan [scale-range]\n"
    "  remedy: calibrate the model again",
)
def scale_not_a_number(b: Builder) -> str:
    return b.dequantize(b.input("x", ["N", 2], "uint8"), np.nan, 0, name="d")


@cases(
    "error: node 'q' (QuantizeLinear): scale must not be 0 [scale-range]\n"
    "  remedy: calibrate the model again",
)
def scale_zero_of_a_quantizer(b: Builder) -> str:
    return b.quantize(b.input("x", ["N", 2]), 0.0, 0, name="q")


@cases(
    "error: node 'q' (QuantizeLinear): axis must be one of the 2 axes of 'x', not 2 [scale-axis]\n"
    "  remedy: correct the axis",
)
def scale_axis_out_of_range(b: Builder) -> str:
    return b.quantize(b.input("x", ["N", 2]), [0.5, 1.0], [0, 0], axis=2, name="q")


@cases(
    "error: node 'q' (QuantizeLinear): scale must have one element or 2 (axis 1 of 'x'), not shape [3] "
    "[scale-shape]\n"
    "  remedy: give one scale per index of the axis",
)
def scale_of_another_length(b: Builder) -> str:
    return b.quantize(b.input("x", ["N", 2]), [0.5, 1.0, 1.0], [0, 0, 0], name="q")


@cases(
    "error: node 'q' (QuantizeLinear): scale must have one element or 1 (axis 0 of 'x'), not shape [3] "
    "[scale-shape]\n"
    "  remedy: give one scale per index of the axis",
)
def scale_along_frames(b: Builder) -> str:
    return b.quantize(b.input("x", ["N", 2]), [0.5, 1.0, 1.0], [0, 0, 0], axis=0, name="q")


@cases(
    "error: node 'q' (QuantizeLinear): 'q' must be of an integer type (int2, uint2, int4, uint4, int8, uint8, "
    "int16, uint16, int32, uint32), not float8e4m3fn [integer-type]\n"
    "  remedy: use another quantized type",
)
def quantizer_to_float8(b: Builder) -> str:
    return b.quantize(b.input("x", ["N", 2]), 0.5, 0.0, "float8e4m3fn", name="q")


@cases(
    "error: node 'q' (QuantizeLinear): 'q' must be of an integer type (int2, uint2, int4, uint4, int8, uint8, "
    "int16, uint16, int32, uint32), not float8e4m3fn [integer-type]\n"
    "  remedy: use another quantized type",
)
def network_of_float8(b: Builder) -> str:
    """One reason is enough: nothing is wrong with the product."""
    q = b.quantize(b.input("x", ["N", 2]), 0.5, 0.0, "float8e4m3fn", name="q")
    x = b.dequantize(q, 0.5, 0.0, "float8e4m3fn")
    return b.node("MatMul", x, b.weights(np.ones((2, 3), int)))


@pytest.mark.parametrize("name", list(cases))
def test_refusal(name: str) -> None:
    cases.verify(name)
