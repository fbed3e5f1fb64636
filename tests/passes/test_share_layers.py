"""Layers of one shape that follow each other share their cores: every value stays the same, in the quantized graph, in
streams and in hardware, with the weights and the quantizers of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.passes import pipeline
from hwflow.passes.roll_loops import share_layers
from hwflow.verify import golden
from tests.models import Builder
from tests.passes.test_roll_loops import loops
from tests.simulated_model import check_simulated


def dense(layers: int) -> Builder:
    """Dense layers with weights and scales of their own, each with a Relu before its quantizer."""
    b, rng = Builder(21, 10), np.random.default_rng(layers)
    x = b.requantize(b.input("x", ["N", 6]), 0.25, 0, "int8")
    for layer in range(layers):
        y = b.node("MatMul", x, b.weights(rng.integers(-9, 9, (6, 6)), 0.03125 * (layer + 1)))
        y = b.node("Add", y, b.constant(rng.integers(-8, 8, 6) / 8, "float"))
        x = b.requantize(b.node("Relu", y), 0.1 + 0.07 * layer, 0, "uint8")
    b.output(x)
    return b


def residual(blocks: int) -> Builder:
    """Blocks of two convolutions beside a skip connection, as in ResNet."""
    b, rng = Builder(21, 10), np.random.default_rng(blocks)
    x = b.requantize(b.input("x", ["N", 3, 4, 4]), 0.25, 0, "uint8")
    for block in range(blocks):
        y = x
        for number in range(2):
            weights = b.weights(rng.integers(-9, 9, (3, 3, 3, 3)), 0.01 * (1 + block + number))
            y = b.node("Conv", y, weights, pads=[1] * 4)
            if not number:
                y = b.requantize(b.node("Relu", y), 0.2 + 0.1 * block, 0, "uint8")
        y = b.requantize(y, 0.25, 128, "uint8")
        x = b.requantize(b.node("Relu", b.node("Add", x, y)), 0.25, 0, "uint8")
    b.output(x)
    return b


def bottlenecks(blocks: int) -> Builder:
    """Inverted bottlenecks, as in MobileNetV2, whose sums have scales of other ratios from block to block."""
    b, rng = Builder(21, 10), np.random.default_rng(blocks)
    x = b.requantize(b.input("x", ["N", 2, 3, 4]), 0.25, 0, "int8")
    for block in range(blocks):
        y = b.node("Conv", x, b.weights(rng.integers(-9, 9, (4, 2, 1, 1)), 0.02 + 0.01 * block))
        y = b.requantize(b.node("Relu", y), 0.1 + 0.03 * block, 0, "uint8")
        weights = b.weights(rng.integers(-9, 9, (4, 1, 3, 3)), 0.02 + 0.01 * block)
        y = b.node("Conv", y, weights, pads=[1] * 4, group=4)
        y = b.requantize(b.node("Relu", y), 0.2 + 0.03 * block, 0, "uint8")
        y = b.node("Conv", y, b.weights(rng.integers(-9, 9, (2, 4, 1, 1)), 0.02 + 0.01 * block))
        y = b.requantize(y, 0.5 / 2**block, 3 * block, "int8")
        x = b.requantize(b.node("Add", x, y), 0.25 * 2**block, 0, "int8")
    b.output(x)
    return b


def grouped(layers: int) -> Builder:
    """Convolutions of two groups with a step function of few levels behind."""
    b, rng = Builder(21, 10), np.random.default_rng(layers)
    x = b.requantize(b.input("x", ["N", 4, 5]), 1.0, 0, "uint4")
    for layer in range(layers):
        y = b.node("Conv", x, b.weights(rng.integers(-2, 2, (4, 2, 3)), 0.25 + 0.1 * layer), pads=[1, 1], group=2)
        x = b.requantize(b.node("Sigmoid", y), 0.1 - 0.01 * layer, 0, "uint4")
    b.output(x)
    return b


MODELS: dict[str, tuple[Callable[[], Builder], int]] = {
    "dense": (lambda: dense(4), 4),
    "residual": (lambda: residual(3), 3),
    "bottlenecks": (lambda: bottlenecks(3), 3),
    "grouped": (lambda: grouped(3), 3),
}
"""With the rounds that are found."""


@pytest.mark.parametrize("name", MODELS)
def test_values_stay(name: str, tmp_path: Path) -> None:
    make, rounds = MODELS[name]
    graph = make().load(tmp_path).quantized
    rolled = share_layers(pipeline.run(graph, pipeline.SIMPLER))
    rng = np.random.default_rng(0)
    arrays = {p.name: rng.integers(0, p.value.typed.interval.hi + 1, (3, *p.shape)) for p in graph.inputs}
    wanted = golden.evaluate(graph, arrays)
    for other in (rolled, pipeline.run(graph, pipeline.FORMS[pipeline.SHARED])):
        for port, found in golden.evaluate(other, arrays).items():
            np.testing.assert_array_equal(found, wanted[port])
    assert [loop.rounds for loop in loops(rolled)] == [rounds]


@pytest.mark.parametrize("name", MODELS)
def test_in_hardware(name: str, tmp_path: Path) -> None:
    """Bit for bit and cycle for cycle, with gaps and stalls."""
    model = MODELS[name][0]().load(tmp_path)
    design = compile(model, "ulx3s_85f", fps=1000, loops="shared")
    alone = compile(model, "ulx3s_85f", fps=1000, loops="unrolled")
    assert design.loops == "shared"
    assert design.schedule.resources.lut < alone.schedule.resources.lut
    check_simulated(design, stalls=(0, 0.5))


def test_where_nothing_else_fits(tmp_path: Path) -> None:
    """Without the option layers share their cores where a core for each is too large, and only there."""
    model = dense(4).load(tmp_path)
    alone = compile(model, "ulx3s_85f", fps=1000)
    assert alone.loops == "unrolled"
    budget = {"lut": alone.schedule.resources.lut * 3 // 4, "dsp": 0, "bram": 0}
    assert compile(model, "ulx3s_85f", fps=1000, budget=budget).loops == "shared"
