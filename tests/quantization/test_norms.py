"""Norms in float models: quantized, compiled, explained. A divisor has no quantizer, of which 0 would be a level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hwflow
from hwflow.verify.comparison import compare
from tests.models import Builder

CHANNELS = [1]


def model(norm: str) -> Builder:
    rng = np.random.default_rng(0)
    b = Builder(21, 10)
    x = b.input("x", ["N", 4, 3, 3])
    h = b.node("Conv", x, b.constant(rng.normal(size=(4, 4, 1, 1))), b.constant(rng.normal(size=4)))

    def of_rows(op: str, values: str) -> str:
        return b.node(op, values, b.constant(CHANNELS, "int64"))

    if norm == "L2":
        h = b.node("Div", h, b.node("Add", of_rows("ReduceL2", h), b.constant(0.1)))
    elif norm == "RMS":
        mean = b.node("Add", of_rows("ReduceMean", b.node("Mul", h, h)), b.constant(0.01))
        h = b.node("Div", h, b.node("Sqrt", mean))
    elif norm == "reciprocal":
        mean = b.node("Add", of_rows("ReduceMean", b.node("Pow", h, b.constant(2.0))), b.constant(0.01))
        h = b.node("Mul", h, b.node("Reciprocal", b.node("Sqrt", mean)))
    elif norm == "Swish":  # a function of one number, with a quantizer in front
        h = b.node("Div", h, b.node("Add", b.node("Exp", b.node("Neg", h)), b.constant(1.0)))
    elif norm == "LpNormalization":
        h = b.node(norm, h, axis=1, p=1)
    elif norm == "GroupNormalization":
        scale, bias = b.constant([0.5, 1, -1, 2]), b.constant([0, 1, 0, -0.5])
        h = b.declare(b.node(norm, h, scale, bias, num_groups=2), ["N", 4, 3, 3])
    elif norm == "SimplifiedLayerNormalization":  # in ai.onnx, as onnxruntime writes it
        h = b.declare(b.node(norm, h, b.constant([0.5, 1, -1]), axis=-1), ["N", 4, 3, 3])
    elif norm == "LRN":
        h = b.node(norm, h, size=3, alpha=0.5, beta=0.6, bias=1.0)
    else:
        h = b.node(norm, h, axes=[2, 3])
    b.output(b.node("Conv", h, b.constant(rng.normal(size=(2, 4, 1, 1))), b.constant(rng.normal(size=2))))
    return b


@pytest.mark.parametrize(
    "norm", [
        "L2", "RMS", "reciprocal", "Swish", "GroupNormalization", "SimplifiedLayerNormalization", "LpNormalization",
        "LRN", "MeanVarianceNormalization", "LpPool",
    ],
)
def test_norms(norm: str, tmp_path: Path) -> None:
    b = model(norm) if norm != "LpPool" else pooled()
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(1).normal(size=(16, 4, 3, 3)).astype(np.float32))
    done = hwflow.quantize(b.save(tmp_path), tmp_path / "x.npz", tmp_path / "q.onnx")
    assert done.compiles and done.host is not None and not done.host.linear
    (quality,) = done.qualities
    assert quality.snr_db is not None and quality.snr_db > 25
    assert all(row.unexplained == 0 for row in compare(tmp_path / "q.onnx", frames=10).rows)


def pooled() -> Builder:
    rng = np.random.default_rng(0)
    b = Builder(21, 10)
    h = b.node("Conv", b.input("x", ["N", 4, 3, 3]), b.constant(rng.normal(size=(4, 4, 1, 1))))
    b.output(b.node("Conv", b.node("LpPool", h, kernel_shape=[2, 2]), b.constant(rng.normal(size=(2, 4, 1, 1)))))
    return b
