"""QONNX operators in exact arithmetic, from the operators' documents (qonnx: docs/qonnx-custom-ops, MultiThreshold).

Their results are real tensors. The zero point is inside the rounding, and may be any number.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.dialects.exact import reals
from tests.dialects.exact.exact_call import Array, Call, Operator, each


def limits(bits: int, signed: bool, narrow: bool) -> tuple[int, int]:
    """Least and greatest integer; ``narrow`` takes the least of signed ones away and the greatest of unsigned ones."""
    if signed:
        return int(narrow) - 2 ** (bits - 1), 2 ** (bits - 1) - 1
    return 0, 2**bits - 1 - int(narrow)


def _quant(call: Call) -> Array:
    mode = call.text("rounding_mode", "ROUND")
    signed, narrow = (bool(call.attributes.get(n, d)) for n, d in (("signed", 1), ("narrow", 0)))
    bits = int(call.scalar(3))
    low, high = limits(bits, signed, narrow)

    def value(x: reals.Number, scale: Fraction, zero: Fraction) -> Fraction:
        if bits == 1 and signed:  # not -1 and 0 but two signs
            return ((1 if x / Fraction(scale) + zero >= 0 else -1) - zero) * scale
        level = reals.rounded(x / Fraction(scale) + zero, mode)
        return (max(low, min(high, level)) - zero) * scale

    return each(value, call.input(0), call.input(1), call.input(2))


def _bipolar_quant(call: Call) -> Array:
    return each(lambda x, scale: scale if x >= 0 else -scale, call.input(0), call.input(1))


def _trunc(call: Call) -> Array:
    """Version 1 (five inputs) drops low bits and keeps the scale; version 2 (six, or seven with an output zero
    point that it does not use) has the result's scale and range."""
    mode = call.text("rounding_mode", "FLOOR")

    def dropped(x: reals.Number, scale: Fraction, zero: Fraction, step: Fraction) -> reals.Number:
        return reals.rounded(x / Fraction(scale) + zero) / step

    if len(call.inputs) == 5:
        step = Fraction(2) ** int(call.scalar(3) - call.scalar(4))
        return each(
            lambda x, s, z: (reals.rounded(dropped(x, s, z, step), mode) - z) * s,
            call.input(0), call.input(1), call.input(2),
        )
    signed, narrow = (bool(call.attributes.get(n, d)) for n, d in (("signed", 1), ("narrow", 0)))
    low, high = limits(int(call.scalar(len(call.inputs) - 1)), signed, narrow)

    def value(x: reals.Number, scale: Fraction, zero: Fraction, out_scale: Fraction) -> Fraction:
        step = _power_of_two(Fraction(out_scale) / scale)
        level = max(low, min(high, reals.rounded(dropped(x, scale, zero, step), mode)))
        return (level - zero / step) * out_scale

    return each(value, call.input(0), call.input(1), call.input(2), call.input(4))


def _power_of_two(ratio: Fraction) -> Fraction:
    """2 ** round(log2(ratio)) of a ratio that is a power of two, as the operator wants it."""
    n, d = ratio.numerator.bit_length() - 1, ratio.denominator.bit_length() - 1
    power = Fraction(2) ** (n - d)
    assert power == ratio, "only powers of two are meant"
    return power


def _multi_threshold(call: Call) -> Array:
    """How many thresholds of its channel x reaches, times out_scale, plus out_bias. Channels are axis 1, or last."""
    x, thresholds = call.input(0), call.input(1)
    scale, bias = call.real("out_scale", 1.0), call.real("out_bias", 0.0)
    last = call.text("data_layout", "NCHW") == "NHWC" or x.ndim not in (2, 4)
    moved = x if last else np.moveaxis(x, 1, -1)
    result = np.empty(moved.shape, dtype=object)
    for index in np.ndindex(moved.shape):
        row = thresholds[index[-1] if len(thresholds) > 1 else 0]
        result[index] = scale * sum(moved[index] >= t for t in row) + bias
    return result if last else np.moveaxis(result, -1, 1)


QONNX: dict[str, Operator] = {
    "BipolarQuant": _bipolar_quant,
    "IntQuant": _quant,
    "MultiThreshold": _multi_threshold,
    "Quant": _quant,
    "Trunc": _trunc,
}
