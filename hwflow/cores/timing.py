"""Static schedules of cores, as data for the scheduler: the dependences of each step.

A core is one or more processes. A process executes the steps of a frame in order, at most one per cycle, frame after
frame. A step may consume an input beat, may take a credit of an output queue and produce a beat, and may wait for
another process of the same core. See the docstrings in ``hdl_lib`` for the cycles of each core; arrays here are per
frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Steps = npt.NDArray[np.signedinteger]


@dataclass(frozen=True, eq=False)
class Cyclic:
    """Steps that repeat ``times`` times, ``period`` apart, without an array of them all: frames may have a hundred
    million beats. ``once``: those of the first time, below ``period``."""

    once: Steps
    period: int
    times: int

    def __len__(self) -> int:
        return len(self.once) * self.times

    def __getitem__(self, numbers: Steps) -> Steps:
        if len(self.once) == 1:
            time, within = numbers, self.once[0]
        else:
            time, number = np.divmod(numbers, len(self.once))
            within = self.once[number]
        result: Steps = time * self.period + within
        return result

    def __iter__(self) -> Iterator[np.signedinteger]:
        return iter(np.asarray(self))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Steps:
        """Return them all."""
        found: Steps = (every(self.times)[:, np.newaxis] * self.period + self.once).reshape(-1)
        return found if dtype is None else found.astype(dtype)

    def searchsorted(self, steps: Steps, side: str = "left") -> Steps:
        """Return as :func:`numpy.searchsorted` does."""
        time, step = np.divmod(steps, self.period)
        within = self.once.searchsorted(step, side="right" if side == "right" else "left")
        result: Steps = np.clip(time * len(self.once) + within, 0, len(self))
        return result


Beats = Steps | Cyclic
"""The step of each beat of a stream."""


@dataclass(frozen=True)
class Wait:
    """Step n executes at least ``lag`` cycles after step ``need[n // steps]`` of process ``process``.

    ``need`` ascends and is relative to the frame: negative numbers are of earlier frames (before the first frame
    nothing is waited for), none is of a later one.
    """

    process: int
    need: Steps
    lag: int = 1
    steps: int = 1


@dataclass(frozen=True)
class Process:
    """A process of ``steps`` per frame: step ``consumes[i][b]`` consumes beat b of input i, and step ``produces[o][b]``
    produces beat b of output o; both ascend."""

    steps: int
    consumes: Mapping[int, Beats] = field(default_factory=dict)
    produces: Mapping[int, Beats] = field(default_factory=dict)
    waits: tuple[Wait, ...] = ()


@dataclass(frozen=True)
class Timing:
    """A core's processes. ``latency[o]``: cycles from a producing step to valid on output o (queue empty). ``circuit``:
    cycles per frame, rounded up, of the longest circuit of waits between processes."""

    processes: tuple[Process, ...]
    latency: tuple[int, ...]
    circuit: int = 0

    @property
    def cycles(self) -> int:
        """Return the cycles per frame without backpressure: the steps of the longest process, or more where processes
        wait for each other."""
        return max([self.circuit, *(p.steps for p in self.processes)])


def compact(numbers: Steps) -> Steps:
    """Return small numbers in 32 bits: large frames have millions of events."""
    narrow = np.iinfo(np.int32)
    fits = not len(numbers) or (narrow.min <= numbers.min() and numbers.max() <= narrow.max)
    return numbers.astype(np.int32, copy=False) if fits else numbers


def every(count: int) -> Steps:
    """Return steps 0 .. count-1."""
    return np.arange(count, dtype=np.int64)


def spaced(count: int, period: int = 1, first: int = 0) -> Cyclic:
    """Return ``count`` steps, ``period`` apart from step ``first`` on."""
    return Cyclic(every(1) + first, period, count)


def beat_by_beat(count: int, latency: int) -> Timing:
    """Return the timing of a core that consumes and produces a beat in each step."""
    steps = spaced(count)
    return Timing((Process(count, {0: steps}, {0: steps}),), (latency,))
