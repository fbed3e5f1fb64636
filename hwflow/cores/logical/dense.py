"""A matrix product with constant weights over the last axis: the sum before rounding.

Lowers to an MVU. The order in which the stream brings the K elements of a row is absorbed by permuting the weights,
and so is the order that the readers want.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from hwflow.cores.matrix.dot_products import row_intervals, row_values, sets_of
from hwflow.cores.matrix.mvu import add_mvu
from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import DenseAttributes
from hwflow.types import Interval, TensorType


class Dense(LogicalOperator[DenseAttributes]):
    attributes = DenseAttributes
    stages = frozenset({Stage.QUANTIZED})

    def infer(self, attributes: DenseAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        weights = attributes.weights
        ranges = inputs[0].channel_intervals(-1)
        of_sets = [row_intervals(each, ranges, binary=attributes.binary) for each in sets_of(attributes.weights)]
        channels = tuple(map(Interval.hull_of, zip(*of_sets, strict=True)))
        if attributes.held is not None:
            channels = (attributes.held.sums,) * len(channels)
        shape = (*inputs[0].shape[:-1], weights.shape[-2])
        return (TensorType.of(shape, channels, len(shape) - 1),)

    def evaluate(self, attributes: DenseAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        sets, shape = sets_of(attributes.weights), inputs[0].shape
        rows = inputs[0].reshape(len(inputs[0]), prod(shape[1:-1]) // len(sets), len(sets), shape[-1])
        binary = attributes.binary
        values = [row_values(each, rows[:, :, turn], binary=binary) for turn, each in enumerate(sets)]
        return (np.stack(values, axis=2).reshape(*shape[:-1], len(sets[0])),)

    def alike(self, attributes: DenseAttributes) -> DenseAttributes:
        return replace(attributes, weights=np.zeros_like(attributes.weights))

    def macs(self, node: Node[DenseAttributes]) -> int:
        rows = int(np.prod(node.outputs[0].typed.shape[:-1], dtype=np.int64))
        return int(sets_of(node.attributes.weights)[0].size) * rows

    def lower(self, node: Node[DenseAttributes], context: LoweringContext) -> None:
        stream, order = context.stream(node.inputs[0])
        weights = node.attributes.weights
        length = weights.shape[-1]
        pixels, channels = stream.typed.shape
        rows = pixels * channels // length
        grouped = order.reshape(rows, length)
        row, column = grouped // length, grouped % length
        whole_pixels = length % channels == 0
        if not whole_pixels or (row != np.arange(rows)[:, None]).any() or (column != column[0]).any():
            stream = context.arranged(stream, order, np.arange(order.size), length)
            channels, column = length, np.arange(length)[None]
        outputs = context.order_of_parts(node.outputs[0])
        permuted = np.ascontiguousarray(weights[..., outputs, :][..., column[0]])
        result = add_mvu(
            context, stream, permuted, length // channels, binary=node.attributes.binary, held=node.attributes.held
        )
        if result is not None:
            rows_in_order = np.arange(rows)[:, None] * len(outputs) + outputs
            context.bind(node.outputs[0], result, rows_in_order.reshape(-1))
