"""Windows clipped to the image: only the taps inside it, which for each window are a rectangle of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value

from hdl_lib.windows.window_geometry import WindowGeometry


def clipped_taps(geometry: WindowGeometry) -> list[int]:
    """Return the taps inside the image of each window, row by row."""
    rows, columns = geometry.inside(0), geometry.inside(1)
    return [row * column for _, row in rows for _, column in columns]


class CyclicSequence:
    """A cyclic sequence of ``entries``, tuples of integers, one further in every cycle with ``advance``.

    ``values``: the present entry, and ``last``: it is the last one; functions of registers. ``start``: the entry after
    reset. Equal neighbours share a state, so that a long row of equal windows is one count.
    """

    def __init__(
        self, m: Module, name: str, entries: Sequence[tuple[int, ...]], advance: Value, start: int = 0
    ) -> None:
        runs = [(entry, len(list(equal))) for entry, equal in groupby(entries)]
        self.values: list[Value] = []
        self.last: Value = Const(1)
        if len(entries) == 1:
            self.values = [Const(value, Shape.cast(range(min(value, 0), max(value, 0) + 1))) for value in entries[0]]
            return
        present, passed = 0, start
        while passed >= runs[present][1]:
            passed -= runs[present][1]
            present += 1
        index = Signal(range(len(runs)), name=f"{name}_index", init=present)
        left = Signal(range(max(count for _, count in runs)), name=f"{name}_left", init=runs[present][1] - 1 - passed)
        ends = Signal(name=f"{name}_ends", init=runs[present][1] - 1 == passed)
        self.last = ends & (index == len(runs) - 1)
        for place in range(len(entries[0])):
            column = [entry[place] for entry, _ in runs]
            shape = Shape.cast(range(min(*column, 0), max(*column, 0) + 1))
            if len(set(column)) == 1:
                self.values.append(Const(column[0], shape))
                continue
            value = Signal(shape, name=f"{name}_value_{place}")
            with m.Switch(index):
                for number, entry in enumerate(column):
                    with m.Case(number):
                        m.d.comb += value.eq(entry)
            self.values.append(value)
        with m.If(advance):
            m.d.sync += [left.eq(left - 1), ends.eq(left == 1)]
            with m.If(ends):
                m.d.sync += index.eq(Mux(self.last, 0, index + 1))
                with m.Switch(index):
                    for number in range(len(runs)):
                        count = runs[(number + 1) % len(runs)][1]
                        with m.Case(number):
                            m.d.sync += [left.eq(count - 1), ends.eq(count == 1)]


def rounds(m: Module, name: str, counts: Sequence[int], first: int, advance: Value, following: Value) -> Signal:
    """Build a loop of changing length that advances in every cycle with ``advance``; return the register "this is the
    last round". ``counts``: all lengths that occur, less one; ``first``: that after reset; ``following``: that of the
    next loop, when the last round ends."""
    left = Signal(range(max(counts) + 1), name=f"{name}_left", init=first)
    last = Signal(name=f"{name}_last", init=first == 0)
    with m.If(advance):
        with m.If(last):
            m.d.sync += [left.eq(following), last.eq(following == 0)]
        with m.Else():
            m.d.sync += [left.eq(left - 1), last.eq(left == 1)]
    return last
