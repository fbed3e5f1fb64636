"""What is known of requantizers' numbers: comparisons that say nothing, bits that never change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwflow.ir.graph import IntArray
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.types import IntType


def comparisons(thresholds: IntArray, lanes: int, x: IntType) -> tuple[list[int], int]:
    """Of a search by bisection, ``thresholds`` [channels, 2**stages - 1] in so many ``lanes``, inputs of type ``x``:
    the stages of those comparisons that say the same of all inputs; and of the others how many bits at the low end of
    what they compare with (the threshold less 1) are 1 in all words: an input's are not looked at there."""
    stages = thresholds.shape[1].bit_length()
    words = -(-len(thresholds) // lanes)
    constant = np.zeros((words * lanes, thresholds.shape[1]), dtype=np.int8)  # words left over are looked at
    constant[: len(thresholds)] = (thresholds <= x.min).astype(np.int8) - (thresholds > x.max)  # 1: always, -1: never
    bounds = np.zeros(constant.shape, dtype=np.int64)
    bounds[: len(thresholds)] = thresholds - 1
    idle, ones = [], 0
    for stage in range(stages):
        middle, apart = (1 << (stages - stage - 1)) - 1, 1 << (stages - stage)
        for lane in range(lanes):
            own = constant[lane::lanes, middle::apart]
            if own.flat[0] and (own == own.flat[0]).all():
                idle.append(stage)
                continue
            together = int(np.bitwise_and.reduce(bounds[lane::lanes, middle::apart].reshape(-1)))
            ones += (~together & together + 1).bit_length() - 1 if together != -1 else x.bits - 1
    return idle, ones


def changing_bits(steps: Sequence[StepFunction], lanes: int, bits: int) -> int:
    """Bits of a beat's results, of so many ``bits`` each, that change, and are not like another of their lane; the
    ``steps`` are one a channel, again and again where there are more ``lanes``."""
    total = 0
    for lane in range(min(lanes, len(steps))):
        values = [value for step in steps[lane::lanes] for value in step.values]
        columns = {tuple(value >> bit & 1 for value in values) for bit in range(bits)}
        total += sum(len(set(column)) > 1 for column in columns)
    return total * max(1, lanes // len(steps))
