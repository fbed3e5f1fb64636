"""The greatest elements of groups of pixels, and their positions in the group."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data

from hdl_lib.blocks import count_up, less
from hdl_lib.windows.pool import GroupPool
from hdl_lib.windows.pool_tree import TreePool

TAKES = ("index", "value", "both")


def index_bits(window: int) -> int:
    """Return the bits of a position among ``window`` pixels, at least 1."""
    return max(1, (window - 1).bit_length())


def result_shape(shape: Shape, window: int, take: str) -> Shape:
    """Return the shape of a result: the position, the value, or ``value * 2**index_bits(window) + position``.

    Raises ValueError unless ``take`` is one of :data:`TAKES`."""
    if take not in TAKES:
        raise ValueError(f"take must be one of {', '.join(TAKES)}, not '{take}'")
    if take == "value":
        return shape
    if take == "index":
        return Shape(index_bits(window), signed=False)
    return Shape(shape.width + index_bits(window), signed=shape.signed)


class _Candidate:
    """The bit layout of an element and its position: the position below, absent if not needed."""

    def __init__(self, shape: Shape, window: int, take: str) -> None:
        self.shape = shape
        self.place = 0 if take == "value" else index_bits(window)
        self.take = take
        self.bits = Shape(shape.width + self.place)

    def value(self, candidate: Value) -> Value:
        return candidate[self.place :].as_signed() if self.shape.signed else candidate[self.place :]

    def taken(self, candidate: Value) -> Value:
        """Return the element of the result."""
        return candidate[: self.place] if self.take == "index" else candidate


class TopK(GroupPool):
    """The ``k`` greatest of each ``window`` consecutive pixels, by channel, the greatest first: positions in the
    group, values, or both. Equal ones keep their order. By insertion: each element is compared with the ``k``
    best so far in parallel.

    Parameters
    ----------
    shape: of an element, an integer shape.
    channels, lanes: elements per pixel and elements per beat; ``blocks = ceil(channels / lanes)`` beats per pixel.
    window: pixels of a group, at least 1.
    k: results per channel, 1 to ``window``.
    least: the least instead, the least first.
    last: equal ones are in reverse order.
    take: "index", "value", or "both": ``value * 2**index_bits(window) + position`` (see :func:`result_shape`).
    depth: beats of the output queue. At the full rate up to ``blocks`` beats follow each other without a gap; with
        ``latency + 1`` there is room for any number of them.

    Members
    -------
    i: In(stream). The pixels of each group.
    o: Out(stream). For each group a pixel of ``channels * k`` elements, ``lanes * k`` per beat: the ``k`` of the first
        channel, then those of the second. Lanes beyond the last channel are unspecified.

    Timing
    ------
    One step per input beat. The steps of a group's last pixel produce, and need a credit; :attr:`latency` cycles later
    the beat shows on ``o.valid``: 3 with up to 4 beats per pixel, else 4. Initiation interval 1 cycle per input beat.
    Under backpressure the steps that would produce wait.

    Ordering
    --------
    Groups leave in the order they came, beats of a pixel likewise.
    """

    _name = "best"

    def __init__(
        self, shape: Shape, channels: int, lanes: int, window: int, *, k: int = 1, least: bool = False,
        last: bool = False, take: str = "index", depth: int,
    ) -> None:
        shape = Shape.cast(shape)
        if not 1 <= k <= window:
            raise ValueError(f"k must be 1 to {window} (the window), not {k}")
        result = result_shape(shape, window, take)
        self.k, self.least, self.last, self.take = k, least, last, take
        self._candidate = _Candidate(shape, window, take)
        super().__init__(shape, result, channels, lanes, window, results=k, depth=depth)

    def _running(self) -> data.ArrayLayout:
        return data.ArrayLayout(self._candidate.bits, self.lanes * self.k)

    def _payload(self, running: data.View) -> Value:
        return Cat(self._candidate.taken(running[place]) for place in range(self.lanes * self.k))

    def _terms(self, m: Module, step: Value) -> tuple[list[Value], int]:
        """Return each element above its position, which all lanes share."""
        beats, wait = super()._terms(m, step)
        position = count_up(m, "position", self.window, self._pixel_done)
        held = Signal(index_bits(self.window), name="position_1", reset_less=True)
        m.d.sync += held.eq(position)
        return [Cat(held, beat) for beat in beats], wait

    def _update(
        self, m: Module, result: data.View, terms: Sequence[Value], before: data.View, first: Value
    ) -> None:
        kind, bits = self._candidate, index_bits(self.window)
        position = terms[0][:bits]
        for lane, term in enumerate(terms):
            candidate = term[bits - kind.place :]
            best = [before[lane * self.k + place] for place in range(self.k)]
            ahead = [
                _wins(kind.value(candidate), kind.value(each), least=self.least, last=self.last)
                | (position <= place if place else first)  # there is none in its place yet
                for place, each in enumerate(best)
            ]
            for place, each in enumerate(best):
                moved = Mux(ahead[place - 1], best[place - 1], candidate) if place else candidate
                m.d.sync += result[lane * self.k + place].eq(Mux(ahead[place], moved, each))


class TopTree(TreePool):
    """The greatest of each ``window`` consecutive pixels, by channel, several pixels per beat: its position in the
    group, its value, or both. Of equal ones the first.

    Parameters
    ----------
    shape: of an element, an integer shape.
    channels: elements per pixel.
    pixels: of a beat; a part of a group (they divide it), or several whole groups.
    window: pixels of a group, at least 1.
    least, last, take: as for :class:`TopK`.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). The pixels of each group, channels fastest.
    o: Out(stream). The results, all channels of one group per beat, of as many groups as a beat has.

    Timing
    ------
    As :class:`hdl_lib.windows.pool_tree.MaxPoolTree`.

    Ordering
    --------
    Groups leave in the order they came.
    """

    _name = "best"

    def __init__(
        self, shape: Shape, channels: int, pixels: int, window: int, *, least: bool = False, last: bool = False,
        take: str = "index", depth: int,
    ) -> None:
        shape = Shape.cast(shape)
        self.least, self.last, self.take = least, last, take
        self._candidate = _Candidate(shape, window, take)
        self._start: Value = Const(0)  # the position of a beat's first pixel
        super().__init__(shape, result_shape(shape, window, take), channels, pixels, window, depth=depth)

    def _running(self) -> Shape:
        return self._candidate.bits

    def _payload(self, result: Value) -> Value:
        return self._candidate.taken(result)

    def _count_rounds(self, m: Module, arrives: Value) -> None:
        rounds = self.window // self.pixels
        if self.pixels & (self.pixels - 1) == 0:
            number = count_up(m, "round_number", rounds, arrives)
            self._start = number << (self.pixels.bit_length() - 1)
            return
        self._start = start = Signal(range(self.window), name="start")
        with m.If(arrives):
            m.d.sync += start.eq(Mux(start == self.window - self.pixels, 0, start + self.pixels))

    def _tree(self, m: Module, name: str, values: list[Value]) -> Value:
        """Return the best element above its position among ``values``: a bit for each level says which of two it was.
        """
        level = 0
        best = [(Const(0, 0), value) for value in values]
        while len(best) > 1:
            better: list[tuple[Value, Value]] = []
            for number in range(0, len(best), 2):
                place, value = best[number]
                if number + 1 < len(best):
                    other_place, other = best[number + 1]
                    wins = _wins(other, value, least=self.least, last=self.last)
                    place = Cat(Mux(wins, other_place, place), wins)
                    value = Mux(wins, other, value)
                else:
                    place = Cat(place, Const(0, 1))
                label = f"{name}_{level}_{number // 2}"
                held = Signal(self.shape, name=label, reset_less=True)
                m.d.sync += held.eq(value)
                held_place = Signal(level + 1, name=f"{label}_place", reset_less=True)
                m.d.sync += held_place.eq(place)
                better.append((held_place, held))
            best = better
            level += 1
        place, value = best[0]
        bits = self._candidate.place
        if self.window > self.pixels:
            place = place + self._start
        placed = Signal(bits, name=f"{name}_place")
        m.d.comb += placed.eq(place)
        return Cat(placed, value)

    def _combine(self, beat: Value, before: Value, first: Value) -> Value:
        value = self._candidate.value
        wins = _wins(value(beat), value(before), least=self.least, last=self.last)
        return Mux(first | wins, beat, before)


def _wins(candidate: Value, best: Value, *, least: bool, last: bool) -> Value:
    """Tell whether a later element replaces the best so far."""
    ahead, behind = (best, candidate) if least else (candidate, best)
    return ~less(ahead, behind) if last else less(behind, ahead)
