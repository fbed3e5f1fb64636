"""Networks of look-up tables of four inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
LUT_INPUTS = 4


class Lut(NamedTuple):
    """A function of at most four bits. ``inputs``: its signals, see :class:`LutNetwork`; bit k of ``truth`` is the
    value where they are the bits of k, the first one lowest. A constant has no inputs."""

    inputs: tuple[int, ...]
    truth: int


@dataclass(frozen=True)
class LutNetwork:
    """Signals ``0 .. inputs - 1`` are the inputs, of a bit each, the next ones those of ``luts``, each of signals
    before it. ``outputs``: a signal each."""

    inputs: int
    luts: tuple[Lut, ...]
    outputs: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return the number of look-up tables without constants."""
        return sum(len(lut.inputs) > 0 for lut in self.luts)

    @cached_property
    def _levels(self) -> list[int]:
        levels = [0] * self.inputs
        for lut in self.luts:
            levels.append(max((levels[signal] + 1 for signal in lut.inputs), default=0))
        return levels

    @property
    def levels(self) -> int:
        """Return the number of look-up tables on the longest path."""
        return max((self._levels[signal] for signal in self.outputs), default=0)

    def stages(self, span: int) -> tuple[int, ...]:
        """Return the stage of each table, from 0, where registers divide paths into ``span`` tables at most."""
        return tuple([max(0, level - 1) // span for level in self._levels[self.inputs :]])

    def flip_flops(self, span: int) -> int:
        """Return the flip-flops of registers between these stages: of a signal, one for each stage up to its last
        reader's. Outputs leave in the last stage."""
        stages = [0] * self.inputs + list(self.stages(span))
        last = list(stages)
        for number, lut in enumerate(self.luts, self.inputs):
            for signal in lut.inputs:
                last[signal] = max(last[signal], stages[number])
        for signal in self.results:
            last[signal] = max(stages)
        return sum(last) - sum(stages)

    @property
    def read(self) -> set[int]:
        """Return the inputs that anything reads."""
        signals = {signal for lut in self.luts for signal in lut.inputs}
        return {signal for signal in signals.union(self.outputs) if signal < self.inputs}

    @property
    def results(self) -> set[int]:
        """Return the signals of the outputs that are not constant."""
        constants = {number for number, lut in enumerate(self.luts, self.inputs) if not lut.inputs}
        return set(self.outputs) - constants

    def evaluate(self, x: npt.ArrayLike) -> IntArray:
        """Map bits [..., inputs] to [..., outputs]."""
        bits = np.asarray(x, dtype=np.int64)
        signals: list[IntArray] = [bits[..., k] for k in range(self.inputs)]
        for lut in self.luts:
            place = np.zeros(bits.shape[:-1], dtype=np.int64)
            for number, signal in enumerate(lut.inputs):
                place |= signals[signal] << number
            signals.append(lut.truth >> place & 1)
        return np.stack([signals[signal] for signal in self.outputs], axis=-1)


class TooLarge(Exception):
    """A network has more look-up tables than it may."""


class Builder:
    """A network under construction, in which equal tables are one. ``most``: tables that it may have."""

    def __init__(self, inputs: int, most: int) -> None:
        self.inputs = inputs
        self.most = most
        self.luts: list[Lut] = []
        self._known: dict[Lut, int] = {}

    def lut(self, signals: Sequence[int], column: Sequence[int]) -> int:
        """Return the signal of a function of at most four ``signals``, given by its values 0 and 1; the first signal is
        the lowest bit of their index. Raises :class:`TooLarge`."""
        order = sorted(range(len(signals)), key=lambda place: signals[place])
        chosen = [signals[place] for place in order]
        values = [
            column[sum((k >> new & 1) << old for new, old in enumerate(order))] for k in range(1 << len(order))
        ]
        for place in reversed(range(len(chosen))):  # leave out signals that do not change, or do not matter
            low, high = ([value for k, value in enumerate(values) if k >> place & 1 == bit] for bit in (0, 1))
            constant = self._constant(chosen[place])
            if constant is not None or low == high:
                del chosen[place]
                values = high if constant else low
        if values == [0, 1]:
            return chosen[0]
        lut = Lut(tuple(chosen), sum(value << k for k, value in enumerate(values)))
        if lut not in self._known:
            if len(self.luts) >= self.most:
                raise TooLarge
            self._known[lut] = self.inputs + len(self.luts)
            self.luts.append(lut)
        return self._known[lut]

    def _constant(self, signal: int) -> int | None:
        """Return the value of a signal that is constant."""
        lut = self.luts[signal - self.inputs] if signal >= self.inputs else None
        return None if lut is None or lut.inputs else lut.truth

    def forget(self, luts: int) -> None:
        """Remove all tables but the first ``luts``."""
        for lut in self.luts[luts:]:
            del self._known[lut]
        del self.luts[luts:]
