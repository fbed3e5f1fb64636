"""Map each element of a frame to its source element, and find the hardware for that order."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from hdl_lib.memories.address_walk import AddressWalk, LoopAxis
from hdl_lib.memories.pad_crop import Frame, Part
from hwflow.ir.graph import IntArray

FILL = -1
"""In an index map: no element, but the fill value."""

_MOST_PARTS = 16  # of a frame that a core with a run of steps for each makes in order


class IndexMap:
    """``index[k]`` is the number of the source frame's element that element k of the result repeats, or :data:`FILL`.

    ``elements``: elements of a source frame, at least one of which is repeated. Compared by identity, as results are
    cached.
    """

    def __init__(self, index: IntArray, elements: int) -> None:
        self.index = np.asarray(index, dtype=np.int64).reshape(-1)
        self.elements = elements
        least, most = self.index.min(), self.index.max()
        if not FILL <= least <= most < elements or most < 0:  # uncovered: a defect of ours
            raise ValueError(f"index must be of {elements} elements or {FILL}, some of it not {FILL}")
        self._words: dict[int, IntArray | None] = {}
        self._walks: dict[int, AddressWalk] = {}
        self._frames: dict[int, Frame | None] = {}

    @property
    def has_fill(self) -> bool:
        return bool((self.index == FILL).any())

    @cached_property
    def is_identity(self) -> bool:
        """Tell whether the map changes nothing."""
        return self.index.size == self.elements and np.array_equal(self.index, np.arange(self.elements))

    def words(self, lanes: int) -> IntArray | None:
        """Return the map of beats of ``lanes`` consecutive elements; None if some beat of the result is not a whole
        beat of the source."""
        if lanes not in self._words:
            self._words[lanes] = self._of_words(lanes)
        return self._words[lanes]

    def _of_words(self, lanes: int) -> IntArray | None:
        if self.index.size % lanes or self.elements % lanes:
            return None
        beats = self.index.reshape(-1, lanes)
        first = beats[:, 0]
        expected = np.where(first[:, None] == FILL, FILL, first[:, None] + np.arange(lanes))
        if not np.array_equal(beats, expected) or (first[first != FILL] % lanes).any():
            return None
        return np.where(first == FILL, FILL, first // lanes)

    def walk(self, lanes: int) -> AddressWalk:
        """Return the loops that generate the map of beats of ``lanes``, which must exist."""
        if lanes not in self._walks:
            words = self.words(lanes)
            assert words is not None, "no map of such beats"
            self._walks[lanes] = as_loops(words)
        return self._walks[lanes]

    def frame(self, lanes: int) -> Frame | None:
        """Return the map of beats of ``lanes`` as parts of a frame in order; None if there is none, or the order is
        another one, or there are many parts."""
        if lanes not in self._frames:
            words = self.words(lanes)
            self._frames[lanes] = None if words is None else _in_order(words, self.elements // lanes)
        return self._frames[lanes]

    @cached_property
    def least_wiring(self) -> tuple[int, tuple[int | None, ...]]:
        """Return the smallest source beat from which one beat of the result is always wired in the same way: its
        elements and, for each element of the result's beat, the element it repeats. At most a whole frame."""
        for parts in sorted(_divisors(int(np.gcd(self.index.size, self.elements))), reverse=True):
            beat = self.elements // parts
            # Two beats tell most of those apart that are not alike.
            for some in dict.fromkeys((min(2, parts), parts)):
                split = self.index[: some * (self.index.size // parts)].reshape(some, -1)
                fill = split == FILL
                relative = np.where(fill, FILL, split - beat * np.arange(some)[:, None])
                if not (fill | ((relative >= 0) & (relative < beat))).all() or (relative != relative[0]).any():
                    break
            else:
                return beat, tuple(None if at == FILL else int(at) for at in relative[0])
        raise AssertionError("a whole frame is one beat")


def _in_order(words: IntArray, beats: int) -> Frame | None:
    """Return ``words`` of a frame of ``beats`` as parts of it, if they are in order and few."""
    known = words[words != FILL]
    if (np.diff(known) < 1).any():
        return None
    filled = np.diff(words == FILL)
    starts = np.flatnonzero(filled | (~filled & (words[1:] != FILL) & (np.diff(words) != 1))) + 1
    if len(starts) >= _MOST_PARTS:
        return None
    parts: list[tuple[int, Part]] = []
    taken = 0
    if words[0] == FILL and known[0]:  # what is cropped at the beginning is so before any padding
        parts.append((int(known[0]), Part.CROP))
        taken = int(known[0])
    for run in np.split(words, starts):
        first, count = int(run[0]), len(run)
        if first != FILL:
            parts += [(first - taken, Part.CROP)] if first > taken else []
            taken = first + count
        parts.append((count, Part.PAD if first == FILL else Part.PASS))
    parts += [(beats - taken, Part.CROP)] if beats > taken else []
    return Frame(tuple(parts)) if len(parts) <= _MOST_PARTS else None


def as_loops(words: IntArray) -> AddressWalk:
    """Return nested loops that generate ``words`` (:data:`FILL` where there is none), with the fewest and smallest
    tables that a greedy search from the innermost loop finds; in the worst case one table of all."""
    axes: list[LoopAxis] = []
    rest = words
    while rest.size > 1:
        divisors = [count for count in _divisors(rest.size) if count > 1]
        split = next(filter(None, (_split(rest, count, strided=True) for count in reversed(divisors))), None)
        split = split or next(filter(None, (_split(rest, count, strided=False) for count in divisors)))
        axis, rest = split
        axes.insert(0, axis)
    if not axes:
        axes = [LoopAxis(1)]
    return AddressWalk(tuple(axes), int(rest[0]))


def _split(words: IntArray, count: int, *, strided: bool) -> tuple[LoopAxis, IntArray] | None:
    """Split ``words`` into an innermost loop of ``count`` rounds and the rest; None if the rounds' offsets differ or,
    ``strided``, are no multiples of one stride."""
    rows = words.reshape(-1, count)
    there = rows != FILL
    holes = ~there
    row_there, column_there = there.any(axis=1), there.any(axis=0)
    if holes.any() and not np.array_equal(there, row_there[:, None] & column_there):
        return None
    if strided and not column_there.all():
        return None
    first = int(np.argmax(column_there))
    base = rows[:, first]
    known = rows[row_there]
    offsets = known[0] - known[0, first]
    if (known - known[:, [first]] != offsets)[:, column_there].any():
        return None
    rest = np.where(row_there, base, FILL)
    if strided:
        stride = int(offsets[1])
        return (LoopAxis(count, stride), rest) if np.array_equal(offsets, np.arange(count) * stride) else None
    table = tuple(int(at) if here else None for at, here in zip(offsets, column_there, strict=True))
    return LoopAxis(count, 0, table), rest


def _divisors(number: int) -> list[int]:
    """Return the divisors of ``number``, ascending."""
    low = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return sorted({*low, *(number // n for n in low)})
