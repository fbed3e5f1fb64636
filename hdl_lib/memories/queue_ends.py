"""The two ends of a queue that lies in a memory elsewhere (:mod:`hdl_lib.memories.weight_memory`)."""

from __future__ import annotations

from amaranth.hdl import Module, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl_lib.memories.first_beats import FirstBeats
from hdl_lib.memories.rom import Table


class QueueEnds(wiring.Component):
    """Leads a stream to a queue in the memory, and from there on. It may hold ``beats`` at first (``first``: as of
    :class:`hdl_lib.memories.first_beats.FirstBeats`), which makes it a delay; the memory need not have them.

    Members: ``i``, ``o``: streams of ``layout``; ``memory_i`` (out), ``memory_o`` (in): streams of as many bits, to and
    from the memory. Combinational: the queue decides latency and rate.
    """

    def __init__(self, layout: ArrayLayout, beats: int = 0, first: Table | int = 0) -> None:
        self.beats, self.first = beats, first
        width = layout.size
        super().__init__(
            {
                "i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout)),
                "memory_i": Out(stream.Signature(width)), "memory_o": In(stream.Signature(width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        source = self.memory_o
        if self.beats:
            m.submodules.first = first = FirstBeats(self.memory_o.payload.shape(), self.beats, self.first)
            connect(m, flipped(self.memory_o), first.i)
            source = first.o
        for before, behind in ((self.i, self.memory_i), (source, self.o)):
            m.d.comb += [
                Value.cast(behind.payload).eq(Value.cast(before.payload)), behind.valid.eq(before.valid),
                before.ready.eq(behind.ready),
            ]
        return m
