"""onnxruntime's FusedMatMul: products of two streams, or with a constant, whose operands' axes change first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwflow.api.checking import check
from hwflow.api.compiler import compile
from hwflow.onnxspec.dialect_operators.norm_operators import fused_matmul
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.reference_agreement import agree_with_reference
from tests.simulated_model import check_simulated

DOMAIN = "com.microsoft"
SCALE = 1.9348217  # no ties


def honoured(b: Builder, x: str, **attributes: Any) -> str:
    """Of [N, 2, 3, 4]."""
    left = (4, 3) if attributes.get("transA") else (3, 4)
    right = (2, 5, left[1]) if attributes.get("transB") else (2, left[1], 5)
    w = b.weights(np.random.default_rng(7).integers(-9, 10, right), 0.25)
    y = b.node("FusedMatMul", x, w, domain=DOMAIN, **attributes)
    return b.declare(y, ["N", 2, left[0], 5])


def square(b: Builder, x: str, **attributes: Any) -> str:
    return b.declare(b.node("FusedMatMul", x, x, domain=DOMAIN, **attributes), ["N", 2, 3, 3])


HONOURED = [
    ("FusedMatMul", honoured, {"alpha": 0.75}), ("FusedMatMul", honoured, {"transA": 1}),
    ("FusedMatMul", honoured, {"transB": 1}),
]

NODES = [("FusedMatMul", lambda size, rank: [(np.ones((size, 3)), "float")], lambda rank: {})]


def shape_of(shape: list[int], turned: bool, batch: bool) -> list[int]:
    """A shape that becomes ``shape``."""
    shape = [*shape[:-2], shape[-1], shape[-2]] if turned else list(shape)
    return [shape[-2], *shape[:-2], shape[-1]] if batch else shape


def streams(attributes: dict[str, Any], batch: int | str) -> Builder:
    """A product [2, 3, 5] @ [2, 5, 4], of operands as the attributes have them, with frames in front or alone."""
    b = Builder(21, 10)
    shapes = [
        shape_of(shape, bool(attributes.get(f"trans{n}")), bool(attributes.get(f"transBatch{n}")))
        for n, shape in (("A", [2, 3, 5]), ("B", [2, 5, 4]))
    ]
    front = [batch] if isinstance(batch, str) else []
    inputs = [
        b.requantize(b.input(name, [*front, *shape]), scale, zero, "int8")
        for name, shape, scale, zero in zip("ab", shapes, (0.5, 0.25), (3, -2), strict=True)
    ]
    y = b.declare(b.node("FusedMatMul", *inputs, domain=DOMAIN, alpha=0.5, **attributes), [*front, 2, 3, 4])
    b.output(b.requantize(y, SCALE * 4, 1, "int8"))
    return b


@pytest.mark.parametrize("attributes", [{}, {"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1}])
def test_two_streams(attributes: dict[str, Any]) -> None:
    agree_with_reference(streams(attributes, "N"))


@pytest.mark.parametrize("attributes", [
    {"transBatchA": 1}, {"transBatchB": 1}, {"transBatchA": 1, "transBatchB": 1, "transB": 1},
    {"transBatchA": 1, "transA": 1},
])
def test_the_first_axis_becomes_one_of_rows(attributes: dict[str, Any], tmp_path: Path) -> None:
    """Where it is none of frames: the model's tensors are one frame."""
    assert all(row.unexplained == 0 for row in compare(streams(attributes, 0).save(tmp_path), frames=20).rows)


def test_the_frame_axis_stays(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 3, 4]), 0.5, 3, "int8")
    y = b.declare(b.node("FusedMatMul", x, x, domain=DOMAIN, transBatchA=1, transBatchB=1, transB=1, name="it"),
                  [3, "N", "N"])
    b.output(b.quantize(y, 0.5))
    assert [f for f in check(b.save(tmp_path)) if f.severity != "warning"]


def test_a_constant_on_the_left() -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 2, 3, 4]), 0.5, 3, "int8")
    w = b.weights(np.random.default_rng(7).integers(-9, 10, (3, 5)), 0.25)
    y = b.node("FusedMatMul", w, x, domain=DOMAIN, transA=1, alpha=1.5)
    b.output(b.requantize(b.declare(y, ["N", 2, 5, 4]), SCALE, 1, "int8"))
    agree_with_reference(b)


def test_the_definition() -> None:
    """By numpy's einsum, another way to say it."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(3, 2, 5)), rng.normal(size=(2, 4, 5))
    found = fused_matmul([a, b], {"transBatchA": 1, "transB": 1, "alpha": 0.5})
    np.testing.assert_allclose(found, 0.5 * np.einsum("mbk,bnk->bmn", a, b))
    a = rng.normal(size=(5, 2, 3))
    found = fused_matmul([a, b], {"transBatchA": 1, "transA": 1, "transB": 1})
    np.testing.assert_allclose(found, np.einsum("kbm,bnk->bmn", a, b))


def test_in_hardware(tmp_path: Path) -> None:
    path = streams({"transB": 1}, "N").save(tmp_path)
    assert all(row.unexplained == 0 for row in compare(path, frames=20).rows)
    check_simulated(compile(path, "ulx3s_85f", fps=1e5))
