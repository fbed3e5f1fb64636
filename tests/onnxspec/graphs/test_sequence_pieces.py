"""The pieces of a SplitToSequence, as the operator's specification has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hwflow.onnxspec.graphs.scopes import main_scopes
from hwflow.onnxspec.graphs.sequences import _pieces
from hwflow.onnxspec.graphs.typeforms import Dim, Level, LevelKind
from tests.onnxspec.build import model, node


@pytest.mark.parametrize("dims, split, attributes, pieces", [
    ((5, 4), None, {}, [(1, 4)]),
    ((5, 4), None, {"keepdims": 0}, [(4,)]),
    ((5, 4), None, {"axis": -1}, [(5, 1)]),
    ((5, 4), np.int64(2), {}, [(2, 4), (1, 4)]),
    ((4, 4), np.int64(2), {}, [(2, 4)]),
    ((1, 4), np.int64(2), {}, [(1, 4)]),
    (("N", 4), np.int64(2), {}, [(None, 4)]),
    ((5, 4), np.array([3, 1, 1]), {}, [(1, 4), (3, 4)]),
    ((5, 4), np.array([], np.int64), {}, [(None, 4)]),
    ((5, 4), "missing", {}, [(None, 4)]),
    ((5, 4), None, {"axis": 2}, []),
    ((), None, {}, []),
    (None, None, {}, []),
])
def test_pieces(dims: tuple[Dim, ...] | None, split: Any, attributes: dict[str, int], pieces: list[Any]) -> None:
    inputs = ["x"] if split is None else ["x", "split"]
    constants = {} if split is None or isinstance(split, str) else {"split": split}
    (scope,) = main_scopes(model([node("SplitToSequence", inputs, ["s"], **attributes)], constants=constants))
    source = (Level(LevelKind.TENSOR, 1, dims),)
    assert [form[0].dims for form in _pieces(scope, scope.nodes[0], source)] == pieces


def test_a_stated_constant() -> None:
    """The lengths come from a Constant node; a malformed one says nothing."""
    made = node("Constant", [], ["split"], value=model([], constants={"c": np.array([2, 3])}).graph.initializer[0])
    (scope,) = main_scopes(model([made, node("SplitToSequence", ["x", "split"], ["s"])]))
    source = (Level(LevelKind.TENSOR, 1, (5,)),)
    assert [form[0].dims for form in _pieces(scope, scope.nodes[1], source)] == [(2,), (3,)]
    made.attribute[0].t.raw_data = b"odd"
    (scope,) = main_scopes(model([made, node("SplitToSequence", ["x", "split"], ["s"])]))
    assert [form[0].dims for form in _pieces(scope, scope.nodes[1], source)] == [(None,)]
