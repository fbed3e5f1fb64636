"""Mark each frame's last beat with ``last``."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out


class FrameMark(wiring.Component):
    """Passes a stream on with ``last`` set on every ``beats``-th beat.

    The only core that is combinational from ``i`` to ``o`` and from ``o.ready`` to ``i.ready``: it is at the top level,
    behind a queue, and its only state is the beat counter.

    Parameters: ``shape``: payload of a beat, any Amaranth shape or layout; ``beats``: beats of a frame, at least 1.

    Members: ``i`` (in): stream of ``shape``; ``o`` (out): stream of ``StructLayout({"data": shape, "last": 1})``.

    Timing: latency 0; initiation interval 1 cycle per beat; backpressure passes through in the same cycle.

    Ordering: beats keep their order.
    """

    latency = 0

    def __init__(self, shape: Any, beats: int) -> None:
        if not isinstance(beats, int) or beats < 1:
            raise ValueError(f"beats must be an integer of at least 1, not {beats!r}")
        self.shape = shape
        self.beats = beats
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(data.StructLayout({"data": shape, "last": 1}))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        beat = Signal(range(self.beats))
        final = Signal()
        m.d.comb += [
            final.eq(beat == self.beats - 1),
            self.o.valid.eq(self.i.valid),
            Value.cast(self.o.payload.data).eq(Value.cast(self.i.payload)),
            self.o.payload.last.eq(final),
            self.i.ready.eq(self.o.ready),
        ]
        with m.If(self.i.valid & self.o.ready):
            m.d.sync += beat.eq(Mux(final, 0, beat + 1))
        return m
