"""What is known of requantizers' numbers: comparisons that say nothing, bits that never change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hwflow.ir.graph import IntArray
from hwflow.numerics.requantizers.requantizer import SearchForm
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.types import IntType


def comparisons(form: SearchForm, lanes: Sequence[IntArray], x: IntType) -> tuple[list[int], int]:
    """Of a search, each of ``lanes`` with the channels that it serves, inputs of type ``x``: the stages of those
    comparisons that say the same of all inputs; and of the others how many bits at the low end of what they compare
    with (the threshold less 1) are 1 in all words: an input's are not looked at there. Where a lane has less channels
    than others 0 stands in its words."""
    words, idle, ones = max(map(len, lanes)), list[int](), 0
    alike = Counter(channels.tobytes() for channels in lanes)
    for channels in {lane.tobytes(): lane for lane in lanes}.values():
        times, full = alike[channels.tobytes()], len(channels) == words
        for stage, (low, high, common) in enumerate(_compared(form)):
            if full and (high[channels].max() < x.min or low[channels].min() >= x.max):
                idle += [stage] * times
                continue
            together = int(np.bitwise_and.reduce(common[channels])) if full else 0
            ones += times * ((~together & together + 1).bit_length() - 1 if together != -1 else x.bits - 1)
    return idle, ones


@lru_cache(maxsize=8)
def _compared(form: SearchForm) -> list[tuple[IntArray, IntArray, IntArray]]:
    """What each stage of each channel compares with: the least, the greatest, and the bits that are 1 in all."""
    found = []
    for stage in range(form.stages):
        bounds = form.bounds[:, (1 << (form.stages - stage - 1)) - 1 :: 1 << (form.stages - stage)]
        found.append((bounds.min(axis=1), bounds.max(axis=1), np.bitwise_and.reduce(bounds, axis=1)))
    return found


def changing_bits(steps: Sequence[StepFunction], lanes: int, bits: int) -> int:
    """Bits of a beat's results, of so many ``bits`` each, that change, and are not like another of their lane; the
    ``steps`` are one a channel, again and again where there are more ``lanes``."""
    total = 0
    for lane in range(min(lanes, len(steps))):
        values = [value for step in steps[lane::lanes] for value in step.values]
        columns = {tuple(value >> bit & 1 for value in values) for bit in range(bits)}
        total += sum(len(set(column)) > 1 for column in columns)
    return total * max(1, lanes // len(steps))
