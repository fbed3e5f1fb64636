"""The inner loop, by hand: cycles, who moved, who stands still, and whose memory it is."""

from __future__ import annotations

import gc

import numpy as np

from hwflow.schedule.throughput.events import Actor, Arc, EventGraph
from hwflow.schedule.throughput.firing import NEVER, Firing


def actor(*steps: int) -> Actor:
    return Actor(None, steps[-1] + 1, np.array(steps))


def ring(first: Actor, second: Actor, back: list[int]) -> EventGraph:
    """The second waits for each event of the first two cycles long, the first one cycle for the second's ``back``."""
    events = np.arange(first.events)
    arcs = [Arc(first, events, second, events, 2), Arc(second, np.array(back), first, events, 1)]
    return EventGraph([first, second], arcs, [], [])


def fresh(graph: EventGraph) -> Firing:
    firing = Firing(graph, {})
    for one, history, cycles in zip(graph.actors, firing.history, firing.cycles, strict=True):
        history[:], cycles[:] = NEVER, one.steps
    return firing


def test_cycles_by_hand() -> None:
    """Steps 0, 1 and 4. The first event of each may fire; the second of the first waits for the first of the second,
    at 2, until 3, and three steps later than that comes its third."""
    firing = fresh(ring(actor(0, 1, 4), actor(0, 1, 2), [-1, 0, 1]))
    moved, stuck = firing.fire([0, 1])
    assert (moved, stuck) == ([0, 1], [])
    assert firing.cycles[0].tolist() == [0, 3, 6]
    assert firing.cycles[1].tolist() == [2, 5, 8]
    assert firing.fire([0, 1]) == ([], [])  # all is where it was
    firing.history[1][-4] = 4  # the last event of the frame before
    assert firing.fire([0]) == ([0], [])
    assert firing.cycles[0].tolist() == [5, 6, 9]
    assert firing.cycles[1].tolist() == [2, 5, 8]


def test_who_waits_for_each_other() -> None:
    """The second event of the first actor waits for the second of the second, which waits for it."""
    firing = fresh(ring(actor(0, 1), actor(0, 1), [-1, 1]))
    assert firing.fire([0, 1])[1] == [0, 1]
    assert firing.cycles[0][0] == 0


def test_memory_lives_as_long_as_a_view_of_it() -> None:
    firing = fresh(ring(actor(0, 1, 4), actor(0, 1, 2), [-1, 0, 1]))
    firing.fire([0, 1])
    cycles = firing.cycles[1]
    del firing
    gc.collect()
    assert cycles.tolist() == [2, 5, 8]
