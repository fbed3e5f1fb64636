"""Words of the columns that a window has seen before: each is read once, and seen as often as windows overlap."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import memory

from hdl_lib.blocks import delayed
from hdl_lib.memories.storage import LUTRAM

MOST_ROWS = 16
"""Of a window: as many words lie in a row of look-up tables."""


def kept_words(
    m: Module, word: Value, columns: int, begin: Value, tap: Value, cycles: int
) -> list[Value]:
    """Return the words of the same row of the last ``columns`` columns, the newest first, but without ``word``, which
    is the newest one.

    ``tap``: the word of the next row of a window is read, ``cycles`` before it is ``word``; ``begin``: the first row's
    is next. There are at most :data:`MOST_ROWS`. Timing: a cycle after ``word``.
    """
    row = Signal(range(MOST_ROWS), name="window_row")
    with m.If(begin):
        m.d.sync += row.eq(0)
    with m.Elif(tap):
        m.d.sync += row.eq(row + 1)
    stored = memory.Memory(shape=(columns - 1) * len(word), depth=MOST_ROWS, init=[], attrs={LUTRAM: 1})
    m.submodules.kept = stored
    write, read = stored.write_port(), stored.read_port(domain="comb")
    there = delayed(m, "kept_row", row, cycles, reset=False)
    kept = Signal(len(read.data), name="kept_words", reset_less=True)
    m.d.comb += [
        write.en.eq(delayed(m, "kept_tap", tap, cycles)), write.addr.eq(there), read.addr.eq(there),
        write.data.eq(Cat(word, read.data)),
    ]
    m.d.sync += kept.eq(read.data)
    return [kept.word_select(number, len(word)) for number in range(columns - 1)]
