"""Shapes that do not fit an operator of a dialect, and attributes of another kind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hwflow.onnxspec.resolving.resolved_model import ValueInfo
from hwflow.onnxspec.shapes import dialects
from hwflow.onnxspec.shapes.dialects import ShapeError


def infos(*shapes: tuple[int, ...]) -> list[ValueInfo | None]:
    return [ValueInfo(f"i{place}", shape, "float32") for place, shape in enumerate(shapes)]


@pytest.mark.parametrize("call, message", [
    (lambda: dialects._input(infos((1,)), 1), "input 1 must be present, but it is absent"),
    (lambda: dialects._integer({"axis": "a"}, "axis", 0), "attribute 'axis' must be an integer, not 'a'"),
    (lambda: dialects.concat(infos((), ()), {}), "must have at least one tensor to concatenate, not none"),
    (lambda: dialects.matmul(infos((), (3,), ()), {}), r"A and B must have at least 1 dimension, not \[\] and \[3\]"),
    (lambda: dialects.matmul(infos((2, 3), (4, 2), ()), {}), "inner dimensions of A and B must be equal, not 3 and 4"),
    (
        lambda: dialects.matmul(infos((2, 1, 3), (3, 3, 2), ()), {}),
        r"the inputs must broadcast, not \[2, 1, 3\] with \[3, 3, 2\]",
    ),
])
def test_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        call()


@pytest.mark.parametrize("a, b, result", [
    ((2, 3), (3, 4), (2, 4)), ((3,), (3, 4), (4,)), ((2, 3), (3,), (2,)), ((3,), (3,), ()),
    ((5, 2, 3), (3, 4), (5, 2, 4)), ((5, 1, 2, 3), (6, 3, 4), (5, 6, 2, 4)),
])
def test_matmul(a: tuple[int, ...], b: tuple[int, ...], result: tuple[int, ...]) -> None:
    """As numpy's."""
    assert dialects.matmul(infos(a, b, ()), {}) == (result, "float32")
