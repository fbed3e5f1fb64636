"""Bring the rows that a window sees side by side: as channels of one pixel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import count_up, delayed, loop
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue


class SideBySide(wiring.Component):
    """Pixel after pixel, ``blocks`` beats of each input in turn, or of padding in rows in which the input has none.

    Parameters
    ----------
    shape: of an element that comes, an integer shape.
    lanes: elements per beat.
    blocks: beats of an input's pixel.
    width: pixels of a row.
    rows: of a frame of the result.
    spans: for each input, at least two, the rows of the result in which it takes part, not none; the first input in the
        first row.
    output_shape: of an element of the result, an integer shape that holds ``shape``'s values and ``fill``.
    fill: the value of every lane of padding.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(array of streams). ``len(span) * width * blocks`` beats of each in a frame.
    o: Out(stream). ``rows * width * len(spans) * blocks`` beats in a frame.

    Timing
    ------
    A process of a step per beat that leaves. It consumes a beat of the input whose turn it is, unless it is of padding;
    ``latency`` (2) cycles later it shows on ``o``. Initiation interval: a cycle for each step. Under backpressure no
    step begins. An input whose turn it is not waits.

    Ordering
    --------
    As above; the beats of each input in the order they came. Nothing of a frame is sent before its first beat has come.
    """

    latency = 2
    """Cycles from a step to ``o.valid``."""

    def __init__(
        self, shape: Shape, *, lanes: int, blocks: int, width: int, rows: int, spans: Sequence[range],
        output_shape: Shape, fill: int = 0, depth: int,
    ) -> None:
        check_depth(depth)
        if len(spans) < 2 or not all(0 <= span.start < span.stop <= rows for span in spans) or spans[0].start:
            raise ValueError(
                f"spans must be two or more of {rows} rows, not empty, the first one from row 0 on, not {list(spans)}"
            )
        self.output_shape = Shape.cast(output_shape)
        low, high = interval(self.output_shape)
        if not low <= fill <= high:
            raise ValueError(f"fill must be in {low}..{high}, the range of {self.output_shape}, not {fill}")
        self.lanes, self.blocks, self.width, self.rows = lanes, blocks, width, rows
        self.spans, self.fill, self.depth = tuple(spans), fill, depth
        members = {f"i{k}": In(stream.Signature(data.ArrayLayout(shape, lanes))) for k in range(len(spans))}
        super().__init__({**members, "o": Out(stream.Signature(data.ArrayLayout(self.output_shape, lanes)))})

    @property
    def i(self) -> list[stream.Interface]:
        """Return the inputs, in order."""
        return [getattr(self, f"i{k}") for k in range(len(self.spans))]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        count = len(self.spans)
        turn = Signal(count, init=1)  # a bit for each input: whose turn it is
        step, turn_done, row_done = Signal(), Signal(), Signal()
        turn_last = loop(m, "block", self.blocks, step)
        row_last = turn_last & turn[-1] & loop(m, "pixel", self.width, turn_done & turn[-1])
        m.d.comb += [turn_done.eq(step & turn_last), row_done.eq(step & row_last)]
        with m.If(turn_done):
            m.d.sync += turn.eq(turn.rotate_left(1))
        present = self._elaborate_presence(m, row_done)
        there = Cat(source.valid | ~here for source, here in zip(self.i, present, strict=True))
        m.d.comb += [step.eq((turn & there).any() & queue.available), queue.reserve.eq(step)]
        taken = Signal(count)  # whose beat it is; of padding none
        m.d.comb += taken.eq(turn & Cat(*present))
        padding = Value.cast(Const(self.fill, self.output_shape)).replicate(self.lanes)
        masked = [padding & (~taken.any()).replicate(len(padding))] if self._has_padding else []
        for k, source in enumerate(self.i):
            m.d.comb += source.ready.eq(taken[k] & queue.available)
            wide = Signal(self.o.payload.shape(), name=f"wide_{k}")
            m.d.comb += [wide[lane].eq(source.payload[lane]) for lane in range(self.lanes)]
            masked.append(Value.cast(wide) & taken[k].replicate(len(padding)))
        chosen = Signal(len(padding), reset_less=True)
        m.d.sync += chosen.eq(reduce(or_, masked))
        m.d.comb += [queue.push.eq(delayed(m, "push", step, 1)), Value.cast(queue.payload).eq(chosen)]
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m

    @property
    def _has_padding(self) -> bool:
        return any(len(span) < self.rows for span in self.spans)

    def _elaborate_presence(self, m: Module, row_done: Value) -> list[Value]:
        """Return for each input whether it takes part in the present row: registers, or 1."""
        present: list[Value] = []
        row = count_up(m, "row", self.rows, row_done)
        for k, span in enumerate(self.spans):
            if len(span) == self.rows:
                present.append(Const(1))
                continue
            here = Signal(name=f"present_{k}", init=span.start == 0)
            with m.If(row_done & (row == (span.start - 1) % self.rows)):
                m.d.sync += here.eq(1)
            with m.Elif(row_done & (row == span.stop - 1)):
                m.d.sync += here.eq(0)
            present.append(here)
        return present
