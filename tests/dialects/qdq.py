"""Random networks in QuantizeLinear and DequantizeLinear nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.dialects import layers
from tests.dialects.choices import Choices
from tests.dialects.exact.exact_call import bounds_of
from tests.dialects.islands import island
from tests.dialects.nets import Feed, Net, Tensor, new_net
from tests.models import kind_of


def network(choices: Choices, islands: int = 4) -> Net:
    """A network of one to four layers; ``islands``: the most float operators in a row."""
    net = new_net(choices)
    net.pool.append(_first(net, net.frame_shape(choices.chance(2))))
    for _ in range(choices.integer(1, 4)):
        x = _layer(net)
        if x is None:
            continue
        x = island(net, x, islands)
        y = quantized(net, x)
        if choices.chance(6):
            y = quantized(net, y)
        net.pool.append(y)
    _outputs(net)
    return net


def _first(net: Net, shape: tuple[int, ...]) -> Tensor:
    """A graph input: integers behind a DequantizeLinear, or floats that the host quantizes."""
    kind = net.input_kind()
    low, high = bounds_of(kind_of(kind))
    scale, zero = net.scale(2.0 / (high - low)), net.zero_point(kind)
    name = f"input{len(net.feeds)}"
    dimensions = ["N", *shape[1:]]
    if net.choices.chance(3):
        net.builder.input(name, dimensions, kind)
        net.feeds.append(Feed(name, shape, kind, low, high))
        levels = name
    else:
        net.builder.input(name, dimensions)
        net.feeds.append(Feed(name, shape, "float", 2 * (low - zero) - 5, 2 * (high - zero) + 5, scale / 2))
        levels = _quantize(net, name, scale, zero, kind)
    real = _dequantize(net, levels, scale, zero, kind)
    return Tensor(real, shape, scale * (low - zero), scale * (high - zero))


def _quantize(net: Net, x: str, scale: Any, zero: Any, kind: str, **more: Any) -> str:
    inputs = [x, net.constant(np.float32(scale))]
    if kind != "uint8" or np.any(zero) or net.choices.chance(2):
        inputs.append(net.builder.constant(zero, kind))
    return net.node("QuantizeLinear", *inputs, **more)


def _dequantize(net: Net, q: str, scale: Any, zero: Any, kind: str, **more: Any) -> str:
    inputs = [q, net.constant(np.float32(scale))]
    if np.any(zero) or net.choices.chance(2):
        inputs.append(net.builder.constant(zero, kind))
    return net.node("DequantizeLinear", *inputs, **more)


def quantized(net: Net, x: Tensor) -> Tensor:
    """``x`` behind QuantizeLinear (and perhaps a Clip, as in QCDQ) and DequantizeLinear."""
    kind = net.input_kind()
    low, high = bounds_of(kind_of(kind))
    width = max(x.high - x.low, 1e-4) / (high - low)
    channelwise = net.choices.chance(8) and len(x.shape) == 4
    more: dict[str, Any] = {}
    if channelwise:
        scale: Any = [net.scale(width * net.choices.pick([1.0, 0.5, 2.0])) for _ in range(x.channels)]
        zero: Any = [net.zero_point(kind) for _ in range(x.channels)]
        more["axis"] = net.choices.pick([1, 1 - len(x.shape)])
    else:
        scale, zero = net.scale(width * net.choices.pick([1.0, 0.5, 2.0, 0.1])), net.zero_point(kind)
    levels = _quantize(net, x.name, scale, zero, kind, **more)
    if net.choices.chance(6) and high - low > 3:
        least, most = net.builder.constant(low + 1, kind), net.builder.constant(high - 1, kind)
        if kind in ("int8", "uint8"):
            levels = net.node("Clip", levels, least, most)
            low, high = low + 1, high - 1
    real = _dequantize(net, levels, scale, zero, kind, **more)
    s, z = np.atleast_1d(scale), np.atleast_1d(zero)
    return Tensor(real, x.shape, float((s * (low - z)).min()), float((s * (high - z)).max()))


def _layer(net: Net) -> Tensor | None:
    """One operator (with its weights) on tensors of the pool."""
    x = net.choices.pick(net.pool[::-1])
    way = net.choices.integer(0, 9)
    if way < 4:
        return weighted(net, x)
    if way < 6:
        table = layers.IMAGE_LAYERS if len(x.shape) == 4 else layers.VECTOR_LAYERS
        return net.choices.pick(table)(net, x)
    if way < 9:
        return layers.two_operands(net, lambda net, a: quantized(net, island(net, a, 2)))
    if len(x.shape) == 4 and net.choices.chance(2):
        return layers.resize(net, x)
    return x  # a quantizer alone, behind an island


def weighted(net: Net, x: Tensor) -> Tensor:
    """A convolution or matrix product whose weights are quantized."""
    units: list[float] = []

    def weights(shape: tuple[int, ...], axis: int) -> tuple[str, np.ndarray]:
        kind = net.weight_kind()
        low, high = bounds_of(kind_of(kind))
        per_channel = net.choices.chance(2)
        count = shape[axis] if per_channel else 1
        scale = np.float32([net.scale(1.0 / (high - low)) for _ in range(count)])
        zero = np.array([net.zero_point(kind) if net.choices.chance(2) else 0 for _ in range(count)])
        if not per_channel:
            scale, zero = scale[0], zero[0]
        more: dict[str, Any] = {}
        if per_channel and (axis != 1 or net.choices.chance(2)):
            more["axis"] = net.choices.pick([axis, axis - len(shape)])
        levels = net.random_integers(shape, kind)
        broad = [-1 if i == axis else 1 for i in range(len(shape))]
        values = (scale * (levels - zero) if not per_channel
                  else scale.reshape(broad) * (levels - zero.reshape(broad)))
        if net.choices.chance(4):  # float weights behind their quantizer, some half way between two levels
            noise = net.choices.generator().integers(-2, 3, shape) * 0.25
            floats = net.constant(np.float32(values + noise * (scale.reshape(broad) if per_channel else scale)))
            name = _quantize(net, floats, scale, zero, kind, **more)
        else:
            name = net.builder.constant(levels, kind)
        units.extend(np.atleast_1d(scale).tolist())
        return _dequantize(net, name, scale, zero, kind, **more), np.asarray(values)

    def bias(channels: int, size: float) -> str:
        way = net.choices.integer(0, 2)
        rng = net.choices.generator()
        if way == 0:
            return ""
        if way == 1:
            return net.constant(np.float32(rng.uniform(-size, size, channels)))
        unit = size / 1000 if net.choices.chance(2) else 2.0 ** np.floor(np.log2(size / 1000 + 1e-9))
        levels = rng.integers(-1000, 1001, channels)
        return _dequantize(net, net.builder.constant(levels, "int32"), unit, 0, "int32")

    return layers.weighted(net, x, weights, bias)


def _outputs(net: Net) -> None:
    """The last tensor (dequantized), at times its integers, an accumulator, or what the host makes of it."""
    x = net.pool[-1]
    way = net.choices.integer(0, 9)
    if way == 0:
        integers = next(n.input[0] for n in net.builder.nodes if n.output[0] == x.name)
        net.builder.output(integers)
    elif way == 1:
        net.builder.output(weighted(net, x).name)
    elif way == 2:
        net.builder.output(on_host(net, x.name))
    else:
        net.builder.output(x.name)
    if net.choices.chance(5) and len(net.pool) > 2:
        other = net.pool[-2].name
        if other not in net.builder.outputs:
            net.builder.output(other)


def on_host(net: Net, real: str) -> str:
    """What no hardware is made for, or what stands after the last quantizer in classifiers."""
    if net.choices.chance(2):
        operator, last = net.choices.pick(["ArgMax", "ArgMin"]), net.choices.integer(0, 1)
        return net.node(operator, real, axis=net.choices.pick([1, -1]), keepdims=0, select_last_index=last)
    return net.node("Softmax", real, axis=-1)
