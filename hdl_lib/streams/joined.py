"""The base of cores with several input streams of equal shape: each step takes a beat of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import block_count, delayed
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue
from hdl_lib.streams.skid_buffer import SkidBuffer

NAMES = "abcdefgh"
"""The input members of a core, in order."""


class Joined(wiring.Component):
    """A core with one step per beat, which consumes a beat of each of its inputs and produces one.

    A skid buffer behind each input holds the beat that comes first, so that no ``ready`` depends on another input's
    ``valid``.

    Parameters: ``input_shapes`` of an element of ``a``, of ``b`` and so on (:data:`NAMES`), ``output_shape``;
    ``channels`` per pixel, ``lanes`` per beat, so ``blocks = ceil(channels / lanes)`` beats per pixel; ``depth``, the
    beats of the output queue. With a depth of 0, for a reader that takes each beat at once, a core of one input has no
    buffer: each beat is a step.

    Timing: a process for each input and one for the steps. Each buffer takes a beat in the first cycle in which it
    holds fewer than :attr:`buffer_depth` beats (one that a step takes at t makes room at t + 1); step n comes at least
    :attr:`buffer_latency` cycle after beat n of every input.
    """

    buffer_depth = SkidBuffer.depth
    buffer_latency = SkidBuffer.latency

    @property
    def latency(self) -> int:
        """Return the cycles from a step to ``o.valid``."""
        raise NotImplementedError("each core has its own latency")

    def __init__(
        self, input_shapes: Sequence[Shape], output_shape: Shape, *, lanes: int, channels: int, depth: int
    ) -> None:
        self.blocks = block_count(channels, lanes)
        self.input_shapes = tuple(Shape.cast(shape) for shape in input_shapes)
        check_depth(depth, least=int(len(self.input_shapes) != 1))
        if not 1 <= len(self.input_shapes) <= len(NAMES):
            raise ValueError(f"inputs must be 1 to {len(NAMES)}, not {len(self.input_shapes)}")
        named = dict(zip(NAMES, self.input_shapes, strict=False))
        for name, shape in (*named.items(), ("the output", Shape.cast(output_shape))):
            if shape.width < 1:
                raise ValueError(f"an element of {name} must have at least 1 bit, not 0")
        self.output_shape = Shape.cast(output_shape)
        self.lanes = lanes
        self.channels = channels
        self.depth = depth
        super().__init__(
            {
                **{name: In(stream.Signature(data.ArrayLayout(shape, lanes))) for name, shape in named.items()},
                "o": Out(stream.Signature(data.ArrayLayout(output_shape, lanes))),
            }
        )

    @property
    def sources(self) -> list[Any]:
        """Return the input streams."""
        return [getattr(self, name) for name in NAMES[: len(self.input_shapes)]]

    def _issue(self, m: Module, *free: Value) -> tuple[OutputQueue, Signal, list[data.View]]:
        """Return the output queue, the step, and all inputs' payloads in the cycle of the step; the caller drives
        ``queue.payload`` in the cycle before ``o.valid``. ``free``: what a step waits for besides."""
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        step = Signal()
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        if self.depth == 0 and not free:
            (source,) = self.sources
            m.d.comb += step.eq(source.valid)
            m.d.comb += [source.ready.eq(1), queue.push.eq(delayed(m, "push", step, self.latency - 1))]
            return queue, step, [source.payload]
        buffers = []
        for name, source in zip(NAMES, self.sources, strict=False):
            m.submodules[f"buffer_{name}"] = buffer = SkidBuffer(source.payload.shape())
            wiring.connect(m, wiring.flipped(source), buffer.i)
            m.d.comb += buffer.o.ready.eq(step)
            buffers.append(buffer)
        m.d.comb += [
            step.eq(Cat(queue.available, *free, *(buffer.o.valid for buffer in buffers)).all()),
            queue.reserve.eq(step),
            queue.push.eq(delayed(m, "push", step, self.latency - 1)),
        ]
        return queue, step, [buffer.o.payload for buffer in buffers]
