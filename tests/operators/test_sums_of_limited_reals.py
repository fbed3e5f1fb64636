"""Sums over windows and axes of Relu and Clip of convolutions with a float bias, and of sums of two streams, without a
quantizer between: against exact rationals, and what cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hwflow.errors import ModelRefused
from hwflow.loaded_model import Model
from hwflow.numerics.requantizers.staircase import LIMIT
from hwflow.passes import pipeline
from tests.agreement import agree
from tests.models import Builder

CHANNELS, INPUTS, SIZE = 3, 4, 4
INT4, INT8 = "int4", "int8"

Sums = Callable[["Net"], str]


class Net(Builder):
    """Streams and convolutions with parameters as a calibration finds them."""

    def __init__(self, kind: str, seed: int = 0, size: int = SIZE) -> None:
        super().__init__(21, 10)
        self.kind, self.size, self.rng = kind, size, np.random.default_rng(seed)

    def scale(self, low: float = 0.02, high: float = 0.1) -> np.float32:
        return np.float32(self.rng.uniform(low, high) * (8 if self.kind == INT4 else 1))

    def stream(self, name: str, channels: int) -> str:
        return self.requantize(
            self.input(name, ["N", channels, self.size, self.size]), self.scale(), 3, self.kind
        )

    def convolution(self, name: str, channels: int = INPUTS) -> str:
        """A padded one of a stream, with a scale and a float bias per channel."""
        reach = 7 if self.kind == INT4 else 127
        integers = self.rng.integers(-reach, reach + 1, (CHANNELS, channels, 3, 3))
        scales = self.rng.uniform(0.001, 0.01, CHANNELS).astype(np.float32)
        weights = self.weights(integers, scales, np.zeros(CHANNELS), self.kind, axis=0)
        bias = self.constant(self.rng.normal(0, 1, CHANNELS))
        return self.node("Conv", self.stream(name, channels), weights, bias, pads=[1] * 4)

    def finish(self, x: str, scale: float = 0.02) -> Net:
        self.output(self.requantize(x, np.float32(scale * (8 if self.kind == INT4 else 1)), -5, self.kind))
        return self


def biased(net: Net) -> str:
    return net.convolution("x")


def residual(net: Net) -> str:
    return net.node("Add", net.convolution("x"), net.stream("y", CHANNELS))


def difference(net: Net) -> str:
    return net.node("Sub", net.stream("y", CHANNELS), net.convolution("x"))


def two_streams(net: Net) -> str:
    return net.node("Add", net.stream("x", CHANNELS), net.stream("y", CHANNELS))


def two_convolutions(net: Net) -> str:
    return net.node("Add", net.convolution("x", 1), net.convolution("y", 1))


def scaled(net: Net) -> str:
    """A sum, times one constant per channel, some negative, and one added."""
    factors = net.constant(np.array([-1.3, 0.7, -0.01], dtype=np.float32).reshape(-1, 1, 1))
    return net.node("Add", net.node("Mul", residual(net), factors), net.constant(0.3))


SUMS = (biased, residual, difference, two_streams, scaled)


def no_limit(net: Net, x: str) -> str:
    return x


def relu(net: Net, x: str) -> str:
    return net.node("Relu", x)


def relu6(net: Net, x: str) -> str:
    return net.node("Clip", x, net.constant(0.0), net.constant(6.0))


def clip(net: Net, x: str) -> str:
    return net.node("Clip", net.node("Clip", x, net.constant(-0.7)), "", net.constant(1.1))


LIMITS = (no_limit, relu, relu6, clip)


def mean(net: Net, x: str) -> str:
    return net.node("ReduceMean", x, net.constant([2, 3], "int64"), keepdims=0)


def total(net: Net, x: str) -> str:
    return net.node("ReduceSum", x, net.constant([3], "int64"))


def global_pool(net: Net, x: str) -> str:
    return net.node("GlobalAveragePool", x)


def pool(net: Net, x: str) -> str:
    return net.node("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])


def padded_pool(net: Net, x: str) -> str:
    return net.node("AveragePool", x, kernel_shape=[2, 2], pads=[1, 0, 0, 1], count_include_pad=1)


POOLS = (mean, total, global_pool, pool, padded_pool)


@pytest.mark.parametrize("kind", [INT8, INT4])
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("sums", SUMS)
def test_a_mean(sums: Sums, limit: Callable[[Net, str], str], kind: str) -> None:
    net = Net(kind)
    agree(net.finish(mean(net, limit(net, sums(net)))))


@pytest.mark.parametrize("pooled", POOLS[1:])
@pytest.mark.parametrize("limit", [no_limit, relu])
@pytest.mark.parametrize("sums", SUMS)
def test_pools(sums: Sums, limit: Callable[[Net, str], str], pooled: Callable[[Net, str], str]) -> None:
    net = Net(INT8, 1)
    agree(net.finish(pooled(net, limit(net, sums(net)))))


@pytest.mark.parametrize("limit", [relu6, clip])
def test_limits_in_front_of_a_padded_pool(limit: Callable[[Net, str], str]) -> None:
    net = Net(INT8, 2)
    agree(net.finish(pool(net, limit(net, biased(net)))))


@pytest.mark.parametrize("sums", [residual, difference, scaled, two_convolutions])
@pytest.mark.parametrize("limit", [no_limit, relu, relu6])
def test_a_sum_alone(sums: Sums, limit: Callable[[Net, str], str]) -> None:
    """Of 8 bits, whose exact integers would have more than 62."""
    net = Net(INT8, 3)
    agree(net.finish(limit(net, sums(net)), 0.05))


@pytest.mark.parametrize("kind", [INT8, INT4])
def test_means_of_two_convolutions(kind: str) -> None:
    net = Net(kind, 4)
    agree(net.finish(mean(net, relu(net, two_convolutions(net)))))


def test_functions_behind_a_mean() -> None:
    net = Net(INT8, 5)
    y = net.node("Mul", mean(net, relu(net, residual(net))), net.constant([0.9, -1.7, 1.1]))
    agree(net.finish(net.node("Sigmoid", y), 1 / 256))


def test_a_residual_block() -> None:
    """As PyTorch's quantizer for x86 leaves it: the last block of a network, its mean, and a linear layer."""
    net = Net(INT8, 6)
    x = net.requantize(net.node("Relu", net.convolution("x")), net.scale(), -128, INT8)
    integers = net.rng.integers(-127, 128, (CHANNELS, CHANNELS, 3, 3))
    weights = net.weights(integers, net.rng.uniform(0.001, 0.01, CHANNELS), np.zeros(CHANNELS), INT8, axis=0)
    branch = net.node("Conv", x, weights, net.constant(net.rng.normal(0, 1, CHANNELS)), pads=[1] * 4)
    row = net.requantize(mean(net, relu(net, net.node("Add", branch, x))), net.scale(), -128, INT8)
    matrix = net.weights(net.rng.integers(-127, 128, (CHANNELS, 5)), 0.01)
    model = agree(net.finish(net.node("Gemm", row, matrix, net.constant(net.rng.normal(0, 1, 5)))))
    assert _widest(model) < 56  # exact integers: more than 80


def _widest(model: Model) -> int:
    graph = pipeline.run(model.quantized, pipeline.DATAFLOW)
    return max(value.typed.element.bits for value in graph.values())


def test_a_stream_twice_as_wide_is_exact_as_it_was() -> None:
    """Of two streams the exact integers are short: no keys."""
    net = Net(INT8)
    model = agree(net.finish(mean(net, relu(net, two_streams(net)))))
    assert all(n.op != "requantize" or n.inputs[0].typed.interval.hi < LIMIT for n in model.quantized.nodes)


def test_greatest_sums() -> None:
    """Whose keys have their order, in places that a transpose gives them."""
    net = Net(INT8, 8)
    y = net.node("MaxPool", relu(net, residual(net)), kernel_shape=[2, 2])
    agree(net.finish(net.node("Transpose", y, perm=[0, 2, 3, 1]), 0.05))


@pytest.mark.parametrize("limit", [no_limit, relu])
def test_what_no_quantizer_follows_is_left_to_the_host(limit: Callable[[Net, str], str], tmp_path: Path) -> None:
    net = Net(INT8, 9)
    net.output(mean(net, limit(net, residual(net))))
    graph = net.load(tmp_path).quantized
    assert [node.op for node in graph.nodes] == ["conv2d"]
    assert [port.value.origin for port in graph.outputs] == ["conv3"]  # with its scale and bias
    assert "add6" in graph.suffix and graph.suffix[-1].startswith("reducemean")


def refusal(net: Net, folder: Path) -> str:
    with pytest.raises(ModelRefused) as refused:
        pipeline.run(net.load(folder).quantized, pipeline.QUANTIZED)
    return str(refused.value)


def test_too_many_different_sums(tmp_path: Path) -> None:
    net = Net(INT8, size=120)
    y = net.node("Clip", residual(net), net.constant(-0.7), net.constant(1.1))
    assert refusal(net.finish(net.node("GlobalAveragePool", y, name="pool")), tmp_path) == (
        "error: node 'pool' (GlobalAveragePool): the scales, bias and limits of the summands of "
        "GlobalAveragePool must have a common divisor, or few enough distinct sums to sort, not sums over 14400 "
        "elements of unrelated scales [sum-keys]\n"
        "  remedy: insert QuantizeLinear and DequantizeLinear before 'pool'"
    )


def test_a_convolution_needs_more_than_the_order(tmp_path: Path) -> None:
    net = Net(INT8)
    weights = net.weights(np.ones((1, CHANNELS, 1, 1)), 0.01)
    y = net.node("Conv", relu(net, two_convolutions(net)), weights, name="conv")
    assert refusal(net.finish(y), tmp_path) == (
        "error: node 'conv' (Conv): the inputs of Conv must be quantized after a sum of different scales, not "
        "left in float [quantized-operand]\n"
        "  remedy: insert QuantizeLinear and DequantizeLinear before 'conv'"
    )


def test_keys_of_too_many_bits(tmp_path: Path) -> None:
    net = Net(INT8, 7)
    y = net.node("Add", net.convolution("x", 500), net.convolution("y", 500), name="sum")
    found = refusal(net.finish(net.node("GlobalAveragePool", relu(net, y), name="pool")), tmp_path)
    assert found.startswith("error: node 'relu9', 'pool' (scaled_add): its sums must lie within 62 bits, not in [")
    assert found.endswith("remedy: quantize the operands to fewer bits, or insert QuantizeLinear and DequantizeLinear "
                          "before the node")
