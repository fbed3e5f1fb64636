"""Lanes of requantizers by constants (:mod:`hdl_lib.requantizers.requantize_constant`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf

from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.memories.storage import REGISTER_DEPTH
from hdl_lib.requantizers.requantize_constant import ConstantLane
from hwflow.cores.costs.basics import adder, difference
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import queue
from hwflow.cores.operator import Resources

# Synthesis maps for the least delay of a core's longest path and, off that path, for few tables. Of slices with
# multiplexers between look-up tables a function of many inputs is fast and large, or slow and small.
LONG_CHAIN = 20  # bits: a longer carry chain takes longer than any function here
WIDE_TABLE = 8  # inputs of a function up to which a pair of tables in a row would take longer


def longest_path(lanes: Iterable[ConstantLane], carries: Iterable[int]) -> float:
    """Inputs of the function that has the most in all ``lanes`` of a core; infinite beside a long carry chain.
    ``carries``: bits of the carry chains of the products."""
    inputs, chains = [0], list(carries)
    for lane in lanes:
        if lane.product is not None:
            chains.append(lane.carry_bits())
            if lane.rounding != "floor":
                inputs.append(_tie_inputs(lane))
            for comparison in _comparisons(lane):
                inputs.append(comparison.inputs)
                chains.append(0 if comparison.inputs else comparison.difference)
    return inf if max(chains, default=0) > LONG_CHAIN else max(inputs)


def constant_lane(family: str, lane: ConstantLane, depth: int, longest: float) -> Resources:
    """A sum with a constant, ties, limits: a register for what each of them is compared to, and a choice, in front of
    a queue of ``depth`` entries. ``longest``: see :func:`longest_path`."""
    if lane.product is None:
        return Resources()
    device, (low, high), result = FAMILIES[family], lane.sum_interval(), lane.result_shape().width
    width = int(shape_of(low, high).width)
    # Bits of the constant's own, and those that are only shifted out, are in no register.
    dropped = max(lane.distance, lane.shift if lane.rounding == "floor" else 0)

    def together(inputs: int) -> int:
        fast = longest <= max(WIDE_TABLE, inputs)
        return device.all_of(inputs) if fast else ceil((inputs - 1) / 3)

    luts = 0
    if lane.negative and device.carry_bits == 1:  # a carry cell reads the complement of what is subtracted
        luts += int(shape_of(*lane.product).width)
    if lane.rounding != "floor":
        luts += max(1, together(_tie_inputs(lane)))
    comparisons = _comparisons(lane)
    for comparison in comparisons:
        if comparison.inputs:
            luts += together(comparison.inputs)
        else:
            luts += difference(family, comparison.difference)
            luts += comparison.complemented if device.carry_bits == 1 else 0
    luts += result * _choices(family, lane, depth, longest)
    carries = lane.carry_bits()
    if device.carry_bits == 1:  # a carry cell stands alone where its sum's bit is dropped
        carries = min(carries, max(0, width - dropped))
    return Resources(lut=luts + adder(family, carries), ff=max(0, width - dropped) + result + len(comparisons))


def _tie_inputs(lane: ConstantLane) -> int:
    """Of the result's last bit: those that are shifted out and the sum's own."""
    return lane.shift - lane.distance + 1


@dataclass(frozen=True)
class _Comparison:
    """``inputs``: upper bits of the sum that tell by themselves, or 0; ``difference``: bits of the difference to the
    limit otherwise; ``complemented``: bits of the sum that are subtracted."""

    inputs: int
    difference: int = 0
    complemented: int = 0


@lru_cache(maxsize=1 << 12)
def _limited(lane: ConstantLane) -> tuple[bool, int]:
    """Whether results are limited at once, in front of no register; how many limits there are."""
    return lane.limited_at_once(), sum(limit is not None for limit in lane.limits())


@lru_cache(maxsize=1 << 12)
def _comparisons(lane: ConstantLane) -> list[_Comparison]:
    """Of the limits that are behind a register."""
    if _limited(lane)[0]:
        return []
    below, above = lane.limits()
    found, quotient = [], lane.quotient_bits()
    if below is not None:
        found.append(_Comparison(_looked_at(-below, quotient), quotient + 1 - _zeros(below)))
    if above is not None:
        places = quotient - _zeros(above + 1)
        found.append(_Comparison(_looked_at(above + 1, quotient), places + 1, places))
    return found


def _looked_at(distance: int, quotient: int) -> int:
    """Upper bits of a number of ``quotient`` bits that tell whether a limit so far from 0 is passed; 0 if a difference
    must."""
    if distance < 0 or distance & (distance - 1):
        return 0
    return quotient - max(0, distance.bit_length() - 1) if distance else 1


def _choices(family: str, lane: ConstantLane, depth: int, longest: float) -> int:
    """Look-up tables of a bit that limits choose, beside a queue's own."""
    wide = FAMILIES[family].carry_bits > 1
    at_once, flags = _limited(lane)
    if not flags:
        return 0
    if at_once:  # where tables have no multiplexers, a single flag sets or clears the register
        return int(flags > 1 or wide)
    if not 1 < depth <= REGISTER_DEPTH:
        return 1
    # A queue's registers choose between this and the entry above. One flag fits the look-up tables of that. Of two,
    # each of these becomes a pair where that is faster, but for the last entry, which has the table of the one below.
    if flags == 1:
        return 0
    return depth - 1 if wide and longest <= WIDE_TABLE else 1


def constant_requantizer(family: str, lanes: Resources, width: int, latency: int, depth: int) -> Resources:
    """All ``lanes``, whose results have so many bits together, with a queue behind them."""
    return lanes + Resources(lut=4, ff=latency) + queue(family, width, depth)




def _zeros(number: int) -> int:
    """Zeros at the low end; of 0 none."""
    return (number & -number).bit_length() - 1 if number else 0
