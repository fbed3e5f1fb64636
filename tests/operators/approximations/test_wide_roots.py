"""The magnitude of a spectrum: a root of squares that add up, before quantizers of few and of many levels."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.ir.node_attributes import RequantizeAttributes, RootAttributes
from hwflow.loaded_model import Model
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.top_simulation import SimulatedTop

SCALE, ZERO, UNIT = 2.0**-12, 30_000, 2.0**-11


def magnitude(folder: Path, levels: str, root: str = "Sqrt") -> Model:
    """The root of x0 * x0 + x1 * x1, of 16-bit integers."""
    b = Builder(21, 10)
    x = b.dequantize(b.input("x", ["N", 2, 4], "uint16"), SCALE, ZERO, "uint16")
    parts = [b.node("Gather", x, b.constant([k], "int64"), axis=1) for k in (0, 1)]
    sum_ = b.node("Add", *(b.node("Pow", part, b.constant(2.0)) for part in parts))
    result = b.node("Pow", sum_, b.constant(0.5)) if root == "Pow" else b.node("Sqrt", sum_)
    b.output(b.quantize(result, UNIT if levels == "uint16" else 0.07, 0, levels))
    return b.load(folder)


def frames() -> np.ndarray:
    rng = np.random.default_rng(5)
    found = [rng.integers(0, 65536, (6, 2, 4)), rng.integers(ZERO - 9, ZERO + 9, (6, 2, 4))]
    found += [np.full((1, 2, 4), level) for level in (0, ZERO, 65535)]
    return np.concatenate(found)


@pytest.mark.parametrize("root", ["Sqrt", "Pow"])
def test_many_levels_take_a_recurrence(root: str, tmp_path: Path) -> None:
    model = magnitude(tmp_path, "uint16", root)
    graph = model.quantized
    assert any(isinstance(node.attributes, RootAttributes) for node in graph.nodes)
    (port,), (result,) = graph.inputs, graph.outputs
    quantizer = graph.producers()[result.value].attributes
    assert isinstance(quantizer, RequantizeAttributes) and 0 < quantizer.epsilon <= Fraction(1, 1 << 24)
    x = frames()
    found = golden.evaluate(graph, {port.name: x})[result.name].reshape(len(x), -1)
    # sqrt(n) * SCALE / UNIT = sqrt(n) / 2, to the nearest: (isqrt(n) + 1) // 2, but for ties: isqrt odd and exact
    squares = ((x - ZERO) ** 2).sum(axis=1)
    for level, n in zip(found.reshape(-1).tolist(), squares.reshape(-1).tolist(), strict=True):
        near = (isqrt(n) + 1) // 2
        tie = isqrt(n) ** 2 == n and isqrt(n) % 2 == 1
        assert min(near, 65535) == level or (tie and level == near - 1)
    assert compare(model, frames=40).ok
    top = SimulatedTop(compile(model, "ulx3s_85f", fps=10_000).schedule.plan)
    hardware = top.run({port.name: x}, gap=0.2, stall=0.2)
    np.testing.assert_array_equal(np.asarray(hardware[result.name]).reshape(found.shape), found)


def test_few_levels_are_searched(tmp_path: Path) -> None:
    model = magnitude(tmp_path, "uint8")
    assert not any(isinstance(node.attributes, RootAttributes) for node in model.quantized.nodes)
    assert compare(model, frames=40).ok
