"""When an engine's weights come, and how long a frame takes: what a program and its memory promise.

The memory never rests while there are bursts to serve. While maps move to it or from it, the engine computes nothing,
so no more weights come than the ring has room for. A move therefore takes no longer than its own bursts and these, one
after the other; and weights are no later than if all of them came behind it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from math import ceil

from hdl_lib.engine.engine_program import Layer, Load, Program
from hdl_lib.external.fetch_plan import FetchPlan

_WAIT = 2  # cycles in front of a block, at least; one of a layer's first block
_ARRIVAL = 6  # cycles from the last beat of a block's weights to its first step
_OTHERS = 5  # bursts of other moves that may be served first: those that wait to be written, or are read ahead
_PARTS = 2  # bursts of a move that it has only a part of
_AHEAD = 5  # bursts of weights for which the memory's own queue has room
_KEPT = 2  # paces: the engine and the memory ask for the same
_THROUGH = 32  # cycles of a word through the engine's own queues and converters


@dataclass(frozen=True)
class Turns:
    """How a memory serves an engine. Weights come in bursts of ``burst`` beats (``by_layer``: one begins with each of
    the program's layers), one in ``beat`` cycles, and at most ``interval`` cycles from one burst to the next while no
    maps move, ``alone`` behind one that begins in cycle ``busy`` of a frame or later (None: at no time). Maps move in
    bursts of ``moved`` words of the memory, ``move`` cycles each; a word is ``late`` cycles on its way besides."""

    burst: int
    interval: int
    beat: int = 1
    moved: int = 1
    move: Fraction | int = 1
    late: int = 0
    by_layer: bool = False
    busy: int | None = None
    alone: int = 0

    @classmethod
    def of(cls, program: Program, plan: FetchPlan) -> Turns:
        """Return how a memory with a ``plan`` does: its first region has the weights, and its first queue the maps, if
        some wait there."""
        weights, beat = plan.regions[0], plan.timing.word_cycles
        maps = plan.queues[0] if program.levels else None
        turns = cls(
            weights.burst, plan.round_of(plan.regions, maps), beat, by_layer=weights.parts is not None, busy=plan.busy,
            alone=plan.round_of([weights], maps),
        )
        if maps is None:
            return turns
        return replace(turns, moved=maps.burst, move=plan.move(maps, weights), late=plan.late)

    def next(self, start: int) -> int:
        """Return when the next burst begins, at the latest, behind one that begins at ``start``."""
        return start + (self.interval if self.busy is None or start < self.busy else self.alone)

    def begins(self, program: Program) -> Sequence[int]:
        """Return how many beats of weights come before each burst."""
        if not self.by_layer:
            return range(0, program.beats, self.burst)
        sizes = [program.runs(layer) * program.beats_of(layer) for layer in program.layers]
        firsts = list(accumulate(sizes, initial=0))
        return [begin for first, end in pairwise(firsts) for begin in range(first, end, self.burst)]


@dataclass(frozen=True, eq=False)
class Pace:
    """``starts``: when bursts of weights begin, in cycles of a frame; ``begins``: how many beats come before each. They
    come one in ``beat`` cycles. ``loads``, ``sends``: (first cycle, words) of what comes of the image's stream and
    leaves by that of the result, one a cycle. ``cycles``: of the frame."""

    starts: tuple[int, ...]
    begins: Sequence[int]
    beat: int
    loads: tuple[tuple[int, int], ...]
    sends: tuple[tuple[int, int], ...]
    cycles: int

    @classmethod
    def of(cls, program: Program, turns: Turns) -> Pace:
        """Return the pace of a program beside a memory with such turns."""
        weights = _Weights(program, turns)
        loads: list[tuple[int, int]] = []
        sends: list[tuple[int, int]] = []
        step = 0
        for each in program.instructions:
            step += program.setting
            if isinstance(each, Layer):
                step = weights.computed(each, step)
            elif each.outside:
                step = weights.moved(each.words * program.beats_of_map_word, step)
            else:
                (loads if isinstance(each, Load) else sends).append((step, each.words))
                step += each.words
        return cls(tuple(weights.starts), weights.begins, turns.beat, tuple(loads), tuple(sends), step)


@lru_cache(_KEPT)
def pace_beside(program: Program, plan: FetchPlan) -> Pace:
    """Return the pace of a program beside a memory with this plan."""
    return Pace.of(program, Turns.of(program, plan))


class _Weights:
    """Schedule weight bursts as early as ring space allows: ``starts``."""

    def __init__(self, program: Program, turns: Turns) -> None:
        self._program, self._turns = program, turns
        self._blocks = [layer for layer in program.layers for _ in range(program.runs(layer))]
        self._beats = list(accumulate(map(program.beats_of, self._blocks), initial=0))  # in front of each block
        self._words = list(accumulate(map(program.needed, self._blocks), initial=0))
        self.starts: list[int] = []
        self.begins = turns.begins(program)
        self._ends: list[int] = []  # of each block: when its words are free
        self._moves: list[tuple[int, int]] = []  # begin, and when all its bursts are served
        self._seen = 0  # moves behind which all other bursts begin

    def computed(self, layer: Layer, step: int) -> int:
        """Return when a layer that begins with a step ends."""
        program, turns = self._program, self._turns
        busy, last_block = program.header + layer.pixels * program.steps(layer), program.runs(layer) - 1
        for block in range(last_block + 1):
            last = self._beats[len(self._ends) + 1] - 1
            burst = bisect_right(self.begins, last) - 1
            while len(self.starts) <= burst:
                self._append()
            arrived = self.starts[burst] + turns.beat * (last - self.begins[burst]) + _ARRIVAL
            behind = program.between if block < last_block else program.gap
            step = max(step + (_WAIT if block else 1), arrived) + busy + behind
            self._ends.append(step)
        return step

    def moved(self, words: int, step: int) -> int:
        """Return when so many words of the memory have moved, from a step on."""
        turns = self._turns
        while self._has_room(len(self.starts)) and self._next() <= step:
            self._append()
        pending = len(self.starts)
        while self._has_room(pending):
            pending += 1
        bursts = words // turns.moved + _PARTS + _OTHERS
        served = step + ceil(bursts * turns.move) + turns.late
        self._moves.append((step, served))
        between = min(pending - len(self.starts) + _AHEAD, bursts)  # as bursts take turns
        return served + between * turns.interval + turns.moved + _THROUGH

    def _freed_by(self, number: int) -> int:
        """Return how many blocks must have ended before there is room for a burst."""
        end = (self.begins[number + 1] if number + 1 < len(self.begins) else self._beats[-1]) - 1
        block = bisect_right(self._beats, end) - 1
        word = self._words[block] + self._program.word_of(self._blocks[block], end - self._beats[block])
        return bisect_right(self._words, word - self._program.ring)

    def _has_room(self, number: int) -> bool:
        return number < len(self.begins) and self._freed_by(number) <= len(self._ends)

    def _next(self) -> int:
        """Return when the next burst may come."""
        number = len(self.starts)
        freed = min(self._freed_by(number), len(self._ends))  # the end of a burst may wait in the memory's queue
        found = max(self._ends[freed - 1] if freed else 0, self._turns.next(self.starts[-1]) if number else 0)
        while self._seen < len(self._moves) and found + self._turns.interval > self._moves[self._seen][0]:
            found = max(found, self._moves[self._seen][1])
            self._seen += 1
        return found

    def _append(self) -> None:
        self.starts.append(self._next())
