"""A transformer as onnxruntime's optimizer writes it: quantized, explained, in hardware."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import hwflow
from hwflow.api.compiler import compile
from hwflow.loaded_model import load
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.top_simulation import SimulatedTop

LENGTH, SIZE, HEADS, WORDS = 3, 4, 2, 8


def block(form: str) -> Builder:
    """An embedding, one encoder block and what classifies its first vector. ``form``: of the mask; lengths are those
    that the embedding counts."""
    rng = np.random.default_rng(0)
    b = Builder(14, 8)

    def reals(*shape: int, like: float = 0.5, about: float = 0.0) -> str:
        return b.constant(about + like * rng.normal(size=shape))

    def fused(op: str, *inputs: str, name: str, outputs: tuple[str, ...] = (), **more: float) -> str:
        return b.node(op, *inputs, name=name, outputs=outputs, domain="com.microsoft", **more)

    ids, mask = (b.input(name, ["N", LENGTH], "int32") for name in ("ids", "mask"))
    norm = [[reals(SIZE, like=0.1, about=1.0), reals(SIZE, like=0.1)] for _ in range(3)]
    tables = reals(WORDS, SIZE, like=1.0), reals(LENGTH, SIZE, like=1.0)
    counted = [mask] if form == "lengths" else []
    x = fused(
        "EmbedLayerNormalization", ids, "", *tables, "", *norm[0], *counted, name="embedded", outputs=("lengths",),
        epsilon=1e-6,
    )
    if form == "heads":
        parts = [b.node("MatMul", x, reals(SIZE, SIZE)) for _ in range(3)]
        y = fused("MultiHeadAttention", *parts, reals(3 * SIZE, like=0.1), mask, name="attended", num_heads=HEADS)
    else:
        weights = reals(SIZE, 3 * SIZE), reals(3 * SIZE, like=0.1)
        seen = "lengths" if form == "lengths" else mask
        y = fused("Attention", x, *weights, seen, name="attended", num_heads=HEADS)
    y = b.node("MatMul", y, reals(SIZE, SIZE))
    x = fused("SkipLayerNormalization", y, x, *norm[1], reals(SIZE, like=0.1), name="first", epsilon=1e-6)
    y = b.node("MatMul", x, reals(SIZE, 2 * SIZE))
    if form == "heads":
        y = fused("FastGelu", y, reals(2 * SIZE, like=0.1), name="gelu")
    else:
        y = fused("BiasGelu", y, reals(2 * SIZE, like=0.1), name="gelu")
    y = b.node("MatMul", y, reals(2 * SIZE, SIZE))
    x = fused("SkipLayerNormalization", y, x, *norm[2], reals(SIZE, like=0.1), name="second", epsilon=1e-6)
    b.declare(x, ["N", LENGTH, SIZE])
    b.output(b.node("MatMul", b.node("Gather", x, b.constant(0, "int64"), axis=1), reals(SIZE, 2), name="classes"))
    return b


def quantized(form: str, folder: Path) -> tuple[Path, hwflow.Quantization]:
    rng = np.random.default_rng(1)
    ends = rng.integers(1, LENGTH + 1, (40, 1))
    np.savez(
        folder / "x.npz", ids=rng.integers(0, WORDS, (40, LENGTH)).astype(np.int32),
        mask=(np.arange(LENGTH) < ends).astype(np.int32),
    )
    path = folder / "q.onnx"
    done = hwflow.quantize(block(form).save(folder), folder / "x.npz", path)
    assert all(node.domain == "" for node in onnx.load(path).graph.node)
    return path, done


@pytest.mark.parametrize("form", ["raw", "lengths", "heads"])
def test_quantized(form: str, tmp_path: Path) -> None:
    """Masks do not take the scores' levels; nothing is left to the host, and nothing is unexplained."""
    path, done = quantized(form, tmp_path)
    assert done.compiles and done.host is not None and not done.host.linear
    (quality,) = done.qualities
    assert quality.snr_db is not None and quality.snr_db > 25
    assert all(row.unexplained == 0 for row in compare(path, frames=20).rows)


def test_in_hardware(tmp_path: Path) -> None:
    path, _ = quantized("raw", tmp_path)
    model = load(path)
    rng = np.random.default_rng(2)
    feeds = {"ids": rng.integers(0, WORDS, (2, LENGTH)), "mask": np.array([[1, 1, 0], [1, 0, 1]])}
    expected = golden.evaluate(model.quantized, feeds)
    top = SimulatedTop(compile(model, "ulx3s_85f", fps=1).schedule.plan)
    for name, levels in top.run(feeds, gap=0.3, stall=0.3).items():
        np.testing.assert_array_equal(levels, expected[name])
