"""Random networks in QONNX: Quant, BipolarQuant, Trunc, MultiThreshold, with scales and BatchNormalization anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.dialects import layers, qdq
from tests.dialects.choices import Choices
from tests.dialects.exact.exact_qonnx import limits
from tests.dialects.islands import island
from tests.dialects.nets import Feed, Net, Tensor, new_net

DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
ROUNDINGS = ("ROUND", "FLOOR", "CEIL", "HALF_UP", "HALF_DOWN", "ROUND_TO_ZERO", "UP", "DOWN")


class Quantizers:
    """The operators of one domain."""

    def __init__(self, net: Net) -> None:
        self.net, self.domain = net, net.choices.pick(DOMAINS)
        self.quant_name = net.choices.pick(["Quant", "IntQuant"]) if self.domain == DOMAINS[0] else "Quant"

    def add(self, op: str, x: str, shape: tuple[int, ...], *operands: str, **attributes: Any) -> str:
        name = self.net.node(op, x, *operands, domain=self.domain, **attributes)
        return self.net.builder.declare(name, ["N", *shape[1:]] if shape[:1] == (1,) else shape)

    def quant(self, x: Tensor, most_bits: int = 9) -> Tensor:
        """Any bit width to ``most_bits`` (16 now and then), sign, narrowness, rounding, zero point and scale."""
        choices = self.net.choices
        bits = choices.integer(2, most_bits) if not choices.chance(10) else choices.pick([16, 1, 12])
        signed = bits > 1 and choices.chance(2)
        narrow = bits > 1 and choices.chance(3)
        low, high = limits(bits, signed, narrow)
        width = max(x.high - x.low, 1e-4) / max(1, high - low) * choices.pick([1.0, 0.5, 2.0])
        zeros: list[float] = [0.0, 0.0, 1.0, float((low + high) // 2), 0.5, 0.25]
        if choices.chance(5) and len(x.shape) == 4:
            inner = (1, x.channels, 1, 1)
            scale: Any = np.float32([self.net.scale(width) for _ in range(x.channels)]).reshape(inner)
            zero: Any = np.float32([choices.pick(zeros) for _ in range(x.channels)]).reshape(inner)
            if choices.chance(2):
                zero = np.float32(choices.pick(zeros))
        else:
            scale, zero = np.float32(self.net.scale(width)), np.float32(choices.pick(zeros))
        mode = choices.pick(ROUNDINGS)
        attributes: dict[str, Any] = {"signed": int(signed), "narrow": int(narrow)}
        attributes["rounding_mode"] = mode.lower() if choices.chance(4) else mode
        name = self.add(
            self.quant_name, x.name, x.shape, self.net.constant(scale), self.net.constant(zero),
            self.net.builder.constant(np.float32(bits)), **attributes,
        )
        least, most = scale * (low - zero), scale * (high - zero)
        return Tensor(name, x.shape, float(least.min()), float(most.max()))

    def bipolar(self, x: Tensor) -> Tensor:
        scale = self.net.scale(self.net.choices.pick([1.0, 0.5]))
        name = self.add("BipolarQuant", x.name, x.shape, self.net.constant(np.float32(scale)))
        return Tensor(name, x.shape, -scale, scale)

    def multi_threshold(self, x: Tensor) -> Tensor:
        """Thresholds for all channels or each, rising (some may be equal), some exactly where values may lie."""
        choices, rng = self.net.choices, self.net.choices.generator()
        count = choices.pick([3, 1, 7, 15])
        rows = x.channels if choices.chance(2) else 1
        thresholds = np.sort(rng.uniform(x.low, x.high, (rows, count)), axis=1)
        if choices.chance(2):
            unit = 2.0 ** np.floor(np.log2((x.high - x.low) / 16 + 1e-9))
            thresholds = np.round(thresholds / unit) * unit
        scale = choices.pick([1.0, 0.5, 0.3, -1.0])
        bias = choices.pick([0.0, -1.0, 0.5])
        layout = {"data_layout": "NHWC"} if len(x.shape) == 4 and rows == 1 and choices.chance(3) else {}
        name = self.add(
            "MultiThreshold", x.name, x.shape, self.net.builder.constant(np.float32(thresholds)), out_scale=scale,
            out_bias=bias, out_dtype="UINT4", **layout,
        )
        ends = bias, bias + scale * count
        return Tensor(name, x.shape, min(ends), max(ends))

    def trunc(self, x: Tensor) -> Tensor:
        """Behind a Quant of the same scale and zero point, low bits dropped (version 1 of the operator, or 2)."""
        choices = self.net.choices
        bits, drop = choices.integer(4, 8), choices.integer(1, 3)
        scale = np.float32(self.net.scale((x.high - x.low) / 2**bits))
        zero = np.float32(choices.pick([0.0, 0.0, 2.0]))
        number = self.net.builder.constant
        signed = int(choices.chance(2))
        q = self.add(
            self.quant_name, x.name, x.shape, number(scale), number(zero), number(np.float32(bits)), signed=signed,
            narrow=0, rounding_mode="ROUND",
        )
        mode = choices.pick(["FLOOR", "ROUND", "CEIL"])
        operands = [number(scale), number(zero), number(np.float32(bits))]
        low, high = limits(bits, bool(signed), False)
        if choices.chance(2):
            operands += [number(np.float32(scale * 2**drop)), number(np.float32(bits - drop))]
            name = self.add("Trunc", q, x.shape, *operands, rounding_mode=mode, signed=signed, narrow=0)
            return Tensor(name, x.shape, float(scale * (low - zero)), float(scale * (high - zero)))
        name = self.add("Trunc", q, x.shape, *operands, number(np.float32(bits - drop)), rounding_mode=mode)
        return Tensor(
            name, x.shape, float(scale * (low / 2**drop - zero)), float(scale * (high / 2**drop - zero)) + 1e-3
        )

    def any(self, x: Tensor) -> Tensor:
        way = self.net.choices.integer(0, 9)
        if way < 6:
            return self.quant(x)
        return (self.bipolar, self.multi_threshold, self.trunc, self.multi_threshold)[way - 6](x)

    def weighted(self, x: Tensor, binary: bool = False) -> Tensor:
        """A layer whose weights are floats behind a quantizer of their own."""
        net = self.net

        def weights(shape: tuple[int, ...], axis: int) -> tuple[str, np.ndarray]:
            choices = net.choices
            if binary or choices.chance(6):
                scale = np.float32(net.scale(choices.pick([1.0, 0.25])))
                floats = choices.generator().choice(np.float32([-1.5, -0.25, 0, 0.5]), shape)
                name = self.add("BipolarQuant", net.constant(floats), shape, net.constant(scale))
                return name, np.where(floats >= 0, scale, -scale)
            bits = choices.integer(2, 8)
            narrow = choices.chance(2)
            low, high = limits(bits, True, narrow)
            count = shape[axis] if choices.chance(2) else 1
            broad = [count if i == axis else 1 for i in range(len(shape))]
            scale = np.float32([net.scale(1 / (high - low)) for _ in range(count)])
            scale = scale.reshape(broad if count > 1 else ())
            noise = choices.generator().integers(-2, 3, shape) * 0.25
            levels = choices.generator().integers(low, high + 1, shape)
            name = self.add(
                self.quant_name, net.constant(np.float32((levels + noise) * scale)), shape, net.constant(scale),
                net.constant(np.float32(0)), net.builder.constant(np.float32(bits)), signed=1, narrow=int(narrow),
                rounding_mode=choices.pick(["ROUND", "ROUND", "FLOOR", "HALF_UP"]),
            )
            return name, np.abs(levels * scale) + np.abs(scale)

        def bias(channels: int, size: float) -> str:
            way = net.choices.integer(0, 2)
            values = net.choices.generator().uniform(-size, size, channels)
            if way == 0 or binary:
                return ""
            name = net.constant(np.float32(values))
            if way == 2:
                number = net.builder.constant
                name = self.add(
                    self.quant_name, name, (channels,), number(np.float32(net.scale(size / 1000))),
                    number(np.float32(0)), number(np.float32(16)), signed=1, narrow=0, rounding_mode="ROUND",
                )
            return name

        return layers.weighted(net, x, weights, bias)


def _input(net: Net, image: bool) -> Tensor:
    """A float graph input that no quantizer has seen yet."""
    shape, step = net.frame_shape(image), net.choices.pick([1 / 64, 1 / 100])
    net.builder.input("x", ["N", *shape[1:]])
    net.feeds.append(Feed("x", shape, "float", -150, 150, step))
    return Tensor("x", shape, -150 * step, 150 * step)


def network(choices: Choices) -> Net:
    """One to four layers, each behind a quantizer; scales and normalizations anywhere between."""
    net = new_net(choices)
    quantizers = Quantizers(net)
    net.pool.append(quantizers.quant(_input(net, choices.chance(2))))
    for _ in range(choices.integer(1, 4)):
        x = _layer(net, quantizers)
        if x is not None:
            net.pool.append(quantizers.any(island(net, x, 3, affine_only=choices.chance(2))))
    _outputs(net, quantizers)
    return net


def _layer(net: Net, quantizers: Quantizers) -> Tensor | None:
    choices = net.choices
    x = choices.pick(net.pool[::-1])
    way = choices.integer(0, 9)
    if way < 5:
        if choices.chance(5):  # a scale before the convolution, as exporters leave it
            scale = net.constant(np.float32(choices.pick([0.5, 2.0, 0.3])))
            x = Tensor(net.node("Mul", x.name, scale), x.shape, *sorted((x.low / 2, x.high * 2)))
        return quantizers.weighted(x)
    if way < 7:
        table = layers.IMAGE_LAYERS if len(x.shape) == 4 else layers.VECTOR_LAYERS
        return choices.pick(table)(net, x)
    if way < 9:
        return layers.two_operands(net, lambda net, a: quantizers.any(island(net, a, 2)))
    if len(x.shape) == 4 and choices.chance(2):
        return layers.resize(net, x)
    return x


def binary_network(choices: Choices) -> Net:
    """Layers of 1-bit weights and activations, BatchNormalization between: XNOR and popcount."""
    net = new_net(choices)
    quantizers = Quantizers(net)
    x = quantizers.bipolar(_input(net, choices.chance(2)))
    for _ in range(choices.integer(1, 3)):
        x = quantizers.weighted(x, binary=True)
        x = quantizers.bipolar(island(net, x, 2, affine_only=True))
        if len(x.shape) == 4 and choices.chance(3):
            x = layers.max_pool(net, x)
    net.pool.append(x)
    _outputs(net, quantizers)
    return net


def _outputs(net: Net, quantizers: Quantizers) -> None:
    x = net.pool[-1]
    way = net.choices.integer(0, 5)
    if way == 0:
        net.builder.output(quantizers.weighted(x).name)
    elif way == 1 and len(x.shape) == 2:
        net.builder.output(qdq.on_host(net, x.name))
    else:
        net.builder.output(x.name)
