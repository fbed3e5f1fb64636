"""A stream with given beats in front of it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import count_up, delayed, loop
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.streams.output_queue import OutputQueue


class FirstBeats(wiring.Component):
    """Sends given beats after reset, then passes on what comes.

    Parameters
    ----------
    shape: payload of a beat, any Amaranth shape or layout.
    beats: that are given, at least 1.
    first: a word for all of them, or a table of words, of which they are one after the other, and from its start again.

    Members: ``i``: In(stream of ``shape``); ``o``: Out(stream of ``shape``).

    Timing: the given beats leave one per cycle, the first one a cycle after reset, of a table :attr:`TABLE_LATENCY`.
    What comes passes in the same cycle; until the last given beat has left it waits. Ordering: first in, first out.
    """

    TABLE_LATENCY = 3  # table, register, queue

    def __init__(self, shape: Any, beats: int, first: Table | int) -> None:
        if beats < 1:
            raise ValueError(f"beats must be at least 1, not {beats}")
        width = Shape.cast(shape).width
        if isinstance(first, Table) and first.width != width:
            raise ValueError(f"the table must have words of {width} bits, not {first.width}")
        self.beats, self.first = beats, first
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        given = Signal(name="given", init=1)  # the next beat that leaves is a given one
        valid, word = self._first(m, given)
        leaves = Signal()
        m.d.comb += [
            leaves.eq(given & valid & self.o.ready),
            self.o.valid.eq(Mux(given, valid, self.i.valid)),
            Value.cast(self.o.payload).eq(Mux(given, word, Value.cast(self.i.payload))),
            self.i.ready.eq(~given & self.o.ready),
        ]
        with m.If(leaves & loop(m, "beat", self.beats, leaves)):
            m.d.sync += given.eq(0)
        return m

    def _first(self, m: Module, given: Signal) -> tuple[Value, Value]:
        """Return whether the next given beat is there, and its word."""
        width = Shape.cast(self.o.payload.shape()).width
        if not isinstance(self.first, Table):
            begun = Signal(name="begun")  # nothing is valid in reset
            m.d.sync += begun.eq(1)
            return begun, Const(self.first, width)
        m.submodules.queue = queue = OutputQueue(width, self.TABLE_LATENCY + 1)
        m.submodules.table = rom = Rom.of_table(self.first, output_register=True)
        reads = Signal()
        m.d.comb += [
            reads.eq(queue.available & given),  # those that are read beyond the last one stay in the queue
            queue.reserve.eq(reads),
            rom.addr.eq(count_up(m, "first_row", self.first.depth, reads)),
            queue.push.eq(delayed(m, "push", reads, rom.latency)),
            queue.payload.eq(rom.data),
            queue.o.ready.eq(given & self.o.ready),
        ]
        return queue.o.valid, queue.o.payload
