"""The product of matrices that are both computed at run time: the sum before rounding.

Lowers to a core that holds one of the two, and takes the other one row by row (or column by column).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hdl_lib.matrices.mvu import MAXIMUM_INPUT
from hdl_lib.matrices.stream_matrix import Along
from hwflow.cores.matrix.matrix_order import Arrangement, arrangement
from hwflow.cores.matrix.stream_matrix import StreamMatrixAttributes, factor_types, sums_of
from hwflow.cores.operator import LogicalOperator, LoweringContext, exact_product
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import MatrixProductAttributes
from hwflow.types import Interval, TensorType


class MatrixProduct(LogicalOperator[MatrixProductAttributes]):
    attributes = MatrixProductAttributes
    stages = frozenset({Stage.QUANTIZED})

    def infer(self, attributes: MatrixProductAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        a, b = inputs
        (left, right), (rows, columns) = attributes.offsets, (a.shape[-2], b.shape[-1])
        inner = _along(a, -1, left)
        factors = _along(b, -2, right)
        if b.channels and b.channel_axis % len(b.shape) == len(b.shape) - 1:
            of_columns = [[each] * len(inner) for each in _along(b, -1, right)]
        else:
            of_columns = [factors] * columns
        shape = (*_batch(a.shape, b.shape), rows, columns)
        return (TensorType.of(shape, sums_of(inner, of_columns), len(shape) - 1),)

    def evaluate(self, attributes: MatrixProductAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        a, b = (each - offset for each, offset in zip(inputs, attributes.offsets, strict=True))
        rank = max(a.ndim, b.ndim)
        a, b = (each.reshape(len(each), *(1,) * (rank - each.ndim), *each.shape[1:]) for each in (a, b))
        return (exact_product(a, b),)

    def macs(self, node: Node[MatrixProductAttributes]) -> int:
        return prod(node.outputs[0].typed.shape) * node.inputs[0].typed.shape[-1]

    def lower(self, node: Node[MatrixProductAttributes], context: LoweringContext) -> None:
        for value, factor in zip(
            node.inputs, factor_types(*node.inputs, offsets=node.attributes.offsets), strict=True
        ):
            if factor.bits > MAXIMUM_INPUT:
                context.refuse(
                    "operand-width", f"elements of {value.name} less their zero point must have at most "
                    f"{MAXIMUM_INPUT} bits, not {factor.bits}", "quantize them to fewer bits",
                )
                return
        streams = [context.stream(value) for value in node.inputs]
        choices = [_choice(node, tuple(order for _, order in streams), held) for held in (1, 0)]

        def cost(choice: _Choice) -> tuple[int, int]:
            """Count the rearrangements that would be new, then the elements that are held."""
            rounds, moved = choice.found.rounds, 0
            for k, new in zip(choice.inputs, choice.found.moved, strict=True):
                moved += new and not context.is_rearranged(streams[k][0])
            return moved, rounds.sets * rounds.inner * rounds.outer

        best = min(choices, key=cost)
        rounds = best.found.rounds
        wanted = best.found.vectors, best.found.matrices
        channels = rounds.inner, rounds.inner if rounds.along == Along.INNER else rounds.outer
        taken = [
            context.arranged(*streams[k], order, width) if moved else streams[k][0]
            for k, order, width, moved in zip(best.inputs, wanted, channels, best.found.moved, strict=True)
        ]
        offsets = tuple(node.attributes.offsets[k] for k in best.inputs)
        result = context.add("", taken, StreamMatrixAttributes(rounds, offsets))
        context.bind(node.outputs[0], result, best.results)


@dataclass(frozen=True)
class _Choice:
    """Which inputs are the vectors and the matrices, their arrangement, and the order of the results."""

    inputs: tuple[int, int]
    found: Arrangement
    results: IntArray


def _choice(node: Node[MatrixProductAttributes], orders: tuple[IntArray, ...], held: int) -> _Choice:
    """Return how the core takes the operands if it holds input ``held``."""
    a, b = (value.typed.shape for value in node.inputs)
    batch = _batch(a, b)
    count, (rows, inner), columns = prod(batch), a[-2:], b[-1]
    left, right = (np.arange(prod(shape)).reshape(shape) for shape in (a, b))
    results = np.arange(count * rows * columns).reshape(count, rows, columns)
    if held == 1:
        vectors, matrices, outer = left, right.swapaxes(-1, -2), columns
    else:
        vectors, matrices, outer = right.swapaxes(-1, -2), left, rows
        results = results.swapaxes(1, 2)
    length = vectors.shape[-2]
    taken = np.broadcast_to(vectors, (*batch, length, inner)).reshape(count, length, inner)
    numbers = np.arange(prod(matrices.shape[:-2])).reshape(matrices.shape[:-2])
    which = np.broadcast_to(numbers, batch).reshape(-1)
    found = arrangement(taken, matrices.reshape(-1, outer, inner), which, (orders[1 - held], orders[held]))
    return _Choice((1 - held, held), found, results.reshape(-1, outer)[found.places].reshape(-1))


def _batch(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batch axes of the result."""
    return tuple(int(size) for size in np.broadcast_shapes(a[:-2], b[:-2]))


def _along(typed: TensorType, axis: int, offset: int) -> list[Interval]:
    """Return the interval of the differences for each index along ``axis``."""
    return [each.plus(-offset) for each in typed.channel_intervals(axis)]
