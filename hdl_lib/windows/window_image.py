"""All windows of an image in one beat, from the whole image in one beat: wiring."""

from __future__ import annotations

from amaranth.hdl import Module, Shape, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue
from hdl_lib.windows.window_geometry import WindowGeometry
from hdl_lib.windows.window_rows import check_pad_value, connect_windows


class WindowImage(wiring.Component):
    """A whole image in, all of its windows out: wires, and a queue of the pixels that windows read.

    Parameters
    ----------
    shape, result_shape: of an input and of an output element, integer shapes; the second holds the first's values.
    channels: elements per pixel.
    geometry: image and windows.
    pad_value: every element of a pixel outside the image; a value of ``result_shape``.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). The image, row by row, channels fastest.
    o: Out(stream). For each output pixel, row by row, its window: for each kernel row, for each kernel column, for each
        channel one element.

    Timing
    ------
    One step per frame: it consumes a beat, produces one, ``latency`` (1) cycle later on ``o.valid``, and needs a credit
    of the output queue. Initiation interval: 1 cycle.

    Ordering
    --------
    Frames leave in the order they came.
    """

    latency = 1
    """Cycles from a step to ``o.valid``."""

    def __init__(
        self,
        shape: Shape,
        result_shape: Shape,
        channels: int,
        geometry: WindowGeometry,
        *,
        pad_value: int = 0,
        depth: int,
    ) -> None:
        if channels < 1:
            raise ValueError(f"channels must be at least 1, not {channels}")
        check_depth(depth)
        self.shape, self.result_shape = Shape.cast(shape), Shape.cast(result_shape)
        check_pad_value(self.result_shape, pad_value)
        self.channels = channels
        self.geometry = geometry
        self.pad_value = pad_value
        self.depth = depth
        g = geometry
        lanes = g.out_height * g.out_width * g.kernel[0] * g.kernel[1] * channels
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(shape, g.height * g.width * channels))),
                "o": Out(stream.Signature(data.ArrayLayout(result_shape, lanes))),
            }
        )

    @staticmethod
    def pixels(geometry: WindowGeometry) -> list[list[int | None]]:
        """Return for each window the image pixel of each tap, None for one outside the image."""
        g = geometry

        def pixel(y: int, x: int) -> int | None:
            return y * g.width + x if 0 <= y < g.height and 0 <= x < g.width else None

        return [
            [
                pixel(
                    row * g.stride[0] + ky * g.dilation[0] - g.pads[0],
                    column * g.stride[1] + kx * g.dilation[1] - g.pads[1],
                )
                for ky in range(g.kernel[0])
                for kx in range(g.kernel[1])
            ]
            for row in range(g.out_height)
            for column in range(g.out_width)
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        windows, width = self.pixels(self.geometry), self.result_shape.width
        taken = sorted({pixel for window in windows for pixel in window if pixel is not None})
        m.submodules.queue = queue = OutputQueue(max(1, len(taken) * self.channels * width), self.depth)
        queue.issue(m, self.i, 0)
        for index, pixel in enumerate(taken):
            for channel in range(self.channels):
                start = (index * self.channels + channel) * width
                element = Value.cast(self.i.payload[pixel * self.channels + channel])
                m.d.comb += queue.payload[start : start + width].eq(element)
        places = {pixel: index for index, pixel in enumerate(taken)}
        connect_windows(
            m, queue, self.o, [[None if p is None else places[p] for p in window] for window in windows],
            self.channels, self.result_shape, self.pad_value,
        )
        return m
