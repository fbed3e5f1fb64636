"""The rows of a recurrence: a given first row, then those that come back."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import delayed
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue


class FollowedBy(wiring.Component):
    """Frame after frame: a first row, then all rows but the last of the input ``rest``, whose last row is dropped. That
    input may depend on the output: its row ``n`` on row ``n``.

    Parameters
    ----------
    first: the integer shape of an element of the first row, which is an input; or the constant that all of its
        elements are.
    rest: the integer shape of an element of the other input.
    output_shape: of an element of the output, which holds all that leave: an element may be cut to its low bits.
    lanes: elements per beat.
    beats: of a row, at least 1.
    rows: of a frame, at least 2.
    depth: beats of the output queue; one beat per cycle needs 3.

    Members
    -------
    first: In(stream). The first row of each frame; there is none if that is constant.
    rest: In(stream). ``rows`` rows a frame.
    o: Out(stream). ``rows`` rows a frame.

    Timing
    ------
    One step per beat of a row, in the order of the rows above, and then one per beat that is dropped: ``(rows + 1) *
    beats`` a frame. All but the last ``beats`` steps take a credit and produce a beat; latency 2. Initiation interval 1
    cycle per beat. A beat to be dropped waits for no credit. An input whose turn it is not waits.

    Ordering
    --------
    As above; the beats of each input in the order they came.
    """

    latency = 2

    def __init__(
        self, first: Shape | int, rest: Shape, output_shape: Shape, *, lanes: int, beats: int, rows: int, depth: int
    ) -> None:
        check_depth(depth)
        if lanes < 1 or beats < 1:
            raise ValueError(f"lanes and beats must be at least 1, not {min(lanes, beats)}")
        if rows < 2:
            raise ValueError(f"rows must be at least 2, not {rows}: of one there is nothing to follow")
        self.lanes = lanes
        self.beats = beats
        self.rows = rows
        self.depth = depth
        self.constant = first if isinstance(first, int) else None
        shapes = {"rest": rest} if isinstance(first, int) else {"first": first, "rest": rest}
        members = {
            name: In(stream.Signature(data.ArrayLayout(Shape.cast(shape), lanes))) for name, shape in shapes.items()
        }
        o = Out(stream.Signature(data.ArrayLayout(Shape.cast(output_shape), lanes)))
        super().__init__({**members, "o": o})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        turns = (self.beats, (self.rows - 1) * self.beats, self.beats)  # of the first row, those behind it, the dropped
        turn = Signal(3, init=1)  # one bit each: whose turn it is
        left = Signal(range(max(2, *turns)), init=turns[0] - 1)  # beats of the turn behind this one
        last = Signal(init=turns[0] == 1)
        give, step = Signal(), Signal()
        there: Value = Const(1)
        wide = [Signal(self.o.payload.shape(), name=f"wide_{place}") for place in range(2)]
        for lane in range(self.lanes):
            first = self.first.payload[lane] if self.constant is None else self.constant
            m.d.comb += [wide[0][lane].eq(first), wide[1][lane].eq(self.rest.payload[lane])]
        if self.constant is None:
            there = self.first.valid
            m.d.comb += self.first.ready.eq(turn[0] & queue.available)
        m.d.comb += [
            self.rest.ready.eq(turn[2] | (turn[1] & queue.available)),
            give.eq(((turn[0] & there) | (turn[1] & self.rest.valid)) & queue.available),
            step.eq(give | (turn[2] & self.rest.valid)),
            queue.reserve.eq(give),
        ]
        with m.If(step):
            m.d.sync += [left.eq(left - 1), last.eq(left == 1)]
            with m.If(last):
                m.d.sync += turn.eq(turn.rotate_left(1))
                for place in range(3):
                    following = turns[(place + 1) % 3]
                    with m.If(turn[place]):
                        m.d.sync += [left.eq(following - 1), last.eq(following == 1)]
        chosen = Signal(len(Value.cast(wide[0])), reset_less=True)
        m.d.sync += chosen.eq(Mux(turn[0], Value.cast(wide[0]), Value.cast(wide[1])))
        m.d.comb += [queue.push.eq(delayed(m, "push", give, 1)), Value.cast(queue.payload).eq(chosen)]
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m
