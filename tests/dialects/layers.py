"""Layers of real values, whatever the dialect: pools, reshapes, sums and products, convolutions of given weights."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tests.dialects.exact.exact_windows import windows
from tests.dialects.nets import Net, Tensor

Layer = Callable[[Net, Tensor], Tensor]


def window_attributes(net: Net, x: Tensor, kernel: tuple[int, int]) -> dict[str, Any] | None:
    """Strides, pads and dilations that leave something of the image; None if nothing fits."""
    pick = net.choices.pick
    attributes: dict[str, Any] = {}
    if net.choices.chance(2):
        attributes["strides"] = [pick([1, 2]), pick([1, 2])]
    if net.choices.chance(6):
        attributes["dilations"] = [pick([1, 2]), pick([1, 2])]
    if net.choices.chance(5):
        attributes["auto_pad"] = pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif net.choices.chance(2):
        attributes["pads"] = [net.choices.integer(0, max(0, k - 1)) for k in (*kernel, *kernel)]
    if min(output_size(attributes, x, kernel)) < 1:
        attributes = {}
        if min(output_size(attributes, x, kernel)) < 1:
            return None
    return attributes


def output_size(attributes: dict[str, Any], x: Tensor, kernel: tuple[int, ...]) -> tuple[int, ...]:
    encoded = {k: v.encode() if isinstance(v, str) else v for k, v in attributes.items()}
    return tuple(len(rows) for rows in windows(encoded, x.shape[2:], kernel))


def kernel_of(net: Net, x: Tensor) -> tuple[int, int]:
    height, width = (net.choices.integer(1, min(3, size)) for size in x.shape[2:])
    return height, width


def max_pool(net: Net, x: Tensor) -> Tensor:
    kernel = kernel_of(net, x)
    attributes = window_attributes(net, x, kernel)
    if attributes is None:
        return x
    name = net.node("MaxPool", x.name, kernel_shape=kernel, **attributes)
    return net.changed(x, name, shape=(*x.shape[:2], *output_size(attributes, x, kernel)))


def average_pool(net: Net, x: Tensor) -> Tensor:
    kernel = kernel_of(net, x)
    attributes = window_attributes(net, x, kernel)
    if attributes is None:
        return x
    if net.opset < 19:
        attributes.pop("dilations", None)
    if net.choices.chance(2):
        attributes["count_include_pad"] = 1
    name = net.node("AveragePool", x.name, kernel_shape=kernel, **attributes)
    low, high = min(x.low, 0.0), max(x.high, 0.0)
    return net.changed(x, name, shape=(*x.shape[:2], *output_size(attributes, x, kernel)), low=low, high=high)


def global_average_pool(net: Net, x: Tensor) -> Tensor:
    return net.changed(x, net.node("GlobalAveragePool", x.name), shape=(*x.shape[:2], 1, 1))


def resize(net: Net, x: Tensor) -> Tensor:
    """By simple fractions, nearest or linear."""
    scales = [1.0, 1.0, *(net.choices.pick([2.0, 1.0, 0.5, 1.5]) for _ in range(2))]
    shape = tuple(int(size * scale) for size, scale in zip(x.shape, scales, strict=True))
    if min(shape) < 1:
        return x
    mode = net.choices.pick(["nearest", "linear"])
    more = {"coordinate_transformation_mode": "asymmetric"} if net.choices.chance(3) else {}
    name = net.node("Resize", x.name, "", net.builder.constant(scales), mode=mode, **more)
    return net.changed(x, name, shape=shape)


def reshape(net: Net, x: Tensor) -> Tensor:
    """Flatten, Reshape, Transpose, Unsqueeze and Squeeze."""
    way = net.choices.integer(0, 3)
    if way == 0:
        return net.changed(x, net.node("Flatten", x.name), shape=(1, prod(x.shape)))
    if way == 1:
        target = net.choices.pick([[1, -1], [0, -1], [1, prod(x.shape)]])
        name = net.node("Reshape", x.name, net.builder.constant(target, "int64"))
        return net.changed(x, name, shape=(1, prod(x.shape)))
    if way == 2 and len(x.shape) == 4:
        order = net.choices.pick([(0, 2, 3, 1), (0, 1, 3, 2), (0, 3, 1, 2)])
        name = net.node("Transpose", x.name, perm=list(order))
        return net.changed(x, name, shape=tuple(x.shape[i] for i in order))
    if way == 3 and len(x.shape) == 2:
        name = net.node("Reshape", x.name, net.builder.constant([1, x.channels, 1, 1], "int64"))
        return net.changed(x, name, shape=(1, x.channels, 1, 1))
    return x


def weighted(net: Net, x: Tensor, weights: Callable[..., tuple[str, np.ndarray]], bias: Callable[..., str]) -> Tensor:
    """Conv, Gemm or MatMul. ``weights(shape, axis)`` makes a real constant whose channels lie along ``axis``: name and
    values (about); ``bias(channels, size)`` a real constant about as large as ``size``, or '' for none."""
    outs = net.choices.integer(1, 4)
    peak = max(abs(x.low), abs(x.high))
    if len(x.shape) == 4:
        kernel = kernel_of(net, x)
        attributes = window_attributes(net, x, kernel) or {}
        name, w = weights((outs, x.channels, *kernel), 0)
        bound = peak * np.abs(w.reshape(outs, -1)).sum(axis=1)
        extra = bias(outs, float(bound.max()))
        name = net.node("Conv", x.name, name, *filter(None, [extra]), kernel_shape=kernel, **attributes)
        size = float(bound.max()) * (2.0 if extra else 1.0)
        return Tensor(name, (1, outs, *output_size(attributes, x, kernel)), -size, size)
    gemm = net.choices.chance(2)
    transposed = gemm and net.choices.chance(2)
    name, w = weights((outs, x.channels) if transposed else (x.channels, outs), 0 if transposed else 1)
    bound = peak * np.abs(w).sum(axis=1 if transposed else 0)
    size = float(bound.max())
    if gemm:
        extra = bias(outs, size)
        more = {"transB": 1} if transposed else {}
        if net.choices.chance(5):
            more["alpha"], size = 0.5, size / 2
        name = net.node("Gemm", x.name, name, *filter(None, [extra]), **more)
    else:
        name = net.node("MatMul", x.name, name)
        extra = bias(outs, size) if net.choices.chance(2) else ""
        if extra:
            name = net.node("Add", name, extra)
    size *= 2.0 if extra else 1.0
    return Tensor(name, (1, outs), -size, size)


def two_operands(net: Net, make: Layer) -> Tensor | None:
    """Add, Mul, Sub or Concat of two tensors of one shape; ``make`` makes another such tensor of a given one."""
    pairs = [(a, b) for a, b in product(net.pool, net.pool) if a is not b and a.shape == b.shape]
    if pairs and net.choices.chance(2):
        a, b = net.choices.pick(pairs)
    else:
        a = net.choices.pick(net.pool)
        b = make(net, a)
        if a.shape != b.shape:
            return None
    op = net.choices.pick(["Add", "Concat", "Mul", "Add", "Sub"])
    if op == "Concat":
        axis = net.choices.pick([1, 1, len(a.shape) - 1, -1])
        shape = list(a.shape)
        shape[axis] *= 2
        name = net.node("Concat", a.name, b.name, axis=axis)
        return Tensor(name, tuple(shape), min(a.low, b.low), max(a.high, b.high))
    if op == "Mul":
        corners = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
        return Tensor(net.node("Mul", a.name, b.name), a.shape, min(corners), max(corners))
    if op == "Sub":
        return Tensor(net.node("Sub", a.name, b.name), a.shape, a.low - b.high, a.high - b.low)
    return Tensor(net.node("Add", a.name, b.name), a.shape, a.low + b.low, a.high + b.high)


IMAGE_LAYERS: tuple[Layer, ...] = (max_pool, average_pool, global_average_pool, reshape)
VECTOR_LAYERS: tuple[Layer, ...] = (reshape,)
