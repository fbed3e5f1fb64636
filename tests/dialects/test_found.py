"""What random networks have found, shrunk: each was wrong once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.errors import ModelRefused
from tests.dialects.checking import assert_exact
from tests.models import Builder

QONNX = "qonnx.custom_op.general"


def test_narrow_levels_of_an_input_in_a_padded_average(tmp_path: Path) -> None:
    """A table of the levels left -32 out, which the input could have been. Zero point 1/2: on a lattice."""
    b = Builder()
    x = b.input("x", ["N", 1, 1, 3])
    q = b.node("Quant", x, b.constant(0.5), b.constant(0.5), b.constant(6.0), domain=QONNX, signed=1, narrow=1)
    b.declare(q, ["N", 1, 1, 3])
    pool = b.node("AveragePool", q, kernel_shape=[1, 2], pads=[0, 0, 0, 1], count_include_pad=1)
    y = b.node("Quant", pool, b.constant(0.25), b.constant(0.0), b.constant(8.0), domain=QONNX, signed=1, narrow=0)
    b.output(b.declare(y, ["N", 1, 1, 3]))
    frames = [{"x": np.float32([[[row]]])} for row in ([-99, 99, -99], [0.25, 0.5, -0.25])]
    assert_exact(b.load(tmp_path), frames)


@pytest.mark.parametrize("signed", [0, 1])
def test_a_trunc_of_more_bits_than_it_says(tmp_path: Path, signed: int) -> None:
    """Nothing clamps its levels, whatever in_bitwidth is."""
    b = Builder()
    x = b.input("x", ["N", 4])
    q = b.node("Quant", x, b.constant(0.5), b.constant(0.0), b.constant(8.0), domain=QONNX, signed=signed)
    b.declare(q, ["N", 4])
    bits = [b.constant(4.0), b.constant(2.0)]
    y = b.node("Trunc", q, b.constant(0.5), b.constant(0.0), *bits, domain=QONNX, rounding_mode="CEIL")
    b.output(b.declare(y, ["N", 4]))
    assert_exact(b.load(tmp_path), [{"x": np.float32([row])} for row in ([-99, 99, -63.5, 63.5], [0.5, 5, 20, 200])])


def test_difference_of_two_streams_and_of_a_constant(tmp_path: Path) -> None:
    """Negated scales and constants of no dimensions were no arrays any more."""
    b = Builder()
    q = b.quantize(b.input("x", ["N", 3]), 0.5, 3)
    real = b.dequantize(q, 0.5, 3)
    other = b.requantize(b.node("Sub", b.constant(2.0), real), 0.25, 7)
    b.output(b.requantize(b.node("Sub", real, other), 0.75, 100))
    assert_exact(b.load(tmp_path), [{"x": np.float32([[-9, 4, 33]])}])


def test_sums_of_a_qlinear_operator_stand_for_no_value(tmp_path: Path) -> None:
    """Its integer result does: two values stood for that."""
    b = Builder()
    x = b.input("x", ["N", 2], "int8")
    half, zero = b.constant(0.5), b.constant(1, "int8")
    w = b.constant([[3, -5], [7, 2]], "int8")
    b.output(b.node("QLinearMatMul", x, half, zero, w, half, b.constant(0, "int8"), half, zero))
    model = b.load(tmp_path)
    assert [v.origin for v in model.quantized.values()].count(b.outputs[0]) == 1
    assert_exact(model, [{"x": np.int8([[-128, 127]])}])


def test_a_softmax_behind_what_is_refused_is_no_reason(tmp_path: Path) -> None:
    """The host would run it."""
    b = Builder()
    x = b.input("x", ["N", 2, 3, 3], "uint8")
    real = b.dequantize(x, [0.5, 0.25, 0.75], [3, 4, 5], axis=2)
    conv = b.node("Conv", real, b.weights(np.ones((1, 2, 3, 3))), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    b.output(b.node("Softmax", conv))
    with pytest.raises(ModelRefused) as refused:
        assert b.load(tmp_path).quantized
    assert [finding.rule for finding in refused.value.findings] == ["channel-scale"]
