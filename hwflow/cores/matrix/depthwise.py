"""Depthwise convolution over an image stream: each channel of each window times its own weights, added.

Lanes are a part of a pixel. A lane has one multiplier for the taps of a window in turn, or one for each tap of a kernel
row; the folding's number of multipliers tells which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hdl_lib.arithmetic.multiplier import PART
from hdl_lib.windows.depthwise import Depthwise as Core
from hdl_lib.windows.depthwise import buffer_words, weight_places
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.matrix.dot_products import WeightAttributes, group_intervals, weight_type
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, MemoryFile, Resources, beats
from hwflow.cores.timing import Timing
from hwflow.cores.windows.sliding_window import LineBufferAttributes, core_geometry, line_buffer_rows, serial_processes
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.types import Interval, IntType, TensorType


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
        return sorted(found, key=lambda folding: folding.multipliers)

    def cycles(self, node: Node[DepthwiseAttributes], folding: Folding) -> int:
        steps = beats(node.outputs[0].typed.shape, folding.output_lanes) * _steps(node, folding)
        return max(beats(node.inputs[0].typed.shape, folding.input_lanes), steps)

    def timing(self, node: Node[DepthwiseAttributes], decision: Decision) -> Timing:
        folding = decision.folding
        window, steps = _window(node.attributes), _steps(node, folding)
        blocks, rows = _blocks(node, folding), line_buffer_rows(node, decision)
        per_row = np.full(window.output[0], window.output[1] * blocks * steps)
        processes = serial_processes(window, blocks, per_row, steps, rows)
        latency = Core.latency_of(
            shape_of(padded_type(node)), shape_of(weight_type(node)), core_geometry(window), _by_row(folding),
            folding.multiplier, folding.part or PART,
        )
        return Timing(processes, (latency,))

    def resources(self, node: Node[DepthwiseAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        window = core_geometry(_window(node.attributes))
        types, depth = (padded_type(node), weight_type(node)), node.attributes.rounds * _places(node, folding)[-1]
        width = folding.multipliers * types[1].bits
        known = weight_words(node, folding) if depth * width <= costs.MOST_KNOWN_BITS else None
        changing = None
        if known is None and not decision.provisional:  # a search asks for every folding
            changing = costs.changing_bits(weight_words(node, folding), width)
        weights = costs.depthwise_weights(
            device.family, *types, known, depth, folding.multipliers, folding.multiplier, changing
        )
        return weights + costs.depthwise(
            device.family, window, node.inputs[0].typed.element, padded_type(node), weight_type(node),
            node.outputs[0].typed.element, folding.input_lanes, _blocks(node, folding), _by_row(folding),
            line_buffer_rows(node, decision), folding.multiplier, decision.depth,
        )

    def build(self, node: Node[DepthwiseAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        words = weight_words(node, folding)
        file = MemoryFile(f"{name}_weights", words, folding.multipliers * weight_type(node).bits)
        source, result = node.inputs[0].typed, node.outputs[0].typed
        core = Core(
            shape_of(source.element), shape_of(weight_type(node)), shape_of(result.element),
            core_geometry(_window(node.attributes)), source.shape[1], folding.input_lanes,
            row=_by_row(folding),
            weights=file.table,
            pad_value=node.attributes.pad_value, padded_shape=shape_of(padded_type(node)),
            rows=line_buffer_rows(node, decision), multiplier=folding.multiplier, part=folding.part or PART,
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
    words = buffer_words(line_buffer_rows(node, decision) * window.width * _blocks(node, folding))
    return words, folding.multipliers // folding.input_lanes, folding.input_lanes * node.inputs[0].typed.element.bits


def weight_words(node: Node[DepthwiseAttributes], folding: Folding) -> Sequence[int]:
    """Return the weight table, see :class:`hdl_lib.windows.depthwise.Depthwise`."""
    window, weights, lanes = _window(node.attributes), node.attributes.weights, folding.input_lanes
    blocks, row, rounds = _blocks(node, folding), _by_row(folding), node.attributes.rounds
    (kh, kw), channels = window.kernel, weights.shape[-1]
    by_column, by_row, by_block, words = _places(node, folding)
    padded = np.zeros((rounds, kh, kw, blocks * lanes), dtype=np.int64)
    padded[..., :channels] = weights.reshape(rounds, kh, kw, channels)
    columns = 1 if row else kw
    steps = padded.reshape(rounds, kh, columns, kw // columns, blocks, lanes).transpose(0, 4, 1, 2, 3, 5)
    table = np.zeros((rounds, 1 << by_block, 1 << by_row, 1 << by_column, folding.multipliers), dtype=np.int64)
    table[:, :blocks, :kh, :columns] = steps.reshape(rounds, blocks, kh, columns, -1)
    return pack_words(table.reshape(rounds * words, -1), weight_type(node).bits)


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
