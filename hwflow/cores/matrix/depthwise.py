"""Depthwise convolution over an image stream: each channel of each window times its own weights, added.

Lanes are a part of a pixel. A lane has one multiplier for the taps of a window in turn, or one for each tap of a kernel
row; the folding's number of multipliers tells which. A line buffer that takes more than a block RAM is released pixel
by pixel instead of row by row: its counts have more bits, but it holds little more than what lies between a window's
first and its last pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hdl_lib.arithmetic.multiplier import PART
from hdl_lib.windows.depthwise import Depthwise as Core
from hdl_lib.windows.depthwise import buffer_words, round_words, weight_places, weights_are_dense
from hdl_lib.windows.pixel_steps import PixelSteps
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.matrix.dot_products import WeightAttributes, group_intervals, weight_type
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, MemoryFile, Resources, beats
from hwflow.cores.timing import Process, Timing, Wait, spaced
from hwflow.cores.windows.sliding_window import (
    LineBufferAttributes,
    core_geometry,
    least_rows,
    line_buffer_rows,
    serial_processes,
)
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.types import Interval, IntType, TensorType

_BLOCK_RAM_BITS = 1 << 14  # of elements, in the largest block RAM


@dataclass(frozen=True, eq=False)
class DepthwiseAttributes(WeightAttributes, LineBufferAttributes):
    """``weights`` [taps, channels], or [rounds, taps, channels], which frames take in turns."""

    op = "depthwise"

    @property
    def rounds(self) -> int:
        return len(self.weights) if self.weights.ndim > 2 else 1


class Depthwise(HardwareOperator[DepthwiseAttributes]):
    attributes = DepthwiseAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: DepthwiseAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        window, weights = _window(attributes), attributes.weights
        pad = Interval(attributes.pad_value, attributes.pad_value)
        ranges = inputs[0].channel_intervals(1)
        if window.touches_padding():
            ranges = tuple(r.hull(pad) for r in ranges)
        if attributes.held is not None:
            sums = (attributes.held.sums,) * weights.shape[1]
            return (TensorType.of((window.output[0] * window.output[1], weights.shape[1]), sums, 1),)
        channels = group_intervals(weights.T, [[r] for r in ranges], window.taps, binary=False)
        return (TensorType.of((window.output[0] * window.output[1], weights.shape[1]), channels, 1),)

    def evaluate(self, attributes: DepthwiseAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        window = _window(attributes)
        frames, _, channels = inputs[0].shape
        images = inputs[0].reshape(frames, window.height, window.width, channels)
        taps = window.windows(images, attributes.pad_value)
        return ((taps * attributes.weights).sum(axis=3).reshape(frames, -1, channels),)

    def macs(self, node: Node[DepthwiseAttributes]) -> int:
        return int(node.attributes.weights.size) // node.attributes.rounds * int(node.outputs[0].typed.shape[0])

    def in_turns(self, each: Sequence[DepthwiseAttributes]) -> DepthwiseAttributes:
        return replace(each[0], weights=np.stack([own.weights for own in each]))

    def foldings(self, node: Node[DepthwiseAttributes], device: Device) -> Sequence[Folding]:
        kinds = costs.product_kinds(device.family, padded_type(node), weight_type(node))
        lanes = costs.useful_lanes(node.inputs[0].typed.shape[1])
        taps = list(dict.fromkeys((1, _window(node.attributes).kernel[1])))
        found = [Folding(n, n, n * t, kind, part) for n in lanes for t in taps for kind, part in kinds]
        if node.attributes.held is not None:  # a table of one word is a constant
            found = [folding for folding in found if _blocks(node, folding) * _steps(node, folding) > 1]
        return sorted(found, key=lambda folding: folding.multipliers)

    def cycles(self, node: Node[DepthwiseAttributes], folding: Folding) -> int:
        steps = beats(node.outputs[0].typed.shape, folding.output_lanes) * _steps(node, folding)
        return max(beats(node.inputs[0].typed.shape, folding.input_lanes), steps)

    def timing(self, node: Node[DepthwiseAttributes], decision: Decision) -> Timing:
        folding = decision.folding
        window, steps = _window(node.attributes), _steps(node, folding)
        blocks = _blocks(node, folding)
        if released_by_pixel(node):
            processes = _pixel_processes(window, blocks, steps, buffer_pixels(node, decision))
        else:
            per_row = np.full(window.output[0], window.output[1] * blocks * steps)
            processes = serial_processes(window, blocks, per_row, steps, line_buffer_rows(node, decision))
        latency = Core.latency_of(
            shape_of(padded_type(node)), shape_of(weight_type(node)), core_geometry(window), _by_row(folding),
            folding.multiplier, folding.part or PART,
        )
        return Timing(processes, (latency,))

    def resources(self, node: Node[DepthwiseAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        window = core_geometry(_window(node.attributes))
        types, depth = (padded_type(node), weight_type(node)), node.attributes.rounds * _round_words(node, folding)
        width = folding.multipliers * types[1].bits
        held, in_block = node.attributes.held, _in_block(node, folding)
        known = None if in_block or depth * width > costs.MOST_KNOWN_BITS else weight_words(node, folding)
        changing = None
        if known is None and not in_block and not decision.provisional:  # a search asks for every folding
            changing = costs.changing_bits(weight_words(node, folding), width)
        weights = costs.depthwise_weights(
            device.family, *types, known, depth, folding.multipliers, folding.multiplier, changing,
            held=in_block,
        )
        if held is not None and held.loadable:
            weights += costs.table_writer(depth, width)
        return weights + costs.depthwise(
            device.family, window, node.inputs[0].typed.element, padded_type(node), weight_type(node),
            node.outputs[0].typed.element, folding.input_lanes, _blocks(node, folding), _by_row(folding),
            *_rows_and_pixels(node, decision), folding.multiplier, decision.depth,
        )

    def build(self, node: Node[DepthwiseAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        words = weight_words(node, folding)
        held = node.attributes.held
        file = MemoryFile(
            f"{name}_weights", words, folding.multipliers * weight_type(node).bits, _in_block(node, folding),
            held is not None and held.loadable,
        )
        source, result = node.inputs[0].typed, node.outputs[0].typed
        rows, pixels = _rows_and_pixels(node, decision)
        core = Core(
            shape_of(source.element), shape_of(weight_type(node)), shape_of(result.element),
            core_geometry(_window(node.attributes)), source.shape[1], folding.input_lanes,
            row=_by_row(folding),
            weights=file.table,
            pad_value=node.attributes.pad_value, padded_shape=shape_of(padded_type(node)),
            rows=rows, pixels=pixels, multiplier=folding.multiplier, part=folding.part or PART,
            depth=decision.depth, rounds=node.attributes.rounds,
        )
        return Built(core, [core.i], [core.o], [file])


def padded_type(node: Node[DepthwiseAttributes]) -> IntType:
    """Return the type that holds the elements and, where windows cover it, the padding."""
    element, pad = node.inputs[0].typed.element, node.attributes.pad_value
    if not _window(node.attributes).touches_padding() or element.interval.includes(pad):
        return element
    return IntType.holding(node.inputs[0].typed.interval.hull(Interval(pad, pad)))


def buffers(node: Node[DepthwiseAttributes], decision: Decision) -> tuple[int, int, int]:
    """Return the words, copies and bits per word of the line buffer."""
    window, folding = _window(node.attributes), decision.folding
    rows, pixels = _rows_and_pixels(node, decision)
    words = pixels * _blocks(node, folding)
    if rows is not None:
        words = buffer_words(rows * window.width * _blocks(node, folding))
    return words, folding.multipliers // folding.input_lanes, folding.input_lanes * node.inputs[0].typed.element.bits


def released_by_pixel(node: Node[DepthwiseAttributes]) -> bool:
    """Tell whether the line buffer is released pixel by pixel, not row by row: if it takes more than a block RAM."""
    return node.once(_fewest_elements) * node.inputs[0].typed.element.bits > _BLOCK_RAM_BITS


def _fewest_elements(node: Node[DepthwiseAttributes]) -> int:
    window = _window(node.attributes)
    return least_rows(node) * window.width * int(node.inputs[0].typed.shape[1])


def least_pixels(node: Node[DepthwiseAttributes]) -> int:
    """Return the fewest pixels of a line buffer that is released pixel by pixel with which the core works."""
    return _pixel_steps(_window(node.attributes)).minimum


def buffer_pixels(node: Node[DepthwiseAttributes], decision: Decision) -> int:
    """Return the pixels of a line buffer that is released pixel by pixel: as decided, else about as many as it holds if
    pixels come evenly."""
    if decision.pixels is not None:
        return decision.pixels
    return _pixel_steps(_window(node.attributes)).even


@lru_cache(maxsize=256)  # which keeps what it has computed
def _pixel_steps(window: WindowGeometry) -> PixelSteps:
    return PixelSteps(core_geometry(window))


def _rows_and_pixels(node: Node[DepthwiseAttributes], decision: Decision) -> tuple[int | None, int]:
    """Return the rows of the line buffer, or None and its pixels."""
    if released_by_pixel(node):
        return None, buffer_pixels(node, decision)
    return line_buffer_rows(node, decision), 0


def _pixel_processes(window: WindowGeometry, blocks: int, steps: int, pixels: int) -> tuple[Process, Process]:
    """Return writer and reader around a line buffer of so many ``pixels`` that is released pixel by pixel; the reader
    takes ``steps`` for each window and beat of a pixel, the last of which produces."""
    needed, released = _pixels_of_windows(window)
    count, per_window = window.height * window.width, blocks * steps
    writes, reads = count * blocks, len(needed) * per_window
    frame, pixel = np.divmod(np.arange(count) - pixels, count)
    need_read = frame * reads + (released.searchsorted(pixel, side="right") + 1) * per_window - 1
    writer = Process(writes, {0: spaced(writes)}, {}, (Wait(1, need_read, steps=blocks),))
    produces = spaced(reads // steps, steps, steps - 1)
    return writer, Process(reads, {}, {0: produces}, (Wait(0, needed * blocks - 1, steps=per_window),))


@lru_cache(maxsize=64)
def _pixels_of_windows(window: WindowGeometry) -> tuple[IntArray, IntArray]:
    """Return for each window how many pixels it needs, and how many are released after it."""
    of = _pixel_steps(window)
    windows = [(row, column) for row in range(window.output[0]) for column in range(window.output[1])]
    return np.array([of.needed(*each) for each in windows]), np.array([of.released(*each) for each in windows])


def weight_words(node: Node[DepthwiseAttributes], folding: Folding) -> Sequence[int]:
    """Return the weight table, see :class:`hdl_lib.windows.depthwise.Depthwise`."""
    window, weights, lanes = _window(node.attributes), node.attributes.weights, folding.input_lanes
    blocks, row, rounds = _blocks(node, folding), _by_row(folding), node.attributes.rounds
    (kh, kw), channels = window.kernel, weights.shape[-1]
    words = _round_words(node, folding)
    padded = np.zeros((rounds, kh, kw, blocks * lanes), dtype=np.int64)
    padded[..., :channels] = weights.reshape(rounds, kh, kw, channels)
    columns = 1 if row else kw
    steps = padded.reshape(rounds, kh, columns, kw // columns, blocks, lanes).transpose(0, 4, 1, 2, 3, 5)
    if _dense(node, folding):
        return pack_words(steps.reshape(rounds * words, -1), weight_type(node).bits)
    by_column, by_row, by_block, _ = _places(node, folding)
    table = np.zeros((rounds, 1 << by_block, 1 << by_row, 1 << by_column, folding.multipliers), dtype=np.int64)
    table[:, :blocks, :kh, :columns] = steps.reshape(rounds, blocks, kh, columns, -1)
    return pack_words(table.reshape(rounds * words, -1), weight_type(node).bits)


def _round_words(node: Node[DepthwiseAttributes], folding: Folding) -> int:
    """Return the words of a round's weights."""
    width = folding.multipliers * weight_type(node).bits
    return round_words(core_geometry(_window(node.attributes)), _blocks(node, folding), _by_row(folding), width)


def _in_block(node: Node[DepthwiseAttributes], folding: Folding) -> bool:
    """Tell whether the weights lie in block RAM, whatever their size; a table of one word is a constant."""
    asked = folding.in_block or node.attributes.held is not None
    return asked and node.attributes.rounds * _round_words(node, folding) > 1


def _dense(node: Node[DepthwiseAttributes], folding: Folding) -> bool:
    """Tell whether no word of the weights is unused."""
    width = folding.multipliers * weight_type(node).bits
    return weights_are_dense(core_geometry(_window(node.attributes)), _blocks(node, folding), _by_row(folding), width)


def _places(node: Node[DepthwiseAttributes], folding: Folding) -> tuple[int, int, int, int]:
    """Return the address layout of the table, see :func:`hdl_lib.windows.depthwise.weight_places`."""
    return weight_places(core_geometry(_window(node.attributes)), _blocks(node, folding), _by_row(folding))


def _window(attributes: DepthwiseAttributes) -> WindowGeometry:
    window: WindowGeometry = attributes.geometry
    return window


def _by_row(folding: Folding) -> bool:
    """Tell whether a step takes a row of the kernel."""
    return folding.multipliers > folding.input_lanes


def _steps(node: Node[DepthwiseAttributes], folding: Folding) -> int:
    """Return the steps for each window and beat of a pixel."""
    window = _window(node.attributes)
    return window.kernel[0] if _by_row(folding) else window.taps


def _blocks(node: Node[DepthwiseAttributes], folding: Folding) -> int:
    return -(-node.inputs[0].typed.shape[1] // folding.input_lanes)
