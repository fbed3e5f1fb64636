"""A long queue in single-port RAM, written and read in turns."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Shape, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import delayed
from hdl_lib.external.spram import SinglePortRam
from hdl_lib.streams.output_queue import OutputQueue

_SHOWN = 2  # beats on their way out of the RAM, so that one leaves whenever it is read


class SinglePortQueue(wiring.Component):
    """A queue of ``depth`` beats, a power of two.

    Parameters: ``shape``: payload of a beat, any Amaranth shape or layout. ``depth``.

    Members: ``i`` (in), ``o`` (out): streams of ``shape``.

    Timing: a beat is taken in every second cycle at the most, and one leaves in every second cycle; one that is taken
    at t shows at t + 4 or later.

    Ordering: first in, first out.
    """

    def __init__(self, shape: Any, depth: int) -> None:
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two, not {depth}")
        self.shape, self.depth = shape, depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.ram = ram = SinglePortRam(Shape.cast(self.shape).width, self.depth)
        m.submodules.shown = shown = OutputQueue(self.shape, _SHOWN)
        reads, write, read = Signal(name="reads"), Signal(name="write"), Signal(name="read")
        level = Signal(range(self.depth + 1), name="level")
        newest, oldest = (Signal(range(self.depth), name=name) for name in ("newest", "oldest"))
        m.d.comb += [
            self.i.ready.eq(~reads & ~level[-1]), write.eq(self.i.valid & self.i.ready),
            read.eq(reads & (level != 0) & shown.available),
            ram.en.eq(1), ram.we.eq(write), ram.a.eq(Mux(reads, oldest, newest)),
            ram.dq_i.eq(Value.cast(self.i.payload)),
            shown.reserve.eq(read), shown.push.eq(delayed(m, "was_read", read, 1)),
            Value.cast(shown.payload).eq(ram.dq_o),
        ]
        m.d.sync += [
            reads.eq(~reads), level.eq(level + write - read), newest.eq(newest + write), oldest.eq(oldest + read)
        ]
        wiring.connect(m, shown.o, wiring.flipped(self.o))
        return m
