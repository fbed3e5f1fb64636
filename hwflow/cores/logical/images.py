"""Images as streams: pixel by pixel, channels fastest."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from weakref import WeakValueDictionary

import numpy as np

from hwflow.cores.operator import LoweringContext
from hwflow.ir.graph import IntArray, Node, Value


def image_order(channels: int, pixels: int) -> IntArray:
    """Return the order of an image stream: element k = pixel * channels + channel is at channel * pixels + pixel
    (channels first, as in ONNX). Read-only: shared by all streams of one shape."""
    order = _orders.get((channels, pixels))
    if order is None:
        order = np.arange(channels * pixels).reshape(channels, pixels).T.reshape(-1)
        order.flags.writeable = False
        _orders[channels, pixels] = order
    return order


_orders: WeakValueDictionary[tuple[int, int], IntArray] = WeakValueDictionary()


def image_stream(node: Node, context: LoweringContext) -> Value:
    """Return the stream of the node's input (channels, height, width), pixel by pixel."""
    stream, order = context.stream(node.inputs[0])
    channels, height, width = node.inputs[0].typed.shape
    return context.arranged(stream, order, image_order(channels, height * width), channels)


def axis_order(shape: Sequence[int], axis: int) -> IntArray:
    """Return the row-major order of a tensor with ``axis`` moved last: as channels."""
    return np.moveaxis(np.arange(prod(shape)).reshape(shape), axis, -1).reshape(-1)


def along_axis(
    context: LoweringContext, streams: Sequence[Value], order: IntArray, shape: tuple[int, ...], axis: int
) -> tuple[list[Value], IntArray, IntArray]:
    """Rearrange streams of tensors of ``shape``, which come in ``order``, so that every channel has one index along
    ``axis``. Return them, their new order, and these indices. An axis of all elements needs no rearranging."""
    indices = np.unravel_index(order, shape)[axis].reshape(streams[0].typed.shape)
    if (indices == indices[0]).all():
        return list(streams), order, indices[0]
    wanted = order if shape[axis] == order.size else axis_order(shape, axis)
    arranged = [context.arranged(stream, order, wanted, shape[axis]) for stream in streams]
    return arranged, wanted, np.unravel_index(wanted[: shape[axis]], shape)[axis]
