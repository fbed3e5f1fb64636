"""Multiply-accumulates of a node, counted by hand from the operators' definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from hwflow.onnxspec.resolving.resolved_model import OnnxNode, ValueInfo
from hwflow.operators.onnx_operators import WORK
from hwflow.operators.work import macs


def node(op: str, *shapes: tuple[int, ...], **attributes: Any) -> tuple[OnnxNode, Mapping[str, ValueInfo]]:
    """A node of inputs of ``shapes``, and of an output of the last."""
    names = [f"v{index}" for index in range(len(shapes))]
    values = {name: ValueInfo(name, shape, "float32") for name, shape in zip(names, shapes, strict=True)}
    return OnnxNode("n", op, "", 20, tuple(names[:-1]), (names[-1],), attributes), values


CASES = {
    "Conv": (node("Conv", (1, 4, 8, 8), (6, 2, 3, 3), (1, 6, 6, 6), group=2), 6 * 36 * 2 * 9),
    "ConvTranspose": (node("ConvTranspose", (1, 4, 5, 5), (4, 3, 2, 2), (1, 3, 10, 10)), 4 * 25 * 3 * 4),
    "ConvTranspose, groups": (node("ConvTranspose", (1, 4, 5), (4, 3, 2), (1, 6, 10), group=2), 4 * 5 * 3 * 2),
    "QLinearConv": (
        node("QLinearConv", (1, 4, 8), (), (), (6, 4, 3), (6,), (), (), (), (1, 6, 6)), 6 * 6 * 4 * 3
    ),
    "MatMul": (node("MatMul", (1, 7, 5), (5, 3), (1, 7, 3)), 7 * 5 * 3),
    "MatMul, a vector": (node("MatMul", (1, 7, 5), (5,), (1, 7)), 7 * 5),
    "Gemm": (node("Gemm", (5, 1), (5, 3), (1, 3), transA=1), 15),
    "Einsum": (node("Einsum", (1, 2, 3, 4), (1, 4, 5), (1, 2, 3, 5), equation="b...ij,bjk->b...ik"), 2 * 3 * 4 * 5),
    "Einsum of one": (node("Einsum", (1, 3), (1,), equation="bi->b"), 0),
    # An LSTM of two directions has four gates: (inputs + hidden) * hidden products each, a step.
    "LSTM": (
        node("LSTM", (6, 1, 3), (2, 20, 3), (2, 20, 5), (6, 2, 1, 5), hidden_size=5), 6 * 2 * 4 * (3 * 5 + 5 * 5)
    ),
    "Attention": (node("Attention", (1, 2, 6, 4), (1, 2, 7, 4), (1, 2, 7, 3), (1, 2, 6, 3)), 2 * 6 * 7 * (4 + 3)),
    "LinearAttention": (
        node("LinearAttention", (1, 6, 8), (1, 6, 8), (1, 6, 10), (1, 6, 10), kv_num_heads=2, update_rule="linear"),
        6 * 2 * (4 * 5 + 4 * 5),
    ),
    "Relu": (node("Relu", (1, 4), (1, 4)), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_by_hand(name):
    (made, values), expected = CASES[name]
    assert macs(made, values) == expected


@pytest.mark.parametrize("equation", ["ij,jk->ik", "i,i->", "bij,bjk->bik", "ii,i->i", "ab,bijk->aijk"])
def test_einsum_by_numpy(equation):
    """The sum over everything of products of ones counts them."""
    sizes = dict(zip("abijk", (2, 3, 4, 5, 6), strict=True))
    terms = equation.partition("->")[0]
    shapes = [tuple(sizes[axis] for axis in term) for term in terms.split(",")]
    made, values = node("Einsum", *shapes, (1,), equation=equation)
    assert macs(made, values) == np.einsum(f"{terms}->", *(np.ones(shape) for shape in shapes))


def test_every_linear_operator_of_the_standard_is_counted():
    """Whatever operators with weights or matrices the schemas have."""
    parts = ("Attention", "Conv", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN")
    names = {s.name for s in onnx.defs.get_all_schemas() if s.domain == ""}
    assert {name for name in names if any(part in name for part in parts)} <= set(WORK)
