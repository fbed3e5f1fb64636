"""Networks of random shapes, one a seed, as files: `benchmarks/bitstreams.py --model` routes them.

    python benchmarks/random_networks.py FOLDER [--seeds 1 2 3 4 5 6]

int8 QDQ with random weights, a scale a channel, uint8 activations with zero points that differ. A seed draws the family
(dense, plain, residual, separable, temporal: convolutions over time, branches: kernels of several sizes joined), the
size of the input, widths, depths, kernels, strides and pooling.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from huge_networks import LEVEL, Network


class RandomNetwork(Network):
    """A network whose shapes, scales and zero points come from ``seed``."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.shape: tuple[int, ...] = ()  # of the value that the next layer reads, without the batch
        self.taken: tuple[int, ...] = ()  # of the input

    def begin(self, *shape: int) -> str:
        """Add the quantized input."""
        self.shape = self.taken = shape
        return self.quantized("x")

    def draw(self, least: int, most: int) -> int:
        return int(self._rng.integers(least, most + 1))

    def one_of(self, *choices: int) -> int:
        return int(self._rng.choice(choices))

    def quantized(self, value: str) -> str:
        level = self.constant(np.float32(LEVEL * self._rng.uniform(0.5, 2)))
        zero = self.constant(np.uint8(self._rng.integers(0, 129)))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", value, level, zero), level, zero)

    def scaled(self, *shape: int, fan: int, axis: int) -> str:
        """Return int8 weights with a scale for each index of ``axis``."""
        values = np.clip(np.rint(self._rng.normal(0, 40, shape)), -127, 127).astype(np.int8)
        levels = (self._rng.uniform(0.5, 1.5, shape[axis]) / (40 * np.sqrt(fan))).astype(np.float32)
        return self.node(
            "DequantizeLinear", self.constant(values), self.constant(levels),
            self.constant(np.zeros(shape[axis], np.int8)), axis=axis,
        )

    def layer(
        self, value: str, outputs: int, kernel: int, stride: int = 1, *, groups: int = 1, relu: bool = True
    ) -> str:
        """Add a convolution over all dimensions behind the channels, with a bias; its quantized value."""
        inputs, *extent = self.shape
        each = inputs // groups
        fan = each * kernel ** len(extent)
        weights = self.scaled(outputs, each, *[kernel] * len(extent), fan=fan, axis=0)
        bias = self.constant(self._rng.normal(0, 0.3, outputs).astype(np.float32))
        value = self.node(
            "Conv", value, weights, bias, kernel_shape=[kernel] * len(extent), strides=[stride] * len(extent),
            pads=[kernel // 2] * 2 * len(extent), group=groups,
        )
        self.shape = (outputs, *((each - 1) // stride + 1 for each in extent))
        return self.quantized(self.node("Relu", value) if relu else value)

    def product(self, value: str, outputs: int, *, relu: bool) -> str:
        """Add a dense layer with a bias."""
        (inputs,) = self.shape
        bias = self.constant(self._rng.normal(0, 0.3, outputs).astype(np.float32))
        value = self.node("Add", self.node("MatMul", value, self.scaled(inputs, outputs, fan=inputs, axis=1)), bias)
        self.shape = (outputs,)
        return self.quantized(self.node("Relu", value) if relu else value)

    def classes(self, value: str) -> str:
        """Add the mean of each channel and a dense layer."""
        if len(self.shape) > 1:
            value = self.node("Flatten", self.quantized(self.node("GlobalAveragePool", value)), axis=1)
            self.shape = self.shape[:1]
        return self.product(value, self.draw(2, 20), relu=False)


def dense(network: RandomNetwork) -> str:
    value = network.begin(network.draw(16, 400))
    for _ in range(network.draw(2, 5)):
        value = network.product(value, network.draw(32, 256), relu=True)
    return value


def plain(network: RandomNetwork) -> str:
    size = network.draw(16, 40)
    value, width = network.begin(network.one_of(1, 3), size, size), network.draw(8, 20)
    for number in range(network.draw(3, 6)):
        value = network.layer(value, width + 8 * number, network.one_of(3, 3, 5), network.one_of(1, 1, 2))
    return value


def residual(network: RandomNetwork) -> str:
    size = network.draw(20, 40)
    value = network.layer(network.begin(3, size, size), network.draw(8, 24), 3)
    for number in range(network.draw(2, 4)):
        outputs, stride = network.shape[0] + 8 * (number > 0), 2 if number else 1
        before = network.shape
        way = network.layer(network.layer(value, outputs, 3, stride), outputs, 3, relu=False)
        if number:
            network.shape = before
            value = network.layer(value, outputs, 1, stride, relu=False)
        value = network.quantized(network.node("Relu", network.node("Add", way, value)))
    return value


def separable(network: RandomNetwork) -> str:
    value = network.begin(network.one_of(1, 3), network.draw(32, 64), network.draw(24, 64))
    value = network.layer(value, network.draw(12, 48), network.one_of(3, 5), 2)
    for _ in range(network.draw(4, 8)):
        width = network.shape[0]
        value = network.layer(value, width, network.one_of(3, 3, 5), network.one_of(1, 1, 2), groups=width)
        value = network.layer(value, min(network.draw(width, width + 24), 128), 1)
    return value


def temporal(network: RandomNetwork) -> str:
    value = network.begin(network.draw(1, 40), network.draw(40, 400))
    for _ in range(network.draw(3, 6)):
        value = network.layer(value, network.draw(12, 64), network.one_of(3, 5, 7, 9), network.one_of(1, 2))
    return value


def branches(network: RandomNetwork) -> str:
    size = network.draw(16, 36)
    value = network.layer(network.begin(3, size, size), network.draw(12, 24), 3, 2)
    for _ in range(network.draw(2, 3)):
        before, width, ways = network.shape, network.draw(6, 16), []
        for kernel in (1, 3, 5):
            network.shape = before
            ways.append(network.layer(network.layer(value, width, 1), width, kernel))
        value = network.quantized(network.node("Concat", *ways, axis=1))
        network.shape = (3 * width, *network.shape[1:])
    return value


FAMILIES = (dense, plain, residual, separable, temporal, branches)


def random_network(seed: int) -> onnx.ModelProto:
    """Return the network of a seed; six seeds in a row have all families."""
    network = RandomNetwork(seed)
    family = FAMILIES[seed % len(FAMILIES)]
    output = network.classes(family(network))
    return network.between(f"{family.__name__}_{seed}", [1, *network.taken], output, [1, *network.shape])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6])
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        model = random_network(seed)
        onnx.checker.check_model(model, full_check=True)
        path = arguments.folder / f"{model.graph.name}.onnx"
        onnx.save(model, path)
        print(path)


if __name__ == "__main__":
    main()
