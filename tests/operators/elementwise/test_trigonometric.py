"""Trigonometric and hyperbolic functions and their inverses: ONNX's node tests in RTL, the evaluator's rounding, and
arguments without a value. For their values see tests/numerics/functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.api.checking import check
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import node_tests_of, passes_in_rtl

FUNCTIONS = ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan")
BEYOND = {
    "Acos": "it takes the arc cosine of a number beyond -1 to 1",
    "Acosh": "it takes the hyperbolic arc cosine of a number below 1",
    "Asin": "it takes the arc sine of a number beyond -1 to 1",
    "Atanh": "it takes the hyperbolic arc tangent of a number that is not between -1 and 1",
}


@pytest.mark.parametrize("op", [op for op in FUNCTIONS if op not in ("Acosh", "Atanh")])
def test_node_tests_in_rtl(op: str, tmp_path: Path) -> None:
    """But for those that have no value for some integers of the quantizer in front of the node."""
    (name,) = (test for test in node_tests_of(op) if "example" in test)
    passes_in_rtl(name, tmp_path)


def network(op: str, scale: float, zero: int, step: float) -> Builder:
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 64]), scale, zero, "int8")
    b.output(b.requantize(b.node(op, d, name="n"), step, 0, "int8"))
    return b


@pytest.mark.parametrize("op", FUNCTIONS)
def test_the_evaluator_agrees(op: str, tmp_path: Path) -> None:
    """But for its own rounding, which its bound explains."""
    scale = {"Acos": 2**-7, "Asin": 2**-7, "Atanh": 2**-8}.get(op, 0.1)
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 64]), scale, 0 if op in BEYOND else 5, "int8")
    if op == "Acosh":
        d = b.node("Add", d, b.constant(14.0))
    y = b.node(op, d)
    b.output(b.requantize(y, 0.5 if op in ("Cosh", "Sinh", "Tan") else 0.03, 0, "int8"))
    assert compare(b.load(tmp_path), frames=20).ok


@pytest.mark.parametrize("op", BEYOND)
def test_arguments_without_a_value(op: str, tmp_path: Path) -> None:
    (finding,) = check(network(op, 0.25, 3, 0.5).save(tmp_path))
    assert f"must have a value everywhere, but {BEYOND[op]}" in finding.message


def test_no_quarter_turn_is_rational(tmp_path: Path) -> None:
    """22 / 14 lies beside one, where the tangent of a rational number still has a value."""
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 4]), 1 / 8, 0, "int8")
    b.output(b.requantize(b.node("Tan", d), 1.0, 0, "int8"))
    assert not [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert np.tan(1.625) < -18
