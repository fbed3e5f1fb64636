"""Sliding window: an image stream to the stream of its windows' pixels, tap by tap.

Lanes up to a pixel send one tap after the other: so do all of frames of several images, and of pixels that hold some
that are sent one after the other. More output lanes are whole windows: as many as divide an output row,
from whole pixels that divide an image row; or all windows, from the whole image.

The schedule decides the rows of the line buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

from hdl_lib.windows.centred import Centred
from hdl_lib.windows.clipped_window import ClippedWindow
from hdl_lib.windows.sliding_window import SlidingWindow as Core
from hdl_lib.windows.window_geometry import WindowGeometry as CoreGeometry
from hdl_lib.windows.window_image import WindowImage
from hdl_lib.windows.window_rows import WindowRows
from hdl_lib.windows.window_steps import WindowSteps
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.logical.image_windows import Clipping, WindowGeometry
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources, beats
from hwflow.cores.timing import Beats, Cyclic, Process, Timing, Wait, beat_by_beat, every, spaced
from hwflow.ir.graph import Attributes, IntArray, Node, Stage, Value
from hwflow.types import Interval, IntType, TensorType

_SOME_WORDS = 6  # a row: what takes a few cycles from reader to writer no longer costs interval


@dataclass(frozen=True, eq=False)
class LineBufferAttributes(Attributes):
    """Of a core with a line buffer. ``geometry``: of its windows; ``pad_value``: the value of padding."""

    geometry: WindowGeometry
    pad_value: int


@dataclass(frozen=True, eq=False)
class SlidingWindowAttributes(LineBufferAttributes):
    """Of :class:`SlidingWindow`. ``centred``: what is sent counts from ``pad_value`` on, a negative power of two that
    no element is below. ``times``: so often ``segment`` windows of an output row are sent, before the next ones; 1: all
    are sent once. ``images``: of a frame, one after the other. ``stacked``: pixels of the result in one that comes, one
    after the other. Windows of several images or of stacked pixels are neither clipped nor sent again."""

    op = "sliding_window"
    centred: bool = False
    clipping: Clipping = Clipping.NONE
    segment: int = 1
    times: int = 1
    images: int = 1
    stacked: int = 1

    @property
    def clipped(self) -> bool:
        """Tell whether only the pixels inside the image are sent."""
        return self.clipping == Clipping.CLIPPED

    @property
    def is_plain(self) -> bool:
        """Tell whether a frame is an image whose windows are sent once, pixel by pixel."""
        return self.times == self.images == self.stacked == 1


class SlidingWindow(HardwareOperator[SlidingWindowAttributes]):
    attributes = SlidingWindowAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: SlidingWindowAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        window = attributes.geometry
        pixels = window.output[0] * window.output[1] * window.taps
        if attributes.clipped:
            pixels = int(window.inside().sum())
        pixels *= attributes.times * attributes.images * attributes.stacked
        channels = inputs[0].shape[1] // attributes.stacked
        above = inputs[0].channel_intervals(1)
        ranges = tuple(Interval.hull_of(above[channel::channels]) for channel in range(channels))
        if window.touches_padding():
            ranges = tuple(r.hull(Interval(attributes.pad_value, attributes.pad_value)) for r in ranges)
        if attributes.centred:
            ranges = tuple(each.plus(-attributes.pad_value) for each in ranges)
            return (TensorType.of((pixels, channels), ranges, 1),)
        result = TensorType.of((pixels, channels), ranges, 1)
        element = inputs[0].element
        if not (element.interval.includes(result.interval.lo) and element.interval.includes(result.interval.hi)):
            element = IntType.holding(inputs[0].interval.hull(result.interval))
        return (TensorType(result.shape, element, result.interval, result.channels, 1),)

    def evaluate(self, attributes: SlidingWindowAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        window = attributes.geometry
        frames, _, channels = inputs[0].shape
        images = inputs[0].reshape(-1, window.height, window.width, channels)
        channels //= attributes.stacked
        windows = window.windows(images, attributes.pad_value).reshape(frames, -1, channels)
        if attributes.centred:
            windows = windows - attributes.pad_value
        if attributes.times > 1:
            segments = windows.reshape(frames, -1, 1, attributes.segment * window.taps, channels)
            windows = np.repeat(segments, attributes.times, axis=2).reshape(frames, -1, channels)
        return (windows[:, window.inside()] if attributes.clipped else windows,)

    def as_chosen(
        self, node: Node[SlidingWindowAttributes], folding: Folding
    ) -> tuple[Node[SlidingWindowAttributes], Folding]:
        return (node.once(_clipped), replace(folding, clipped=False)) if folding.clipped else (node, folding)

    def foldings(self, node: Node[SlidingWindowAttributes], device: Device) -> Sequence[Folding]:
        window = node.attributes.geometry
        channels = node.outputs[0].typed.shape[1]
        found = [Folding(lanes, lanes) for lanes in costs.useful_lanes(channels)]
        if node.attributes.stacked > 1:
            found = [each for each in found if channels % each.input_lanes == 0]
        if node.attributes.clipped or not node.attributes.is_plain:
            return found
        if node.attributes.clipping == Clipping.OFFERED:
            found += [replace(each, clipped=True) for each in found]
        rows, columns = window.output
        for pixels in range(1, window.width + 1):
            windows = columns if pixels == window.width else pixels // gcd(pixels, window.strides[1])
            if window.width % pixels == 0 and columns % windows == 0:
                found.append(Folding(pixels * channels, windows * window.taps * channels))
        found.append(Folding(window.height * window.width * channels, rows * columns * window.taps * channels))
        return list(dict.fromkeys(found))

    def cycles(self, node: Node[SlidingWindowAttributes], folding: Folding) -> int:
        if is_serial(node, folding):
            return max(beats(value.typed.shape, folding.input_lanes) for value in (node.inputs[0], node.outputs[0]))
        if is_whole(node, folding):
            return 1
        steps = steps_of(node, folding)
        return max(steps.geometry.height * steps.words, steps.steps)

    def outside(self, node: Node[SlidingWindowAttributes]) -> Mapping[str, Any]:
        return {"rows": True} if node.attributes.stacked > 1 else {}

    def timing(self, node: Node[SlidingWindowAttributes], decision: Decision) -> Timing:
        folding = decision.folding
        if is_serial(node, folding):
            return self._serial_timing(node, decision)
        if is_whole(node, folding):
            return beat_by_beat(1, WindowImage.latency)
        return _rows_timing(steps_of(node, folding), line_buffer_rows(node, decision))

    def _serial_timing(self, node: Node[SlidingWindowAttributes], decision: Decision) -> Timing:
        window = node.attributes.geometry
        blocks = -(-node.inputs[0].typed.shape[1] // decision.folding.input_lanes)
        per_row = np.full(window.output[0], node.attributes.times * window.output[1] * window.taps * blocks)
        if node.attributes.clipped:
            rows, columns = (core_geometry(window).inside(axis) for axis in (0, 1))
            per_row = np.array([count for _, count in rows]) * sum(count for _, count in columns) * blocks
        processes = serial_processes(window, blocks, per_row, 1, line_buffer_rows(node, decision))
        return Timing(tuple(repeated(each, node.attributes.images, processes) for each in processes), (Core.latency,))

    def resources(self, node: Node[SlidingWindowAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        window = node.attributes.geometry
        source, result, depth = node.inputs[0].typed, node.outputs[0].typed.element, decision.depth
        if not is_serial(node, folding) and is_whole(node, folding):
            return costs.window_image(device.family, core_geometry(window), source.shape[1], result.bits, depth)
        if not is_serial(node, folding):
            steps, rows = steps_of(node, folding), line_buffer_rows(node, decision)
            types, pad_value = (result if node.attributes.centred else source.element, result), core_pad_value(node)
            return costs.window_rows(device.family, steps, *types, source.shape[1], pad_value, rows, depth)
        blocks = -(-source.shape[1] // folding.input_lanes)
        words = line_buffer_rows(node, decision) * window.width * blocks
        width = folding.input_lanes * result.bits
        cost = costs.clipped_window if node.attributes.clipped else costs.sliding_window
        again = costs.segments_again(window, blocks, node.attributes.segment, node.attributes.times)
        return cost(device.family, window, blocks, words, width, depth) + again

    def build(self, node: Node[SlidingWindowAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        window = node.attributes.geometry
        if not is_serial(node, folding):
            return self._build_parallel(node, decision)
        kind = ClippedWindow if node.attributes.clipped else Core
        given = node.attributes
        again = {"segment": given.segment, "times": given.times} if given.times > 1 else {}
        shape, arriving = (shape_of(value.typed.element) for value in (*node.outputs, *node.inputs))
        core = kind(
            shape,
            window.height, window.width, node.inputs[0].typed.shape[1], folding.input_lanes,
            kernel=window.kernel, stride=window.strides, pads=window.pads, dilation=window.dilations,
            pad_value=core_pad_value(node), rows=line_buffer_rows(node, decision), depth=decision.depth,
            input_shape=shape if node.attributes.centred else arriving, **again,
        )
        return _built(node, core)

    def _build_parallel(self, node: Node[SlidingWindowAttributes], decision: Decision) -> Built:
        folding, depth = decision.folding, decision.depth
        result = shape_of(node.outputs[0].typed.element)
        source = result if node.attributes.centred else shape_of(node.inputs[0].typed.element)
        channels, pad_value = node.inputs[0].typed.shape[1], core_pad_value(node)
        core: WindowImage | WindowRows
        if is_whole(node, folding):
            geometry = core_geometry(node.attributes.geometry)
            core = WindowImage(source, result, channels, geometry, pad_value=pad_value, depth=depth)
        else:
            steps, rows = steps_of(node, folding), line_buffer_rows(node, decision)
            core = WindowRows(source, result, channels, steps, pad_value=pad_value, rows=rows, depth=depth)
        return _built(node, core)


def _built(node: Node[SlidingWindowAttributes], core: Core | WindowImage | WindowRows) -> Built:
    """Return the core of a node, with what centres its elements in front of it."""
    if not node.attributes.centred:
        return Built(core, [core.i], [core.o])
    bits = (-node.attributes.pad_value).bit_length()
    centred = Centred(core, shape_of(node.inputs[0].typed.element), bits)
    return Built(centred, [centred.i], [centred.o])


def _clipped(node: Node[SlidingWindowAttributes]) -> Node[SlidingWindowAttributes]:
    """Return the node with clipped windows, whose elements have the type that they have with padding."""
    (result,), window = node.outputs, node.attributes.geometry
    shape = int(window.inside().sum()), result.typed.shape[1]
    stream = Value(result.name, replace(result.typed, shape=shape), result.origin)
    attributes = replace(node.attributes, clipping=Clipping.CLIPPED)
    return Node(node.name, node.inputs, [stream], attributes, node.sources)


def core_pad_value(node: Node[SlidingWindowAttributes]) -> int:
    """Return the core's value of pixels outside the image. If no window reaches there, the result's type need not hold
    the convolution's, and any value will do."""
    element, value = node.outputs[0].typed.element, int(node.attributes.pad_value)
    if isinstance(node.attributes, SlidingWindowAttributes) and node.attributes.centred:
        return 0
    return min(max(value, element.min), element.max)


def serial_processes(
    window: WindowGeometry, blocks: int, per_row_out: IntArray, steps_per_beat: int, rows: int
) -> tuple[Process, Process]:
    """Return the processes around a line buffer of ``rows`` image rows: the writer, one step per beat with ``blocks``
    per pixel, and the reader, ``per_row_out`` steps in each output row of which every ``steps_per_beat``-th produces.
    """
    out_rows, _ = window.output
    per_row_in = window.width * blocks
    row_ends = np.cumsum(per_row_out)
    writes, reads = window.height * per_row_in, int(row_ends[-1])
    # The reader, at output row oy, needs every beat up to the last image row its windows reach, at least the first.
    oy = np.arange(out_rows)
    last_row = oy * window.strides[0] + (window.kernel[0] - 1) * window.dilations[0] - window.pads[0]
    need_write = (np.clip(last_row, 0, window.height - 1) + 1) * per_row_in - 1
    # The writer, at image row y, needs the reader to have released row y - rows (of this or an earlier frame).
    released_after = np.clip((oy + 1) * window.strides[0] - window.pads[0], 0, window.height)
    released_after[-1] = window.height
    frame, row = np.divmod(np.arange(window.height) - rows, window.height)
    output_row = np.searchsorted(released_after, row, side="right")
    need_read = frame * reads + row_ends[output_row] - 1
    writer = Process(writes, {0: spaced(writes)}, {}, (Wait(1, need_read, steps=per_row_in),))
    produces = spaced(reads // steps_per_beat, steps_per_beat, steps_per_beat - 1)
    same = int(per_row_out[0])
    waits = Wait(0, need_write, steps=same)
    if (per_row_out != same).any():
        waits = Wait(0, np.repeat(need_write, per_row_out))
    reader = Process(reads, {}, {0: produces}, (waits,))
    return writer, reader


def repeated(process: Process, times: int, processes: Sequence[Process]) -> Process:
    """Return a process whose frame is so many of those of ``process``, one of ``processes``, beside the others' alike.
    Its steps are cyclic, alike from wait to wait."""
    if times == 1:
        return process

    def more(beats: Mapping[int, Beats]) -> Mapping[int, Beats]:
        return {place: _again(each, process.steps, times) for place, each in beats.items()}

    waits = [
        replace(wait, need=(every(times)[:, np.newaxis] * processes[wait.process].steps + wait.need).reshape(-1))
        for wait in process.waits
    ]
    return Process(process.steps * times, more(process.consumes), more(process.produces), tuple(waits))


def _again(beats: Beats, period: int, times: int) -> Beats:
    """Return beats of frames of ``period`` steps, so many times."""
    assert isinstance(beats, Cyclic) and beats.period * beats.times == period, "the steps of a line buffer"
    return replace(beats, times=beats.times * times)


def _rows_timing(steps: WindowSteps, rows: int) -> Timing:
    """Return the timing of :mod:`hdl_lib.windows.window_rows`."""
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


def is_serial(node: Node[LineBufferAttributes], folding: Folding) -> bool:
    """Tell whether lanes are a part of a pixel, at most one: one tap of a window after the other."""
    channels = node.inputs[0].typed.shape[1]
    return folding.input_lanes <= channels and folding.output_lanes <= channels


def is_whole(node: Node[LineBufferAttributes], folding: Folding) -> bool:
    """Tell whether a beat is a whole image, and all of its windows."""
    (pixels, channels), results = node.inputs[0].typed.shape, node.outputs[0].typed.shape[0]
    whole = Folding(pixels * channels, results * channels)
    return (folding.input_lanes, folding.output_lanes) == (whole.input_lanes, whole.output_lanes)


@lru_cache(maxsize=256)  # which keeps what it has computed
def core_geometry(window: WindowGeometry) -> CoreGeometry:
    """Return the geometry in the terms of ``hdl_lib``."""
    return CoreGeometry(window.height, window.width, window.kernel, window.strides, window.pads, window.dilations)


def steps_of(node: Node[LineBufferAttributes], folding: Folding) -> WindowSteps:
    """Return the step schedule of whole windows per beat."""
    window = node.attributes.geometry
    channels = node.inputs[0].typed.shape[1]
    pixels, windows = folding.input_lanes // channels, folding.output_lanes // (window.taps * channels)
    return WindowSteps(core_geometry(window), pixels, windows)


def has_line_buffer(node: Node) -> bool:
    """Tell whether the schedule decides the rows of a line buffer for the node."""
    return isinstance(node.attributes, LineBufferAttributes)


def least_rows(node: Node[LineBufferAttributes]) -> int:
    """Return the fewest rows of the line buffer with which the core works."""
    return _least_rows(node.attributes.geometry)


@lru_cache(maxsize=256)
def _least_rows(window: WindowGeometry) -> int:
    return core_geometry(window).minimum_rows


def line_buffer_rows(node: Node[LineBufferAttributes], decision: Decision) -> int:
    """Return the rows of the line buffer: as decided, else a stride more than the fewest, so that the writer fills a
    stride ahead of the reader; of whole windows per beat, whose buffer is released word by word, the fewest if a row
    has enough words."""
    if decision.rows is not None:
        return decision.rows
    window = node.attributes.geometry
    folding = decision.folding
    if not is_serial(node, folding) and not is_whole(node, folding):
        return least_rows(node) + (window.strides[0] if steps_of(node, folding).words < _SOME_WORDS else 0)
    return least_rows(node) + window.strides[0]
