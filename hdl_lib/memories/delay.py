"""A delay: a queue that holds given beats at first, so that what is behind it is that much behind what is before it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import count_up, delayed, loop
from hdl_lib.memories.buffer_memory import BufferMemory
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.memories.storage import check_depth, count
from hdl_lib.streams.output_queue import OutputQueue


class Delay(wiring.Component):
    """Beat ``n`` that leaves is beat ``n - beats`` that came; the first ones are given. So it breaks a circuit of
    streams: each beat that enters takes the place of one that has left.

    Parameters
    ----------
    shape: payload of a beat, any Amaranth shape or layout.
    beats: of the delay, at least 1; the memory holds as many.
    first: a word for all of the first beats, or a table of words, of which the first beats are one after the other, and
        from its start again. Its words must divide ``beats``.
    again: beats after which the next ``beats`` are the first ones again, in place of those that came: a multiple of
        ``beats``. None: never.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream of ``shape``).
    o: Out(stream of ``shape``).

    Timing
    ------
    Two processes of a step per beat. One writes: step ``n`` takes beat ``n``, at least :attr:`LAG` cycles after step
    ``n`` of the other. That one reads: step ``n`` takes a credit of the queue, at least :attr:`LAG` cycles after step
    ``n - beats`` of the first; :attr:`LATENCY` cycles later the beat shows on ``o.valid`` (memory, register, queue).
    Initiation interval 1 cycle per beat. After reset it reads at once.

    Ordering
    --------
    First in, first out.
    """

    LAG = 1
    LATENCY = 3

    def __init__(self, shape: Any, beats: int, *, first: Table | int, again: int | None = None, depth: int) -> None:
        check_depth(depth)
        if beats < 1:
            raise ValueError(f"beats must be at least 1, not {beats}")
        if isinstance(first, Table) and (first.width != Shape.cast(shape).width or beats % first.depth):
            raise ValueError(
                f"the table must have words of {Shape.cast(shape).width} bits, in a number that divides {beats} beats, "
                f"not {first.depth} of {first.width} bits"
            )
        if again is not None and (again < 1 or again % beats):
            raise ValueError(f"again must be a multiple of {beats} beats, not {again}")
        self.beats = beats
        self.first = first
        self.again = again
        self.depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        payload = Value.cast(self.i.payload)
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        # A row is never read while it is written: a beat is read at least a cycle after it was written, and its row is
        # written again at least a cycle after that.
        cells = BufferMemory("memory", len(payload), self.beats)
        # Both are registers of the beats that are held: at first all rows hold one.
        some, full = Signal(name="holds_some", init=1), Signal(name="is_full", init=1)
        take, give = Signal(name="take"), Signal(name="give")
        m.d.comb += [
            self.i.ready.eq(~full),
            take.eq(self.i.valid & self.i.ready),
            give.eq(some & queue.available),
            queue.reserve.eq(give),
        ]
        cells.write(m, take, count_up(m, "write_row", self.beats, take), payload)
        self._count(m, some, full, take, give)
        registered = cells.read(m, count_up(m, "read_row", self.beats, give))
        is_first = delayed(m, "is_first", self._is_first(m, give), self.LATENCY - 1, reset=False)
        m.d.comb += [
            queue.push.eq(delayed(m, "push", give, self.LATENCY - 1)),
            Value.cast(queue.payload).eq(Mux(is_first, self._first(m, give, len(payload)), registered)),
        ]
        return m

    def _count(self, m: Module, some: Signal, full: Signal, take: Value, give: Value) -> None:
        """Count the beats that are held."""
        level = Signal(range(self.beats + 1), name="level", init=self.beats)
        count(m, level, take, give)
        with m.If(take ^ give):
            m.d.sync += [some.eq(take | (level != 1)), full.eq(take & (level == self.beats - 1))]

    def _is_first(self, m: Module, give: Value) -> Value:
        """Return whether the beat that is read in this cycle is one of the first."""
        first = Signal(name="first", init=1)
        begun = loop(m, "beat", self.beats, give)  # the last one of as many as are first
        anew: Value = Const(0)
        if self.again == self.beats:
            anew = Const(1)
        elif self.again is not None:
            anew = loop(m, "round", self.again // self.beats, give & begun)
        with m.If(give & begun):
            m.d.sync += first.eq(anew)
        return first

    def _first(self, m: Module, give: Value, width: int) -> Value:
        """Return the first beats' word, as many cycles later as the memory's."""
        if not isinstance(self.first, Table):
            return Const(self.first, width)
        m.submodules.table = rom = Rom.of_table(self.first, output_register=True)
        assert rom.latency == self.LATENCY - 1
        m.d.comb += rom.addr.eq(count_up(m, "first_row", self.first.depth, give))
        return rom.data
