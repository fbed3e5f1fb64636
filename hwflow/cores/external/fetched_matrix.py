"""Products of weights that are fetched with vectors that are held meanwhile: a matrix-vector unit whose weights lie in
memory outside.

It is the unit for the product of two streams (:mod:`hwflow.cores.matrix.stream_matrix`) with the operands' places
exchanged: what it holds, in two halves, are the vectors of a group, and the rows of weights come one after the other.
So each row that is fetched serves a whole group, and no weights are kept. The results of a group come row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hdl_lib.matrices.stream_matrix import MatrixRounds
from hwflow.cores.matrix.stream_matrix import StreamMatrix, StreamMatrixAttributes
from hwflow.ir.graph import Attributes, Node
from hwflow.types import Interval, IntType, TensorType

_MANY = 1 << 16  # weights that pass in a frame


@dataclass(frozen=True, eq=False)
class FetchedMatrixAttributes(StreamMatrixAttributes):
    """``sums``: the exact interval of the results, which follows from the weights."""

    op = "fetched_matrix"
    sums: Interval

    @classmethod
    def of(cls, shape: tuple[int, int], group: int, sums: Interval) -> FetchedMatrixAttributes:
        """Return those of weights of this ``shape`` [outputs, inputs], for ``group`` vectors at a time."""
        outputs, inputs = shape
        return cls(MatrixRounds(inputs, group, outputs), (0, 0), sums)

    @property
    def group(self) -> int:
        """Return the vectors that share a row of weights."""
        return self.rounds.outer


class FetchedMatrix(StreamMatrix):
    """Inputs: the rows of weights, the vectors. Result: [groups * rows, vectors of a group].

    Where very many weights pass, all vectors of a group take a row at once: then weights are taken at an even pace, as
    the schedules of such frames want them (:mod:`hwflow.schedule.throughput.even`).
    """

    attributes: ClassVar[type[Attributes]] = FetchedMatrixAttributes

    def result_lanes(self, node: Node[StreamMatrixAttributes]) -> Sequence[int]:
        if prod(node.inputs[0].typed.shape) > _MANY:
            return [node.attributes.rounds.outer]
        return super().result_lanes(node)

    def infer(self, attributes: StreamMatrixAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        assert isinstance(attributes, FetchedMatrixAttributes)
        rows, rounds = inputs[0].shape[0], attributes.rounds
        return (TensorType((rows, rounds.outer), IntType.holding(attributes.sums), attributes.sums),)
