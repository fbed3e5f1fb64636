"""Powers of two streams, and powers of sums whose exponents are no whole numbers: by logarithms, rounded once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from hwflow.api.checking import check
from hwflow.api.compiler import compile
from hwflow.loaded_model import load
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.top_simulation import SimulatedTop
from tests.operators.norms.judged import judge, model_of, telling


def of_streams(base: str, shape: tuple[int, ...] = (2, 3)) -> Builder:
    b = Builder(21, 10)
    y = b.dequantize(b.input("y", ["N", 3], "int8"), 0.02, 3, "int8")
    if base == "constant":
        x = b.constant(1.7)
    else:
        x = b.dequantize(b.input("x", ["N", *shape], "int8"), 0.03, -128, "int8")
        x = b.node("Clip", x, b.constant(0.05)) if base == "limited" else b.node("Add", x, b.constant(0.3))
        x = b.node("ReduceSum", x, b.constant([1], "int64")) if base == "sum" else x
        y = y if base == "sum" else b.node("Unsqueeze", y, b.constant([1], "int64"))
        y = y if base != "sum" else b.node("Unsqueeze", y, b.constant([1], "int64"))
    b.output(b.quantize(b.node("Pow", x, y), 0.05, -100, "int8"))
    return b


@pytest.mark.parametrize("base", ["added", "limited", "sum", "constant"])
def test_two_streams(base: str, tmp_path: Path) -> None:
    assert all(row.unexplained == 0 for row in compare(of_streams(base).save(tmp_path), frames=100).rows)


def test_in_hardware(tmp_path: Path) -> None:
    model = load(of_streams("added").save(tmp_path))
    rng = np.random.default_rng(2)
    feeds = {p.name: rng.integers(-128, 128, (2, *p.shape)) for p in model.quantized.inputs}
    expected = golden.evaluate(model.quantized, feeds)
    top = SimulatedTop(compile(model, "ulx3s_85f", fps=1).schedule.plan)
    for name, levels in top.run(feeds, gap=0.3, stall=0.3).items():
        np.testing.assert_array_equal(levels, expected[name])


@pytest.mark.parametrize("exponent", [1.75, -0.375, 3.0])
def test_powers_of_sums(exponent: float, tmp_path: Path) -> None:
    """Which meet another stream: alone they would be functions in front of the quantizer."""
    def make(b: Builder, x: str) -> str:
        total = b.node("ReduceSum", b.node("Mul", x, x), b.constant([-1], "int64"))
        return b.node("Mul", x, b.node("Pow", b.node("Add", total, b.constant(0.5)), b.constant(exponent)))

    def meaning(x: list[Any]) -> list[Any]:
        base = sum((v * v for v in x), arb(0)) + fmpq(1, 2)
        return [v * base ** fmpq(*exponent.as_integer_ratio()) for v in x]

    scale = {1.75: 300.0, -0.375: 0.02, 3.0: 6e5}[exponent]
    model = model_of([6], make, scale, 3, tmp_path)
    judge(model, telling([6]), meaning, scale, 3)


@pytest.mark.parametrize("beta", [0.6, 2.0])
def test_lrn_with_any_beta(beta: float, tmp_path: Path) -> None:
    def meaning(x: list[Any]) -> list[Any]:
        squares = [v * v for v in x]
        power = fmpq(*float(np.float32(beta)).as_integer_ratio())
        sums = [sum(squares[max(0, c - 1) : c + 2], arb(0)) for c in range(len(x))]
        return [v / (1 + total * fmpq(1, 6)) ** power for v, total in zip(x, sums, strict=True)]

    model = model_of(
        [5, 1, 1], lambda b, x: b.node("LRN", x, size=3, alpha=0.5, beta=beta, bias=1.0), 0.02, 3, tmp_path
    )
    judge(model, telling([5, 1, 1]), meaning, 0.02, 3)


def test_bases_must_be_positive(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x, y = (b.dequantize(b.input(name, ["N", 3], "int8"), 0.02, 3, "int8") for name in "xy")
    b.output(b.quantize(b.node("Pow", x, y, name="power"), 0.05, 0, "int8"))
    (finding,) = (f for f in check(b.save(tmp_path)) if f.severity != "warning")
    assert "must be known to be positive" in finding.message and "Clip" in finding.remedy
