"""Short scales for quantizers of approximations: a number that is off anyway need not be multiplied exactly.

The scale of an exact requantizer is the quotient of two floats: to reproduce each of its steps over numbers of 40 bits
takes a multiplier of 50 to 60 bits, or none exists. Behind an approximation the scale is rounded to ``m / 2**s`` with
the least ``s`` that moves no number by more than may be.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import Clip, Relu
from hwflow.numerics.requantizers.stages import QuantizerStage


def shortened(stage: QuantizerStage, reach: Fraction, share: Fraction) -> tuple[QuantizerStage, Fraction]:
    """Round scale and zero point of a quantizer of integers ``q`` with ``abs(q - zero_point) <= reach``; return it, and
    by how much its results move before they are rounded, in output steps: at most ``share``.

    No integer is mapped halfway between two levels, so that rounding down after an addition computes the result. A
    quantizer of other functions than limits stays as it is: no multiplication computes it.
    """
    if not stage.scale or not all(_limits(f) for f in stage.functions):
        return stage, Fraction(0)
    factor = stage.scale / stage.out_scale
    shift = max(1, (ceil((reach + 1) / (2 * share)) - 1).bit_length())  # rounding errs by half a unit
    unit = Fraction(1, 1 << shift)
    short = round(factor / unit) * unit
    if not short:
        return stage, Fraction(0)
    offset = (round(short * stage.zero_point / unit - Fraction(1, 2)) + Fraction(1, 2)) * unit
    moved = abs(short - factor) * reach + abs(offset - short * stage.zero_point)
    return replace(stage, scale=short * stage.out_scale, zero_point=offset / short), moved


def _limits(function: Elementwise) -> bool:
    return isinstance(function, Clip | Relu)
