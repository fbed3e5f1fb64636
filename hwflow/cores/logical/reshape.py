"""Operators that move no data: a new logical shape or order of the same stream."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwflow.cores.operator import Axes, LogicalOperator, LoweringContext
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import ReshapeAttributes, TransposeAttributes
from hwflow.types import TensorType


class Reshape(LogicalOperator[ReshapeAttributes]):
    """Changes the shape and keeps row-major order."""

    attributes = ReshapeAttributes
    stages = frozenset({Stage.QUANTIZED})

    def axes_of_result(self, node: Node[ReshapeAttributes], axes: Axes) -> Axes | None:
        """Map each axis where the operand's axes are kept or split; return None where some are merged."""
        long = iter([(axis, size) for axis, size in zip(axes, node.inputs[0].typed.shape, strict=True) if size != 1])
        result: list[int | None] = []
        axis, rest = None, 1
        for size in node.attributes.shape:
            if size == 1:
                result.append(None)
                continue
            if rest == 1:
                axis, rest = next(long)
            if rest % size:
                return None
            rest //= size
            result.append(axis)
        return tuple(result)

    def infer(self, attributes: ReshapeAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        source, shape = inputs[0], attributes.shape
        if source.channels and source.channel_axis == 0 and shape and shape[0] % source.shape[0] == 0:
            repeats = shape[0] // source.shape[0]
            channels = tuple(c for c in source.channels for _ in range(repeats))
            if int(np.prod(shape[1:], dtype=np.int64)) * repeats == int(np.prod(source.shape[1:], dtype=np.int64)):
                return (TensorType(shape, source.element, source.interval, channels, 0),)
        return (TensorType(shape, source.element, source.interval),)

    def evaluate(self, attributes: ReshapeAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (inputs[0].reshape(inputs[0].shape[0], *attributes.shape),)

    def lower(self, node: Node[ReshapeAttributes], context: LoweringContext) -> None:
        context.bind(node.outputs[0], *context.stream(node.inputs[0]))


class Transpose(LogicalOperator[TransposeAttributes]):
    """Permutes the axes of a frame; ``perm`` excludes the frame dimension."""

    attributes = TransposeAttributes
    stages = frozenset({Stage.QUANTIZED})

    def axes_of_result(self, node: Node[TransposeAttributes], axes: Axes) -> Axes:
        return tuple(axes[axis] for axis in node.attributes.perm)

    def infer(self, attributes: TransposeAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        source, perm = inputs[0], attributes.perm
        shape = tuple(source.shape[axis] for axis in perm)
        axis = perm.index(source.channel_axis % len(perm)) if source.channels else 0
        return (TensorType(shape, source.element, source.interval, source.channels, axis),)

    def evaluate(self, attributes: TransposeAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (inputs[0].transpose(0, *(axis + 1 for axis in attributes.perm)),)

    def lower(self, node: Node[TransposeAttributes], context: LoweringContext) -> None:
        stream, order = context.stream(node.inputs[0])
        source = node.inputs[0].typed.shape
        flat = np.arange(int(np.prod(source, dtype=np.int64))).reshape(source).transpose(node.attributes.perm)
        position = np.empty(flat.size, dtype=np.int64)  # source flat index -> output flat index
        position[flat.reshape(-1)] = np.arange(flat.size)
        context.bind(node.outputs[0], stream, position[order])
