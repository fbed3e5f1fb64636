"""QONNX's operators on values worked out by hand from their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.onnxspec.dialect_operators.run import Array, evaluate

DOMAINS = ["qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"]
QONNX = DOMAINS[0]


def floats(*values: Any) -> Array:
    return np.array(values, np.float32)


def one(value: float) -> Array:
    return np.array(value, np.float32)


def quant(x: Array, scale: Array, zero: Array, bits: Array, op: str = "Quant", domain: str = QONNX, **more: Any) -> Any:
    return evaluate(domain, op, [x.reshape(1, -1), scale, zero, bits], **more).reshape(-1).tolist()


AWKWARD = floats(-2.5, -1.5, -1.25, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.25, 1.5, 2.5)
ROUNDED = {
    "ROUND": [-2, -2, -1, -1, 0, 0, 0, 0, 0, 1, 1, 2, 2],
    "HALF_EVEN": [-2, -2, -1, -1, 0, 0, 0, 0, 0, 1, 1, 2, 2],
    "CEIL": [-2, -1, -1, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3],
    "FLOOR": [-3, -2, -2, -1, -1, -1, 0, 0, 0, 0, 1, 1, 2],
    "UP": [-3, -2, -2, -1, -1, -1, 0, 1, 1, 1, 2, 2, 3],
    "DOWN": [-2, -1, -1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2],
    "ROUND_TO_ZERO": [-2, -1, -1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2],
    "HALF_UP": [-3, -2, -1, -1, -1, 0, 0, 0, 1, 1, 1, 2, 3],
    "HALF_DOWN": [-2, -1, -1, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2],
}


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("op", ["Quant", "IntQuant"])
@pytest.mark.parametrize("mode", ROUNDED)
def test_rounding_modes(mode: str, op: str, domain: str) -> None:
    parameters = one(1), one(0), one(8)
    assert quant(AWKWARD, *parameters, op, domain, rounding_mode=mode, signed=1, narrow=0) == ROUNDED[mode]
    assert quant(AWKWARD, *parameters, op, domain, rounding_mode=mode.lower(), signed=1, narrow=0) == ROUNDED[mode]


def test_just_below_a_half_is_not_rounded_up() -> None:
    """(|x| + 1/2) would round up to 1 in the same precision."""
    x = np.array([0.49999999999999994])
    found = evaluate(
        QONNX, "Quant", [x.reshape(1, 1), np.array(1.0), np.array(0.0), np.array(8.0)], rounding_mode="HALF_UP",
        signed=1, narrow=0,
    )
    assert found.tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("signed", "narrow", "bits", "least", "most"),
    [
        (1, 0, 8, -128, 127), (1, 1, 8, -127, 127), (0, 0, 8, 0, 255), (0, 1, 8, 0, 254), (1, 0, 3, -4, 3),
        (0, 0, 1, 0, 1), (1, 0, 16, -32768, 32767),
    ],
)
def test_limits(signed: int, narrow: int, bits: int, least: int, most: int) -> None:
    x = floats(-1e6, 1e6)
    assert quant(x, one(1), one(0), one(bits), signed=signed, narrow=narrow) == [least, most]


def test_zero_point_inside_the_rounding() -> None:
    """x / 2 + 1.5: -1.5, -0.5, 0.5, 1.5 for x = -6, -4, -2, 0; to even -2, 0, 0, 2; less 1.5, times 2."""
    assert quant(floats(-6, -4, -2, 0), one(2), one(1.5), one(4), signed=1, narrow=0) == [-7, -3, -3, 1]
    # an odd zero point: 0.5 + 1 = 1.5 rounds to 2, and 1.5 + 1 = 2.5 to 2
    assert quant(floats(0.5, 1.5), one(1), one(1), one(4), signed=1, narrow=0) == [1, 1]


def test_parameters_broadcast() -> None:
    """Channels of their own scale, zero point and bits: 5 / 2 = 2.5 + 1 = 3.5 -> 4; 5 / 0.5 = 10 -> 3 of 2 bits."""
    x = np.full((1, 2, 1, 1), 5, np.float32)
    found = evaluate(
        QONNX, "Quant",
        [x, floats(2, 0.5).reshape(1, 2, 1, 1), floats(1, 0).reshape(1, 2, 1, 1), floats(4, 2).reshape(1, 2, 1, 1)],
        signed=0, narrow=0,
    )
    assert found.reshape(-1).tolist() == [6, 1.5]


def test_one_signed_bit_is_a_sign() -> None:
    """The level is 1 where x / scale + zero point is at least 0, else -1."""
    assert quant(floats(-3, -0.1, 0, 0.1), one(0.5), one(0), one(1), signed=1, narrow=0) == [-0.5, -0.5, 0.5, 0.5]


@pytest.mark.parametrize("domain", DOMAINS)
def test_bipolar_quant(domain: str) -> None:
    x = floats(-2, -0.0, 0, 1e-30, 3).reshape(1, -1)
    assert evaluate(domain, "BipolarQuant", [x, one(0.25)]).tolist() == [[-0.25, 0.25, 0.25, 0.25, 0.25]]


@pytest.mark.parametrize(
    ("mode", "expected"), [("FLOOR", [-4, -3, 1, 2]), ("CEIL", [-3, -2, 2, 3]), ("ROUND", [-4, -2, 2, 2])]
)
def test_trunc_version_1(mode: str, expected: list[int]) -> None:
    """5 bits to 3: integers -14, -10, 6, 10 / 4 = -3.5, -2.5, 1.5, 2.5; the scale stays 0.5, and nothing saturates."""
    x = (floats(-14, -10, 6, 10) * 0.5).reshape(1, -1)
    found = evaluate(QONNX, "Trunc", [x, one(0.5), one(0), one(5), one(3)], rounding_mode=mode)
    assert found.reshape(-1).tolist() == [0.5 * level for level in expected]


def test_trunc_version_1_zero_point() -> None:
    """(3 / 1 + 2) / 4 = 1.25 -> 1, less the same zero point 2: -1. The default is FLOOR."""
    assert evaluate(QONNX, "Trunc", [floats(3).reshape(1, 1), one(1), one(2), one(6), one(4)]).tolist() == [[-1]]


def test_trunc_version_2() -> None:
    """Scale 0.5 to 2: integers -40, -14, 6, 60, plus 4, / 4 = -9, -2.5, 2.5, 16; 4 bits signed saturate to -8 and 7;
    FLOOR -8, -3, 2, 7; less the zero point 4 / 4, times 2."""
    x = (floats(-40, -14, 6, 60) * 0.5).reshape(1, -1)
    inputs: list[Array | None] = [x, one(0.5), one(4), one(8), one(2), one(4)]
    assert evaluate(QONNX, "Trunc", inputs, rounding_mode="FLOOR").tolist() == [[-18, -8, 2, 12]]
    assert evaluate(QONNX, "Trunc", inputs, rounding_mode="FLOOR", signed=0).tolist() == [[-2, -2, 2, 28]]
    assert evaluate(QONNX, "Trunc", inputs, rounding_mode="FLOOR", narrow=1).tolist() == [[-16, -8, 2, 12]]


def test_multi_threshold() -> None:
    """The count of thresholds that are not above the element, in each channel by its own."""
    x = floats([[[0, 0.5], [1, 2.5]], [[-3, -1], [0, 9]]])
    found = evaluate(QONNX, "MultiThreshold", [x, floats([0.5, 1, 2], [-2, -1, 9])], out_dtype="UINT2")
    assert found.tolist() == [[[[0, 1], [2, 3]], [[0, 2], [2, 3]]]]


def test_multi_threshold_scale_bias_layout() -> None:
    """2 * count - 1.5; channels last."""
    x = floats([[[[1, 1], [5, 5]]]])
    thresholds = floats([1, 2, 5], [2, 2, 6])
    x = x.reshape(1, 1, 2, 2)
    found = evaluate(
        QONNX, "MultiThreshold", [x, thresholds], out_scale=2.0, out_bias=-1.5, data_layout="NHWC", out_dtype="INT8"
    )
    assert found.tolist() == [[[[0.5, -1.5], [4.5, 2.5]]]]
    # one channel of thresholds for all, and equal thresholds count twice
    found = evaluate(QONNX, "MultiThreshold", [floats([0, 2, 3]), floats([2, 2, 3])], out_dtype="UINT2")
    assert found.tolist() == [[0, 2, 3]]


def test_wrong_parameters() -> None:
    x = floats([1.0])
    with pytest.raises(ValueError, match=r"rounding_mode must be one of .*, not 'NEAREST'"):
        evaluate(QONNX, "Quant", [x, one(1), one(0), one(8)], rounding_mode="NEAREST")
    with pytest.raises(ValueError, match="thresholds must be of 1 channel or 1, not 2"):
        evaluate(QONNX, "MultiThreshold", [x, floats([1], [2])])
    with pytest.raises(ValueError, match=r"Trunc must have 5 inputs \(version 1\) or 6 \(version 2\), not 4"):
        evaluate(QONNX, "Trunc", [x, one(1), one(0), one(8)])
    with pytest.raises(ValueError, match="input 3 must be present, but it is absent"):
        evaluate(QONNX, "Quant", [x, one(1), one(0)])
