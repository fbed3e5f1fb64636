"""Interleave the pixels of several streams."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Module, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue
from hdl_lib.streams.skid_buffer import SkidBuffer


class Interleave(wiring.Component):
    """Joins the channels of all inputs: beats hold the same ``pixels`` on every input, and on the output each pixel has
    the first input's channels, then the second's, and so on.

    A skid buffer behind each input holds the beat that comes first, so that no ``ready`` depends on another input's
    ``valid``.

    Parameters
    ----------
    shapes: of an element of each input, integer shapes; at least two.
    output_shape: of an element of the output, which must hold all of them.
    channels: of each input's pixel, at least 1 each.
    pixels: of a beat, at least 1.
    depth: beats of the output queue; one beat per cycle needs 2.

    Members
    -------
    i: In(array of streams). The inputs, ``pixels * channels[k]`` lanes each.
    o: Out(stream). ``pixels * sum(channels)`` lanes, every element with its value.

    Timing
    ------
    As :class:`hdl_lib.streams.joined.Joined`, with a buffer for each input: step n comes at least
    :attr:`buffer_latency` cycle after beat n of all inputs; latency 1. Initiation interval 1 cycle per beat. Under
    backpressure no step begins.

    Ordering
    --------
    Beats leave in the order they came; beat n of every input meets beat n of all others.
    """

    latency = 1
    buffer_depth = SkidBuffer.depth
    buffer_latency = SkidBuffer.latency

    def __init__(
        self, shapes: Sequence[Shape], output_shape: Shape, *, channels: Sequence[int], pixels: int, depth: int
    ) -> None:
        check_depth(depth)
        if len(shapes) < 2 or len(channels) != len(shapes):
            raise ValueError(
                f"shapes and channels must be of two inputs or more, not of {len(shapes)} and {len(channels)}"
            )
        if min(channels) < 1:
            raise ValueError(f"channels must be at least 1 of each input, not {min(channels)}")
        if pixels < 1:
            raise ValueError(f"pixels must be at least 1, not {pixels}")
        self.shapes = tuple(Shape.cast(shape) for shape in shapes)
        self.output_shape = Shape.cast(output_shape)
        self.channels = tuple(channels)
        self.pixels = pixels
        self.depth = depth
        members = {
            f"i{k}": In(stream.Signature(data.ArrayLayout(shape, pixels * count)))
            for k, (shape, count) in enumerate(zip(self.shapes, self.channels, strict=True))
        }
        lanes = pixels * sum(self.channels)
        super().__init__({**members, "o": Out(stream.Signature(data.ArrayLayout(self.output_shape, lanes)))})

    @property
    def i(self) -> list[stream.Interface]:
        """Return the inputs, in order."""
        return [getattr(self, f"i{k}") for k in range(len(self.shapes))]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        step = Signal()
        there = queue.available
        first = 0  # channel of the output's pixel that an input's begin at
        for k, (source, count) in enumerate(zip(self.i, self.channels, strict=True)):
            m.submodules[f"buffer_{k}"] = buffer = SkidBuffer(source.payload.shape())
            wiring.connect(m, wiring.flipped(source), buffer.i)
            m.d.comb += buffer.o.ready.eq(step)
            there &= buffer.o.valid
            for pixel in range(self.pixels):
                for channel in range(count):
                    lane = pixel * sum(self.channels) + first + channel
                    m.d.comb += queue.payload[lane].eq(buffer.o.payload[pixel * count + channel])
            first += count
        m.d.comb += [step.eq(there), queue.reserve.eq(step), queue.push.eq(step)]
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m
