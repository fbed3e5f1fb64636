"""Where regions of a memory lie, in which bursts they are read over and over, and how late a burst can be.

Regions take turns: each that has room for its next burst gets one, so a turn of all of them takes at most
:attr:`FetchPlan.round` cycles, refreshes included. A region that always has room therefore gets a burst at least every
round, whatever the others do. A queue has two turns in a round, one to write a burst and one to read one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from hdl_lib.external.memory_timing import MemoryTiming

BURSTS_HELD = 3
"""Bursts for which a region's queue has room beside the beats that its reader's schedule counts with."""

_SLOTS_MORE = 2  # of a queue: one that is written while the oldest one is read
_LARGEST = (16, 32, 64, 96, 128, 160, 192, 224, 255)  # words of the largest burst
_LARGEST_OF_QUEUE = 64  # nine bursts of a queue are on their way, in block RAMs, and longer ones save little time
_BITS_OF_MAPS = 3072  # of a burst of an engine's maps: five of them wait in a block RAM
_FILLED = BURSTS_HELD + 3  # bursts that fill an empty queue, and one that is on its way
_MUCH_MORE = 3  # times as many words
_LEAST = 8  # words of a burst: shorter ones take hardly less time
_ARRIVAL = 8  # cycles from a word inside the controller to the queue's end, and from there to a request, at the most


def longest_bursts(timing: MemoryTiming) -> list[int]:
    """Return what the words of a plan's longest burst may be, ascending. Raises ValueError if the clock leaves no time
    for any between refreshes."""
    found = []
    for largest in _LARGEST:
        try:
            timing.refresh_period(largest)
        except ValueError:
            break
        if largest <= timing.longest_burst:
            found.append(largest)
    if not found:
        raise ValueError(f"the clock must leave time for bursts of {_LARGEST[0]} words between refreshes")
    return found


@dataclass(frozen=True)
class Bursts:
    """``words`` that come in bursts of ``burst`` (the last one may be shorter), in pages from ``page`` on, ``per_page``
    bursts in each. No burst crosses the end of a page."""

    words: int
    burst: int
    page: int
    per_page: int

    @property
    def bursts(self) -> int:
        """Return the bursts in which the words come once."""
        return -(-self.words // self.burst)

    @property
    def last(self) -> int:
        """Return the words of the last burst."""
        return self.words - (self.bursts - 1) * self.burst

    def pages_of(self, slots: int) -> int:
        """Return the pages in which there is room for so many bursts."""
        return -(-slots // self.per_page)


@dataclass(frozen=True)
class Parts:
    """What a region lies in the memory as: parts of so many ``words``, each from a page of its own on, which are read
    in this ``order``, perhaps more than once each."""

    words: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def read(self) -> int:
        """Return the words that are read."""
        return sum(self.words[part] for part in self.order)


@dataclass(frozen=True)
class Region(Bursts):
    """Words that are read over and over, ``times`` in a frame; where a part has been read, the next burst begins."""

    times: int
    parts: Parts | None = None

    @property
    def whole(self) -> Parts:
        """Return its parts; one, if it is read from its first word to its last one."""
        return self.parts or Parts((self.words,), (0,))

    def bursts_of(self, words: int) -> int:
        """Return the bursts of a part of so many words."""
        return -(-words // self.burst)

    @property
    def bursts(self) -> int:
        return sum(self.bursts_of(self.whole.words[part]) for part in self.whole.order)

    @property
    def last(self) -> int:
        words = self.whole.words[self.whole.order[-1]]
        return words - (self.bursts_of(words) - 1) * self.burst

    @property
    def pages(self) -> int:
        return sum(self.pages_of(self.bursts_of(words)) for words in self.whole.words)

    @property
    def firsts(self) -> Iterator[int]:
        """Yield the first page of each part."""
        page = self.page
        for words in self.whole.words:
            yield page
            page += self.pages_of(self.bursts_of(words))

    def address(self, word: int, columns: int) -> int:
        """Return the address of the word that is read behind so many, in a memory with pages of ``columns``."""
        firsts = list(self.firsts)
        for part in self.whole.order:
            if word < self.whole.words[part]:
                burst, rest = divmod(word, self.burst)
                page, place = divmod(burst, self.per_page)
                return (firsts[part] + page) * columns + place * self.burst + rest
            word -= self.whole.words[part]
        raise ValueError(f"word must be one of those that are read, not {word} behind them")

    @property
    def begins(self) -> list[int]:
        """Return how many words are read before each burst."""
        found = [0]
        for part in self.whole.order:
            words, end = self.whole.words[part], found.pop()
            found += [*range(end, end + words, self.burst), end + words]
        return found[:-1]


@dataclass(frozen=True)
class QueueRegion(Bursts):
    """A frame's words, which are written burst by burst to one of ``slots`` after the other, and read from there."""

    slots: int

    @property
    def pages(self) -> int:
        return self.pages_of(self.slots)


@dataclass(frozen=True)
class FetchPlan:
    """The ``regions`` of a memory, and behind them its ``queues``. ``taken``, if the readers of all regions but the
    first follow that one's, one behind the other: in how many cycles each takes its words of a frame, where they are
    there, and passes on what it makes."""

    timing: MemoryTiming
    regions: tuple[Region, ...]
    queues: tuple[QueueRegion, ...] = ()
    taken: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.queues and self.timing.read_only:
            raise ValueError(f"the {self.timing.chip.name} must be written where queues wait, but is only read")

    @classmethod
    def of(
        cls, timing: MemoryTiming, sizes: Sequence[tuple[int | Parts, int]], longest: int = 0,
        queues: Sequence[tuple[int, ...]] = (), wanted: Sequence[int] = (), taken: Sequence[int] = (),
    ) -> FetchPlan:
        """Return the plan that reads regions of (words, or parts of them, times a frame) in bursts of at most
        ``longest`` words, one of :func:`longest_bursts`, or (0) in the fewest cycles of those that fit the memory: the
        more of a frame's words a region has, the longer its bursts, of equal length if that is hardly less. ``wanted``:
        of each region the words that it could take in a frame, where these are more: its reader waits for some of its
        words, and has time at others. ``queues``:
        the words of a frame, and how many of them a queue must hold at a time; and, of an engine's maps, what all of
        these are multiples of: no burst has words of two maps. ``taken``: of the plan."""
        read = [(each.read if isinstance(each, Parts) else each, times) for each, times in sizes]
        least = wanted or [0] * len(read)
        shares = [max(words * times, more) for (words, times), more in zip(read, least, strict=True)]
        if taken and _MUCH_MORE * sum(shares[1:]) <= shares[0]:
            # The sooner the others have their words, the longer the first region has the memory for itself.
            shares[1:] = [shares[0] // 2] * len(taken)
        most = max([*shares, *(words for words, *_ in queues)])
        found = []
        for largest in [longest] if longest else longest_bursts(timing):

            def burst_of(words: int, share: int, largest: int = largest) -> int:
                burst = min(words, largest, max(_LEAST, -(-largest * share // most)))
                return next((even for even in range(burst, 3 * burst // 4, -1) if words % even == 0), burst)

            regions: list[Region] = []
            waiting: list[QueueRegion] = []
            page = 0
            for (words, times), (each, _), share in zip(read, sizes, shares, strict=True):
                burst, parts = burst_of(words, share), each if isinstance(each, Parts) else None
                regions.append(Region(words, burst, page, timing.chip.columns // burst, times, parts))
                page += regions[-1].pages
            for words, held, *unit in queues:
                if unit:
                    most_of_maps = min(largest, _BITS_OF_MAPS // timing.chip.width)
                    burst = next(each for each in range(most_of_maps, 0, -1) if unit[0] % each == 0)
                else:
                    burst = burst_of(words, words, min(largest, _LARGEST_OF_QUEUE))
                # The last burst of each frame may leave part of its slot empty.
                slots = -(-held // burst) + held // words + _SLOTS_MORE
                waiting.append(QueueRegion(words, burst, page, timing.chip.columns // burst, slots))
                page += waiting[-1].pages
            found.append(cls(timing, tuple(regions), tuple(waiting), tuple(taken)))

        def cycles(plan: FetchPlan) -> int:
            """Return the most cycles of a frame, or those in which regions would have what they could take."""
            if len(read) < 2 or not any(wanted):
                return plan.cycles
            return max(plan.round * -(-share // each.burst) for each, share in zip(plan.regions, shares, strict=True))

        return min(found, key=lambda plan: (not plan.fits, cycles(plan)))

    @property
    def fits(self) -> bool:
        """Tell whether the memory has as many pages."""
        return self.pages <= self.timing.chip.pages

    @property
    def longest(self) -> int:
        """Return the words of the longest burst."""
        return max(each.burst for each in (*self.regions, *self.queues))

    @property
    def pages(self) -> int:
        return sum(region.pages for region in self.regions) + sum(queue.pages for queue in self.queues)

    @property
    def image_pages(self) -> int:
        """Return the pages that have contents from the beginning; at least one, with which the memory is tried."""
        return max(1, sum(region.pages for region in self.regions))

    @cached_property
    def round(self) -> int:
        """Return the most cycles between two bursts of a region that has room.

        In between every region has at most one burst, each with a cycle to look for it, and refreshes, if there are
        any, become due every ``refresh_period``: the least number of cycles that holds as many refreshes as become due
        in it. A region that had no room until now may find two bursts before it that came earlier, one of them of a
        region whose turn comes again; its queue, which has room for :data:`BURSTS_HELD`, lasts for as long.
        """
        return self._round(self._bursts(self.regions, self.queues))

    def round_of(self, regions: Sequence[Region], maps: QueueRegion | None = None) -> int:
        """Return the same if only some ``regions`` have room, while an engine's ``maps`` do not move: the two of their
        queue are only looked at, as are the other regions."""
        others = [each for each in self.queues if each is not maps]
        looks = [1] * (len(self.regions) - len(regions)) + ([2] if maps else [])
        return self._round([*self._bursts(regions, others), *looks])

    @property
    def busy(self) -> int | None:
        """Return how long all regions but the first may be read, from where the first one's reader ends a frame: what
        follows it takes its words, and the queues are filled again. None: at any time."""
        if not self.taken:
            return None
        read = (max(self.cycles_of(each), taken) for each, taken in zip(self.regions[1:], self.taken, strict=True))
        return sum(read) + _FILLED * self.round

    def move(self, maps: QueueRegion, weights: Region) -> Fraction:
        """Return the cycles of a burst of an engine's ``maps`` if they always move, the same way, and its ``weights``
        do not; of many bursts, as refreshes have their share."""
        regions = [each for each in self.regions if each is not weights]
        others = [each for each in self.queues if each is not maps]
        cycles = sum([*self._bursts(regions, others), max(self._bursts((), (maps,))), 2])
        period = self.timing.refresh_period(self.longest)
        return Fraction(cycles) if period is None else cycles / (1 - Fraction(self.timing.refresh_cycles, period))

    @property
    def late(self) -> int:
        """Return the most cycles in which a word has come, if its burst is the next one but one."""
        timing = self.timing
        arrival = self.longest * timing.word_cycles + timing.first_access + timing.read_latency + _ARRIVAL
        return max(self._bursts(self.regions, self.queues)) + 2 * timing.refresh_cycles + arrival

    def _bursts(self, regions: Sequence[Region], queues: Sequence[QueueRegion]) -> list[int]:
        """Return the cycles of a burst of each region, and two of each queue."""
        timing = self.timing
        bursts = [timing.burst_cycles(each.burst) + 2 for each in (*regions, *queues)]
        return bursts + [timing.burst_cycles(each.burst, write=True) + 2 for each in queues]

    def _round(self, bursts: Sequence[int]) -> int:
        """Return the most cycles of such bursts, with refreshes among them."""
        timing = self.timing
        period = timing.refresh_period(self.longest)
        cycles = sum(bursts)
        while period is not None:
            needed = sum(bursts) + timing.refresh_cycles * -(-cycles // period)
            if needed <= cycles:
                break
            cycles = needed
        return max(cycles, -(-self.late // (BURSTS_HELD - 1)))

    def cycles_of(self, region: Region) -> int:
        """Return the most cycles in which a region is read as often as in a frame."""
        return region.times * region.bursts * self.round

    def cycles_of_queue(self, queue: QueueRegion) -> int:
        """Return the most cycles in which a frame is written to a queue, and in which one is read."""
        return queue.bursts * self.round

    @property
    def cycles(self) -> int:
        """Return the most cycles of a frame."""
        return max([*map(self.cycles_of, self.regions), *map(self.cycles_of_queue, self.queues)])
