"""A two-register stage that cuts every combinational path of a stream, ``ready`` included."""

from amaranth.hdl import Module, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.storage import RegisterStorage


class SkidBuffer(wiring.Component):
    """Two registers between two streams: ``valid``, ``payload`` and ``ready`` all come from flip-flops.

    Parameters: ``shape``: payload of a beat, any Amaranth shape or layout.

    Members: ``i`` (in), ``o`` (out): streams of ``shape``.

    Timing: one step per beat, consuming and producing, with two credits. Latency 1; initiation interval 1 cycle per
    beat. Under backpressure it takes one beat more than it shows (the one that was on its way when ``o.ready`` fell),
    then lowers ``i.ready``.

    Ordering: first in, first out.
    """

    depth = 2
    latency = 1

    def __init__(self, shape):
        self.shape = shape
        self.storage = RegisterStorage(shape, self.depth)
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.storage = storage = self.storage
        m.d.comb += [
            self.i.ready.eq(~storage.full),
            storage.push.eq(self.i.valid & self.i.ready),
            Value.cast(storage.payload).eq(Value.cast(self.i.payload)),
        ]
        wiring.connect(m, storage.o, wiring.flipped(self.o))
        return m
