"""Words of weights that come beat by beat, and are free again a block at a time."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream

from hdl_lib.blocks import delayed
from hdl_lib.engine.engine_program import Program
from hdl_lib.memories.buffer_memory import BufferMemory

SHALLOW = 512
"""Words of a block RAM of 36 bits."""


class WeightRing:
    """A ring of a program's ``ring`` words. Beats lie in memories of their own, two in one where block RAMs are wide
    enough.

    Of each block there come, in this order: a beat with the number of words behind its header, and in its highest bit
    whether they are diagonal; the header's words; the others. Of a diagonal word only the diagonal comes. Where windows
    slide, it has a weight for each column of these instead, which are the weights of a row from its own lane on: those
    of the newest column for all rows, then those of the one before.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.beats, self.width = program, program.beats_of_word, program.width
        self.together = 2 if program.ring <= SHALLOW and self.beats % 2 == 0 else 1
        self.columns = [
            BufferMemory(f"weights_{column}", self.together * self.width, program.ring)
            for column in range(self.beats // self.together)
        ]

    def write(self, m: Module, source: stream.Interface, needed: Value, freed: Value) -> Value:
        """Take beats while there is room; ``freed``: the oldest ``needed`` words are of no use any more. Return whether
        as many words are there, two cycles after some became free, or ``needed`` changed, and later."""
        depth = self.program.ring
        accept, word_done = Signal(name="weight_accept"), Signal(name="weight_word_done")
        space, filled = Signal(range(depth + 1), init=depth), Signal(range(depth + 1))
        # Whether there is room is in a register: what comes is far away, and much follows from it.
        room = Signal(name="weight_room", init=1)
        m.d.sync += room.eq(freed | ~((space == 0) | ((space == 1) & word_done)))
        m.d.comb += [source.ready.eq(room), accept.eq(source.valid & room)]
        back = Signal.like(needed, name="words_freed")
        m.d.comb += back.eq(needed & freed.replicate(len(needed)))
        written = delayed(m, "word_written", word_done, 3)
        m.d.sync += [space.eq(space + back - word_done), filled.eq(filled - back + written)]
        place = Signal(range(depth), name="weight_place")
        with m.If(delayed(m, "word_ended", word_done, 1)):
            m.d.sync += place.eq(place + 1)

        payload = Value.cast(source.payload)
        diagonal = self._words(m, accept, payload, word_done)
        was_diagonal = Signal(name="word_was_diagonal")
        beat, former = (Signal(self.width, name=f"weight_beat_{name}", reset_less=True) for name in ("taken", "before"))
        line = Signal(self.program.beats_of_diagonal * self.width, name="diagonal_weights", reset_less=True)
        taking = accept & self.inside
        column = Signal(self.beats, name="weight_column", init=1)
        enable = Signal(self.beats, name="weight_enable", reset_less=True)  # all over the part
        with m.If(accept):
            m.d.sync += [beat.eq(payload), former.eq(beat), line.eq(Cat(line[self.width :], payload))]
        with m.If(word_done | ~self.inside):
            m.d.sync += column.eq(1)
        with m.Elif(accept):
            m.d.sync += column.eq(column.rotate_left(1))
        m.d.sync += [
            was_diagonal.eq(diagonal),
            enable.eq(Mux(diagonal, word_done.replicate(self.beats), column & taking.replicate(self.beats))),
        ]
        self._store(m, enable, place, beat if self.together == 1 else Cat(former, beat), was_diagonal, line)
        enough = Signal(name="weights_enough")  # in a register, and not of words that have just become free
        m.d.sync += enough.eq((filled >= needed) & ~freed)
        return enough

    def _words(self, m: Module, accept: Value, payload: Value, word_done: Signal) -> Value:
        """Count the beats of words, and the words of a block; return whether the present word is diagonal."""
        program = self.program
        self.inside = Signal(name="weight_inside")  # a block: its first beat has come
        heads = Signal(range(program.header + 1), name="heads_left")
        words = Signal(self.width - 1, name="words_left")
        is_diagonal, diagonal = Signal(name="block_diagonal"), Signal(name="word_diagonal")
        index = Signal(range(self.beats), name="weight_beat")
        # Of the next beat: whether it is its word's last one, and the word is diagonal.
        last = Signal(name="weight_beat_last", init=self.beats == 1)
        ahead = Signal(name="word_diagonal_next")
        m.d.comb += [
            word_done.eq(accept & self.inside & last), ahead.eq(is_diagonal & (diagonal | (last & (heads == 1)))),
        ]

        def ends(beats: int) -> Value:
            """Return whether the next beat is the last one of a word of so many."""
            return last if beats == 1 else ~last & (index == beats - 2)

        with m.If(accept & self.inside):
            m.d.sync += [
                index.eq(Mux(last, 0, index + 1)), diagonal.eq(ahead),
                last.eq(Mux(ahead, ends(program.beats_of_diagonal), ends(self.beats))),
            ]
        with m.If(word_done):
            with m.If(heads != 0):
                m.d.sync += heads.eq(heads - 1)
            with m.Else():
                m.d.sync += words.eq(words - 1)
                with m.If(words == 1):
                    m.d.sync += self.inside.eq(0)
        with m.Elif(accept & ~self.inside):
            m.d.sync += [
                self.inside.eq(1), heads.eq(program.header), words.eq(payload[:-1]), is_diagonal.eq(payload[-1]),
                diagonal.eq(0), last.eq(self.beats == 1),
            ]
        return diagonal

    def _store(
        self, m: Module, enable: Value, place: Value, data: Value, is_diagonal: Value, line: Value
    ) -> None:
        """Write ``data`` to a column, or the diagonal in ``line`` and zeros to all of them."""
        lanes, columns, bits = self.program.lanes, self.program.columns, self.program.weight_bits
        elsewhere = Signal(len(data), name="weight_elsewhere")
        m.d.comb += elsewhere.eq(data & ~is_diagonal.replicate(len(data)))
        for number, memory in enumerate(self.columns):
            parts = []
            for which in range(len(data) // bits):
                row, lane = divmod(number * len(data) // bits + which, lanes)
                own = elsewhere.word_select(which, bits)
                column = lane - self.program.own_lane(row)
                weight = column * lanes + row if columns else row
                few = 0 <= column < columns if columns else row == lane
                parts.append(Mux(is_diagonal, line.word_select(weight, bits), own) if few else own)
            memory.write_in_steps(m, enable[(number + 1) * self.together - 1], place, Cat(*parts))

    def read(self, m: Module, address: Value) -> Value:
        """Return the word at ``address``, two cycles later."""
        return Cat(*(memory.read(m, address) for memory in self.columns))
