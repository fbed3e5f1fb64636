"""The two ends of a queue that lies in a memory elsewhere (:mod:`hdl_lib.memories.weight_memory`)."""

from __future__ import annotations

from amaranth.hdl import Module, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import In, Out


class QueueEnds(wiring.Component):
    """Leads a stream to a queue in the memory, and from there on.

    Members: ``i``, ``o``: streams of ``layout``; ``memory_i`` (out), ``memory_o`` (in): streams of as many bits, to and
    from the memory. Combinational: the queue decides latency and rate.
    """

    def __init__(self, layout: ArrayLayout) -> None:
        width = layout.size
        super().__init__(
            {
                "i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout)),
                "memory_i": Out(stream.Signature(width)), "memory_o": In(stream.Signature(width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for source, sink in ((self.i, self.memory_i), (self.memory_o, self.o)):
            m.d.comb += [
                Value.cast(sink.payload).eq(Value.cast(source.payload)), sink.valid.eq(source.valid),
                source.ready.eq(sink.ready),
            ]
        return m
