"""A matrix product with constant weights over the last axis: the sum before any rounding.

Attributes: ``weights`` int64 [M, K] (weight zero point already subtracted), or [sets, M, K] of which rows take one
after the other in turns; ``binary`` (absent: False): weights and
inputs are 0 and 1, and what is summed is 1 where they are equal, else 0. Lowers to an MVU; any fixed order in which
the stream brings the K elements of a row is absorbed by permuting the weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from hwflow.cores.matrix.dot_products import is_binary, row_intervals, row_values
from hwflow.cores.matrix.mvu import add_mvu, sets_of
from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.types import Interval, TensorType


class Dense(LogicalOperator):
    name = "dense"
    stages = frozenset({Stage.QUANTIZED})

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        weights = attributes["weights"]
        ranges = inputs[0].channel_intervals(-1)
        of_sets = [row_intervals(each, ranges, binary=is_binary(attributes)) for each in sets_of(attributes)]
        channels = tuple(Interval(min(r.lo for r in c), max(r.hi for r in c)) for c in zip(*of_sets, strict=True))
        shape = (*inputs[0].shape[:-1], weights.shape[-2])
        return (TensorType.of(shape, channels, len(shape) - 1),)

    def evaluate(self, attributes: Mapping[str, Any], inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        sets, shape = sets_of(attributes), inputs[0].shape
        rows = inputs[0].reshape(len(inputs[0]), prod(shape[1:-1]) // len(sets), len(sets), shape[-1])
        binary = is_binary(attributes)
        values = [row_values(each, rows[:, :, turn], binary=binary) for turn, each in enumerate(sets)]
        return (np.stack(values, axis=2).reshape(*shape[:-1], len(sets[0])),)

    def macs(self, node: Node) -> int:
        rows = int(np.prod(node.outputs[0].typed.shape[:-1], dtype=np.int64))
        return int(sets_of(node.attributes)[0].size) * rows

    def lower(self, node: Node, context: LoweringContext) -> None:
        stream, order = context.stream(node.inputs[0])
        weights = node.attributes["weights"]
        length = weights.shape[-1]
        pixels, channels = stream.typed.shape
        rows = pixels * channels // length
        grouped = order.reshape(rows, length)
        row, column = grouped // length, grouped % length
        whole_pixels = length % channels == 0
        if not whole_pixels or (row != np.arange(rows)[:, None]).any() or (column != column[0]).any():
            stream = context.arranged(stream, order, np.arange(order.size), length)
            channels, column = length, np.arange(length)[None]
        permuted = np.ascontiguousarray(weights[..., column[0]])
        result = add_mvu(context, stream, permuted, length // channels, binary=is_binary(node.attributes))
        if result is not None:
            context.bind(node.outputs[0], result, np.arange(rows * weights.shape[-2]))
