"""Small float networks as trained ones are built, for onnxruntime's quantizer: random weights, 3 channels of 6 x 6."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from tests.quantization.networks import Network

SHAPE = [3, 6, 6]


class Layers:
    """Layers with random weights behind each other on a :class:`Network`."""

    def __init__(self, opset: int) -> None:
        self.network = Network(["N", *SHAPE], opset=opset, ir_version=10)
        self.rng = np.random.default_rng(5)

    def weights(self, *shape: int) -> str:
        """Channels of quite different sizes, the first axis."""
        sizes = np.exp(self.rng.normal(size=(shape[0], *[1] * (len(shape) - 1))))
        return self.network.constant(self.rng.normal(size=shape) * sizes / np.sqrt(np.prod(shape[1:])))

    def conv(self, x: str, channels_in: int, channels: int, kernel: int = 3, pad: int = 1) -> str:
        bias = self.network.constant(self.rng.normal(size=channels) * 0.2)
        w = self.weights(channels, channels_in, kernel, kernel)
        return self.network.node("Conv", x, w, bias, kernel_shape=[kernel] * 2, pads=[pad] * 4)

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        flat = self.network.node("Flatten", x)
        bias = self.network.constant(self.rng.normal(size=outputs) * 0.2)
        return self.network.node("Gemm", flat, self.weights(outputs, inputs), bias, transB=1)

    def relu(self, x: str) -> str:
        return self.network.node("Relu", x)

    def normalize(self, x: str, channels: int) -> str:
        draw = self.rng.uniform
        ranges = (0.5, 1.5), (-0.5, 0.5), (-0.5, 0.5), (0.5, 2.0)  # scale, shift, mean, variance
        values = (self.network.constant(draw(low, high, channels)) for low, high in ranges)
        return self.network.node("BatchNormalization", x, *values)


def plain(layers: Layers) -> str:
    """Conv, Relu, MaxPool, dense, Relu, dense: the usual."""
    x = layers.relu(layers.conv("x", 3, 4))
    x = layers.network.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    return layers.dense(layers.relu(layers.dense(x, 4 * 9, 6)), 6, 5)


def clipped(layers: Layers) -> str:
    """Relu6 as exporters write it."""
    bounds = layers.network.constant(0.0), layers.network.constant(1.0)
    x = layers.network.node("Clip", layers.conv("x", 3, 4), *bounds)
    return layers.dense(x, 4 * 36, 5)


def normalized(layers: Layers) -> str:
    """BatchNormalization behind Relu, where nothing can be folded."""
    x = layers.normalize(layers.relu(layers.conv("x", 3, 4)), 4)
    return layers.dense(layers.conv(x, 4, 3), 3 * 36, 5)


def average_pooled(layers: Layers) -> str:
    x = layers.network.node("AveragePool", layers.relu(layers.conv("x", 3, 4)), kernel_shape=[3, 3], strides=[3, 3])
    return layers.dense(x, 4 * 4, 5)


def globally_pooled(layers: Layers) -> str:
    return layers.dense(layers.network.node("GlobalAveragePool", layers.relu(layers.conv("x", 3, 4))), 4, 5)


def residual(layers: Layers) -> str:
    x = layers.relu(layers.conv("x", 3, 4))
    x = layers.relu(layers.network.node("Add", layers.conv(x, 4, 4), x))
    return layers.dense(x, 4 * 36, 5)


def gated(layers: Layers) -> str:
    x = layers.network.node("Mul", layers.conv("x", 3, 3), layers.relu(layers.conv("x", 3, 3)))
    return layers.dense(x, 3 * 36, 5)


def concatenated(layers: Layers) -> str:
    x = layers.network.node("Concat", layers.relu(layers.conv("x", 3, 2)), layers.conv("x", 3, 3, 1, 0), axis=1)
    return layers.dense(x, 5 * 36, 5)


def with_softmax(layers: Layers) -> str:
    return layers.network.node("Softmax", plain(layers), axis=1)


def with_sigmoid(layers: Layers) -> str:
    return layers.dense(layers.network.node("Sigmoid", layers.conv("x", 3, 4)), 4 * 36, 5)


def with_leaky_relu(layers: Layers) -> str:
    return layers.dense(layers.network.node("LeakyRelu", layers.conv("x", 3, 4), alpha=0.1), 4 * 36, 5)


def with_hard_swish(layers: Layers) -> str:
    return layers.dense(layers.network.node("HardSwish", layers.conv("x", 3, 4)), 4 * 36, 5)


def build(network: Callable[[Layers], str], opset: int) -> onnx.ModelProto:
    """A network of this file as a model with known shapes."""
    layers = Layers(opset)
    model = layers.network.model(network(layers), ["N", 5])
    return onnx.shape_inference.infer_shapes(model)
