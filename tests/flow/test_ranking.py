"""Classifiers that end in ArgMax or TopK: whole designs in simulation, with gaps and stalls, give their outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.verify import golden
from tests.models import Builder
from tests.onnx_node_tests.top_simulation import SimulatedTop

CLASSES = 7


def classifier(op: str, scales: float | list[float]) -> Builder:
    rng = np.random.default_rng(4)
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 6]), 0.5, 3, "int4")
    more = {} if isinstance(scales, float) else {"axis": 0}
    w = b.weights(rng.integers(-7, 8, (CLASSES, 6)), scales, 0 if isinstance(scales, float) else [0] * CLASSES, **more)
    sums = b.node("Gemm", x, w, b.constant(rng.integers(-8, 9, CLASSES) * 0.125), transB=1, name="sums")
    if op == "ArgMax":
        b.output(b.node("ArgMax", sums, name="class", axis=1, keepdims=0))
    else:
        b.output(b.node("TopK", sums, b.constant([3], "int64"), name="best", outputs=["classes"]), "classes")
    return b


@pytest.mark.parametrize("op", ["ArgMax", "TopK"])
@pytest.mark.parametrize("fps", [None, 1000.0])
@pytest.mark.parametrize("scales", [0.25, [0.25, 0.5, 1.0, 0.375, 0.125, 0.25, 0.5]])
def test_a_classifier(op: str, fps: float | None, scales: float | list[float], tmp_path: Path) -> None:
    model = classifier(op, scales).load(tmp_path)
    arrays = {"x": np.random.default_rng(0).integers(-12, 13, (6, 6)).astype(np.float32) / 4}
    reference = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays)
    top = SimulatedTop(compile(model, "ulx3s_85f", fps=fps).schedule.plan)
    for gap, stall in ((0.0, 0.0), (0.4, 0.4)):
        found = top.run(port_inputs(model, arrays), gap=gap, stall=stall)
        outputs = model_outputs(model, found, arrays)
        assert outputs.keys() == reference.keys()
        for name, expected in reference.items():
            assert outputs[name].dtype == (np.float32 if name == "best" else np.int64)
            np.testing.assert_array_equal(outputs[name], expected, name)
