"""The models that come with the onnx package: every one is legal, and none may get an error."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from hwflow.onnxspec import read_model, validate
from tests.onnx_node_tests.cases import node_cases

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
SLICES = 8


def test_all_node_models_are_there() -> None:
    assert len(node_cases()) == 1884  # onnx 1.23.2


@pytest.mark.parametrize("part", range(SLICES))
def test_node_models(part: int) -> None:
    wrong = {}
    for case in node_cases()[part::SLICES]:
        errors = [str(f) for f in validate(case.model) if f.severity == "error"]
        if errors:
            wrong[case.name] = errors
    assert wrong == {}


def test_models_on_disk() -> None:
    paths = sorted(DATA.rglob("*.onnx"))
    assert len(paths) == 149
    wrong = {}
    for path in paths:
        errors = [str(f) for f in validate(read_model(path), path) if f.severity == "error"]
        if errors:
            wrong[str(path.relative_to(DATA))] = errors
    assert wrong == {}
