"""A design of integer operators from model to emitted Verilog: whole tensors, many outputs, 32 bits, in Icarus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import hwflow
from tests.models import Builder


@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_verilog_equals_the_reference_evaluator(stall: float, tmp_path: Path) -> None:
    b = Builder(21, 10)
    x, y, c = b.input("x", [2, 6], "int32"), b.input("y", [6], "int32"), b.input("c", [2, 1], "bool")
    outputs = [
        b.node("Add", x, y), b.node("Mul", x, y), b.node("Div", x, y), b.node("Mod", y, x), b.node("Max", x, y),
        b.node("Where", c, x, y), b.node("BitwiseXor", x, b.constant(12345, "int32")), b.node("Not", c),
        b.node("LessOrEqual", x, y), b.node("Transpose", b.node("Abs", x)),
    ]
    b.output(*outputs)
    path = b.save(tmp_path)
    rng = np.random.default_rng(0)
    frames = {
        "x": rng.integers(-(1 << 31), 1 << 31, (3, 2, 6)).astype(np.int32),
        "y": rng.integers(-(1 << 31), 1 << 31, (3, 6)) >> rng.integers(0, 31, (3, 6)),
        "c": rng.integers(0, 2, (3, 2, 1)).astype(bool),
    }
    frames["y"] = frames["y"].astype(np.int32)
    np.savez(tmp_path / "frames.npz", **frames)
    hwflow.compile(path, "ulx3s_85f", fps=1).write(tmp_path / "out")
    simulation = hwflow.simulate(
        tmp_path / "out", inputs=tmp_path / "frames.npz", simulator="icarus", stall=stall, seed=1
    )
    assert simulation.result.mismatches == 0 and simulation.result.violations == 0
    evaluator = ReferenceEvaluator(b.build())
    for frame in range(3):
        with np.errstate(divide="ignore"):  # of which it makes 0
            expected = evaluator.run(None, {name: array[frame] for name, array in frames.items()})
        for name, wanted in zip(outputs, expected, strict=True):
            assert simulation.outputs[name].dtype == wanted.dtype
            np.testing.assert_array_equal(simulation.outputs[name][frame], wanted, name)
