"""Hardmax, ReduceProd, IsInf and IsNaN: against ONNX's reference evaluator, and ONNX's node tests in RTL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwflow.api.checking import check
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import node_tests_of, passes_in_rtl
from tests.reference_agreement import agree_with_reference


def own_hardmax(b: Builder, x: str, **attributes: Any) -> str:
    return b.node("Hardmax", x, **attributes)


def own_infinities(b: Builder, x: str, **attributes: Any) -> str:
    return b.node("Cast", b.node("IsInf", x, **attributes), to=1)


HONOURED = [
    ("Hardmax", own_hardmax, {"axis": 1}), ("IsInf", own_infinities, {"detect_negative": 0}),
    ("IsInf", own_infinities, {"detect_positive": 0}),
]
PRODUCTS = ["test_reduce_prod_keepdims_example", "test_reduce_prod_do_not_keepdims_example"]


@pytest.mark.parametrize("name", [*node_tests_of("Hardmax"), *PRODUCTS])
def test_node_tests_in_rtl(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path)


@pytest.mark.parametrize("axis", [1, 2, 3, -1])
@pytest.mark.parametrize("opset", [11, 13])
def test_hardmax(axis: int, opset: int) -> None:
    """Of few levels, so that equal ones meet; before operator set 13 along all axes from one on."""
    b = Builder(opset, 8)
    d = b.requantize(b.input("x", ["N", 2, 3, 4]), 64.0, 0, "int8")
    b.output(b.requantize(b.node("Hardmax", d, axis=axis), 1.0, 0, "uint8"))
    agree_with_reference(b)


def test_hardmax_of_scales_along_the_axis(tmp_path: Path) -> None:
    b = Builder(13, 8)
    d = b.requantize(b.input("x", ["N", 3]), np.array([0.1, 0.3, 0.7]), np.array([0, 3, -5]), "int8", axis=1)
    b.output(b.requantize(b.node("Hardmax", d), 1.0, 0, "uint8"))
    assert compare(b.load(tmp_path), frames=20).ok


@pytest.mark.parametrize("axes", [[1], [2], [3], [-1, 1], [1, 2, 3]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_products(axes: list[int], keepdims: int) -> None:
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 2, 1, 5]), 64.0, 1, "int8")
    y = b.node("ReduceProd", d, b.constant(axes, "int64"), keepdims=keepdims)
    b.output(b.requantize(y, 2.0**20, 0, "int16") if len(axes) == 1 else b.node("Greater", y, b.constant(0.0)))
    if len(axes) == 1:
        agree_with_reference(b)


@pytest.mark.parametrize("kind", ["int32", "uint32"])
def test_products_of_integers_wrap(kind: str, tmp_path: Path) -> None:
    b = Builder(18, 8)
    b.output(b.node("ReduceProd", b.input("x", ["N", 7], kind), b.constant([1], "int64")))
    frames = np.random.default_rng(0).integers(0, 200, (5, 7))
    (found,) = golden.evaluate(b.load(tmp_path).quantized, {"x": frames}).values()
    exact = [int(np.prod(row.astype(object))) % (1 << 32) for row in frames]
    expected = [v - (1 << 32) if kind == "int32" and v >= 1 << 31 else v for v in exact]
    assert found.reshape(-1).tolist() == expected


def test_products_that_are_too_wide(tmp_path: Path) -> None:
    b = Builder(18, 8)
    d = b.requantize(b.input("x", ["N", 9]), 0.5, 0, "int8")
    b.output(b.requantize(b.node("ReduceProd", d, b.constant([1], "int64"), name="n"), 0.5, 0, "int8"))
    (finding,) = check(b.save(tmp_path))
    assert finding.message == "products must have at most 62 bits, not 65 (of 9 elements)"


@pytest.mark.parametrize("op", ["IsInf", "IsNaN"])
def test_nothing_is_infinite(op: str) -> None:
    b = Builder(20, 9)
    d = b.requantize(b.input("x", ["N", 3]), 0.5, 0, "int8")
    b.output(b.node(op, d))
    agree_with_reference(b)
