"""Softmax in the middle of a model: exactly, but for a stated epsilon; and in simulated hardware."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from hwflow.api.compiler import compile
from hwflow.ir.node_attributes import QuotientAttributes, RequantizeAttributes
from hwflow.loaded_model import load
from hwflow.verify.comparison import compare
from hwflow.verify.simulation import simulate
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import passes_in_rtl
from tests.operators.norms.judged import every, judge, model_of, telling
from tests.simulated_model import check_simulated


def percent(b: Builder, x: str, **attributes: Any) -> str:
    return b.node("Mul", b.node("Softmax", x, **attributes), b.constant(100.0))


HONOURED = [("Softmax", percent, {"axis": 2})]


def softmax(x: list[Any]) -> list[Any]:
    powers = [v.exp() for v in x]
    return [power / sum(powers, arb(0)) for power in powers]


@pytest.mark.parametrize(("scale", "zero"), [(1 / 256, -128), (0.0041, -120), (0.013, 3)])
def test_it_is_rounded_once(scale: float, zero: int, tmp_path: Path) -> None:
    model = model_of([10], lambda b, x: b.node("Softmax", x, axis=-1), scale, zero, tmp_path)
    judge(model, telling([10]), softmax, scale, zero)


def test_all_inputs_of_a_small_case(tmp_path: Path) -> None:
    model = model_of([3], lambda b, x: b.node("Softmax", x, axis=-1), 1 / 128, -60, tmp_path)
    judge(model, every(range(-128, 128, 36), 3), softmax, 1 / 128, -60)


def test_a_row_of_one_is_one(tmp_path: Path) -> None:
    model = model_of([1], lambda b, x: b.node("Softmax", x, axis=-1), 1 / 64, -60, tmp_path)
    judge(model, telling([1], count=2), lambda x: [arb(1)], 1 / 64, -60)


def over_sum(b: Builder, x: str) -> str:
    powers = b.node("Exp", x)
    return b.node("Div", powers, b.node("ReduceSum", powers, b.constant([-1], "int64")))


def times_reciprocal(b: Builder, x: str) -> str:
    powers = b.node("Exp", x)
    return b.node("Mul", b.node("Reciprocal", b.node("ReduceSum", powers, b.constant([-1], "int64"))), powers)


@pytest.mark.parametrize("make", [over_sum, times_reciprocal])
@pytest.mark.parametrize("factor", [1, 20])
def test_without_its_greatest_subtracted(make: Callable[[Builder, str], str], factor: int, tmp_path: Path) -> None:
    """Powers of a large range would need more bits than there are."""
    model = model_of(
        [6], lambda b, x: make(b, b.node("Mul", x, b.constant(float(factor)))), 1 / 256, -128, tmp_path
    )
    judge(model, telling([6]), lambda x: softmax([factor * v for v in x]), 1 / 256, -128)


def test_long_rows_need_more_bits(tmp_path: Path) -> None:
    bits = {}
    for length in (4, 200):
        model = model_of([length], lambda b, x: b.node("Softmax", x, axis=-1), 1 / 256, -128, tmp_path)
        judge(model, telling([length], count=2), softmax, 1 / 256, -128)
        (node,) = (n for n in model.quantized.nodes if isinstance(n.attributes, QuotientAttributes))
        bits[length] = node.inputs[0].typed.element.bits
    assert bits[200] > bits[4]


@pytest.mark.parametrize(
    ("opset", "axis"), [(13, 1), (13, 2), (11, 1), (11, 2), (13, -1)]
)
def test_the_axis(opset: int, axis: int, tmp_path: Path) -> None:
    """Before operator set 13 an axis stands for all from there on."""
    shape = [3, 4]
    model = model_of(shape, lambda b, x: b.node("Softmax", x, axis=axis), 1 / 100, 0, tmp_path, opset=opset)

    def meaning(x: list[Any]) -> list[Any]:
        grid = np.array(x, dtype=object).reshape(shape)
        if opset < 13:
            parts = grid.reshape((1, -1) if axis == 1 else (3, 4))
            return [v for row in parts for v in softmax(list(row))]
        along = grid.T if axis == 1 else grid
        result = np.array([softmax(list(row)) for row in along], dtype=object)
        return list((result.T if axis == 1 else result).reshape(-1))

    judge(model, telling(shape, count=5), meaning, 1 / 100, 0)


def between_layers() -> Builder:
    rng = np.random.default_rng(0)
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 3, 4]), 0.05, 3, "int8")
    h = b.requantize(b.node("MatMul", d, b.weights(rng.integers(-20, 20, (4, 6)))), 0.11, 3, "int8")
    r = b.requantize(b.node("Softmax", h, axis=-1, name="it"), 1 / 256, -128, "int8")
    b.output(b.requantize(b.node("MatMul", r, b.weights(rng.integers(-20, 20, (6, 5)))), 0.13, 3, "int8"))
    return b


def test_between_two_layers(tmp_path: Path) -> None:
    """The comparison leaves nothing unexplained, the emitted design computes what the golden model computes in the
    cycles predicted, and the report says how sure it is."""
    path = between_layers().save(tmp_path)
    assert all(row.unexplained == 0 for row in compare(path, frames=40).rows)
    design = compile(path, "ulx3s_85f", fps=1e6)
    report = design.write(tmp_path / "out", until="verilog")
    for stall in (0.0, 0.5):
        assert simulate(tmp_path / "out", simulator="icarus", frames=3, stall=stall, seed=5).findings == ()
    (stated,) = {
        layer["requantizer"]["epsilon"] for layer in report["layers"] if layer["requantizer"] is not None
    } - {0.0}
    assert 0 < stated <= 2.0**-24


def test_a_quantizer_before_it_is_all_it_needs(tmp_path: Path) -> None:
    """Whatever made what the quantizer rounds: running sums have no bound of their own."""
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 4]), 0.5, 3, "int8")
    sums = b.requantize(b.node("CumSum", x, b.constant(1, "int64")), 1.5, 3, "int8")
    b.output(b.requantize(b.node("Softmax", sums, name="it"), 1 / 256, -128, "int8"))
    path = b.save(tmp_path)
    assert "it" not in load(path).quantized.suffix
    assert all(row.unexplained == 0 for row in compare(path, frames=20).rows)


@pytest.mark.parametrize("name", ["test_softmax_axis_1", "test_softmax_default_axis", "test_softmax_large_number"])
def test_of_onnx(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path)


def test_at_the_end_the_host_runs_it(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 4]), 0.5, 3, "int8")
    b.output(b.node("Softmax", b.node("MatMul", x, b.weights(np.ones((4, 3), int))), name="it"))
    path = b.save(tmp_path)
    assert load(path).quantized.suffix[-1] == "it"


def scaled(b: Builder, x: str) -> str:
    return b.node("Softmax", b.node("Mul", x, b.constant(0.001)), axis=-1)


def test_a_long_range_of_small_steps(tmp_path: Path) -> None:
    """No table holds it: exponentials of digits are multiplied."""
    model = model_of([5], scaled, 1 / 256, -128, tmp_path, kind="int16")
    factor = fmpq(*Fraction(float(np.float32(0.001))).as_integer_ratio())
    judge(model, telling([5], "int16", count=8), lambda x: softmax([v * factor for v in x]), 1 / 256, -128)
    *tables, _ = (n for n in model.quantized.nodes if isinstance(n.attributes, RequantizeAttributes))
    assert all(table.inputs[0].typed.interval.hi < 1 << 11 for table in tables)


def of_sums() -> Builder:
    rng = np.random.default_rng(0)
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 3, 16]), 0.05, 3, "int8")
    sums = b.node("MatMul", x, b.weights(rng.integers(-100, 100, (16, 4)), 0.003))
    r = b.requantize(b.node("Softmax", sums, axis=-1, name="it"), 1 / 256, -128, "int8")
    b.output(b.requantize(b.node("MatMul", r, b.weights(rng.integers(-20, 20, (4, 5)))), 0.13, 3, "int8"))
    return b


def test_of_sums(tmp_path: Path) -> None:
    """Without a quantizer before it."""
    path = of_sums().save(tmp_path)
    assert all(row.unexplained == 0 for row in compare(path, frames=40).rows)
    check_simulated(compile(path, "ulx3s_85f", fps=1e5), stalls=(0.0, 0.5))


@pytest.mark.parametrize(("opset", "axis"), [(13, 2), (13, 1), (11, 1)])
def test_of_integers(opset: int, axis: int, tmp_path: Path) -> None:
    """onnxruntime's operator, along the axes of the operator set that it names."""
    scale, zero = 1 / 256, -128
    b = Builder(21, 10)
    x = b.input("x", ["N", 3, 4], "int8")
    parameters = [b.constant(0.07), b.constant(5, "int8"), b.constant(scale), b.constant(zero, "int8")]
    y = b.node("QLinearSoftmax", x, *parameters, axis=axis, opset=opset, domain="com.microsoft")
    b.output(b.declare(y, ["N", 3, 4], "int8"))

    def meaning(x: list[Any]) -> list[Any]:
        grid = np.array(x, dtype=object).reshape(3, 4)
        if opset < 13:
            return softmax(x)
        if axis == 2:
            return [v for row in grid for v in softmax(list(row))]
        return list(np.array([softmax(list(row)) for row in grid.T], dtype=object).T.reshape(-1))

    judge(b.load(tmp_path), telling([3, 4], count=5), meaning, scale, zero)


def test_of_integers_between_two_layers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 3, 4]), 0.05, 3, "int8")
    h = b.quantize(b.node("MatMul", d, b.weights(rng.integers(-20, 20, (4, 6)))), 0.11, 3, "uint8")
    parameters = [b.constant(0.11), b.constant(3, "uint8"), b.constant(1 / 256), b.constant(0, "uint8")]
    y = b.node("QLinearSoftmax", h, *parameters, axis=-1, opset=13, domain="com.microsoft")
    y = b.dequantize(b.declare(y, ["N", 3, 6], "uint8"), 1 / 256, 0, "uint8")
    b.output(b.requantize(b.declare(b.node("MatMul", y, b.weights(np.ones((6, 5), int))), ["N", 3, 5]), 0.1, 3, "int8"))
    path = b.save(tmp_path)
    assert all(row.unexplained == 0 for row in compare(path, frames=40).rows)
    check_simulated(compile(path, "ulx3s_85f", fps=1e6))
