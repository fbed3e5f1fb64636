"""Decide whether FIFO depths sustain an initiation interval: find a periodic schedule, or give up.

Frames can follow each other every ``period`` cycles if and only if there is a schedule in which every event comes
``period`` cycles after the same event of the frame before (Baccelli, Cohen, Olsder, Quadrat: Synchronization and
Linearity, 1992, theorem 3.28 and section 2.5). Self-timed hardware is then never later than that schedule. So one frame
tells everything: its cycles are the longest paths of a graph in which an arc that leads into an earlier frame is
``period`` cycles shorter. They are found by firing the frame again and again, no event earlier than it was and the
frames before it as many periods earlier: what no longer changes is a proof.

Less room only ever makes events later. So a trial of a shorter queue begins with the schedule that is there, at the
actor that fills the queue, and goes on with whoever waits for an event that moved. Where a circuit of events is too
slow, they move without end. That is not proved but taken for granted when events have fired so often; near the boundary
a depth may be refused that would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from hwflow.schedule.throughput.events import Actor, Channel, EventGraph
from hwflow.schedule.throughput.firing import Cycles, Firing

_PATIENCE, _FEW = 3, 1 << 14  # firings of each event in a trial, besides so many of all together
_FIRST_PATIENCE = 30  # the same for the first schedule, with which all begins
_EARLY = -(1 << 40)  # a cycle before the schedule


class PeriodicSchedule:
    """A schedule of one frame every ``period`` cycles: at first with all the room in queues that it wants.

    ``period`` must be at least the steps a frame of every actor. Beats enter evenly spread over it, so that there are
    no bursts but those that the cores make; all else comes as soon as it can. ``depths``: of the queues that have one.
    """

    def __init__(self, graph: EventGraph, period: int) -> None:
        self.graph, self.period = graph, period
        self.depths: dict[Channel, int] = {}
        self._number = {actor: n for n, actor in enumerate(graph.actors)}

    def settle(self, depths: Mapping[Channel, int]) -> bool:
        """Find the schedule with these depths, and with all the room in the other queues that it wants. False, and it
        is of no more use, if there is none as far as patience goes."""
        self.depths = dict(depths)
        self._make_place(depths, map(self._first_cycles, self.graph.actors))
        if not self._settle(range(len(self.graph.actors)), _FIRST_PATIENCE):
            return False
        self._make_place({c: self.depths.get(c) or self.backlog(c) for c in self.graph.channels}, self._taken_out())
        return True

    def release(self) -> None:
        """Give up the memory that the schedule takes, of a large frame at once: it is of no more use."""
        del self._firing

    def shrink(self, channel: Channel, depth: int) -> bool:
        """Give a queue ``depth`` beats. False, and nothing changed, if the period could then not be kept, as far as
        patience goes."""
        if depth > self._most[channel]:
            self._make_place({**self._most, channel: depth}, self._taken_out())
        self._firing.set_depth(channel, depth)
        good = self._settle([self._number[channel.maker]], _PATIENCE)
        if good:
            self.depths[channel] = depth
        else:
            self._firing.set_depth(channel, self.depths.get(channel))
        return good

    def least(self, channel: Channel) -> int:
        """Return a depth that no queue of this channel can do with less than: an entry holds a beat for as long as it
        takes to arrive, and a cycle more until its credit is back, and all beats come every period."""
        return max(1, -(-channel.beats * (channel.latency + 1) // self.period))

    def backlog(self, channel: Channel) -> int:
        """Return the least depth with which this very schedule is possible."""
        made, taken = self._cycles(channel.maker)[channel.makes], self._cycles(channel.taker)[channel.takes]
        # Credits back by the time of beat b: of all beats ever, those taken before. Those of a frame are taken within a
        # period from its first on.
        frames, cycles = np.divmod(made - 1 - taken[0], self.period)
        back = frames * channel.beats + np.searchsorted(taken - taken[0], cycles, side="right")
        return max(1, int((np.arange(1, channel.beats + 1) - back).max()))

    def _cycles(self, actor: Actor) -> Cycles:
        return self._firing.cycles[self._number[actor]]

    def _first_cycles(self, actor: Actor) -> Cycles:
        if any(source.taker is actor for source in self.graph.sources):
            return actor.steps.astype(np.int64) * self.period // actor.of
        return np.full(actor.events, _EARLY)

    def _taken_out(self) -> list[Cycles]:
        """Return the cycles of all actors; the memory that they were in is given up."""
        cycles = [own.copy() for own in self._firing.cycles]
        del self._firing
        return cycles

    def _make_place(self, most: Mapping[Channel, int], cycles: Iterable[Cycles]) -> None:
        """Make place for the credits of queues of at least such depths, and put the cycles of all actors there."""
        self._most = {channel: (depth // channel.beats + 1) * channel.beats for channel, depth in most.items()}
        self._firing = Firing(self.graph, self._most)
        for channel in most:
            self._firing.set_depth(channel, self.depths.get(channel))
        for number, own in enumerate(cycles):
            self._put(number, own)
        self._neighbours = [set(readers) for readers in self._firing.readers]
        for number, readers in enumerate(self._firing.readers):
            for reader in readers:
                self._neighbours[reader].add(number)

    def _put(self, number: int, cycles: Cycles) -> None:
        """Write an actor's cycles of the present frame, and of those before as many periods earlier."""
        frames = self._firing.history[number].reshape(-1, len(cycles))
        periods = np.arange(len(frames) - 1, -1, -1, dtype=np.int64) * self.period
        np.subtract(cycles, periods[:, np.newaxis], out=frames)

    def _settle(self, first: Iterable[int], patience: int) -> bool:
        """Fire until nothing moves. False, and nothing changed, if patience ends before.

        Actors near the first ones settle first, then those twice as far: nearly all circuits are between neighbours,
        and take patience only with those."""
        active = set(first)
        near, reach = set(active), 1
        before: dict[int, Cycles] = {}
        left = patience * self._events(near) + _FEW
        while active and left > 0:
            inside = sorted(active & near)
            if not inside:
                for _ in range(reach):
                    near.update(*(self._neighbours[number] for number in near))
                reach, left = 2 * reach, patience * self._events(near) + _FEW
                continue
            for number in inside:
                if number not in before:
                    before[number] = self._firing.cycles[number].copy()
            moved, stuck = self._firing.fire(inside)
            if stuck:
                break
            for number in moved:
                self._put(number, self._firing.cycles[number].copy())
            active.difference_update(inside)
            active.update(moved, *(self._firing.readers[number] for number in moved))
            left -= self._events(inside)
        if not active:
            return True
        for number, cycles in before.items():
            self._put(number, cycles)
        return False

    def _events(self, actors: Iterable[int]) -> int:
        """Return how many events a frame these actors have."""
        return sum(self.graph.actors[number].events for number in actors)
