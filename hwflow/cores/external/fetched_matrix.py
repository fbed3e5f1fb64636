"""Products of weights that are fetched with vectors that are held meanwhile: a matrix-vector unit whose weights lie in
memory outside.

It is the unit for the product of two streams (:mod:`hwflow.cores.matrix.stream_matrix`) with the operands' places
exchanged: what it holds, in two halves, are the vectors of a group, and the rows of weights come one after the other.
So each row that is fetched serves a whole group, and no weights are kept. The results of a group come row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hdl_lib.matrices.stream_matrix import MatrixRounds
from hdl_lib.matrices.stream_matrix import StreamMatrix as Core
from hdl_lib.matrices.whole_rows import WholeRows, WithWholeRows
from hwflow.cores import costs
from hwflow.cores.matrix.stream_matrix import StreamMatrix, StreamMatrixAttributes
from hwflow.cores.operator import Built, Decision, Device, Folding, Resources
from hwflow.cores.timing import Cyclic, Process, Timing, Wait, every
from hwflow.ir.graph import Attributes, Node
from hwflow.types import Interval, IntType, TensorType


@dataclass(frozen=True, eq=False)
class FetchedMatrixAttributes(StreamMatrixAttributes):
    """``sums``: the exact interval of the results, which follows from the weights. ``many``: very many weights pass in
    a frame of the model."""

    op = "fetched_matrix"
    sums: Interval
    many: bool = False

    @classmethod
    def of(cls, shape: tuple[int, int], group: int, sums: Interval, *, many: bool) -> FetchedMatrixAttributes:
        """Return those of weights of this ``shape`` [outputs, inputs], for ``group`` vectors at a time."""
        outputs, inputs = shape
        return cls(MatrixRounds(inputs, group, outputs), (0, 0), sums, many)


class FetchedMatrix(StreamMatrix):
    """Inputs: the rows of weights, the vectors. Result: [groups * rows, vectors of a group].

    Where very many weights pass, and a row is used several times, two of them are held as they come
    (:mod:`hdl_lib.matrices.whole_rows`): then weights are taken at an even pace, as the schedules of such frames want
    them (:mod:`hwflow.schedule.throughput.even`).
    """

    attributes: ClassVar[type[Attributes]] = FetchedMatrixAttributes

    def infer(self, attributes: StreamMatrixAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        assert isinstance(attributes, FetchedMatrixAttributes)
        rows, rounds = inputs[0].shape[0], attributes.rounds
        return (TensorType((rows, rounds.outer), IntType.holding(attributes.sums), attributes.sums),)

    def outside(self, node: Node[StreamMatrixAttributes]) -> Mapping[str, Any]:
        """Return the number of vectors that share a row of weights."""
        return {"groups": node.attributes.rounds.outer}

    def timing(self, node: Node[StreamMatrixAttributes], decision: Decision) -> Timing:
        timing, row = super().timing(node, decision), _held(node, decision.folding)
        if not row:
            return timing
        writer, reader = timing.processes
        rows = int(node.inputs[0].typed.shape[0])
        steps, ends = reader.steps // rows, every(rows)
        gone = Wait(1, (ends - WholeRows.HELD) * steps + row - 1, 1, row)
        taker = Process(rows * row, {0: Cyclic(every(row), row, rows)}, {}, (gone,))
        there = Wait(2, (ends + 1) * row - 1, WholeRows.latency_of(row), steps)
        return replace(timing, processes=(writer, replace(reader, consumes={}, waits=(*reader.waits, there)), taker))

    def resources(self, node: Node[StreamMatrixAttributes], decision: Decision, device: Device) -> Resources:
        found, row = super().resources(node, decision, device), _held(node, decision.folding)
        if not row:
            return found
        width = decision.folding.input_lanes * node.inputs[0].typed.element.bits
        return found + costs.whole_rows(device.family, width, row)

    def build(self, node: Node[StreamMatrixAttributes], decision: Decision, name: str) -> Built:
        built, row = super().build(node, decision, name), _held(node, decision.folding)
        if not row:
            return built
        assert isinstance(built.component, Core)
        core = WithWholeRows(built.component, row)
        return Built(core, [core.i, core.w], [core.o])


def _held(node: Node[StreamMatrixAttributes], folding: Folding) -> int:
    """Return the beats of a row, where rows are held as they come; else 0."""
    given = node.attributes
    assert isinstance(given, FetchedMatrixAttributes)
    several = folding.output_lanes < given.rounds.outer
    return -(-given.rounds.inner // folding.input_lanes) if given.many and several else 0
