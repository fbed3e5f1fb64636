"""Random networks of operators that read and make integers: QOperator and onnxruntime's com.microsoft."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tests.dialects import layers, qdq
from tests.dialects.choices import Choices
from tests.dialects.exact.exact_call import bounds_of
from tests.dialects.islands import island
from tests.dialects.nets import Feed, Net, Tensor, new_net
from tests.models import kind_of

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Levels:
    """An integer ONNX value: real = scale * (integer - zero), where it has such a meaning."""

    name: str
    shape: tuple[int, ...]
    kind: str
    scale: float
    zero: int

    @property
    def bounds(self) -> tuple[int, int]:
        return bounds_of(kind_of(self.kind))

    def real(self, exact: bool = True) -> Tensor:
        low, high = (self.scale * (b - self.zero) for b in self.bounds)
        return Tensor(self.name, self.shape, low, high, exact)


class Builder:
    """The operators. Each makes one more tensor of integers from some of ``pool``."""

    def __init__(self, net: Net) -> None:
        self.net, self.pool = net, list[Levels]()

    def parameters(self, x: Levels) -> list[str]:
        net = self.net
        return [x.name, net.constant(np.float32(x.scale)), net.builder.constant(x.zero, x.kind)]

    def result(self, kind: str, low: float, high: float) -> tuple[float, int, list[str]]:
        """Scale and zero point for what lies (about) between ``low`` and ``high``: numbers, and as operands."""
        net = self.net
        least, most = bounds_of(kind_of(kind))
        scale = net.scale((high - low) / (most - least) * net.choices.pick([1.0, 0.5, 2.0, 0.1]))
        zero = net.zero_point(kind)
        return scale, zero, [net.constant(np.float32(scale)), net.builder.constant(zero, kind)]

    def add(self, op: str, inputs: list[str], shape: tuple[int, ...], kind: str, scale: float, zero: int,
            domain: str = "", **attributes: Any) -> Levels:
        name = self.net.node(op, *inputs, domain=domain, **attributes)
        if domain:
            self.net.builder.declare(name, ["N", *shape[1:]], kind)
        made = Levels(name, shape, kind, scale, zero)
        self.pool.append(made)
        return made

    def weights(self, shape: tuple[int, ...], axis: int) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Operands of weights (per tensor, or one parameter for each index of ``axis``), their reals, their scales."""
        net = self.net
        kind = net.choices.pick(["int8", "uint8", "int8"])
        count = shape[axis] if net.choices.chance(2) else 1
        scale = np.float32([net.scale(1 / 200) for _ in range(count)])
        zero = np.array([net.zero_point(kind) if net.choices.chance(2) else 0 for _ in range(count)])
        if kind == "int8" and net.choices.chance(2):
            zero *= 0
        integers = net.random_integers(shape, kind)
        broad = [-1 if i == axis else 1 for i in range(len(shape))]
        real = scale.reshape(broad) * (integers - zero.reshape(broad))
        operands = [
            net.builder.constant(integers, kind), net.constant(scale if count > 1 else scale[0]),
            net.builder.constant(zero if count > 1 else zero[0], kind),
        ]
        return operands, np.asarray(real), scale

    # --- operators ----------------------------------------------------------------------------------------------------

    def conv(self, x: Levels) -> Levels:
        net = self.net
        real = x.real()
        kernel = layers.kernel_of(net, real)
        attributes = layers.window_attributes(net, real, kernel) or {}
        outs = net.choices.integer(1, 4)
        operands, w, scales = self.weights((outs, x.shape[1], *kernel), 0)
        size = max(abs(real.low), abs(real.high)) * float(np.abs(w).reshape(outs, -1).sum(axis=1).max()) + 1e-6
        kind = net.choices.pick(["uint8", "int8"])
        scale, zero, result = self.result(kind, -size, size)
        inputs = [*self.parameters(x), *operands, *result]
        if net.choices.chance(2):
            unit = x.scale * float(scales.max())
            most = min(2**30, max(1, int(size / unit)))
            inputs.append(net.builder.constant(net.choices.generator().integers(-most, most + 1, outs), "int32"))
        shape = (1, outs, *layers.output_size(attributes, real, kernel))
        return self.add("QLinearConv", inputs, shape, kind, scale, zero, kernel_shape=kernel, **attributes)

    def matmul(self, x: Levels) -> Levels:
        net = self.net
        real, outs = x.real(), net.choices.integer(1, 4)
        operands, w, _ = self.weights((x.shape[1], outs), 1)
        size = max(abs(real.low), abs(real.high)) * float(np.abs(w).sum(axis=0).max()) + 1e-6
        kind = net.choices.pick(["uint8", "int8"])
        scale, zero, result = self.result(kind, -size, size)
        return self.add("QLinearMatMul", [*self.parameters(x), *operands, *result], (1, outs), kind, scale, zero)

    def gemm(self, x: Levels) -> Levels:
        net = self.net
        real, outs = x.real(), net.choices.integer(1, 4)
        transposed = net.choices.chance(2)
        shape = (outs, x.shape[1]) if transposed else (x.shape[1], outs)
        operands, w, scales = self.weights(shape, 0 if transposed else 1)
        alpha = net.choices.pick([1.0, 0.5, 0.3])
        bound = np.abs(w).sum(axis=1 if transposed else 0)
        size = alpha * max(abs(real.low), abs(real.high)) * float(bound.max()) + 1e-6
        kind = net.choices.pick(["uint8", "int8"])
        scale, zero, result = self.result(kind, -size, size)
        bias = ""
        if net.choices.chance(2):
            most = min(2**30, max(1, int(size / (alpha * x.scale * float(scales.max())))))
            bias = net.builder.constant(net.choices.generator().integers(-most, most + 1, outs), "int32")
        return self.add(
            "QGemm", [*self.parameters(x), *operands, bias, *result], (1, outs), kind, scale, zero, MICROSOFT,
            alpha=alpha, transB=int(transposed),
        )

    def integer_sums(self, x: Levels) -> Levels:
        """ConvInteger or MatMulInteger, its sums made real by Cast and Mul (as dynamic quantizers write it), a bias,
        and quantized again."""
        net = self.net
        outs = net.choices.integer(1, 4)
        zero_x = net.builder.constant(x.zero, x.kind)
        kind = net.choices.pick(["uint8", "int8"])
        shape: tuple[int, ...]
        if len(x.shape) == 4:
            kernel = layers.kernel_of(net, x.real())
            attributes = layers.window_attributes(net, x.real(), kernel) or {}
            shape = (1, outs, *layers.output_size(attributes, x.real(), kernel))
            w = net.random_integers((outs, x.shape[1], *kernel), kind)
            zero_w = net.zero_point(kind) if net.choices.chance(2) else 0
            name = net.node(
                "ConvInteger", x.name, net.builder.constant(w, kind), zero_x, net.builder.constant(zero_w, kind),
                kernel_shape=kernel, **attributes,
            )
            count = prod(w.shape[1:])
        else:
            shape = (1, outs)
            w = net.random_integers((x.shape[1], outs), kind)
            zeros = [net.zero_point(kind) for _ in range(outs)] if net.choices.chance(2) else net.zero_point(kind)
            name = net.node(
                "MatMulInteger", x.name, net.builder.constant(w, kind), zero_x, net.builder.constant(zeros, kind)
            )
            count = x.shape[1]
        scales = [x.scale * net.scale(1 / 200) for _ in range(outs if net.choices.chance(2) else 1)]
        size = 255.0 * 255.0 * count * max(scales)
        sums = Tensor(net.node("Cast", name, to=1), shape, -size, size)
        scaled = net.node("Mul", sums.name, net.constant(net.spread(sums, scales)))
        made = island(net, Tensor(scaled, shape, -size, size), 2)
        out = net.choices.pick(["uint8", "int8"])
        scale, zero, result = self.result(out, made.low, made.high)
        return self.add("QuantizeLinear", [made.name, *result], shape, out, scale, zero)

    def binary(self, x: Levels) -> Levels:
        """QLinearAdd or QLinearMul with another tensor of the shape (and element type), or with a constant."""
        net = self.net
        others = [y for y in self.pool if y.shape == x.shape and y.kind == x.kind]
        y = net.choices.pick(others)
        if net.choices.chance(3):
            spread = (1, x.shape[1], *[1] * (len(x.shape) - 2))
            name = net.builder.constant(net.random_integers(spread, x.kind), x.kind)
            y = Levels(name, spread, x.kind, net.scale(1 / 100), net.zero_point(x.kind))
        op = net.choices.pick(["QLinearAdd", "QLinearMul"])
        a, b = x.real(), y.real()
        corners = [p * q if op == "QLinearMul" else p + q for p, q in product((a.low, a.high), (b.low, b.high))]
        scale, zero, result = self.result(x.kind, min(corners), max(corners))
        inputs = [*self.parameters(x), *self.parameters(y), *result]
        return self.add(op, inputs, x.shape, x.kind, scale, zero, MICROSOFT)

    def concat(self, x: Levels) -> Levels:
        net = self.net
        others = [y for y in self.pool if y.shape == x.shape and y.kind == x.kind]
        parts = [x, *(net.choices.pick(others) for _ in range(net.choices.integer(1, 2)))]
        axis = net.choices.pick([1, len(x.shape) - 1])
        shape = list(x.shape)
        shape[axis] *= len(parts)
        reals = [p.real() for p in parts]
        scale, zero, result = self.result(x.kind, min(r.low for r in reals), max(r.high for r in reals))
        inputs = [*result, *(name for p in parts for name in self.parameters(p))]
        return self.add("QLinearConcat", inputs, tuple(shape), x.kind, scale, zero, MICROSOFT, axis=axis)

    def pool_windows(self, x: Levels) -> Levels:
        """QLinearAveragePool, QLinearGlobalAveragePool, MaxPool of the integers."""
        net = self.net
        real = x.real()
        way = net.choices.integer(0, 2)
        if way == 2 and x.kind in ("int8", "uint8"):
            made = layers.max_pool(net, real)
            self.pool.append(Levels(made.name, made.shape, x.kind, x.scale, x.zero))
            return self.pool[-1]
        scale, zero, result = self.result(x.kind, real.low, real.high)
        inputs = [*self.parameters(x), *result]
        if way == 1:
            shape = (*x.shape[:2], 1, 1)
            return self.add(
                "QLinearGlobalAveragePool", inputs, shape, x.kind, scale, zero, MICROSOFT, channels_last=0
            )
        kernel = layers.kernel_of(net, real)
        attributes = layers.window_attributes(net, real, kernel) or {}
        attributes.pop("dilations", None)
        if net.choices.chance(2):
            attributes["count_include_pad"] = 1
        shape = (*x.shape[:2], *layers.output_size(attributes, real, kernel))
        return self.add(
            "QLinearAveragePool", inputs, shape, x.kind, scale, zero, MICROSOFT, kernel_shape=kernel, **attributes
        )

    def mean(self, x: Levels) -> Levels:
        """QLinearReduceMean of an image, which stays one."""
        axes, real = self.net.choices.pick([[2, 3], [1], [3], [1, 2]]), x.real()
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
        scale, zero, result = self.result(x.kind, real.low, real.high)
        inputs = [*self.parameters(x), *result]
        return self.add("QLinearReduceMean", inputs, shape, x.kind, scale, zero, MICROSOFT, axes=axes, keepdims=1)

    def unary(self, x: Levels) -> Levels:
        net = self.net
        op = net.choices.pick(["QLinearLeakyRelu", "QLinearSigmoid"])
        real = x.real()
        low, high = (0.0, 1.0) if op == "QLinearSigmoid" else (real.low, real.high)
        attributes = {} if op == "QLinearSigmoid" else {"alpha": net.choices.pick([0.25, 0.01, -0.5])}
        scale, zero, result = self.result(x.kind, low, high)
        return self.add(op, [*self.parameters(x), *result], x.shape, x.kind, scale, zero, MICROSOFT, **attributes)

    def reshape(self, x: Levels) -> Levels:
        made = layers.reshape(self.net, x.real())
        self.pool.append(Levels(made.name, made.shape, x.kind, x.scale, x.zero))
        return self.pool[-1]

    def layer(self) -> Levels:
        net = self.net
        x = net.choices.pick(self.pool[::-1])
        image = [
            self.conv, self.conv, self.integer_sums, self.pool_windows, self.binary, self.unary, self.concat, self.mean,
        ]
        vector = [self.matmul, self.gemm, self.integer_sums, self.binary, self.unary, self.concat]
        table = image if len(x.shape) == 4 else vector
        return net.choices.pick([*table, self.reshape])(x)


def network(choices: Choices) -> Net:
    """One to four operators."""
    net = new_net(choices, (13, 19, 21))
    builder = Builder(net)
    kind = choices.pick(["uint8", "int8"])
    shape = net.frame_shape(choices.chance(2))
    low, high = bounds_of(kind_of(kind))
    scale, zero = net.scale(2 / 255), net.zero_point(kind)
    if choices.chance(3):
        net.builder.input("x", ["N", *shape[1:]], kind)
        net.feeds.append(Feed("x", shape, kind, low, high))
        builder.pool.append(Levels("x", shape, kind, scale, zero))
    else:
        net.builder.input("x", ["N", *shape[1:]])
        net.feeds.append(Feed("x", shape, "float", 2 * (low - zero) - 5, 2 * (high - zero) + 5, scale / 2))
        inputs = ["x", net.constant(np.float32(scale)), net.builder.constant(zero, kind)]
        builder.add("QuantizeLinear", inputs, shape, kind, scale, zero)
    for _ in range(choices.integer(1, 4)):
        last = builder.layer()
    if last.name in ("x", "quantizelinear0"):  # so far nothing but a Reshape that leaves it as it is
        last = builder.unary(last)
    way = choices.integer(0, 3)
    if way == 0:
        net.builder.output(last.name)
    else:
        real = net.node("DequantizeLinear", *builder.parameters(last))
        if way == 3 and len(last.shape) == 2:
            real = qdq.on_host(net, real)
        net.builder.output(real)
    return net
