"""QONNX's operators for ONNX's reference evaluator. Source: the QONNX operator definitions and their semantics there.

An element of the result is scale * (level - zero point); a level is a rounded quotient. Both are computed in float64;
results are rounded once more, to the input's type. All parameters broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from hwflow.display import show
from hwflow.onnxspec.dialect_operators.call_arguments import Attributes, Inputs
from hwflow.onnxspec.dialect_operators.quantizer_levels import Floats


def _towards_zero(x: Floats) -> Floats:
    return np.trunc(x)


def _away(x: Floats) -> Floats:
    return np.copysign(np.ceil(np.abs(x)), x)


def _nearest(x: Floats, away: bool) -> Floats:
    """Round to nearest, ties away from or towards zero. The fraction of a float is exact, so no addition rounds."""
    size = np.abs(x)
    whole = np.floor(size)
    up = size - whole >= 0.5 if away else size - whole > 0.5
    result: Floats = np.copysign(whole + up, x)
    return result


ROUNDING: Mapping[str, Callable[[Floats], Floats]] = {
    "ROUND": np.rint,
    "HALF_EVEN": np.rint,
    "CEIL": np.ceil,
    "FLOOR": np.floor,
    "UP": _away,
    "DOWN": _towards_zero,
    "ROUND_TO_ZERO": _towards_zero,
    "HALF_UP": lambda x: _nearest(x, True),
    "HALF_DOWN": lambda x: _nearest(x, False),
}
"""Rounding modes by their names in QONNX, which may also be lower case."""


@dataclass(frozen=True)
class RealLevels:
    """``quotient``: the number to round, with the zero point added; ``level``: the non-decreasing function from
    quotients to levels; a level represents ``scale`` * (level - ``zero_point``) + ``offset``."""

    quotient: Floats
    level: Callable[[Floats], Floats]
    scale: Floats
    zero_point: Floats
    offset: float = 0.0

    def real(self, quotient: Floats | None = None) -> Floats:
        levels = self.level(self.quotient if quotient is None else quotient)
        result: Floats = self.scale * (levels - self.zero_point) + self.offset
        return result


def _float(inputs: Inputs, index: int) -> Floats:
    array = inputs[index] if index < len(inputs) else None
    if array is None:
        raise ValueError(f"input {index} must be present, but it is absent")
    return np.asarray(array).astype(np.float64)


def _rounding(attributes: Attributes, default: str) -> Callable[[Floats], Floats]:
    mode = attributes.get("rounding_mode", default)
    mode = mode.decode() if isinstance(mode, bytes) else mode
    if str(mode).upper() not in ROUNDING:
        raise ValueError(f"rounding_mode must be one of {', '.join(ROUNDING)}, not {show(mode)}")
    return ROUNDING[str(mode).upper()]


def _limits(bits: Floats, attributes: Attributes) -> tuple[Floats, Floats]:
    """Return the lowest and highest level of ``bits`` bits."""
    narrow = int(bool(attributes.get("narrow", 0)))
    if attributes.get("signed", 1):
        half = 2.0 ** (bits - 1)
        return narrow - half, half - 1
    return 0 * bits, 2.0**bits - 1 - narrow


def quant(inputs: Inputs, attributes: Attributes) -> RealLevels:
    """Compute Quant or IntQuant: x, scale, zero point, bit width. One signed bit is -1 or 1, by the quotient's sign."""
    x, scale, zero_point, bits = (_float(inputs, index) for index in range(4))
    rounding = _rounding(attributes, "ROUND")
    low, high = _limits(bits, attributes)
    bipolar = (bits == 1) & bool(attributes.get("signed", 1))

    def level(quotient: Floats) -> Floats:
        signs = np.where(quotient >= 0, 1.0, -1.0)
        return np.where(bipolar, signs, rounding(np.clip(quotient, low, high)))

    return RealLevels(x / scale + zero_point, level, scale, zero_point)


def bipolar_quant(inputs: Inputs, attributes: Attributes) -> RealLevels:
    """Compute BipolarQuant: scale if x >= 0, else -scale. The quotient is x itself: the scale does not affect the
    sign."""
    x, scale = _float(inputs, 0), _float(inputs, 1)
    return RealLevels(x, lambda quotient: np.where(quotient >= 0, 1.0, -1.0), scale, np.zeros(()))


def trunc(inputs: Inputs, attributes: Attributes) -> RealLevels:
    """Compute Trunc, which drops low bits of integers. The quotient is x / scale + zero point, which should be an
    integer and is first rounded to one.

    Version 1 (x, scale, zero point, bits before, bits after) divides the integer by 2**(bits before - bits after),
    rounds, and keeps scale and zero point; nothing saturates. Version 2 (x, scale, zero point, bits before, scale
    after, bits after) divides by the power of two nearest to (scale after / scale), saturates to the bits after,
    rounds, and divides the zero point likewise. Between these there was a form with a zero point after, unused, before
    the bits after.
    """
    while inputs and inputs[-1] is None:  # omitted by an empty name
        inputs = inputs[:-1]
    x, scale, zero_point = (_float(inputs, index) for index in range(3))
    rounding = _rounding(attributes, "FLOOR")
    if len(inputs) == 5:
        divisor = 2.0 ** (_float(inputs, 3) - _float(inputs, 4))
        return RealLevels(
            x / scale + zero_point, lambda quotient: rounding(np.rint(quotient) / divisor), scale, zero_point
        )
    if len(inputs) not in (6, 7):
        raise ValueError(f"Trunc must have 5 inputs (version 1) or 6 (version 2), not {len(inputs)}")
    out_scale, bits = _float(inputs, 4), _float(inputs, len(inputs) - 1)
    power = 2.0 ** np.rint(np.log2(out_scale / scale))
    low, high = _limits(bits, attributes)

    def level(quotient: Floats) -> Floats:
        return rounding(np.clip(np.rint(quotient) / power, low, high))

    return RealLevels(x / scale + zero_point, level, out_scale, zero_point / power)


def multi_threshold(inputs: Inputs, attributes: Attributes) -> RealLevels:
    """Compute MultiThreshold: out_scale * (number of thresholds of its channel that x reaches) + out_bias.

    Thresholds are [C, n], or [1, n] for all channels. Channels lie along axis 1, with data_layout NHWC or NWC along the
    last; in a tensor of neither 2 nor 4 dimensions along the last as well.
    """
    x, thresholds = _float(inputs, 0), _float(inputs, 1)
    layout = attributes.get("data_layout", "NCHW")
    layout = layout.decode() if isinstance(layout, bytes) else str(layout)
    axis = x.ndim - 1 if (layout.endswith("C") and layout != "NC") or x.ndim not in (2, 4) else 1
    if len(thresholds) not in (1, x.shape[axis]):
        raise ValueError(f"thresholds must be of 1 channel or {x.shape[axis]}, not {len(thresholds)}")
    out_scale, out_bias = float(attributes.get("out_scale", 1.0)), float(attributes.get("out_bias", 0.0))

    def level(quotient: Floats) -> Floats:
        moved = np.moveaxis(quotient, axis, -1)
        counts = np.zeros(moved.shape)
        for step in thresholds.T:
            counts += moved >= step
        return np.moveaxis(counts, -1, axis)

    return RealLevels(x, level, np.full((), out_scale), np.zeros(()), out_bias)
