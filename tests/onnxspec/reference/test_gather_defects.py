"""Defects of the evaluator's GatherElements, shown in the installed onnx, and what evaluates around them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from hwflow.onnxspec.reference.evaluator_defects import substitutes
from hwflow.onnxspec.reference.gather_defects import GATHER_ELEMENTS
from tests.onnxspec.build import model, node, value
from tests.onnxspec.reference.test_evaluator_defects import Array, around, runtime

# Shape of the data, of the indices, axis: by the defect's name, "" for none.
CASES: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = [
    ("", (3, 4, 2), (3, 7, 2), 1),
    ("", (63, 2), (3, 2), 0),
    ("", (3, 4, 2), (3, 7, 2), -2),
    ("", (3, 4, 2), (3, 4, 2), -1),
    ("gatherelements-axis", (3, 4, 2), (3, 4, 5), -1),
    ("gatherelements-length", (3, 64, 2), (3, 7, 2), 1),
    ("gatherelements-length", (3, 200), (3, 7), 1),
    ("gatherelements-part", (3, 4, 5), (2, 4, 3), 1),
]


def gather_model(shape: tuple[int, ...], indices: Array, axis: int) -> onnx.ModelProto:
    nodes = [node("GatherElements", ["x", "i"], ["y"], axis=axis)]
    return model(nodes, [value("x", list(shape))], [value("y", [None] * len(shape))], {"i": indices}, {"": 13}, 8)


@pytest.mark.parametrize(("name", "shape", "counts", "axis"), CASES)
def test_gather_elements(name: str, shape: tuple[int, ...], counts: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=shape).astype(np.float32)
    indices = rng.integers(-shape[axis], shape[axis], counts)
    proto = gather_model(shape, indices, axis)
    expected = runtime(proto, {"x": x})
    try:
        plain = np.asarray(ReferenceEvaluator(proto).run(None, {"x": x})[0])
    except (ValueError, IndexError):
        plain = None
    assert (plain is not None and np.array_equal(plain, expected)) == (not name)
    found, names = around(proto, {"x": x})
    np.testing.assert_array_equal(found, expected)
    assert names == ({name} if name else set())


def test_every_defect_is_shown_here() -> None:
    assert {d.name for d in GATHER_ELEMENTS.defects} == {name for name, *_ in CASES} - {""}


def test_indices_out_of_range() -> None:
    """Which numpy would wrap around."""
    proto = gather_model((1, 3), np.array([[3]]), 1)
    with pytest.raises(ValueError, match=r"indices must lie in \[-3, 2\]"):
        around(proto, {"x": np.zeros((1, 3), np.float32)})


def test_there_is_none_before_operator_set_11() -> None:
    assert "GatherElements" not in {operator.__name__ for operator in substitutes({"": 10}, lambda name: None)}
