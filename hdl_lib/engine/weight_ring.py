"""Words of weights that come beat by beat, and are free again a block at a time."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream

from hdl_lib.blocks import delayed, loop
from hdl_lib.memories.buffer_memory import BufferMemory

_SHALLOW = 512  # words of a block RAM of 36 bits


class WeightRing:
    """A ring of ``depth`` words (a power of two) of ``beats`` beats, each of ``width`` bits. Beats lie in memories of
    their own, two in one where block RAMs are wide enough."""

    def __init__(self, depth: int, beats: int, width: int) -> None:
        self.depth, self.beats, self.width = depth, beats, width
        self.together = 2 if depth <= _SHALLOW and beats % 2 == 0 else 1
        self.columns = [
            BufferMemory(f"weights_{column}", self.together * width, depth) for column in range(beats // self.together)
        ]

    def write(self, m: Module, source: stream.Interface, needed: Value, freed: Value) -> Value:
        """Take beats while there is room; ``freed``: the oldest ``needed`` words are of no use any more. Return whether
        as many words are there, two cycles after some became free, or ``needed`` changed, and later."""
        accept, word_done = Signal(name="weight_accept"), Signal(name="weight_word_done")
        space = Signal(range(self.depth + 1), init=self.depth)
        filled = Signal(range(self.depth + 1))
        place = Signal(range(self.depth), name="weight_place")
        last = loop(m, "weight_beat", self.beats, accept)
        m.d.comb += [source.ready.eq(space != 0), accept.eq(source.valid & source.ready), word_done.eq(accept & last)]
        back = Signal.like(needed, name="words_freed")
        m.d.comb += back.eq(needed & freed.replicate(len(needed)))
        written = delayed(m, "word_written", word_done, 2)
        m.d.sync += [space.eq(space + back - word_done), filled.eq(filled - back + written)]

        beat = Signal(self.width, name="weight_beat_taken", reset_less=True)
        former = Signal(self.width, name="weight_beat_before", reset_less=True)
        column = Signal(self.beats, name="weight_column", init=1)
        enable = Signal(self.beats, name="weight_enable")
        with m.If(accept):
            m.d.sync += [beat.eq(Value.cast(source.payload)), former.eq(beat), column.eq(column.rotate_left(1))]
        m.d.sync += enable.eq(column & accept.replicate(self.beats))
        with m.If(delayed(m, "word_ended", word_done, 1)):
            m.d.sync += place.eq(place + 1)
        for number, memory in enumerate(self.columns):
            data = beat if self.together == 1 else Cat(former, beat)
            memory.write(m, enable[(number + 1) * self.together - 1], place, data)
        enough = Signal(name="weights_enough")  # in a register, and not of words that have just become free
        m.d.sync += enough.eq((filled >= needed) & ~freed)
        return enough

    def read(self, m: Module, address: Value) -> Value:
        """Return the word at ``address``, two cycles later."""
        return Cat(*(memory.read(m, address) for memory in self.columns))
