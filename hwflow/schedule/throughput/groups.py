"""Processes that wait for each other, in whatever loops: all rounds at once.

Of a single loop all rounds can be told at once (:mod:`hwflow.schedule.throughput.loops`). Where a frame goes round
inner and outer loops in turns, hundreds of times, the same is done with all waits between the processes: where it is
known for each event which other one holds it up most, what holds that one up is found by looking it up, what holds up
that one again by looking up twice as far, and so on by powers of two. It does not matter whether an event is held up
yet: the rounds that come will tell. Which event holds up another one depends on their cycles, so this is repeated with
those that came out until they stay, or until events wait for themselves: then no schedule keeps the period (Howard's
policy iteration, see Cochet-Terrasson, Cohen, Gaubert, Mc Gettrick, Quadrat: Numerical computation of spectral elements
in max-plus algebra, 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hwflow.cores.timing import Steps
from hwflow.schedule.throughput.rounds import in_order, rounds

_PATIENCE = 12  # repetitions
NEVER = -(1 << 40)  # a cycle before all others: what nothing holds up; 2 ** 22 times as much is a number too


@dataclass(frozen=True)
class Wait:
    """Event ``targets[k]`` of process ``target`` is not before event ``events[k]`` of process ``source``, plus
    ``offsets[k]``, each less its step. Both are numbers of the processes of a group; ``targets`` ascend."""

    source: int
    target: int
    events: Steps
    targets: Steps
    offsets: Steps


def rest_of(waits: Sequence[Wait], bases: Sequence[Steps], spares: Sequence[int]) -> list[Steps] | None:
    """Of each process of a group cycles less steps which no schedule is before: where its events come to rest, as far
    as these waits say and as far as patience goes. None if they never do. ``bases``: such cycles less steps as well;
    ``spares``: cycles of a period without a step of the process."""
    begins = np.cumsum([0, *map(len, bases)])
    base = np.concatenate(bases)
    into = [[wait for wait in waits if wait.target == line] for line in range(len(bases))]
    for _ in range(_PATIENCE):
        held = [_held_up(len(bases[n]), into[n], base, begins, spares[n]) for n in range(len(bases))]
        least, follows = (np.concatenate(part) for part in zip(*held, strict=True))
        after = rounds(base, follows, least - base.take(follows))
        if after is None:
            return None
        if after is base:
            break
        base = after
    return np.split(base, begins[1:-1])


def _held_up(events: int, waits: Sequence[Wait], base: Steps, begins: Steps, spare: int) -> tuple[Steps, Steps]:
    """The least cycles less steps of the events of a process, as others say, and which of these says most."""
    least, follows = np.full(events, NEVER), np.zeros(events, dtype=np.int64)
    for wait in waits:
        sources = wait.events + begins[wait.source]
        wanted = base.take(sources) + wait.offsets
        more = wanted > least.take(wait.targets)
        places = wait.targets[more]
        least[places], follows[places] = wanted[more], sources[more]
    latest = int(least.argmax())
    if least[latest] - spare > least[0]:
        least[0], follows[0] = least[latest] - spare, follows[latest]
    return in_order(least, follows)
