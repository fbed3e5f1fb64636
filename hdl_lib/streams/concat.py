"""Concatenate several streams, in turns of a fixed length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import delayed
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue


class Concat(wiring.Component):
    """Round after round: ``beats[0]`` beats of the first input, ``beats[1]`` of the second, and so on.

    Parameters
    ----------
    shapes: of an element of each input, integer shapes; at least two.
    output_shape: of an element of the output, which must hold all of them.
    lanes: elements per beat.
    beats: of each input in a round, at least 1 each.
    depth: beats of the output queue; one beat per cycle needs 3.

    Members
    -------
    i: In(array of streams). The inputs.
    o: Out(stream). Every beat of the inputs, every element with its value.

    Timing
    ------
    One step per beat, which consumes it from the input whose turn it is, and produces it; latency 2. Initiation
    interval 1 cycle per beat. Under backpressure no step begins. An input whose turn it is not waits.

    Ordering
    --------
    As above; the beats of each input in the order they came.
    """

    latency = 2

    def __init__(
        self, shapes: Sequence[Shape], output_shape: Shape, *, lanes: int, beats: Sequence[int], depth: int
    ) -> None:
        check_depth(depth)
        if len(shapes) < 2 or len(beats) != len(shapes):
            raise ValueError(
                f"shapes and beats must be of two inputs or more, not of {len(shapes)} and {len(beats)}"
            )
        if min(beats) < 1:
            raise ValueError(f"beats must be at least 1 of each input, not {min(beats)}")
        if lanes < 1:
            raise ValueError(f"lanes must be at least 1, not {lanes}")
        self.shapes = tuple(Shape.cast(shape) for shape in shapes)
        self.output_shape = Shape.cast(output_shape)
        self.lanes = lanes
        self.beats = tuple(beats)
        self.depth = depth
        members = {
            f"i{k}": In(stream.Signature(data.ArrayLayout(shape, lanes))) for k, shape in enumerate(self.shapes)
        }
        super().__init__({**members, "o": Out(stream.Signature(data.ArrayLayout(self.output_shape, lanes)))})

    @property
    def i(self) -> list[stream.Interface]:
        """Return the inputs, in order."""
        return [getattr(self, f"i{k}") for k in range(len(self.shapes))]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        count = len(self.shapes)
        turn = Signal(count, init=1)  # one bit per input: whose turn it is
        longest = max(self.beats)
        left = Signal(range(max(2, longest)), init=self.beats[0] - 1)  # beats of the turn behind this one
        last = Signal(init=self.beats[0] == 1)
        step = Signal()
        masked = []  # each input's beat in its turn, else zeros
        valid: Value = (turn & Cat(source.valid for source in self.i)).any()
        m.d.comb += [step.eq(valid & queue.available), queue.reserve.eq(step)]
        for k, source in enumerate(self.i):
            m.d.comb += source.ready.eq(turn[k] & queue.available)
            wide = Signal(self.o.payload.shape(), name=f"wide_{k}")
            m.d.comb += [wide[lane].eq(source.payload[lane]) for lane in range(self.lanes)]
            masked.append(Value.cast(wide) & turn[k].replicate(len(Value.cast(wide))))
        with m.If(step):
            m.d.sync += [left.eq(left - 1), last.eq(left == 1)]
            with m.If(last):
                m.d.sync += turn.eq(turn.rotate_left(1))
                for k in range(count):
                    following = self.beats[(k + 1) % count]
                    with m.If(turn[k]):
                        m.d.sync += [left.eq(following - 1), last.eq(following == 1)]
        chosen = Signal(len(masked[0]), reset_less=True)
        m.d.sync += chosen.eq(reduce(or_, masked))
        m.d.comb += [queue.push.eq(delayed(m, "push", step, 1)), Value.cast(queue.payload).eq(chosen)]
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m
