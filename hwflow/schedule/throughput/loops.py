"""Loops: waits of processes for each other, one after the other, that lead back to the first process.

Sweeps carry what events say about each other round a loop once each time, which takes long where a frame goes round
hundreds of times. Of a single loop all rounds can be told at once: what an event waits for is an event of the same
process, a round earlier; what it waited for two rounds earlier is found by looking up what that one waits for, and so
on by powers of two. Which event of a process holds up the next one depends on their cycles, so this is repeated with
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

_PATIENCE = 12  # repetitions: few loops need more than three


@dataclass(frozen=True)
class Hop:
    """A process, entered by a wait at some of its events and left by the next wait at others. For each of these,
    ``entered`` says how many of the first ones are no later, and ``offsets`` what the wait adds to its cycle less its
    step. ``spare``: cycles of a period without a step of this process."""

    entered: Steps
    offsets: Steps
    spare: int


def settles(hops: Sequence[Hop], base: Steps) -> bool | None:
    """Whether the events by which a loop enters its first process, of which ``base`` are cycles less steps that no
    schedule is before, come to rest, as far as the loop alone says. None where patience ends."""
    for _ in range(_PATIENCE):
        values, origins = base, np.arange(len(base))
        for hop in hops:
            values, origins = _after_all_before(values, origins, hop.spare)
            values, origins = values.take(hop.entered) + hop.offsets, origins.take(hop.entered)
        values, origins = (part[1:] for part in _after_all_before(values, origins, hops[0].spare))
        after = rounds(base, origins, values - base[origins])
        if after is None:
            return False
        if after is base:
            return True
        base = after
    return None


def _after_all_before(values: Steps, origins: Steps, spare: int) -> tuple[Steps, Steps]:
    """What events of a process say about those that come after them, and the origin of the one that says most: after
    the frame before, then after each event."""
    latest = int(values.argmax())
    values = np.concatenate(([values[latest] - spare], values))
    origins = np.concatenate(([origins[latest]], origins))
    return in_order(values, origins)
