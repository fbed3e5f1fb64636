"""Take a run of each frame's beats: a channel range, some rows."""

from __future__ import annotations

from amaranth.hdl import Module, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import count_up
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue


class BeatRun(wiring.Component):
    """Passes on ``count`` of each ``beats`` beats, from beat ``first`` on, and drops the others.

    Parameters
    ----------
    shape, lanes: of the elements, an integer shape; elements of a beat.
    beats: of a frame, at least 2.
    first, count: of the run, which lies within the frame and is not all of it; ``count`` at least 1.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i, o: In(stream), Out(stream). ``lanes`` elements.

    Timing
    ------
    One step per input beat. Those of the run produce, and need a credit of the output queue; ``latency`` (1) cycles
    later the beat shows on ``o``. The others wait for nothing. Initiation interval: one cycle per input beat.

    Ordering
    --------
    First in, first out.
    """

    latency = 1
    """Cycles from a producing step to ``o.valid``."""

    def __init__(self, shape: Shape, lanes: int, beats: int, first: int, count: int, *, depth: int) -> None:
        check_depth(depth)
        if not (first >= 0 and 1 <= count < beats and first + count <= beats):
            raise ValueError(f"the run must be a part of {beats} beats, not {count} from beat {first} on")
        self.beats, self.first, self.count, self.depth = beats, first, count, depth
        beat = data.ArrayLayout(shape, lanes)
        super().__init__({"i": In(stream.Signature(beat)), "o": Out(stream.Signature(beat))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        step = Signal()
        place = count_up(m, "place", self.beats, step)
        taken = Signal(init=self.first == 0)  # this beat is one of the run
        last = self.first + self.count - 1
        with m.If(step):
            with m.If(place == (self.first - 1) % self.beats):
                m.d.sync += taken.eq(1)
            with m.Elif(place == last):
                m.d.sync += taken.eq(0)
        m.d.comb += [
            self.i.ready.eq(queue.available | ~taken),
            step.eq(self.i.valid & self.i.ready),
            queue.reserve.eq(step & taken),
            queue.push.eq(queue.reserve),
            queue.payload.eq(self.i.payload),
        ]
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m
