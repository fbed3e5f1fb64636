"""Rows of a constant table, one for each element of a stream, which is its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdl_lib.blocks import block_count
from hdl_lib.memories.table_rows import TableRows as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, MemoryFile, Resources
from hwflow.cores.requantizers.requantizer_core import table
from hwflow.cores.timing import Process, Timing, every
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.types import Interval, TensorType


@dataclass(frozen=True, eq=False)
class TableRowsAttributes(Attributes):
    """``table`` int64 [rows, columns]; the stream's elements lie from ``-rows`` (negative ones count from the end)
    to ``rows - 1``. The result is a stream of one pixel of ``columns`` elements for each of them."""

    op = "table_rows"
    table: IntArray


class TableRows(HardwareOperator[TableRowsAttributes]):
    attributes = TableRowsAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: TableRowsAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        pixels, channels = inputs[0].shape
        shape = (pixels * channels, attributes.table.shape[1])
        return (TensorType.of(shape, columns_within(attributes.table, inputs[0].interval), 1),)

    def evaluate(self, attributes: TableRowsAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        frames = len(inputs[0])
        return (attributes.table[inputs[0].reshape(frames, -1)],)

    def foldings(self, node: Node[TableRowsAttributes], device: Device) -> Sequence[Folding]:
        columns = node.attributes.table.shape[1]
        return [Folding(1, lanes) for lanes in costs.useful_lanes(columns) if lanes <= costs.MOST_LANES]

    def cycles(self, node: Node[TableRowsAttributes], folding: Folding) -> int:
        pixels, channels = node.inputs[0].typed.shape
        return pixels * channels * _blocks(node, folding)

    def timing(self, node: Node[TableRowsAttributes], decision: Decision) -> Timing:
        steps, blocks = self.cycles(node, decision.folding), _blocks(node, decision.folding)
        process = Process(steps, {0: every(steps // blocks) * blocks}, {0: every(steps)})
        return Timing((process,), (Core.latency_of(blocks),))

    def resources(self, node: Node[TableRowsAttributes], decision: Decision, device: Device) -> Resources:
        lanes = decision.folding.output_lanes
        made = node.once(_Words).of(node, lanes)
        element, number = node.outputs[0].typed.element, node.inputs[0].typed.element
        blocks = _blocks(node, decision.folding)
        return costs.table_rows(
            device.family, number, len(node.attributes.table), made, lanes * element.bits, blocks, decision.depth
        )

    def build(self, node: Node[TableRowsAttributes], decision: Decision, name: str) -> Built:
        lanes, element = decision.folding.output_lanes, node.outputs[0].typed.element
        rows, columns = node.attributes.table.shape
        files: list[MemoryFile] = []
        words = node.once(_Words).of(node, lanes)
        core = Core(
            shape_of(node.inputs[0].typed.element), shape_of(element), rows, columns, lanes=lanes, depth=decision.depth,
            table=table(f"{name}_rows", words, lanes * element.bits, files),
        )
        return Built(core, [core.i], [core.o], files)


class _Words:
    """The words of a node's table by lanes, which all foldings share."""

    def __init__(self, node: Node[TableRowsAttributes]) -> None:
        self.known: dict[int, Sequence[int]] = {}

    def of(self, node: Node[TableRowsAttributes], lanes: int) -> Sequence[int]:
        """Return the words of ``lanes`` elements, those of a row's first beat of all rows first."""
        if lanes not in self.known:
            rows = node.attributes.table
            padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % lanes)))
            words = padded.reshape(len(rows), -1, lanes).swapaxes(0, 1).reshape(-1, lanes)
            self.known[lanes] = pack_words(words, node.outputs[0].typed.element.bits)
        return self.known[lanes]


def _blocks(node: Node[TableRowsAttributes], folding: Folding) -> int:
    """Return the beats of a row."""
    return block_count(node.attributes.table.shape[1], folding.output_lanes)


def columns_within(rows: IntArray, numbers: Interval) -> tuple[Interval, ...]:
    """Return the interval of each column over the rows with these ``numbers``, of which negative ones count from the
    end."""
    asked = rows[np.arange(max(numbers.lo, -len(rows)), min(numbers.hi, len(rows) - 1) + 1)]
    ends = zip(asked.min(axis=0).tolist(), asked.max(axis=0).tolist(), strict=True)
    return tuple(Interval(low, high) for low, high in ends)
