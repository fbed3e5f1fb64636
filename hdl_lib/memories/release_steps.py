"""The fixed sequence of changes after each round of a walk through a circular buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Const, Module, Signal, Value


@dataclass(frozen=True)
class ReleaseStep:
    """``count`` consecutive rounds (of output rows, for example) after each of which ``needed`` more units (image rows,
    beats) must be in the buffer, and ``released`` more are no longer needed."""

    count: int
    needed: int
    released: int


def gathered(changes: Sequence[tuple[int, int]]) -> tuple[ReleaseStep, ...]:
    """Merge equal neighbours of a frame's (needed, released), given round by round."""
    steps: list[ReleaseStep] = []
    for needed, released in changes:
        if steps and (steps[-1].needed, steps[-1].released) == (needed, released):
            steps[-1] = ReleaseStep(steps[-1].count + 1, needed, released)
        else:
            steps.append(ReleaseStep(1, needed, released))
    return tuple(steps)


def present_change(m: Module, steps: Sequence[ReleaseStep], done: Value) -> tuple[Value, Value]:
    """Return the change (needed, released) after the present round, as functions of registers; ``done``: the round ends
    in this cycle."""
    if len(steps) == 1:
        return Const(steps[0].needed), Const(steps[0].released)
    needed = Signal(range(max(step.needed for step in steps) + 1))
    released = Signal(range(max(step.released for step in steps) + 1))
    step_index = Signal(range(len(steps)))
    step_left = Signal(range(max(step.count for step in steps)), init=steps[0].count - 1)
    step_last = Signal(init=steps[0].count == 1)
    with m.If(done):
        m.d.sync += [step_left.eq(step_left - 1), step_last.eq(step_left == 1)]
    with m.Switch(step_index):
        for index, step in enumerate(steps):
            following = (index + 1) % len(steps)
            with m.Case(index):
                m.d.comb += [needed.eq(step.needed), released.eq(step.released)]
                with m.If(done & step_last):
                    m.d.sync += [
                        step_index.eq(following),
                        step_left.eq(steps[following].count - 1),
                        step_last.eq(steps[following].count == 1),
                    ]
    return needed, released
