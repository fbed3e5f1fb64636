"""Sliding window: an image stream to the stream of its windows' pixels, tap by tap.

Attributes: ``geometry`` (WindowGeometry), ``pad_value``, ``rows`` (line buffer in image rows; chosen when the core is
built if absent: the least that lets the writer fill a stride ahead of the reader).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hdl_lib.sliding_window import SlidingWindow as Core
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ops import costs
from hwflow.ops.operator import Built, Device, Folding, HardwareOperator, Resources, beats
from hwflow.ops.shapes import shape_of
from hwflow.ops.timing import Process, Timing, Wait, every
from hwflow.ops.windows import WindowGeometry
from hwflow.types import Interval, IntType, TensorType


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
        return [Folding(lanes, lanes) for lanes in costs.useful_lanes(node.inputs[0].typed.shape[1])]

    def cycles(self, node: Node, folding: Folding) -> int:
        return max(beats(value.typed.shape, folding.input_lanes) for value in (node.inputs[0], node.outputs[0]))

    def timing(self, node: Node, folding: Folding) -> Timing:
        window: WindowGeometry = node.attributes["geometry"]
        blocks = -(-node.inputs[0].typed.shape[1] // folding.input_lanes)
        out_rows, out_columns = window.output
        per_row_in, per_row_out = window.width * blocks, out_columns * window.taps * blocks
        writes, reads = window.height * per_row_in, out_rows * per_row_out
        # The reader, at output row oy, needs every beat up to the last image row its windows reach, at least the first.
        oy = np.arange(out_rows)
        last_row = oy * window.strides[0] + (window.kernel[0] - 1) * window.dilations[0] - window.pads[0]
        need_write = (np.clip(last_row, 0, window.height - 1) + 1) * per_row_in - 1
        # The writer, at image row y, needs the reader to have released row y - rows (of this or an earlier frame).
        released_after = np.clip((oy + 1) * window.strides[0] - window.pads[0], 0, window.height)
        released_after[-1] = window.height
        target = np.arange(window.height) - line_buffer_rows(node)
        frame, row = np.divmod(target, window.height)
        output_row = np.searchsorted(released_after, row, side="right")
        need_read = frame * reads + (output_row + 1) * per_row_out - 1
        writer = Process(writes, {0: every(writes)}, {}, (Wait(1, np.repeat(need_read, per_row_in)),))
        reader = Process(reads, {}, {0: every(reads)}, (Wait(0, np.repeat(need_write, per_row_out)),))
        return Timing((writer, reader), (Core.latency,))

    def resources(self, node: Node, folding: Folding, depths: Sequence[int], device: Device) -> Resources:
        window: WindowGeometry = node.attributes["geometry"]
        blocks = -(-node.inputs[0].typed.shape[1] // folding.input_lanes)
        words = line_buffer_rows(node) * window.width * blocks
        width = folding.input_lanes * node.outputs[0].typed.element.bits
        return costs.sliding_window(device.family, window, blocks, words, width, depths[0])

    def build(self, node: Node, folding: Folding, depths: Sequence[int], name: str) -> Built:
        window: WindowGeometry = node.attributes["geometry"]
        core = Core(
            shape_of(node.outputs[0].typed.element),
            window.height, window.width, node.inputs[0].typed.shape[1], folding.input_lanes,
            kernel=window.kernel, stride=window.strides, pads=window.pads, dilation=window.dilations,
            pad_value=node.attributes["pad_value"], rows=line_buffer_rows(node), depth=depths[0],
        )
        return Built(core, [core.i], [core.o])


def least_rows(node: Node) -> int:
    """The fewest rows of the line buffer with which the core works."""
    window: WindowGeometry = node.attributes["geometry"]
    least = Core.minimum_rows(
        window.height, window.width,
        kernel=window.kernel, stride=window.strides, pads=window.pads, dilation=window.dilations,
    )
    return int(least)


def line_buffer_rows(node: Node) -> int:
    """Rows of the line buffer: as set by the schedule, else a stride more than the least that works."""
    if "rows" in node.attributes:
        return int(node.attributes["rows"])
    return least_rows(node) + int(node.attributes["geometry"].strides[0])
