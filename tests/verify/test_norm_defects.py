"""Defects of the evaluator's norms, shown in the installed onnx, and what evaluates around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from hwflow.operators.linear.lp_pools import GLOBAL
from hwflow.operators.norms import lp_norms, lrn
from tests.onnxspec.build import model, node, value
from tests.onnxspec.reference.test_evaluator_defects import Array, around, runtime

# The operator, shape of the input, attributes: by the defect's name, "" for none.
CASES: list[tuple[str, str, tuple[int, ...], dict[str, Any]]] = [
    ("", "LRN", (3, 3, 2, 4), {"size": 3, "alpha": 0.5}),
    ("lrn-channels", "LRN", (1, 5, 2, 4), {"size": 3, "alpha": 0.5, "bias": 2.0}),
    ("lrn-channels", "LRN", (2, 4, 2, 3), {"size": 5, "alpha": 0.5, "beta": 0.5}),
    ("", "LpNormalization", (3, 4, 2), {"axis": 1}),
    ("", "LpNormalization", (3, 4, 2), {"axis": 0}),
    ("lpnormalization-signs", "LpNormalization", (3, 4), {"p": 1}),
    ("globallppool", "GlobalLpPool", (2, 3, 4, 2), {}),
    ("globallppool", "GlobalLpPool", (2, 3, 5, 2), {"p": 1}),
]


@pytest.mark.parametrize(("name", "op", "shape", "attributes"), CASES)
def test_norms(name: str, op: str, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    nodes, outputs = [node(op, ["x"], ["y"], **attributes)], [value("y", [None] * len(shape))]
    proto = model(nodes, [value("x", list(shape))], outputs, {}, {"": 18}, 8)
    expected = runtime(proto, {"x": x})
    plain: Array | None
    try:
        plain = np.asarray(ReferenceEvaluator(proto).run(None, {"x": x})[0])
    except Exception:
        plain = None
    assert (plain is not None and np.allclose(plain, expected, rtol=1e-5)) == (not name)
    found, names = around(proto, {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert names == ({name} if name and name != "globallppool" else set())  # one that it lacks is not wrong


def test_a_norm_of_zero() -> None:
    """The result is defined to be zero."""
    for power in (1, 2):
        proto = model(
            [node("LpNormalization", ["x"], ["y"], p=power)], [value("x", [2, 2])], [value("y", [2, 2])], {}, {"": 22},
            10,
        )
        found, _ = around(proto, {"x": np.float32([[0, 0], [0, -2]])})
        np.testing.assert_array_equal(found, np.float32([[0, 0], [0, -1]]))


def test_every_defect_is_shown_here() -> None:
    every = {d.name for each in (GLOBAL, lrn.MENDED, lp_norms.MENDED) for d in each.defects}
    assert every == {name for name, *_ in CASES} - {""}
