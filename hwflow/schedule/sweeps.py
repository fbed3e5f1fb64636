"""The least cycles of all events of many processes, found by sweeps over those whose waits changed.

Whatever moves an event (:mod:`hwflow.schedule.lines`, :mod:`hwflow.schedule.loops`) is something that it must wait for,
so once nothing changes any more the cycles are the least ones, and exact. A circuit
(:mod:`hwflow.schedule.circuits`) is as exact a proof that there are none. Only where patience ends is nothing known.
"""

from __future__ import annotations

from collections.abc import Iterable

from hwflow.schedule.circuits import Endless, search
from hwflow.schedule.lines import Arc, Line, Waiting, mark, sweep

_PASSES, _VISITS = 3, 2  # sweeps through all processes, visits of each event that moved: then circuits are searched for
_TOGETHER = 8  # searches of which one looks at all processes together that were swept since the one before
_GROWTH = 1.5  # of the visits between two searches of which the first one found nothing


class Sweeps:
    """Processes that wait for each other. ``endless``: what was found when events did not come to rest."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = list(lines)
        self.all = frozenset(self.lines)
        self.size = sum(line.size for line in self.lines)
        self.endless: Endless | None = None
        self._dirty: Waiting = {}

    def add(self, arc: Arc) -> None:
        arc.target.arcs.append(arc)
        arc.source.leaving.append(arc)
        arc.source.neighbours.add(arc.target)
        arc.target.neighbours.add(arc.source)
        self.look_at(arc)

    def remove(self, arc: Arc) -> None:
        arc.target.arcs.remove(arc)
        arc.source.leaving.remove(arc)
        self._dirty.get(arc.target, {}).pop(arc, None)

    def look_at(self, arc: Arc) -> None:
        """When next things settle."""
        self._dirty.setdefault(arc.target, {})[arc] = None

    def settle(self, lines: frozenset[Line], visits: int, most: int, keep: bool = True) -> bool:
        """Sweep until nothing changes among ``lines``; False if that never comes, or if patience ends, after ``visits``
        of each event that moved and ``most`` of all together. What does not ``keep``, or fails, is undone.

        Processes near those that something changed for settle first, then those twice as far: nearly all circuits are
        between a few neighbours, and found before the rest of the graph has moved."""
        waiting = {line: arcs for line, arcs in self._dirty.items() if line in lines and arcs}
        self._dirty = {line: arcs for line, arcs in self._dirty.items() if line not in lines and arcs}
        self.endless = None
        passes, visited, since, good = 0, 0, 0, True  # since: events visited since a circuit was searched for
        pause = float(_VISITS)
        active: set[Line] = set()
        searches = 0
        near, reach = set(waiting), 1
        order = [line for line in self.lines if line in near]
        while waiting:
            if near.isdisjoint(waiting):
                for _ in range(reach):
                    near |= {other for line in near for other in line.neighbours} & lines
                reach *= 2
                order = [line for line in self.lines if line in near]
                continue
            for line in order:
                arcs = waiting.pop(line, None)
                if arcs is None:
                    continue
                since += line.size
                active.add(line)
                if sweep(line, arcs):
                    mark(line, lines, waiting)
            order.reverse()
            passes += 1
            if not waiting or passes < _PASSES:
                continue
            if since > pause * sum(line.size for line in active):
                searches += 1
                together = [line for line in self.lines if line in active] if searches % _TOGETHER == 0 else []
                found = search(waiting, lines, together)
                visited, since, pause = visited + since, 0, _VISITS if found else _GROWTH * pause
                self.endless = found if isinstance(found, Endless) else None
                active.clear()
                moved = sum(line.size for line in lines if line.saved is not None)
                if self.endless or visited > max(most, visits * moved):
                    good = False
                    break
        for line in lines:
            if line.saved is not None and not (good and keep):
                line.base = line.saved
            line.saved, line.visits, line.since = None, 0, 0
            line.loops.clear()
        return good
