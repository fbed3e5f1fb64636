"""What an engine makes of requantizers: a multiplication, an addition and a shift, and maybe a table behind these; and
of orders of elements: pixels that stand in several rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hwflow.cores.engine.engine_layers import BYTE
from hwflow.cores.logical.index_map import IndexMap
from hwflow.ir.graph import IntArray
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.multiply_add_shift import (
    MultiplyAddShift,
    find_multiply_add_shift,
    find_rounding_multiply_add_shift,
    multiply_add_shift_at,
)
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.numerics.requantizers.stages import chain
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.types import Interval

_FACTOR = 6  # of what stays as it is: it is multiplied by 2**6, so that the multiplier is no longer than others
_NARROW_FACTOR = 2  # the same as one of few bits
_KEPT = 1024  # forms that are known: parts of a graph that begin one behind the other have most of them in common
_MORE_SHIFTS = 4  # that are tried: functions without ties may need more for a form that rounds to nearest


@dataclass(frozen=True)
class Requantizer:
    """The step functions of channels, their form of least shift, and what becomes of their results: of each byte, an
    element."""

    steps: tuple[StepFunction, ...]
    least: MultiplyAddShift
    table: tuple[int, ...] | None = None

    @classmethod
    def of(cls, given: RequantizeAttributes, channels: int) -> Requantizer | None:
        """Return that of a node, for so many channels: without a table, or of its first stages, the others in a table
        that all channels share; None where there is no such form."""
        steps = tuple(given.steps) * (channels if len(given.steps) == 1 else 1)
        if len(steps) != channels:
            return None
        if (found := _of_steps(steps)) is not None:
            return found
        chains = list(given.stages) * (channels if len(given.stages) == 1 else 1)
        for count in reversed(range(1, min(map(len, chains), default=0))):
            if len({each[count:] for each in chains}) > 1:
                continue
            first = tuple(chain(each[:count], step.lo, step.hi) for each, step in zip(chains, steps, strict=True))
            between = Interval(min(each.low for each in first), max(each.high for each in first))
            if is_of_bytes(between) and (found := _of_steps(first)) is not None:
                return replace(found, table=table_of(chain(chains[0][count:], between.lo, between.hi)))
        return None


@lru_cache(maxsize=_KEPT)
def _of_steps(steps: tuple[StepFunction, ...]) -> Requantizer | None:
    least = find_multiply_add_shift(steps) or find_rounding_multiply_add_shift(steps)
    return None if least is None else Requantizer(steps, least)


def is_of_bytes(ends: Interval) -> bool:
    """Tell whether elements are bytes, with a sign or without one."""
    return ends.lo >= BYTE.lo and ends.hi <= (BYTE.hi if ends.lo < 0 else 2 * BYTE.hi + 1)


def table_of(step: StepFunction) -> tuple[int, ...]:
    """Return a function of bytes as what it has for each."""
    table = [step.first] * 256
    for element in range(step.lo, step.hi + 1):
        table[element % len(table)] = step(element)
    return tuple(table)


def alike(some: Sequence[Requantizer]) -> list[MultiplyAddShift] | None:
    """Return forms of one shift that round alike; None if none was found."""
    if not some:
        return []
    modes = {each.least.rounding for each in some} - {ShiftRounding.FLOOR} or {ShiftRounding.FLOOR}
    least = max(each.least.shift for each in some)
    for rounding in sorted(modes):
        for shift in range(least, least + _MORE_SHIFTS):
            forms = [
                _form_at(each.steps, shift, each.least.low, each.least.high, rounding)
                if shift or rounding == ShiftRounding.FLOOR else None
                for each in some
            ]
            found = [form for form in forms if form is not None]
            if len(found) == len(some):
                return found
    return None


@lru_cache(maxsize=_KEPT)
def spread_of(order: IndexMap, rows: int, columns: int, channels: int) -> tuple[int, int] | None:
    """Return in how many rows and columns of the result each pixel of a map stands; None: it is another order."""
    pixels: IntArray = np.arange(rows * columns * channels).reshape(rows, columns, channels)
    times, rest = divmod(order.index.size, pixels.size)
    if rest or times < 2 or order.elements != pixels.size:
        return None
    for down in (each for each in range(1, times + 1) if times % each == 0):
        if np.array_equal(order.index, pixels.repeat(down, axis=0).repeat(times // down, axis=1).reshape(-1)):
            return down, times // down
    return None


@lru_cache(maxsize=_KEPT)
def _form_at(
    steps: tuple[StepFunction, ...], shift: int, low: int, high: int, rounding: ShiftRounding
) -> MultiplyAddShift | None:
    return multiply_add_shift_at(steps, shift, low, high, rounding)


def unchanged(ends: Interval, channels: int, like: MultiplyAddShift, narrow: bool) -> tuple[MultiplyAddShift, int]:
    """Return the form, with the shift and rounding of another one, that takes elements times a factor to themselves,
    and that factor, which is one of the ``narrow`` weights."""
    factor = min(_NARROW_FACTOR if narrow else _FACTOR, like.shift)
    multipliers, addends = (1 << like.shift - factor,) * channels, (0,) * channels
    return replace(like, multipliers=multipliers, addends=addends, low=ends.lo, high=ends.hi), 1 << factor
