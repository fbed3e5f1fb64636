"""Static schedules of cores, as data for the scheduler: what happens in each issue slot.

A core is one or more processes. A process executes the steps of a frame in order, at most one a cycle, frame after
frame. A step may consume an input beat, may take a credit of an output queue and produce a beat, and may wait for
another process of the same core. Cycles, laws: see the docstrings in ``hdl_lib``; arrays here are per frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Steps = npt.NDArray[np.signedinteger]


@dataclass(frozen=True)
class Wait:
    """Step n may execute only when step ``need[n // steps]`` of process ``process`` did so at least ``lag`` cycles
    earlier.

    ``need`` ascends and is relative to the frame: negative numbers count back into earlier frames (before the first
    frame nothing is waited for), none reaches into later ones.
    """

    process: int
    need: Steps
    lag: int = 1
    steps: int = 1


@dataclass(frozen=True)
class Process:
    """``steps`` a frame; ``consumes[i][b]`` is the step that takes beat b of input i; ``produces[o][b]`` the step that
    makes beat b of output o; both ascending."""

    steps: int
    consumes: Mapping[int, Steps] = field(default_factory=dict)
    produces: Mapping[int, Steps] = field(default_factory=dict)
    waits: tuple[Wait, ...] = ()


@dataclass(frozen=True)
class Timing:
    """``latency[o]``: cycles from a step that produces to valid on output o (queue empty)."""

    processes: tuple[Process, ...]
    latency: tuple[int, ...]

    @property
    def cycles(self) -> int:
        """Cycles a frame when nothing outside holds the core up: the longest process."""
        return max(p.steps for p in self.processes)


def compact(numbers: Steps) -> Steps:
    """Halve the memory of small numbers: large frames have millions of events."""
    narrow = np.iinfo(np.int32)
    fits = not len(numbers) or (narrow.min <= numbers.min() and numbers.max() <= narrow.max)
    return numbers.astype(np.int32, copy=False) if fits else numbers


def every(count: int) -> Steps:
    """Steps 0 .. count-1."""
    return np.arange(count, dtype=np.int64)


def beat_by_beat(count: int, latency: int) -> Timing:
    """A core that takes a beat and makes a beat in each step."""
    steps = every(count)
    return Timing((Process(count, {0: steps}, {0: steps}),), (latency,))
