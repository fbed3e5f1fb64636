"""Logarithms of sums in the middle of a model: LogSoftmax and what exporters write instead, judged by 200 digits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from hwflow.api.checking import check
from hwflow.api.compiler import compile
from hwflow.loaded_model import load
from hwflow.numerics.logarithm_cells import Cells, fixed_logarithms, rest_breaks
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import passes_in_rtl
from tests.operators.norms.judged import every, judge, model_of, telling
from tests.simulated_model import check_simulated


def honoured(b: Builder, x: str, **attributes: Any) -> str:
    return b.node("Mul", b.node("LogSoftmax", x, **attributes), b.constant(10.0))


HONOURED = [("LogSoftmax", honoured, {"axis": 2})]


def log_softmax(x: list[Any]) -> list[Any]:
    total = sum((v.exp() for v in x), arb(0)).log()
    return [v - total for v in x]


@pytest.mark.parametrize(("scale", "zero"), [(1 / 8, 127), (0.071, 120), (0.0131, 100)])
def test_it_is_rounded_once(scale: float, zero: int, tmp_path: Path) -> None:
    model = model_of([10], lambda b, x: b.node("LogSoftmax", x, axis=-1), scale, zero, tmp_path)
    judge(model, telling([10]), log_softmax, scale, zero)


def test_all_inputs_of_a_small_case(tmp_path: Path) -> None:
    model = model_of([3], lambda b, x: b.node("LogSoftmax", x), 1 / 16, 127, tmp_path)
    judge(model, every(range(-128, 128, 36), 3), log_softmax, 1 / 16, 127)


def test_a_row_of_one_is_zero(tmp_path: Path) -> None:
    model = model_of([1], lambda b, x: b.node("LogSoftmax", x), 1 / 64, -60, tmp_path)
    judge(model, telling([1], count=2), lambda x: [arb(0)], 1 / 64, -60)


@pytest.mark.parametrize(("opset", "axis"), [(13, 1), (11, 1), (11, 2)])
def test_the_axis(opset: int, axis: int, tmp_path: Path) -> None:
    """Before operator set 13 an axis stands for all from there on."""
    shape = [3, 4]
    model = model_of(shape, lambda b, x: b.node("LogSoftmax", x, axis=axis), 1 / 8, 100, tmp_path, opset=opset)

    def meaning(x: list[Any]) -> list[Any]:
        grid = np.array(x, dtype=object).reshape(shape)
        if opset < 13:
            return [v for row in grid.reshape((1, -1) if axis == 1 else (3, 4)) for v in log_softmax(list(row))]
        return list(np.array([log_softmax(list(row)) for row in grid.T], dtype=object).T.reshape(-1))

    judge(model, telling(shape, count=5), meaning, 1 / 8, 100)


def test_scales_that_are_no_dyadic_numbers(tmp_path: Path) -> None:
    """A third of the input: the differences are rounded too."""
    model = model_of(
        [6], lambda b, x: b.node("LogSoftmax", b.node("Div", x, b.constant(3.0))), 1 / 16, 100, tmp_path
    )
    judge(model, telling([6]), lambda x: log_softmax([v / 3 for v in x]), 1 / 16, 100)


AXES = [-1]


def with_the_greatest(b: Builder, x: str) -> str:
    axes = b.constant(AXES, "int64")
    distance = b.node("Sub", x, b.node("ReduceMax", x, axes))
    total = b.node("ReduceSum", b.node("Exp", distance), axes)
    return b.node("Sub", distance, b.node("Log", total))


def without(b: Builder, x: str) -> str:
    return b.node("Sub", x, b.node("Log", b.node("ReduceSum", b.node("Exp", x), b.constant(AXES, "int64"))))


def by_one_operator(b: Builder, x: str) -> str:
    return b.node("Sub", x, b.node("ReduceLogSumExp", x, b.constant(AXES, "int64")))


@pytest.mark.parametrize("make", [with_the_greatest, without, by_one_operator])
def test_forms_by_meaning(make: Callable[[Builder, str], str], tmp_path: Path) -> None:
    judge(model_of([6], make, 1 / 8, 100, tmp_path), telling([6]), log_softmax, 1 / 8, 100)


def of_softmax(b: Builder, x: str) -> str:
    return b.node("Log", b.node("Softmax", x))


def of_quotients(b: Builder, x: str) -> str:
    powers = b.node("Exp", x)
    return b.node("Log", b.node("Div", powers, b.node("ReduceSum", powers, b.constant(AXES, "int64"))))


@pytest.mark.parametrize("make", [of_softmax, of_quotients])
def test_logarithms_of_quotients(make: Callable[[Builder, str], str], tmp_path: Path) -> None:
    """Differences: no digit is lost of a small quotient."""
    judge(model_of([4], make, 1 / 8, 100, tmp_path), telling([4]), log_softmax, 1 / 8, 100)


@pytest.mark.parametrize("factor", [1, 20])
@pytest.mark.parametrize("op", [True, False])
def test_a_sum_of_powers(factor: int, op: bool, tmp_path: Path) -> None:
    """The greatest is subtracted first where exponents lie far apart."""
    scale = 0.25 * factor

    def make(b: Builder, x: str) -> str:
        x, axes = b.node("Mul", x, b.constant(float(factor))), b.constant(AXES, "int64")
        if op:
            return b.node("ReduceLogSumExp", x, axes)
        return b.node("Log", b.node("ReduceSum", b.node("Exp", x), axes))

    def meaning(x: list[Any]) -> list[Any]:
        return [sum(((factor * v).exp() for v in x), arb(0)).log()]

    judge(model_of([6], make, scale, 3, tmp_path), telling([6]), meaning, scale, 3)


def test_logarithms_and_what_comes_behind_them(tmp_path: Path) -> None:
    """An entropy: a sum of products with logarithms."""

    def make(b: Builder, x: str) -> str:
        logs = b.node("LogSoftmax", x)
        return b.node("Add", logs, b.node("ReduceMean", logs, b.constant(AXES, "int64")))

    def meaning(x: list[Any]) -> list[Any]:
        logs = log_softmax(x)
        return [v + sum(logs, arb(0)) / len(logs) for v in logs]

    judge(model_of([5], make, 1 / 4, 100, tmp_path), telling([5]), meaning, 1 / 4, 100)


@pytest.mark.parametrize(
    ("low", "high", "fraction"), [(1 << 30, 10 << 30, 34), (7, 900, 20), (5, 5, 12), (1, 1 << 50, 40)]
)
def test_the_stated_error(low: int, high: int, fraction: int) -> None:
    """Of numbers in every cell, their ends among them, by what the nodes compute."""
    scale = Fraction(3, 1 << 30)
    cells = Cells.of(low, high, fraction)
    logs, wide = fixed_logarithms(cells.middles, scale, fraction)
    end = int(2 * cells.most * (1 << fraction)) + 1
    breaks, rest = rest_breaks(end, fraction)
    assert breaks == sorted(breaks)
    begins = [low, *cells.starts]
    ends = [*(start - 1 for start in cells.starts), high]
    with ctx.workdps(60):
        for k, middle in enumerate(cells.middles):
            for s in {begins[k], ends[k], (begins[k] + 2 * ends[k]) // 3}:
                whole, left = divmod(abs(s - middle) << fraction, s + middle)
                z = (2 * whole + (left != 0)) * (1 if s >= middle else -1)
                level = bisect_right(breaks, abs(z)) * (1 if z > 0 else -1)
                real = arb(fmpq(s * scale.numerator, scale.denominator)).log() * (1 << fraction)
                assert abs(real - (logs[k] + z + level)) <= arb(fmpq(1)) + arb(
                    fmpq((wide + rest).numerator, (wide + rest).denominator))
    assert wide + rest < Fraction(11, 10)


def between_layers() -> Builder:
    rng = np.random.default_rng(0)
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 3, 4]), 0.05, 3, "int8")
    h = b.requantize(b.node("MatMul", d, b.weights(rng.integers(-20, 20, (4, 6)))), 0.11, 3, "int8")
    r = b.requantize(b.node("LogSoftmax", h, axis=-1, name="it"), 1 / 8, 100, "int8")
    b.output(b.requantize(b.node("MatMul", r, b.weights(rng.integers(-20, 20, (6, 5)))), 2.1, 3, "int8"))
    return b


def test_between_two_layers(tmp_path: Path) -> None:
    path = between_layers().save(tmp_path)
    assert all(row.unexplained == 0 for row in compare(path, frames=40).rows)
    check_simulated(compile(path, "ulx3s_85f", fps=1e6), stalls=(0.0, 0.5))


@pytest.mark.parametrize("name", ["test_logsoftmax_axis_1", "test_logsoftmax_default_axis"])
def test_of_onnx(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path)


def test_at_the_end_the_host_runs_it(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 4]), 0.5, 3, "int8")
    b.output(b.node("LogSoftmax", b.node("MatMul", x, b.weights(np.ones((4, 3), int))), name="it"))
    assert load(b.save(tmp_path)).quantized.suffix[-1] == "it"


def test_what_may_be_zero_is_refused(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 4]), 0.5, 3, "int8")
    y = b.node("Sub", x, b.node("Log", b.node("ReduceSumSquare", x, b.constant(AXES, "int64")), name="it"), name="that")
    b.output(b.node("MatMul", b.requantize(y, 0.5), b.weights(np.ones((4, 2), int))))
    (finding,) = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert (finding.rule, finding.where) == ("logarithm-sign", "node 'that' (Sub)")
