"""Where regions of a memory lie, in which bursts they are read over and over, and how late a burst can be.

Regions take turns: each that has room for its next burst gets one, so a turn of all of them takes at most
:attr:`FetchPlan.round` cycles, refreshes included. A region that always has room therefore gets a burst at least every
round, whatever the others do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hdl_lib.memories.sdram import SdramTiming

BURSTS_HELD = 3
"""Bursts for which a region's queue has room beside the beats that its reader's schedule counts with."""

_LARGEST = (16, 32, 64, 96, 128, 160, 192, 224, 255)  # words of the largest burst
_LEAST = 8  # words of a burst: shorter ones take hardly less time
_ARRIVAL = 8  # cycles from a word inside the controller to the queue's end, and from there to a request, at the most


def longest_bursts(timing: SdramTiming) -> list[int]:
    """Return what the words of a plan's longest burst may be, ascending. Raises ValueError if the clock leaves no time
    for any between refreshes."""
    found = []
    for largest in _LARGEST:
        try:
            timing.refresh_period(largest)
        except ValueError:
            break
        if largest <= timing.chip.columns:
            found.append(largest)
    if not found:
        raise ValueError(f"the clock must leave time for bursts of {_LARGEST[0]} words between refreshes")
    return found


@dataclass(frozen=True)
class Region:
    """``words`` that are read in bursts of ``burst`` (the last one may be shorter) from ``page`` on; ``times``: so
    often in a frame. No burst crosses the end of a page."""

    words: int
    times: int
    burst: int
    page: int
    per_page: int

    @property
    def bursts(self) -> int:
        """Return the bursts in which the region is read once."""
        return -(-self.words // self.burst)

    @property
    def last(self) -> int:
        """Return the words of the last burst."""
        return self.words - (self.bursts - 1) * self.burst

    @property
    def pages(self) -> int:
        return -(-self.bursts // self.per_page)

    def address(self, word: int, columns: int) -> int:
        """Return the address of a word in a memory with pages of ``columns``."""
        burst, rest = divmod(word, self.burst)
        page, place = divmod(burst, self.per_page)
        return (self.page + page) * columns + place * self.burst + rest


@dataclass(frozen=True)
class FetchPlan:
    """The ``regions`` of a memory."""

    timing: SdramTiming
    regions: tuple[Region, ...]

    @classmethod
    def of(cls, timing: SdramTiming, sizes: Sequence[tuple[int, int]], longest: int = 0) -> FetchPlan:
        """Return the plan that reads regions of (words, times a frame) in bursts of at most ``longest`` words, one of
        :func:`longest_bursts`, or (0) in the fewest cycles: the more of a frame's words a region has, the longer its
        bursts, of equal length if that is hardly less."""
        most = max(words * times for words, times in sizes)
        found = []
        for largest in [longest] if longest else longest_bursts(timing):
            regions, page = [], 0
            for words, times in sizes:
                burst = min(words, largest, max(_LEAST, -(-largest * words * times // most)))
                burst = next((even for even in range(burst, 3 * burst // 4, -1) if words % even == 0), burst)
                regions.append(Region(words, times, burst, page, timing.chip.columns // burst))
                page += regions[-1].pages
            found.append(cls(timing, tuple(regions)))
        return min(found, key=lambda plan: plan.cycles)

    @property
    def longest(self) -> int:
        """Return the words of the longest burst."""
        return max(region.burst for region in self.regions)

    @property
    def pages(self) -> int:
        return sum(region.pages for region in self.regions)

    @cached_property
    def round(self) -> int:
        """Return the most cycles between two bursts of a region that has room.

        In between every region has at most one burst, each with a cycle to look for it, and refreshes become due
        every ``refresh_period``: the least number of cycles that holds as many refreshes as become due in it. A region
        that had no room until now may find two bursts before it that came earlier, one of them of a region whose turn
        comes again; its queue, which has room for :data:`BURSTS_HELD`, lasts for as long.
        """
        timing = self.timing
        bursts = [timing.burst_cycles(region.burst) + 2 for region in self.regions]
        period = timing.refresh_period(self.longest)
        cycles = sum(bursts)
        while True:
            needed = sum(bursts) + timing.rfc * -(-cycles // period)
            if needed <= cycles:
                break
            cycles = needed
        wait = max(bursts) + 2 * timing.rfc + self.longest + timing.rcd + timing.read_latency + _ARRIVAL
        return max(cycles, -(-wait // (BURSTS_HELD - 1)))

    def cycles_of(self, region: Region) -> int:
        """Return the most cycles in which a region is read as often as in a frame."""
        return region.times * region.bursts * self.round

    @property
    def cycles(self) -> int:
        """Return the most cycles of a frame."""
        return max(map(self.cycles_of, self.regions))
