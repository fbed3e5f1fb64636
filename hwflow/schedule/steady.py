"""Whether queues of given depths let a graph keep pace: a schedule that repeats itself, or a circuit that is too slow.

Frames can follow each other every ``period`` cycles if and only if there is a schedule in which every event comes
``period`` cycles after the same event of the frame before (Baccelli, Cohen, Olsder, Quadrat: Synchronization and
Linearity, 1992, theorem 3.28 and section 2.5: if no circuit of events takes longer than its frames allow). Self-timed
hardware is then never later than that schedule. So one frame tells everything: its cycles are the longest paths of a
graph in which an arc that leads into an earlier frame is ``period`` cycles shorter. They are found by sweeps
(:mod:`hwflow.schedule.sweeps`), beginning with the cycles for deeper queues: less room only ever makes events later.
What no longer changes is a proof. A circuit of events that push each other on is one of the contrary.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

import numpy as np

from hwflow.ir.graph import Graph, Node
from hwflow.ops.registry import hardware
from hwflow.ops.timing import Steps
from hwflow.schedule.circuits import Endless, rests
from hwflow.schedule.events import Channel, Events, Order, Track, events_of, tracks_of, waits_of
from hwflow.schedule.lines import Arc, End, Line
from hwflow.schedule.places import Places
from hwflow.schedule.sweeps import Sweeps

_VISITS, _MOST = 1000, 50_000_000  # patience: visits of each event that moved, unless they are fewer of all together


class Steady:
    """A schedule of one frame every ``period`` cycles: at first with all the room in queues that it wants.

    ``period`` must be at least the steps a frame of every process. ``too_small``: after :meth:`shrink` failed, the
    greatest depth, that one at the least, with which the period cannot be kept. ``refused``: of every queue for which
    it ever did, the greatest such depth, and the queues that the circuit found then leads through (none where patience
    ended first); other queues only ever get shorter, so that this stays.
    """

    def __init__(self, graph: Graph, period: int, like: Steady | None = None) -> None:
        """``like``: of the graph before nodes were added, whose cycles are where the search for a schedule begins."""
        self.events: Events = events_of(graph)
        self.period = period
        self._lines = {t: Line(period - t.of, np.zeros(t.events, dtype=np.int64)) for t in self.events.tracks}
        self._sweeps = Sweeps(self._lines.values())
        self._credits: dict[Channel, Arc] = {}
        self._arrivals: dict[Channel, Arc] = {}
        self._ends: dict[Channel, tuple[End, End] | None] = {}
        self._channels: dict[Arc, Channel] = {}  # whose beats or credits these are
        self.depths: dict[Channel, int] = {}
        self.too_small = 0
        self.refused: dict[Channel, tuple[int, frozenset[Channel]]] = {}
        for order in self.events.waits:
            self._add(self._arc(order))
        for channel in self.events.channels:
            self._arrivals[channel] = self._add(self._arc(channel.arrivals()), channel)
            self._ends[channel] = self._two_ends(channel)
        if like is not None:
            self._begin_like(like)

    def _begin_like(self, other: Steady) -> None:
        """Take over the cycles of processes that the other one has too."""
        there: dict[Node | None, list[Line]] = {}
        for track, line in other._lines.items():
            there.setdefault(track.node, []).append(line)
        for track, line in self._lines.items():
            if there.get(track.node):
                line.base = there[track.node].pop(0).base.copy()

    # --- what is asked ---------------------------------------------------------------------------------------------

    def settle(self, depths: Mapping[Channel, int] | None = None) -> bool:
        """Whether the period can be kept as things are; the schedule then says how. If not, it is of no more use.

        ``depths``: of queues that had all the room that they wanted until now."""
        for channel, depth in (depths or {}).items():
            self._give(channel, depth)
        return self._settle(100 * self._sweeps.size + 20_000_000)

    def shrink(self, channel: Channel, depth: int) -> bool:
        """Give a queue ``depth`` beats. False, and nothing changed, if the period could then not be kept."""
        before, arc = self.depths.get(channel), self._take_away(channel)
        credits = self._give(channel, depth)
        self.too_small = depth
        if self._settle(_MOST):
            return True
        endless = self._sweeps.endless
        if endless and endless.group and credits in endless.waits:
            self._rule_out(channel, endless, credits)
        if self.refused.get(channel, (0, None))[0] < self.too_small:
            self.refused[channel] = self.too_small, self._through(endless)
        self._take_away(channel)
        if before is not None:
            self._give(channel, before, arc)
        return False

    def refit(self, node: Node) -> bool:
        """Take the waits between a core's processes anew from its timing, which has more of them now (a smaller
        memory). False, and the old ones are kept, if the period could then not be kept."""
        tracks = [track for track in self._lines if track.node is node]
        lines = frozenset(self._lines[track] for track in tracks)
        timing = hardware(node.op).timing(node, node.attributes["folding"])
        if any(
            not np.isin(new.steps, old.steps).all() for new, old in zip(tracks_of(node, timing), tracks, strict=True)
        ):
            return False  # steps that did not matter do
        old = [arc for line in lines for arc in line.arcs if arc.source in lines and arc not in self._channels]
        for arc in old:
            self._sweeps.remove(arc)
        orders = waits_of(timing, tracks)
        new = [self._add(self._arc(order)) for order in orders]
        if self._sweeps.settle(lines, _VISITS, _MOST, keep=False):  # what the core cannot do by itself it cannot at all
            for arc in new:
                self._sweeps.look_at(arc)
            if self._settle(_MOST):
                others = [order for order in self.events.waits if order.target.node is not node]
                self.events.waits = others + orders
                return True
        for arc in new:
            self._sweeps.remove(arc)
        for arc in old:
            self._sweeps.add(arc)
        return False

    def least(self, channel: Channel) -> int:
        """A depth that no queue of this channel can do with less than: an entry holds a beat for as long as it takes to
        arrive, and a cycle more until its credit is back, and all beats come every period."""
        return max(1, -(-channel.beats * (channel.latency + 1) // self.period))

    def backlog(self, channel: Channel) -> int:
        """The least depth with which this very schedule is possible."""
        made, taken = self._cycles(channel.maker, channel.makes), self._cycles(channel.taker, channel.takes)
        # Credits back by the time of beat b: of all beats ever, those taken before. Those of a frame are taken within a
        # period from its first on.
        frames, cycles = np.divmod(made - 1 - taken[0], self.period)
        back = frames * channel.beats + np.searchsorted(taken - taken[0], cycles, side="right")
        return max(1, int((np.arange(1, channel.beats + 1) - back).max()))

    # --- queues and waits -------------------------------------------------------------------------------------------

    def _cycles(self, track: Track, events: Steps) -> Steps:
        cycles: Steps = self._lines[track].base[events] + track.steps[events]
        return cycles

    def _add(self, arc: Arc, channel: Channel | None = None) -> Arc:
        self._sweeps.add(arc)
        if channel:
            self._channels[arc] = channel
        return arc

    def _arc(self, order: Order) -> Arc:
        source, target = self._lines[order.source], self._lines[order.target]
        frame, event = np.divmod(order.events, order.source.events)
        offsets = frame * self.period + order.lag + order.source.steps[event] - order.target.steps[order.targets]
        return Arc(source, target, Places(event), Places(order.targets), offsets)

    def _two_ends(self, channel: Channel) -> tuple[End, End] | None:
        """Where a queue begins and where it ends; None if that is one process."""
        if channel.maker is channel.taker:
            return None
        arc = self._arrivals[channel]
        made = End(arc.events, channel.maker.steps[channel.makes], channel.latency + 1)
        taken = End(arc.targets, channel.taker.steps[channel.takes], channel.latency + 1)
        arc.source.ends.append(made)
        arc.target.ends.append(taken)
        return made, taken

    def _give(self, channel: Channel, depth: int, credits: Arc | None = None) -> Arc:
        """A queue that had all the room that it wanted this depth; by what arc its credits come back."""
        credits = self._add(credits or self._arc(channel.credits(depth)), channel)
        self._credits[channel], self.depths[channel] = credits, depth
        ends = self._ends[channel]
        if ends:
            arrivals = self._arrivals[channel]
            for end, waits in zip(ends, ((credits, arrivals), (arrivals, credits)), strict=True):
                end.depth, end.waits = depth, waits
        return credits

    def _take_away(self, channel: Channel) -> Arc | None:
        """The depth of a queue, if it has one, so that it may be as deep as it likes."""
        arc = self._credits.pop(channel, None)
        if arc is not None:
            self._sweeps.remove(arc)
            del self.depths[channel], self._channels[arc]
        for end in self._ends[channel] or ():
            end.depth, end.waits = None, ()
        return arc

    # --- what does not come to rest ---------------------------------------------------------------------------------

    def _settle(self, most: int) -> bool:
        return self._sweeps.settle(self._sweeps.all, _VISITS, most)

    def _through(self, endless: Endless | None) -> frozenset[Channel]:
        """The queues that a circuit leads through."""
        return frozenset(self._channels[arc] for arc in (endless.waits if endless else ()) if arc in self._channels)

    def _rule_out(self, channel: Channel, endless: Endless, credits: Arc) -> None:
        """All depths of a queue with which these waits, its ``credits`` among them, go on for ever."""

        def possible(depth: int) -> bool:
            others = self._arc(channel.credits(depth))
            return rests(endless, tuple(others if arc is credits else arc for arc in endless.waits))

        stride = 1
        while not possible(self.too_small + stride):
            self.too_small += stride
            stride *= 2
        self.too_small += bisect_left(range(1, stride), True, key=lambda more: possible(self.too_small + more))
