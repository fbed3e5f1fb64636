"""Choices among streams of several scales, and onnxruntime's operators on images with channels last: whole designs in
simulation, with gaps and stalls, equal the golden model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.verify import golden
from tests.models import Builder
from tests.onnx_node_tests.top_simulation import SimulatedTop

MICROSOFT = "com.microsoft"


def maximum(b: Builder) -> str:
    """Scales that a calibration may find, one per channel on one side."""
    x = b.requantize(b.input("x", ["N", 3, 4]), [0.3, 0.7, 0.11], [0, 5, -7], "int8", axis=1)
    y = b.requantize(b.input("y", ["N", 1, 4]), 0.9, -5, "int8")
    return b.quantize(b.node("Max", x, y), 0.5, 0, "int8")


def where(b: Builder) -> str:
    inputs = [b.input("c", ["N", 3, 4], "bool")]
    for name, scale in (("x", 0.3), ("y", 0.11)):
        inputs += [b.input(name, ["N", 3, 4], "int8"), b.constant(scale), b.constant(3, "int8")]
    y = b.node("QLinearWhere", *inputs, b.constant(0.2), b.constant(-1, "int8"), domain=MICROSOFT)
    return b.declare(y, ["N", 3, 4], "int8")


def pools(b: Builder) -> str:
    x = b.input("x", ["N", 4, 6, 3], "uint8")
    p = b.node("NhwcMaxPool", x, domain=MICROSOFT, kernel_shape=[2, 2], pads=[0, 0, 1, 1])
    b.declare(p, ["N", 4, 6, 3], "uint8")
    scales = [b.constant(0.5), b.constant(3, "uint8"), b.constant(0.3), b.constant(7, "uint8")]
    y = b.node(
        "QLinearAveragePool", p, *scales, domain=MICROSOFT, kernel_shape=[2, 3], strides=[2, 3], channels_last=1
    )
    return b.declare(y, ["N", 2, 2, 3], "uint8")


@pytest.mark.parametrize("make", [maximum, where, pools])
@pytest.mark.parametrize("fps", [None, 1000.0])
def test_in_hardware(make: Callable[[Builder], str], fps: float | None, tmp_path: Path) -> None:
    b = Builder(19, 9)
    b.output(make(b))
    model = b.load(tmp_path)
    graph = model.quantized
    assert not graph.suffix
    rng = np.random.default_rng(0)
    ranges = {p: p.value.typed.interval for p in graph.inputs}
    inputs = {p.name: rng.integers(r.lo, r.hi + 1, (4, *p.shape)) for p, r in ranges.items()}
    expected = golden.evaluate(graph, inputs)
    top = SimulatedTop(compile(model, "ulx3s_85f", fps=fps).schedule.plan)
    for gap, stall in ((0.0, 0.0), (0.4, 0.4)):
        found = top.run(inputs, gap=gap, stall=stall)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, name)
