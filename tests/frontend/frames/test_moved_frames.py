"""Models with a variable number of frames that move their axis away and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from hwflow.api.checking import check
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.verify import golden
from tests.models import Builder


def time_first(b: Builder, inner: Callable[[Builder, str], str], *, back: bool = True) -> Builder:
    """x [N, 3, 4], with ``inner`` on [3, N, 4] between quantizers."""
    x = b.requantize(b.input("x", ["N", 3, 4]), 0.5, 0, "int8")
    y = inner(b, b.node("Transpose", x, perm=[1, 0, 2]))
    b.output(b.requantize(b.node("Transpose", y, perm=[1, 0, 2]) if back else y, 0.5, 0, "int8"))
    return b


def product(b: Builder, x: str) -> str:
    return b.node("MatMul", x, b.weights(np.arange(20).reshape(4, 5) - 9, 0.25))


def parts(b: Builder, x: str) -> str:
    """Along time: the first two, and the last, doubled and put in front."""
    first = b.node("Split", x, b.constant([2, 1], "int64"), outputs=["rest"], axis=0)
    return b.node("Concat", b.node("Add", "rest", "rest"), first, axis=0)


def last_step(b: Builder, x: str) -> str:
    """The last time step as rows, and an axis for it again."""
    step = b.node("Gather", x, b.constant(2, "int64"), axis=0)
    return b.node("Unsqueeze", b.node("Relu", step), b.constant([0], "int64"))


@pytest.mark.parametrize("inner", [product, parts, last_step])
def test_frames_come_back(inner: Callable[[Builder, str], str], tmp_path: Path) -> None:
    model = time_first(Builder(21, 10), inner).load(tmp_path)
    x = (np.random.default_rng(0).integers(-20, 21, (5, 3, 4)) * 0.5).astype(np.float32)
    (wanted,) = ReferenceEvaluator(model.proto).run(None, {"x": x})
    found = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, {"x": x})), {"x": x})
    np.testing.assert_array_equal(next(iter(found.values())), wanted)


def across(b: Builder, x: str) -> str:
    return b.node("Softmax", x, axis=1)


def summed(b: Builder, x: str) -> str:
    return b.node("CumSum", x, b.constant(1, "int64"))


@pytest.mark.parametrize("inner", [across, summed])
def test_frames_that_meet_are_refused(inner: Callable[[Builder, str], str], tmp_path: Path) -> None:
    findings = check(time_first(Builder(21, 10), inner).save(tmp_path))
    assert "frame-axis" in {finding.rule for finding in findings}


def test_frames_that_stay_away_are_refused(tmp_path: Path) -> None:
    findings = check(time_first(Builder(21, 10), product, back=False).save(tmp_path))
    assert "frame-axis" in {finding.rule for finding in findings}
