"""Check the ``last`` marks of an incoming stream against the frame's fixed length, and repair malformed frames."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import loop
from hdl_lib.streams.output_queue import OutputQueue


class State(enum.Enum):
    """The state of :class:`FrameSync`."""

    PASS = 0  # beats go through
    FILL = 1  # the frame was too short: zero beats complete it
    DROP = 2  # the frame was too long: beats are dropped up to its ``last``


class FrameSync(wiring.Component):
    """Passes frames of ``beats`` beats on without their marks; the output always consists of whole frames.

    A ``last`` before the frame's last beat is an error: the beat is passed on and the frame completed with zero beats.
    A missing ``last`` on the frame's last beat is an error: the beats after it are dropped, up to and including the
    next one with ``last``. The beat after either is the first of a frame. A frame with its ``last`` in the right place
    that starts there comes out unchanged.

    Parameters: ``shape``: payload of a beat, any Amaranth shape or layout; ``beats``: beats of a frame, at least 1;
    ``depth``: 2, or 0 for a reader that takes each beat at once (:class:`hdl_lib.chain.Chain`), of frames of a beat.

    Members: ``i`` (in): stream of ``StructLayout({"data": shape, "last": 1})``; ``o`` (out): stream of ``shape``;
    ``error`` (out 1): sticky, set the cycle after the offending beat, cleared by reset.

    Timing: one step per beat, consuming and producing, with two credits; latency 1; initiation interval 1 cycle per
    beat. A step that fills in a zero beat produces only (``i.ready`` is low meanwhile); one that drops a beat consumes
    only and needs no credit. Under backpressure ``i.ready`` falls when two beats wait.

    Ordering: beats keep their order.
    """

    def __init__(self, shape: Any, beats: int, *, depth: int = 2) -> None:
        if not isinstance(beats, int) or beats < 1:
            raise ValueError(f"beats must be an integer of at least 1, not {beats!r}")
        if depth not in (0, 2) or (not depth and beats > 1):
            raise ValueError(f"depth must be 2, or 0 with frames of a beat, not {depth!r} with {beats}")
        self.shape = shape
        self.beats = beats
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(data.StructLayout({"data": shape, "last": 1}))),
                "o": Out(stream.Signature(shape)),
                "error": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        """Return the cycles from a beat to ``o.valid``."""
        return int(self.depth > 0)

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.shape, self.depth)
        state = Signal(State)
        final = Signal()
        taken = Signal()
        m.d.comb += [
            final.eq(loop(m, "beat", self.beats, queue.push)),
            taken.eq(self.i.valid & self.i.ready),
            queue.reserve.eq(queue.push),
        ]
        if self.beats == 1:  # which is never filled in: no gate for each bit
            m.d.comb += Value.cast(queue.payload).eq(Value.cast(self.i.payload.data))
        with m.Switch(state):
            with m.Case(State.PASS):
                m.d.comb += [self.i.ready.eq(queue.available), queue.push.eq(taken)]
                if self.beats > 1:
                    m.d.comb += Value.cast(queue.payload).eq(Value.cast(self.i.payload.data))
                with m.If(taken & (self.i.payload.last != final)):
                    m.d.sync += [self.error.eq(1), state.eq(Mux(final, State.DROP, State.FILL))]
            with m.Case(State.FILL):
                m.d.comb += queue.push.eq(queue.available)
                with m.If(queue.available & final):
                    m.d.sync += state.eq(State.PASS)
            with m.Case(State.DROP):
                m.d.comb += self.i.ready.eq(1)
                with m.If(taken & self.i.payload.last):
                    m.d.sync += state.eq(State.PASS)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m
