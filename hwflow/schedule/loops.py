"""Processes that wait for each other in loops: all rounds at once.

Sweeps carry what events say about each other round a loop once each time, which takes long where a frame goes round
hundreds of times. Where it is known for each event which other one holds it up most, all rounds can be told at once:
what holds that one up is found by looking it up, what holds up that one again by looking up twice as far, and so on by
powers of two. It does not matter whether an event is held up yet: the rounds that come will tell. Which event holds up
another one depends on their cycles, so this is repeated with those that came out until they stay, or until events wait
for themselves: then no schedule keeps the period (Howard's policy iteration, see Cochet-Terrasson, Cohen, Gaubert,
Mc Gettrick, Quadrat: Numerical computation of spectral elements in max-plus algebra, 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hwflow.ops.timing import Steps

_PATIENCE = 12  # repetitions
_NEVER = -(1 << 40)  # a cycle before all others: what nothing holds up; 2 ** 22 times as much is a number too


@dataclass(frozen=True)
class Wait:
    """Event ``targets[k]`` of process ``target`` is not before event ``events[k]`` of process ``source``, plus
    ``offsets[k]``, each less its step. Both are numbers of the processes of a group; ``targets`` ascend."""

    source: int
    target: int
    events: Steps
    targets: Steps
    offsets: Steps


@dataclass(frozen=True)
class Rest:
    """Of all events of a group of processes, one process after the other: ``base``, which no schedule is before, and
    for each of those that are later there than where they began, in ``roots``, the one that it is later for, by going
    through the group from where that one began. ``final``: nothing moves them any further."""

    base: Steps
    roots: Steps
    final: bool


def rest_of(waits: Sequence[Wait], bases: Sequence[Steps], spares: Sequence[int]) -> Rest | None:
    """Where the events of a group of processes come to rest, as far as these waits say, and as far as patience goes;
    None if they never do. ``bases``: cycles less steps that no schedule is before; ``spares``: cycles of a period
    without a step of the process."""
    begins = np.cumsum([0, *map(len, bases)])
    base = np.concatenate(bases)
    into = [[wait for wait in waits if wait.target == line] for line in range(len(bases))]
    roots = np.arange(len(base))
    for _ in range(_PATIENCE):
        held = [_held_up(len(bases[n]), into[n], base, begins, spares[n]) for n in range(len(bases))]
        least, follows = (np.concatenate(part) for part in zip(*held, strict=True))
        found = _rounds(base, follows, least - base.take(follows))
        if found is None:
            return None
        after, begun = found
        if after is base:
            return Rest(base, roots, True)
        base, roots = after, roots.take(begun)
    return Rest(base, roots, False)


def _held_up(events: int, waits: Sequence[Wait], base: Steps, begins: Steps, spare: int) -> tuple[Steps, Steps]:
    """The least cycles less steps of the events of a process, as others say, and which of these says most."""
    least, follows = np.full(events, _NEVER), np.zeros(events, dtype=np.int64)
    for wait in waits:
        sources = wait.events + begins[wait.source]
        wanted = base.take(sources) + wait.offsets
        more = wanted > least.take(wait.targets)
        places = wait.targets[more]
        least[places], follows[places] = wanted[more], sources[more]
    latest = int(least.argmax())
    if least[latest] - spare > least[0]:
        least[0], follows[0] = least[latest] - spare, follows[latest]
    if (least[1:] < least[:-1]).any():
        most = np.maximum.accumulate(least)
        follows = follows.take(np.maximum.accumulate(np.where(least == most, np.arange(events), 0)))
        least = most
    return least, follows


def _rounds(base: Steps, follows: Steps, delays: Steps) -> tuple[Steps, Steps] | None:
    """The least values from ``base`` on of which each is ``delays[k]`` more than that at ``follows[k]``, and for each
    the one that it comes from; None if there are none."""
    rounds = 1
    roots = np.arange(len(base))
    while True:
        least = base.take(follows) + delays
        later = least > base
        if not later.any():
            return base, roots
        if rounds > len(base):  # who goes on so long has come by the same place with more
            return None
        base = np.where(later, least, base)
        roots = np.where(later, roots.take(follows), roots)
        delays = delays + delays.take(follows)
        follows, rounds = follows.take(follows), 2 * rounds
