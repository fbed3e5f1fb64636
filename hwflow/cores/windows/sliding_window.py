"""Sliding window: an image stream to the stream of its windows' pixels, tap by tap.

Lanes of at most a pixel: the taps come one after the other. More output lanes are whole windows: as many as divide an
output row, from whole pixels that divide an image row; or all of them, from the whole image.

Attributes: ``geometry`` (WindowGeometry), ``pad_value``, ``rows`` (line buffer in image rows; chosen when the core is
built if absent: the least that lets the writer fill a stride ahead of the reader).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

from hdl_lib.windows.sliding_window import SlidingWindow as Core
from hdl_lib.windows.window_geometry import WindowGeometry as CoreGeometry
from hdl_lib.windows.window_image import WindowImage
from hdl_lib.windows.window_rows import WindowRows
from hdl_lib.windows.window_steps import WindowSteps
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.operator import Built, Device, Folding, HardwareOperator, Resources, beats
from hwflow.cores.timing import Process, Timing, Wait, beat_by_beat, every
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.types import Interval, IntType, TensorType

_SOME_WORDS = 6  # a row: what takes a few cycles from reader to writer no longer costs interval


class SlidingWindow(HardwareOperator):
    name = "sliding_window"
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        window: WindowGeometry = attributes["geometry"]
        pixels = window.output[0] * window.output[1] * window.taps
        ranges = inputs[0].channel_intervals(1)
        if window.touches_padding():
            ranges = tuple(r.hull(Interval(attributes["pad_value"], attributes["pad_value"])) for r in ranges)
        result = TensorType.of((pixels, inputs[0].shape[1]), ranges, 1)
        element = inputs[0].element
        if not (element.interval.includes(result.interval.lo) and element.interval.includes(result.interval.hi)):
            element = IntType.holding(inputs[0].interval.hull(result.interval))
        return (TensorType(result.shape, element, result.interval, result.channels, 1),)

    def evaluate(self, attributes: Mapping[str, Any], inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        window: WindowGeometry = attributes["geometry"]
        frames, _, channels = inputs[0].shape
        images = inputs[0].reshape(frames, window.height, window.width, channels)
        return (window.windows(images, attributes["pad_value"]).reshape(frames, -1, channels),)

    def foldings(self, node: Node, device: Device) -> Sequence[Folding]:
        window: WindowGeometry = node.attributes["geometry"]
        channels = node.inputs[0].typed.shape[1]
        found = [Folding(lanes, lanes) for lanes in costs.useful_lanes(channels)]
        rows, columns = window.output
        for pixels in range(1, window.width + 1):
            windows = columns if pixels == window.width else pixels // gcd(pixels, window.strides[1])
            if window.width % pixels == 0 and columns % windows == 0:
                found.append(Folding(pixels * channels, windows * window.taps * channels))
        found.append(Folding(window.height * window.width * channels, rows * columns * window.taps * channels))
        return list(dict.fromkeys(found))

    def cycles(self, node: Node, folding: Folding) -> int:
        if is_serial(node, folding):
            return max(beats(value.typed.shape, folding.input_lanes) for value in (node.inputs[0], node.outputs[0]))
        if is_whole(node, folding):
            return 1
        steps = steps_of(node, folding)
        return max(steps.geometry.height * steps.words, steps.steps)

    def timing(self, node: Node, folding: Folding) -> Timing:
        if is_serial(node, folding):
            return self._serial_timing(node, folding)
        if is_whole(node, folding):
            return beat_by_beat(1, WindowImage.latency)
        return _rows_timing(steps_of(node, folding), line_buffer_rows(node, folding))

    def _serial_timing(self, node: Node, folding: Folding) -> Timing:
        window: WindowGeometry = node.attributes["geometry"]
        blocks = -(-node.inputs[0].typed.shape[1] // folding.input_lanes)
        per_row = window.output[1] * window.taps * blocks
        return Timing(serial_processes(window, blocks, per_row, 1, line_buffer_rows(node)), (Core.latency,))

    def resources(self, node: Node, folding: Folding, depths: Sequence[int], device: Device) -> Resources:
        window: WindowGeometry = node.attributes["geometry"]
        source, result = node.inputs[0].typed, node.outputs[0].typed.element
        if not is_serial(node, folding) and is_whole(node, folding):
            return costs.window_image(device.family, core_geometry(window), source.shape[1], result.bits, depths[0])
        if not is_serial(node, folding):
            steps, rows = steps_of(node, folding), line_buffer_rows(node, folding)
            types, pad_value = (source.element, result), core_pad_value(node)
            return costs.window_rows(device.family, steps, *types, source.shape[1], pad_value, rows, depths[0])
        blocks = -(-source.shape[1] // folding.input_lanes)
        words = line_buffer_rows(node) * window.width * blocks
        width = folding.input_lanes * result.bits
        return costs.sliding_window(device.family, window, blocks, words, width, depths[0])

    def build(self, node: Node, folding: Folding, depths: Sequence[int], name: str) -> Built:
        window: WindowGeometry = node.attributes["geometry"]
        if not is_serial(node, folding):
            return self._build_parallel(node, folding, depths[0])
        core = Core(
            shape_of(node.outputs[0].typed.element),
            window.height, window.width, node.inputs[0].typed.shape[1], folding.input_lanes,
            kernel=window.kernel, stride=window.strides, pads=window.pads, dilation=window.dilations,
            pad_value=core_pad_value(node), rows=line_buffer_rows(node), depth=depths[0],
        )
        return Built(core, [core.i], [core.o])

    def _build_parallel(self, node: Node, folding: Folding, depth: int) -> Built:
        source, result = shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element)
        channels, pad_value = node.inputs[0].typed.shape[1], core_pad_value(node)
        core: WindowImage | WindowRows
        if is_whole(node, folding):
            geometry = core_geometry(node.attributes["geometry"])
            core = WindowImage(source, result, channels, geometry, pad_value=pad_value, depth=depth)
        else:
            steps, rows = steps_of(node, folding), line_buffer_rows(node, folding)
            core = WindowRows(source, result, channels, steps, pad_value=pad_value, rows=rows, depth=depth)
        return Built(core, [core.i], [core.o])


def core_pad_value(node: Node) -> int:
    """The core's value of a pixel outside the image: where no window reaches there, the result's type need not hold
    the convolution's, and any value of it will do."""
    element, value = node.outputs[0].typed.element, int(node.attributes["pad_value"])
    return min(max(value, element.min), element.max)


def serial_processes(
    window: WindowGeometry, blocks: int, per_row_out: int, steps_a_beat: int, rows: int
) -> tuple[Process, Process]:
    """The writer, a step a beat, ``blocks`` a pixel, and the reader, ``per_row_out`` steps an output row of which every
    ``steps_a_beat``-th produces, around a buffer of ``rows`` image rows."""
    out_rows, _ = window.output
    per_row_in = window.width * blocks
    writes, reads = window.height * per_row_in, out_rows * per_row_out
    # The reader, at output row oy, needs every beat up to the last image row its windows reach, at least the first.
    oy = np.arange(out_rows)
    last_row = oy * window.strides[0] + (window.kernel[0] - 1) * window.dilations[0] - window.pads[0]
    need_write = (np.clip(last_row, 0, window.height - 1) + 1) * per_row_in - 1
    # The writer, at image row y, needs the reader to have released row y - rows (of this or an earlier frame).
    released_after = np.clip((oy + 1) * window.strides[0] - window.pads[0], 0, window.height)
    released_after[-1] = window.height
    frame, row = np.divmod(np.arange(window.height) - rows, window.height)
    output_row = np.searchsorted(released_after, row, side="right")
    need_read = frame * reads + (output_row + 1) * per_row_out - 1
    writer = Process(writes, {0: every(writes)}, {}, (Wait(1, need_read, steps=per_row_in),))
    produces = np.arange(steps_a_beat - 1, reads, steps_a_beat)
    reader = Process(reads, {}, {0: produces}, (Wait(0, need_write, steps=per_row_out),))
    return writer, reader


def _rows_timing(steps: WindowSteps, rows: int) -> Timing:
    """The two processes of :mod:`hdl_lib.windows.window_rows`."""
    g, words, row_steps = steps.geometry, steps.words, steps.row_steps
    y, word, step = np.arange(g.out_height)[:, None], np.arange(words), np.minimum(np.arange(row_steps), words - 1)
    # The reader, in the step of a word, needs that word of the last image row its windows reach, at least of the first.
    last_row = y * g.stride[0] + g.reach[0] - 1 - g.pads[0]
    need_write = (np.clip(last_row, 0, g.height - 1) * words + step).reshape(-1)
    need_write = np.append(need_write, np.repeat(need_write[-1:], steps.tail))
    # The writer, at image row g, needs row g - rows (of this or an earlier frame) released: of the first row that an
    # output row releases word by word, of others, and of the last word of each, with the output row's last step.
    released = np.clip((y[:, 0] + 1) * g.stride[0] - g.pads[0], 0, g.height)
    released[-1] = g.height
    frame, row = np.divmod(np.arange(g.height) - rows, g.height)
    output_row = np.searchsorted(released, row, side="right")
    is_first = row == np.append(0, released)[output_row]
    row_ends = np.append(np.arange(1, g.out_height) * row_steps, steps.steps) - 1
    by_word = np.where(word < words - 1, output_row[:, None] * row_steps + word, row_ends[output_row][:, None])
    need_read = np.where(is_first[:, None], by_word, row_ends[output_row][:, None])
    need_read = (frame[:, None] * steps.steps + need_read).reshape(-1)
    sends = np.array([steps.sends(row, beat) for row in range(g.out_height) for beat in range(steps.beats)])
    writer = Process(g.height * words, {0: every(g.height * words)}, {}, (Wait(1, need_read),))
    lag = WindowRows.lag_of(words)
    reader = Process(steps.steps, {}, {0: sends}, (Wait(0, np.maximum.accumulate(need_write), lag),))
    return Timing((writer, reader), (WindowRows.latency_of(steps),))


def is_serial(node: Node, folding: Folding) -> bool:
    """Whether lanes are a part of a pixel, at most one: one tap of a window after the other."""
    channels = node.inputs[0].typed.shape[1]
    return folding.input_lanes <= channels and folding.output_lanes <= channels


def is_whole(node: Node, folding: Folding) -> bool:
    """Whether a beat is a whole image, and all of its windows."""
    (pixels, channels), results = node.inputs[0].typed.shape, node.outputs[0].typed.shape[0]
    whole = Folding(pixels * channels, results * channels)
    return (folding.input_lanes, folding.output_lanes) == (whole.input_lanes, whole.output_lanes)


@lru_cache(maxsize=256)  # which keeps what it has computed
def core_geometry(window: WindowGeometry) -> CoreGeometry:
    """The same in the cores' terms."""
    return CoreGeometry(window.height, window.width, window.kernel, window.strides, window.pads, window.dilations)


def steps_of(node: Node, folding: Folding) -> WindowSteps:
    """The schedule of whole windows a beat."""
    window: WindowGeometry = node.attributes["geometry"]
    channels = node.inputs[0].typed.shape[1]
    pixels, windows = folding.input_lanes // channels, folding.output_lanes // (window.taps * channels)
    return WindowSteps(core_geometry(window), pixels, windows)


def has_line_buffer(node: Node) -> bool:
    """Whether the schedule chooses the node's ``rows``."""
    return node.op in ("sliding_window", "depthwise")


def least_rows(node: Node) -> int:
    """The fewest rows of the line buffer with which the core works."""
    return _least_rows(node.attributes["geometry"])


@lru_cache(maxsize=256)
def _least_rows(window: WindowGeometry) -> int:
    return core_geometry(window).minimum_rows


def line_buffer_rows(node: Node, folding: Folding | None = None) -> int:
    """Rows of the line buffer: as set by the schedule, else a stride more than the least that works; of whole windows
    a beat (``folding``, or as set by the schedule), whose buffer is released word by word, the least if a row has some
    words."""
    if "rows" in node.attributes:
        return int(node.attributes["rows"])
    window: WindowGeometry = node.attributes["geometry"]
    folding = folding or node.attributes.get("folding")
    if folding is not None and not is_serial(node, folding) and not is_whole(node, folding):
        return least_rows(node) + (window.strides[0] if steps_of(node, folding).words < _SOME_WORDS else 0)
    return least_rows(node) + window.strides[0]


def row_bits(node: Node) -> int:
    """Bits of a row of the line buffer, with those of surplus lanes."""
    lanes, channels = node.attributes["folding"].input_lanes, node.inputs[0].typed.shape[1]
    elements = node.attributes["geometry"].width * (-(-channels // lanes) * lanes if lanes < channels else channels)
    return int(elements * node.inputs[0].typed.element.bits)
