"""What a link counts, and how its packet of counters reads it."""

from __future__ import annotations

from amaranth import Array, Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

COUNTERS = 6


class LinkCounters(wiring.Component):
    """Six counters of 32 bits: frames in, frames out, damaged packets, packets beyond a gap, the least number of cycles
    between two frames out (all ones before the second), and 1 if the core has reported an error.

    Members
    -------
    frame_in, frame_out, damaged, gap, error : In(1)
        Counted in every cycle in which they are high; ``error`` stays.
    clear : In(1)
        All begin again.
    place : In(range(24))
        A byte of the counters, the least significant of the first at place 0.
    byte : Out(8)
        That byte.

    Timing
    ------
    ``byte`` follows ``place`` combinationally. An event counts from the next cycle on, for the interval from the next
    but one. Pauses of more than 2 ** 32 cycles are no interval.
    """

    def __init__(self):
        super().__init__(
            {
                **{name: In(1) for name in ("frame_in", "frame_out", "damaged", "gap", "error", "clear")},
                "place": In(range(4 * COUNTERS)),
                "byte": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        counts = []
        for name in ("frame_in", "frame_out", "damaged", "gap"):
            count = Signal(32, name=f"{name}_count")
            counts.append(count)
            with m.If(self.clear):
                m.d.sync += count.eq(0)
            with m.Elif(getattr(self, name)):
                m.d.sync += count.eq(count + 1)
        failed, again, ended = Signal(), Signal(), Signal()
        least, since = Signal(32, init=-1), Signal(33, init=1)  # the highest bit stays: longer than any interval
        m.d.sync += ended.eq(self.frame_out)
        with m.If(self.clear):
            m.d.sync += [failed.eq(0), again.eq(0), least.eq(-1)]
        with m.Else():
            m.d.sync += failed.eq(failed | self.error)
            with m.If(ended):
                m.d.sync += again.eq(1)
                with m.If(again & (since < least)):
                    m.d.sync += least.eq(since)
        with m.If(ended):
            m.d.sync += since.eq(1)
        with m.Elif(~since[32]):
            m.d.sync += since.eq(since + 1)
        values = Cat(*counts, least, failed, Const(0, 31))
        m.d.comb += self.byte.eq(Array(values[8 * k : 8 * k + 8] for k in range(4 * COUNTERS))[self.place])
        return m
