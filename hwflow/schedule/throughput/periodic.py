"""Decide whether given FIFO depths sustain a target initiation interval: find a periodic schedule, or give up.

Frames can follow each other every ``period`` cycles if and only if there is a schedule in which every event fires
``period`` cycles after the same event of the frame before (Baccelli, Cohen, Olsder, Quadrat: Synchronization and
Linearity, 1992, theorem 3.28 and section 2.5). Self-timed hardware is then never later than that schedule. So one frame
suffices: its cycles are the longest paths of a graph in which an arc from an earlier frame is ``period`` cycles
shorter. They are found by firing the frame repeatedly, no event earlier than before: a fixed point is a proof.

Smaller depths only make events later. So a trial of a shallower queue starts from the present schedule, at the producer
of the queue, and continues with the readers of every event that moved. If the cycle mean of a circuit exceeds the
period, its events move forever. That is assumed, not proved, when events have fired :data:`_PATIENCE` times; near the
boundary a sufficient depth may be rejected.

A *gate* is an actor through which everything behind it depends on all before it, such as the only core between two
blocks of a network. If all its events move by as much, so does everything behind it, without firing: otherwise each
trial would cost as much as all the layers behind the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import numpy as np

from hwflow.schedule.throughput.events import Actor, Channel, EventGraph
from hwflow.schedule.throughput.firing import Cycles, Firing

_PATIENCE, _FEW = 3, 1 << 14  # firings of each event in a trial, plus so many in total
_FIRST_PATIENCE = 30  # the same for the initial schedule
_EARLY = -(1 << 40)  # a cycle before any of the schedule


class PeriodicSchedule:
    """A schedule of one frame every ``period`` cycles, at first with unbounded queues.

    ``period`` must be at least the steps per frame of every actor. Input beats are spread evenly over it, so that all
    bursts come from the cores; every other event fires as soon as it can. ``depths``: of the queues that have one.
    """

    def __init__(self, graph: EventGraph, period: int) -> None:
        self.graph, self.period = graph, period
        self.depths: dict[Channel, int] = {}
        self._number = {actor: n for n, actor in enumerate(graph.actors)}
        self._gates = self._found_gates()

    def settle(self, depths: Mapping[Channel, int]) -> bool:
        """Find the schedule with these depths, other queues unbounded. Return False if none is found within the
        patience; the object is then of no further use."""
        self.depths = dict(depths)
        self._allocate(depths, map(self._first_cycles, self.graph.actors))
        if not self._settle(range(len(self.graph.actors)), _FIRST_PATIENCE):
            return False
        self._allocate({c: self.depths.get(c) or self.backlog(c) for c in self.graph.channels}, self._saved_cycles())
        return True

    def release(self) -> None:
        """Free the memory of the schedule, which is then of no further use."""
        del self._firing, self._frames

    def shrink(self, channel: Channel, depth: int) -> bool:
        """Set a queue's depth. Return False, with nothing changed, if the period is not sustained within the patience.
        """
        if depth > self._most[channel]:
            self._allocate({**self._most, channel: depth}, self._saved_cycles())
        self._firing.set_depth(channel, depth)
        good = self._settle([self._number[channel.producer]], _PATIENCE)
        if good:
            self.depths[channel] = depth
        else:
            self._firing.set_depth(channel, self.depths.get(channel))
        return good

    def least(self, channel: Channel) -> int:
        """Return a lower bound of a queue's depth: an entry is taken from the production of a beat until its credit is
        back, ``latency`` + 1 cycles, and all beats of a frame must pass within a period."""
        return max(1, -(-channel.beats * (channel.latency + 1) // self.period))

    def backlog(self, channel: Channel) -> int:
        """Return the least depth with which this schedule is possible."""
        made, taken = self._cycles(channel.producer)[channel.produces], self._cycles(channel.consumer)[channel.consumes]
        # Credits returned by the time of beat b: all beats consumed before. Those of a frame are consumed within a
        # period of its first.
        frames, cycles = np.divmod(made - 1 - taken[0], self.period)
        back = frames * channel.beats + np.searchsorted(taken - taken[0], cycles, side="right")
        return max(1, int((np.arange(1, channel.beats + 1) - back).max()))

    def _cycles(self, actor: Actor) -> Cycles:
        number = self._number[actor]
        cycles: Cycles = self._firing.cycles[number] + self._due[number]
        return cycles

    def _found_gates(self) -> set[int]:
        """Return the actors such that no dependence is between one before them and one behind them. Queues, too, are
        dependences in both directions."""
        pairs = [(arc.source, arc.target) for arc in self.graph.waits]
        pairs += [(channel.producer, channel.consumer) for channel in self.graph.channels]
        furthest = list(range(len(self.graph.actors)))
        for pair in pairs:
            low, high = sorted(self._number[actor] for actor in pair)
            furthest[low] = max(furthest[low], high)
        inputs = max((self._number[source.consumer] for source in self.graph.sources), default=0)
        reached = accumulate(furthest[:-1], max, initial=inputs)  # from the actors before each
        return {number for number, furthest in enumerate(reached) if furthest <= number}

    def _first_cycles(self, actor: Actor) -> Cycles:
        if any(source.consumer is actor for source in self.graph.sources):
            return actor.steps.astype(np.int64) * self.period // actor.of
        return np.full(actor.events, _EARLY)

    def _saved_cycles(self) -> list[Cycles]:
        """Return copies of the cycles of all actors and free the memory that they were in."""
        cycles = [own + due for own, due in zip(self._firing.cycles, self._due.tolist(), strict=True)]
        del self._firing, self._frames
        return cycles

    def _allocate(self, most: Mapping[Channel, int], cycles: Iterable[Cycles]) -> None:
        """Allocate credits of queues of at least these depths, and write the cycles of all actors."""
        self._most = {channel: (depth // channel.beats + 1) * channel.beats for channel, depth in most.items()}
        self._firing = Firing(self.graph, self._most)
        for channel in most:
            self._firing.set_depth(channel, self.depths.get(channel))
        self._due = np.zeros(len(self.graph.actors), dtype=np.int64)  # cycles to be added to those in the memory
        # An actor's cycles of the present frame, and those of the frames before, each one period less.
        self._frames = [
            (now, history[: -len(now)].reshape(-1, len(now)))
            for now, history in zip(self._firing.cycles, self._firing.history, strict=True)
        ]
        frames_ago = [np.arange(len(past), 0, -1, dtype=np.int64)[:, np.newaxis] for _, past in self._frames]
        self._ago = [number * self.period for number in frames_ago]
        for number, own in enumerate(cycles):
            self._put(number, own)
        self._neighbours = [set(readers) for readers in self._firing.readers]
        for number, readers in enumerate(self._firing.readers):
            for reader in readers:
                self._neighbours[reader].add(number)

    def _put(self, number: int, cycles: Cycles) -> None:
        """Write an actor's cycles of the present frame, and of each earlier frame one period less."""
        self._due[number] = 0
        self._frames[number][0][:] = cycles
        self._hand_on(number)

    def _hand_on(self, number: int) -> None:
        """Write the cycles of an actor's earlier frames as its present one has them."""
        now, past = self._frames[number]
        np.subtract(now, self._ago[number], out=past)

    def _settle(self, first: Iterable[int], patience: int) -> bool:
        """Fire to a fixed point. Return False, with nothing changed, if the patience ends before.

        Actors near the first ones settle first, then those twice as far: nearly all circuits are between neighbours,
        and exhaust the patience for those only.
        """
        active = set(first)
        near, reach = set(active), 1
        before: dict[int, Cycles] = {}
        last = max(active)  # of the actors that fire: behind it nothing is waited for
        moves: list[tuple[slice, int]] = []
        left = patience * self._events(near) + _FEW
        while active and left > 0:
            inside = sorted(active & near)
            if not inside:
                for _ in range(reach):
                    near.update(*(self._neighbours[number] for number in near))
                reach, left = 2 * reach, patience * self._events(near) + _FEW
                continue
            self._catch_up(inside)
            for number in inside:
                if number not in before:
                    before[number] = self._firing.cycles[number].copy()
            front = self._firing.cycles[last].copy()
            moved, stuck = self._firing.fire(inside)
            if stuck:
                break
            for number in moved:
                self._hand_on(number)
            active.difference_update(inside)
            active.update(moved, *(self._firing.readers[number] for number in moved))
            left -= self._events(inside)
            later = self._firing.cycles[last] - front
            if last in self._gates and last in moved and (later == later[0]).all():
                moves.append((slice(last + 1, None), int(later[0])))
                self._due[last + 1 :] += later[0]
                active = {number for number in active if number <= last}
            last = max({last} | active)
        if not active:
            return True
        for number, cycles in before.items():
            self._put(number, cycles)
        for behind, delay in moves:
            self._due[behind] -= delay
        return False

    def _catch_up(self, actors: Sequence[int]) -> None:
        """Write what is due of these actors and their neighbours."""
        if self._due.any():
            for number in set(actors).union(*(self._neighbours[number] for number in actors)):
                if self._due[number]:
                    self._put(number, self._firing.cycles[number] + self._due[number])

    def _events(self, actors: Iterable[int]) -> int:
        """Return the total number of events per frame of these actors."""
        return sum(self.graph.actors[number].events for number in actors)
