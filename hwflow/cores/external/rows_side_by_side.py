"""The rows that a window sees side by side, as channels of a pixel; padding where there is no row.

Lanes divide the channels of an input, whose beats come in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdl_lib.external.rows_side_by_side import SideBySide as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources
from hwflow.cores.timing import Beats, Cyclic, Process, Timing, every, spaced
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.types import Interval, IntType, TensorType


@dataclass(frozen=True, eq=False)
class SideBySideAttributes(Attributes):
    """Of a result of ``rows`` x ``width`` pixels. ``spans``: the rows in which each operand has pixels, not none, the
    first operand in the first row; all have equally many channels. ``fill``: the value of padding."""

    op = "side_by_side"
    rows: int
    width: int
    spans: tuple[range, ...]
    fill: int


class SideBySide(HardwareOperator[SideBySideAttributes]):
    attributes = SideBySideAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: SideBySideAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        fill = Interval(attributes.fill, attributes.fill)
        channels = tuple(
            known if len(span) == attributes.rows else known.hull(fill)
            for span, source in zip(attributes.spans, inputs, strict=True) for known in source.channel_intervals(1)
        )
        result = TensorType.of((attributes.rows * attributes.width, len(channels)), channels, 1)
        element = inputs[0].element
        if not (element.interval.includes(result.interval.lo) and element.interval.includes(result.interval.hi)):
            element = IntType.holding(element.interval.hull(fill))
        return (TensorType(result.shape, element, result.interval, result.channels, 1),)

    def evaluate(self, attributes: SideBySideAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        rows, width = attributes.rows, attributes.width
        parts = []
        for span, own in zip(attributes.spans, inputs, strict=True):
            frames, _, channels = own.shape
            image = np.full((frames, rows, width, channels), attributes.fill, dtype=np.int64)
            image[:, span.start : span.stop] = own.reshape(frames, len(span), width, channels)
            parts.append(image)
        return (np.concatenate(parts, axis=3).reshape(len(parts[0]), rows * width, -1),)

    def foldings(self, node: Node[SideBySideAttributes], device: Device) -> Sequence[Folding]:
        channels = node.inputs[0].typed.shape[1]
        return [Folding(lanes, lanes) for lanes in costs.useful_lanes(channels) if channels % lanes == 0]

    def cycles(self, node: Node[SideBySideAttributes], folding: Folding) -> int:
        given = node.attributes
        return given.rows * given.width * len(given.spans) * _blocks(node, folding)

    def timing(self, node: Node[SideBySideAttributes], decision: Decision) -> Timing:
        given, blocks = node.attributes, _blocks(node, decision.folding)
        period = len(given.spans) * blocks
        consumes: dict[int, Beats] = {}
        for index, span in enumerate(given.spans):
            turns = Cyclic(index * blocks + every(blocks), period, len(span) * given.width)
            before = span.start * given.width * period
            consumes[index] = np.asarray(turns) + before if before else turns
        steps = given.rows * given.width * period
        return Timing((Process(steps, consumes, {0: spaced(steps)}),), (Core.latency,))

    def resources(self, node: Node[SideBySideAttributes], decision: Decision, device: Device) -> Resources:
        given, lanes = node.attributes, decision.folding.output_lanes
        source, result = (value.typed.element.bits for value in (node.inputs[0], *node.outputs))
        return costs.side_by_side(
            device.family, (lanes * source, lanes * result), given.rows, given.width, given.spans,
            _blocks(node, decision.folding), decision.depth,
        )

    def build(self, node: Node[SideBySideAttributes], decision: Decision, name: str) -> Built:
        given = node.attributes
        source, result = (shape_of(value.typed.element) for value in (node.inputs[0], *node.outputs))
        core = Core(
            source, lanes=decision.folding.output_lanes, blocks=_blocks(node, decision.folding), width=given.width,
            rows=given.rows, spans=given.spans, output_shape=result, depth=decision.depth,
            fill=given.fill if any(len(span) < given.rows for span in given.spans) else 0,
        )
        return Built(core, core.i, [core.o])


def _blocks(node: Node[SideBySideAttributes], folding: Folding) -> int:
    """Return the beats of an operand's pixel."""
    return int(node.inputs[0].typed.shape[1]) // folding.input_lanes
