"""Reductions that onnx defines by others since operator set 18, in earlier ones, whose axes are an attribute."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwflow.api.checking import check
from hwflow.verify.comparison import compare
from tests.models import Builder

REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"]


def reduced(op: str, opset: int, axes: list[int] | None, keepdims: int) -> Builder:
    """Of numbers from 0.5 on where their logarithm is taken."""
    b = Builder(opset, 8)
    x = b.requantize(b.input("x", ["N", 2, 3, 4]), 0.25, 3, "int8")
    if op == "ReduceLogSum":
        x = b.node("Add", b.node("Relu", x), b.constant(0.5))
    attributes = {} if axes is None else {"axes": axes}
    b.output(b.quantize(b.node(op, x, keepdims=keepdims, name="it", **attributes), 0.37, 3, "int8"))
    return b


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize(("opset", "axes", "keepdims"), [(11, [-1], 1), (13, [2, 3], 1), (17, [1, -1], 1)])
def test_axes_of_an_attribute(op: str, opset: int, axes: list[int], keepdims: int, tmp_path: Path) -> None:
    path = reduced(op, opset, axes, keepdims).save(tmp_path)
    assert all(row.unexplained == 0 for row in compare(path, frames=20).rows)


def test_all_axes_are_not_those_of_a_frame(tmp_path: Path) -> None:
    found = [f for f in check(reduced("ReduceL2", 13, None, 1).save(tmp_path)) if f.severity != "warning"]
    assert [f.rule for f in found] == ["frame-axis"]
