"""Round trips of a queue's credits: a beat comes so many cycles at the least after the one ``depth`` places before it.

This holds at either end of a queue, whatever the other end does. As a loop of two waits it would take a sweep for every
trip; of all trips of a frame at once it is a running maximum.
"""

from __future__ import annotations

import numpy as np

from hwflow.cores.timing import Steps, compact


class RoundTrips:
    """Those of the events of a process at one end of a queue. ``steps``: of these events; ``trip``: cycles."""

    def __init__(self, steps: Steps, depth: int, trip: int) -> None:
        self.depth = depth
        travelled = np.arange(len(steps)) // depth * trip
        self._travelled, self._ahead = compact(travelled), compact(steps - travelled)
        self._always = bool((self._ahead[depth:] >= self._ahead[:-depth]).all())

    def later(self, base: Steps) -> tuple[int, Steps] | None:
        """The least cycles less steps from ``base`` on, which ascends, with all trips made: from which event on they
        are later, and those of the events from there on; None if all are as they were."""
        return None if self._always else self._later(base, self._ahead)

    def later_cycles(self, cycles: Steps) -> tuple[int, Steps] | None:
        """The same of cycles, which are no fewer apart than their steps: those of the last so many events, which are
        counted from the first of them on."""
        return None if self._always else self._later(cycles, -self._travelled[: len(cycles)])

    def _later(self, values: Steps, ahead: Steps) -> tuple[int, Steps] | None:
        depth = self.depth
        apart = values + ahead
        soon = apart[depth:] < apart[:-depth]
        if not len(soon):
            return None
        first = int(soon.argmax())
        if not soon[first]:
            return None
        first -= first % depth
        count = len(values) - first
        rows = -(-count // depth)
        table = np.empty(rows * depth, dtype=np.int64)
        table[:count] = apart[first:]
        table[count:] = table[0]  # no matter
        columns = table.reshape(rows, depth)
        most = np.maximum.accumulate(columns, axis=0).reshape(-1)[:count]
        return first, most - ahead[first:]
