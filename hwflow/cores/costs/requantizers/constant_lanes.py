"""Lanes of requantizers by constants (:mod:`hdl_lib.requantizers.requantize_constant`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.memories.storage import REGISTER_DEPTH
from hdl_lib.requantizers.requantize_constant import ConstantLane
from hdl_lib.requantizers.shift_and_clamp import ShiftRounding
from hwflow.cores.costs.basics import adder, difference, trailing_zeros
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import queue
from hwflow.cores.operator import Resources


def constant_lane(family: str, lane: ConstantLane, depth: int) -> Resources:
    """Estimate a sum with a constant, ties, limits: a register for what each of them is compared to, and a choice, in
    front of a queue of ``depth`` entries."""
    if lane.product is None:
        return Resources()
    device, (low, high), result = FAMILIES[family], lane.sum_interval(), lane.result_shape().width
    width = int(shape_of(low, high).width)
    # Bits of the constant's own, and those that are only shifted out, are in no register.
    dropped = max(lane.distance, lane.shift if lane.rounding == ShiftRounding.FLOOR else 0)

    luts = 0
    if lane.negative and device.carry_bits == 1:  # a carry cell reads the complement of what is subtracted
        luts += int(shape_of(*lane.product).width)
    if lane.rounding != ShiftRounding.FLOOR:  # of the result's last bit: those that are shifted out and the sum's own
        luts += max(1, _all_of(lane.shift - lane.distance + 1))
    comparisons = _comparisons(lane)
    for comparison in comparisons:
        if comparison.inputs:
            luts += _all_of(comparison.inputs)
        else:
            luts += difference(family, comparison.difference)
            luts += comparison.complemented if device.carry_bits == 1 else 0
    luts += result * _choices(family, lane, depth)
    carries = lane.carry_bits()
    if device.carry_bits == 1:  # a carry cell stands alone where its sum's bit is dropped
        carries = min(carries, max(0, width - dropped))
    return Resources(lut=luts + adder(family, carries), ff=max(0, width - dropped) + result + len(comparisons))


def _all_of(inputs: int) -> int:
    """Count the look-up tables of an AND of so many bits."""
    return ceil((inputs - 1) / 3)


@dataclass(frozen=True)
class _Comparison:
    """``inputs``: upper bits of the sum that tell by themselves, or 0; ``difference``: bits of the difference to the
    limit otherwise; ``complemented``: bits of the sum that are subtracted."""

    inputs: int
    difference: int = 0
    complemented: int = 0


@lru_cache(maxsize=1 << 12)
def _comparisons(lane: ConstantLane) -> list[_Comparison]:
    """Return the comparisons with the limits."""
    below, above = lane.limits()
    found, quotient = [], lane.quotient_bits()
    if below is not None:
        found.append(_Comparison(_looked_at(-below, quotient), quotient + 1 - trailing_zeros(below)))
    if above is not None:
        places = quotient - trailing_zeros(above + 1)
        found.append(_Comparison(_looked_at(above + 1, quotient), places + 1, places))
    return found


def _looked_at(distance: int, quotient: int) -> int:
    """Count the upper bits of a number of ``quotient`` bits that tell whether a limit so far from 0 is passed; 0 if a
    difference must."""
    if distance < 0 or distance & (distance - 1):
        return 0
    return quotient - max(0, distance.bit_length() - 1) if distance else 1


def _choices(family: str, lane: ConstantLane, depth: int) -> int:
    """Count the look-up tables of a bit that limits choose, beside a queue's own."""
    wide = FAMILIES[family].carry_bits > 1
    flags = sum(limit is not None for limit in lane.limits())
    if not flags:
        return 0
    if lane.limited_at_once():  # where tables have no multiplexers, a single flag sets or clears the register
        return int(flags > 1 or wide)
    if not 1 < depth <= REGISTER_DEPTH:
        return 1
    # A queue's registers choose between this and the entry above. One flag fits the look-up tables of that.
    return int(flags > 1)


def constant_requantizer(family: str, lanes: Resources, width: int, latency: int, depth: int) -> Resources:
    """Estimate all ``lanes``, whose results have so many bits together, with a queue behind them."""
    return lanes + Resources(lut=4, ff=latency) + queue(family, width, depth)
