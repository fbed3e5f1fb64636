"""Whole networks whose streams part and meet, of awkward sizes, through the Python API: the emitted design computes
what the golden model computes, with stalls on both sides as well, and at the full rate in the predicted cycles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hwflow
from hwflow.cores.registry import hardware
from tests.models import Builder
from tests.simulated_model import check_simulated

QONNX = "qonnx.custom_op.general"


def convolution(b: Builder, x: str, inputs: int, outputs: int, kernel: int, stride: int = 1) -> str:
    """With pads that keep the size, and a Relu; quantized to uint8."""
    rng = np.random.default_rng(100 * inputs + 10 * outputs + kernel)
    weights = b.weights(rng.integers(-8, 8, (outputs, inputs, kernel, kernel)), 0.05)
    sums = b.node("Conv", x, weights, strides=[stride, stride], pads=[kernel // 2] * 4)
    return b.requantize(b.node("Relu", sums), 0.11)


def image(b: Builder, name: str, *shape: int) -> str:
    return b.requantize(b.input(name, ["N", *shape]), 0.05, 128)


def single_pixels() -> Builder:
    """Images of one pixel, 3, 7 and 1 channels; a sum around a layer."""
    b = Builder()
    x = convolution(b, image(b, "x", 3, 1, 1), 3, 7, 1)
    x = convolution(b, x, 7, 1, 1)
    b.output(b.quantize(b.node("Add", convolution(b, x, 1, 1, 3), x), 0.1, 3))
    return b


def residual() -> Builder:
    """Around strided convolutions: ways of different length."""
    b = Builder()
    x = image(b, "x", 3, 7, 5)
    way = convolution(b, convolution(b, x, 3, 7, 3, 2), 7, 7, 3)
    total = b.node("Add", way, convolution(b, x, 3, 7, 1, 2))
    b.output(b.quantize(total, 0.1, 3))
    return b


def three_ways() -> Builder:
    """One stream read three times, joined by a sum, a product and a concatenation that reads the sum again; 3, 5 and 3
    channels."""
    b = Builder()
    start = convolution(b, image(b, "x", 2, 5, 6), 2, 3, 3)
    total = b.requantize(b.node("Add", start, convolution(b, start, 3, 3, 5)), 0.21, 11)
    product = b.requantize(b.node("Mul", total, start), 0.11)
    joined = b.node("Concat", product, convolution(b, start, 3, 5, 1), product, axis=1)
    b.output(b.quantize(convolution(b, joined, 11, 2, 3), 0.4, 5))
    return b


def xnor() -> Builder:
    """5 and 7 channels of one bit."""
    b, rng = Builder(), np.random.default_rng(3)

    def bipolar(x: str, shape: list[int | str]) -> str:
        node = b.node("BipolarQuant", x, b.constant(np.float32(1)), domain=QONNX)
        return b.declare(node, shape)

    x = bipolar(b.input("x", ["N", 5, 6, 5]), ["N", 5, 6, 5])
    for inputs, outputs, size in ((5, 7, (4, 3)), (7, 3, (2, 1))):
        shape = [outputs, inputs, 3, 3]
        sums = b.node("Conv", x, bipolar(b.constant(rng.normal(size=shape)), list(shape)), kernel_shape=[3, 3])
        biased = b.node("Add", sums, b.constant(rng.integers(-3, 4, (1, outputs, 1, 1))))
        x = bipolar(biased, ["N", outputs, *size])
    b.output(x)
    return b


def pools_and_outputs() -> Builder:
    """The product of two global pools; a map that is an output and read again; a second input."""
    b = Builder()
    x, other = image(b, "x", 7, 4, 3), image(b, "other", 7, 4, 3)
    middle = b.quantize(b.node("Sub", convolution(b, x, 7, 7, 3), other), 0.09, 77, name="middle")
    pools = [
        b.requantize(b.node("GlobalAveragePool", way), 0.02, 128) for way in (x, b.dequantize(middle, 0.09, 77))
    ]
    b.output(middle, b.quantize(b.node("Mul", *pools), 0.01, 128, name="gate"))
    return b


def mean_of_a_block() -> Builder:
    """A convolution with scales and a float bias per channel, and a stream with a scale of its own, added; the mean of
    its Relu, and the average pool of its Clip, by keys of their sums."""
    b, rng = Builder(), np.random.default_rng(4)
    x, other = image(b, "x", 2, 4, 3), b.requantize(b.input("other", ["N", 3, 4, 3]), np.float32(0.0173), 100)
    scales = rng.uniform(0.002, 0.02, 3).astype(np.float32)
    weights = b.weights(rng.integers(-127, 128, (3, 2, 3, 3)), scales, np.zeros(3), axis=0)
    sums = b.node("Conv", x, weights, b.constant(rng.normal(size=3)), pads=[1] * 4)
    mean = b.node("GlobalAveragePool", b.node("Relu", b.node("Add", sums, other)))
    limited = b.node("Clip", sums, b.constant(0.0), b.constant(6.0))
    pool = b.node("AveragePool", limited, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 0])
    b.output(b.quantize(mean, np.float32(0.03), 3), b.quantize(pool, np.float32(0.021), 7))
    return b


NETWORKS = [single_pixels, residual, three_ways, xnor, pools_and_outputs, mean_of_a_block]
EMITTED = [pools_and_outputs]  # in Verilog, too


@pytest.mark.parametrize("network", NETWORKS)
def test_it_computes_in_the_predicted_cycles(network: Callable[[], Builder], tmp_path: Path) -> None:
    design = hwflow.compile(network().save(tmp_path), "ulx3s_85f")
    found = check_simulated(design, frames=3, stalls=(0.0, 0.6))
    assert all(len(np.unique(values)) > 1 for values in found.values())  # not just saturated
    if network in EMITTED:
        out = tmp_path / "out"
        design.write(out)
        assert "\\" not in (out / "design.v").read_text()
        assert hwflow.simulate(out, simulator="icarus", frames=4, stall=0.4, seed=5).findings == ()
    slowest = max(
        hardware(node.op).cycles(node, design.schedule.plan[node].folding) for node in design.schedule.graph.nodes
    )
    assert design.schedule.initiation_interval == slowest
