"""Clauses about operator sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.onnxspec.build import model, node
from tests.onnxspec.clauses.twins import Twin, check

TWINS = [
    Twin(
        "PRO-02",
        bad=model([node("Relu", ["x"], ["y"])], opsets={}),
        good=model([node("Relu", ["x"], ["y"])]),
        findings=[
            "error: model: opset_import must have at least one entry, but it is empty [PRO-02]\n"
            "  remedy: export the model again"
        ],
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)
