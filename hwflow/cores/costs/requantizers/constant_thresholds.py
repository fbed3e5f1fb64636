"""Thresholds that are constants (:mod:`hdl_lib.requantizers.constant_thresholds`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from hdl_lib.requantizers.constant_thresholds import segments
from hwflow.cores.costs.memory import queue
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def constant_thresholds(
    family: str, x: IntType, thresholds: Sequence[Sequence[int]], stored: int, depth: int
) -> Resources:
    """Estimate comparisons and a count for each lane; ``stored``: bits of a beat in the queue."""
    parts = segments(x.bits)
    total = Resources(lut=2, ff=len(parts) + 2) + queue(family, stored, depth)
    known: dict[tuple[int, ...], Resources] = {}
    for own in map(tuple, thresholds):
        if own not in known:
            known[own] = _lane(x, own, parts)
        total += known[own]
    return total


def _lane(x: IntType, thresholds: Sequence[int], parts: Sequence[tuple[int, int]]) -> Resources:
    if not thresholds:
        return Resources()
    flip = 1 << x.bits - 1 if x.signed else 0
    codes = {(threshold & ((1 << x.bits) - 1)) ^ flip for threshold in thresholds}
    lowest = min((code & -code).bit_length() - 1 if code else x.bits for code in codes)  # bits below are not looked at
    made: set[tuple[int, int]] = set()  # a look-up table for each: up to which bit, of which code
    ffs = x.bits - lowest
    for low, high in parts:
        for part in {code & ((1 << high) - 1) for code in codes}:
            if not part:
                continue
            ffs += 1
            first = max(low, (part & -part).bit_length() - 1)
            # Three bits and what is less so far; of the lowest ones four.
            begin = first if part & ((1 << low) - 1) else min(first + 1, high - 1)
            made |= {(end, part & ((1 << end) - 1)) for end in (*range(begin + 3, high, 3), high)}
        ffs += x.bits - max(lowest, high)
    count = len(codes)
    gates = sum(ceil(max(1, count // (1 << place)) / 3) for place in range(count.bit_length())) if count > 1 else 0
    return Resources(lut=len(made) + gates, ff=ffs + count.bit_length())
