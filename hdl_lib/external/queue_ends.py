"""The two ends of a queue that lies in a memory elsewhere (:mod:`hdl_lib.external.weight_memory`)."""

from __future__ import annotations

from amaranth.hdl import Module, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.first_beats import FirstBeats
from hdl_lib.memories.rom import Table
from hdl_lib.streams.width_converter import WidthConverter


class QueueEnds(wiring.Component):
    """Leads a stream to a queue in the memory, and from there on. It may hold ``beats`` at first (``first``: as of
    :class:`hdl_lib.memories.first_beats.FirstBeats`), which makes it a delay; the memory need not have them.

    ``words``: of the memory that a beat takes, the lowest bits first.

    Members: ``i``, ``o``: streams of ``layout``; ``memory_i`` (out), ``memory_o`` (in): streams of words, to and from
    the memory, of as many bits as it takes to hold a beat. Combinational, but for a cycle more at each end where beats
    are of several words: the queue decides latency and rate.
    """

    def __init__(self, layout: ArrayLayout, words: int = 1, beats: int = 0, first: Table | int = 0) -> None:
        self.words, self.beats, self.first = words, beats, first
        self.width = -(-layout.size // words)
        super().__init__(
            {
                "i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout)),
                "memory_i": Out(stream.Signature(self.width)), "memory_o": In(stream.Signature(self.width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        into: stream.Interface = self.memory_i
        source: stream.Interface = self.memory_o
        if self.words > 1:
            m.submodules.down = down = WidthConverter(self.width, self.words, self.words, 1)
            m.submodules.up = up = WidthConverter(self.width, self.words, 1, self.words)
            _join(m, down.o, self.memory_i)
            _join(m, self.memory_o, up.i)
            into, source = down.i, up.o
        if self.beats:
            m.submodules.first = first = FirstBeats(len(Value.cast(self.o.payload)), self.beats, self.first)
            _join(m, source, first.i)
            source = first.o
        _join(m, self.i, into)
        _join(m, source, self.o)
        return m


def _join(m: Module, source: stream.Interface, sink: stream.Interface) -> None:
    """Join two streams, whose payloads may differ in shape and in bits above those of the smaller one."""
    m.d.comb += [
        Value.cast(sink.payload).eq(Value.cast(source.payload)), sink.valid.eq(source.valid),
        source.ready.eq(sink.ready),
    ]
