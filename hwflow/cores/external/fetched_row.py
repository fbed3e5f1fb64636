"""Products of weights that are fetched with windows that are sent again for each row of them: a matrix-vector unit
whose weights lie in memory outside, behind a line buffer.

Windows overlap, so a group of them is much more than the pixels that they are made of. Here nothing but these is held,
by the line buffer (:mod:`hwflow.cores.windows.sliding_window`), which sends a segment of an output row as often as
there are rows of weights. Each row of weights is a matrix of one row, of which the unit for the product of two streams
(:mod:`hwflow.cores.matrix.stream_matrix`) holds two: one comes while one is used. The results of a segment come row by
row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hdl_lib.matrices.stream_matrix import MatrixRounds
from hwflow.cores.matrix.stream_matrix import StreamMatrix, StreamMatrixAttributes
from hwflow.ir.graph import Attributes, Node
from hwflow.types import Interval, IntType, TensorType


@dataclass(frozen=True, eq=False)
class FetchedRowAttributes(StreamMatrixAttributes):
    """``sums``: the exact interval of the results, which follows from the weights."""

    op = "fetched_row"
    sums: Interval

    @classmethod
    def of(cls, shape: tuple[int, int], segment: int, sums: Interval) -> FetchedRowAttributes:
        """Return those of weights of this ``shape`` [outputs, inputs], for a ``segment`` of so many windows."""
        return cls(MatrixRounds(shape[1], 1, segment), (0, 0), sums)


class FetchedRow(StreamMatrix):
    """Inputs: the windows, the rows of weights. Result: [segments * rows * windows of a segment, 1]."""

    attributes: ClassVar[type[Attributes]] = FetchedRowAttributes

    def infer(self, attributes: StreamMatrixAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        assert isinstance(attributes, FetchedRowAttributes)
        results = inputs[1].shape[0] * attributes.rounds.vectors
        return (TensorType((results, 1), IntType.holding(attributes.sums), attributes.sums),)

    def outside(self, node: Node[StreamMatrixAttributes]) -> Mapping[str, Any]:
        """Return the number of windows that share a row of weights."""
        return {"groups": node.attributes.rounds.vectors}
