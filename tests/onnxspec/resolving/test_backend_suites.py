"""The models that come with the onnx package: every one is legal, and none may get an error."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import onnx
import pytest

from hwflow.onnxspec import read_model, validate

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
SLICES = 8


@cache
def node_models() -> list[tuple[str, onnx.ModelProto]]:
    """The models of the node tests, which onnx builds in memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, about the tests' own arithmetic
        from onnx.backend.test.loader import load_node_model_tests

        return [(case.name, case.model) for case in load_node_model_tests()]


def test_all_node_models_are_there() -> None:
    assert len(node_models()) == 1884  # onnx 1.23.2


@pytest.mark.parametrize("part", range(SLICES))
def test_node_models(part: int) -> None:
    wrong = {}
    for name, model in node_models()[part::SLICES]:
        errors = [str(f) for f in validate(model) if f.severity == "error"]
        if errors:
            wrong[name] = errors
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
