"""The issue-slot law, written once more: the handshake cycles of cores with static schedules, without a simulator.

A core is a process that executes steps in order, at most one per cycle. A step may consume the next input beat and may
produce the next output beat, for which it needs one of the queue's credits; a credit comes back the cycle after its
beat was taken. The source offers from cycle 0 on, the sink takes whatever is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Process:
    """``steps[n] = (consumes, produces)``; ``depth`` credits; an output shows ``latency`` cycles after its step."""

    steps: Sequence[tuple[bool, bool]]
    depth: int
    latency: int
    done: int = 0
    last_step: int = -1
    taken: list[int] = field(default_factory=list)  # cycle of each input handshake
    shown: list[int] = field(default_factory=list)  # earliest cycle each output can be taken


def cycles(*processes: Process) -> tuple[list[int], list[int]]:
    """Handshake cycles of the first process's inputs and of the last one's outputs, each feeding the next."""
    delivered: list[int] = []  # of the last process

    def pop(stage: int, beat: int) -> int | None:
        taken = delivered if stage + 1 == len(processes) else processes[stage + 1].taken
        return taken[beat] if beat < len(taken) else None

    def step(stage: int) -> bool:
        process = processes[stage]
        if process.done == len(process.steps):
            return False
        consumes, produces = process.steps[process.done]
        cycle = process.last_step + 1
        if consumes and stage > 0:
            before = processes[stage - 1].shown
            if len(process.taken) == len(before):
                return False
            cycle = max(cycle, before[len(process.taken)])
        if produces and len(process.shown) >= process.depth:
            freed = pop(stage, len(process.shown) - process.depth)
            if freed is None:
                return False
            cycle = max(cycle, freed + 1)
        if consumes:
            process.taken.append(cycle)
        if produces:
            process.shown.append(cycle + process.latency)
            if stage + 1 == len(processes):
                delivered.append(max(cycle + process.latency, delivered[-1] + 1 if delivered else 0))
        process.last_step = cycle
        process.done += 1
        return True

    while any(step(stage) for stage in range(len(processes))):
        pass
    assert all(p.done == len(p.steps) for p in processes), "the processes wait for each other"
    return processes[0].taken, delivered
