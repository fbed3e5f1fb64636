"""Permute the lanes of every beat: wiring."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Const, Module, Shape
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue


class LaneMap(wiring.Component):
    """Maps each input beat to an output beat: each output lane is an input lane or a constant.

    Parameters
    ----------
    shape, lanes: of the input's elements, an integer shape; elements of an input beat.
    output_shape: integer shape of the output's elements, which holds those of the input and ``fill``.
    sources: for each output lane the input lane it repeats, None for ``fill``.
    fill: a constant.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). ``lanes`` elements.
    o: Out(stream). One element per source.

    Timing
    ------
    One step per beat, consuming and producing; ``latency`` (1) cycles later the beat shows on ``o``. A step needs a
    credit of the output queue. Initiation interval: one cycle per beat.

    Ordering
    --------
    First in, first out.
    """

    latency = 1
    """Cycles from a step to ``o.valid``."""

    def __init__(
        self, shape: Shape, lanes: int, sources: Sequence[int | None], output_shape: Shape, *, fill: int = 0, depth: int
    ) -> None:
        check_depth(depth)
        for lane, source in enumerate(sources):
            if source is not None and not 0 <= source < lanes:
                raise ValueError(f"source of lane {lane} must be in 0..{lanes - 1}, not {source}")
        self.shape = Shape.cast(shape)
        self.output_shape = Shape.cast(output_shape)
        self.sources = tuple(sources)
        self.fill = fill
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(shape, lanes))),
                "o": Out(stream.Signature(data.ArrayLayout(output_shape, len(self.sources)))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        queue.issue(m, self.i, 0)
        fill = Const(self.fill, self.output_shape)
        for lane, source in enumerate(self.sources):
            m.d.comb += queue.payload[lane].eq(fill if source is None else self.i.payload[source])
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m
