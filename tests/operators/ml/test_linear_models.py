"""Linear models beside plain Python, and beside onnxruntime where it keeps to the specification."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hwflow.errors import ModelRefused
from tests.operators.ml.nodes import Array, close, defined, floats, model_of, rows


def scores_of(x: Array, weights: Sequence[float], addends: Sequence[float]) -> list[list[float]]:
    size = x.shape[1]
    sets = [weights[k : k + size] for k in range(0, len(weights), size)]
    starts = addends or [0.0] * len(sets)
    return [
        [sum(float(v) * w for v, w in zip(row, part, strict=True)) + start
         for part, start in zip(sets, starts, strict=True)] for row in x
    ]


def softmax(row: Sequence[float]) -> list[float]:
    top = max(row)
    powers = [math.exp(v - top) for v in row]
    return [p / sum(powers) for p in powers]


def logistic(row: Sequence[float]) -> list[float]:
    return [1 / (1 + math.exp(-v)) for v in row]


TRANSFORMS: dict[str, Any] = {"NONE": list, "SOFTMAX": softmax, "LOGISTIC": logistic}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(dtype: Any, transform: str, targets: int) -> None:
    rng = np.random.default_rng(targets)
    x, weights = rows(rng, 5, 4, dtype), floats(rng, 4 * targets)
    addends = floats(rng, targets) if transform != "SOFTMAX" else []
    given = {"intercepts": addends} if addends else {}
    (found,) = defined(
        "LinearRegressor", {"x": x}, coefficients=weights, targets=targets, post_transform=transform, **given
    )
    assert found.dtype == np.float32
    close(found, [TRANSFORMS[transform](row) for row in scores_of(x, weights, addends)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("names", [[5, -7, 9], [0, 1, 2], ["a", "b", "c"], []])
def test_linear_classifier(dtype: Any, transform: str, names: list[Any]) -> None:
    rng = np.random.default_rng(len(names))
    x, weights, addends = rows(rng, 6, 4, dtype), floats(rng, 12), floats(rng, 3)
    x[0], addends = 0, [0.5, 0.75, 0.75]  # equal scores: the first of them
    key = "classlabels_strings" if names[:1] == ["a"] else "classlabels_ints"
    label, scores = defined(
        "LinearClassifier", {"x": x}, 2, coefficients=weights, intercepts=addends, post_transform=transform,
        **({key: names} if names else {}),
    )
    expected = scores_of(x, weights, addends)
    assert label.tolist() == [(names or [0, 1, 2])[row.index(max(row))] for row in expected]
    assert label.dtype.kind == ("O" if names[:1] == ["a"] else "i") and scores.dtype == np.float32
    close(scores, [TRANSFORMS[transform](row) for row in expected])


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("names", [[5, 7], ["no", "yes"]])
def test_one_row_for_two_classes(transform: str, names: list[Any]) -> None:
    rng = np.random.default_rng(5)
    x, weights = rows(rng, 6, 3), floats(rng, 3)
    key = "classlabels_strings" if names[0] == "no" else "classlabels_ints"
    label, scores = defined(
        "LinearClassifier", {"x": x}, 2, coefficients=weights, intercepts=[0.0], post_transform=transform,
        **{key: names},
    )
    second = [row[0] for row in scores_of(x, weights, [])]
    assert label.tolist() == [names[s > 0] for s in second] and label[0] == names[0], "0 is the first's"
    close(scores, [TRANSFORMS[transform]([-s, s]) for s in second])


@pytest.mark.parametrize(("transform", "expected"), [("NONE", [9, 9, 0]), ("LOGISTIC", [9, 9, 0])])
def test_one_class(transform: str, expected: list[int]) -> None:
    x = np.array([[2, 0], [0, 0], [-1, 0]], np.float32)
    given: dict[str, Any] = {"coefficients": [1.0, 0.0], "intercepts": [0.0], "post_transform": transform}
    label, scores = defined("LinearClassifier", {"x": x}, 2, classlabels_ints=[9], **given)
    assert label.tolist() == expected
    close(scores, [TRANSFORMS[transform](row) for row in ([2.0], [0.0], [-1.0])])
    assert defined("LinearClassifier", {"x": x}, 2, classlabels_strings=["q"], **given)[0].tolist() == ["q", "q", ""]


@pytest.mark.parametrize("transform", ["SOFTMAX_ZERO", "PROBIT"])
def test_other_transforms_choose_classes(transform: str) -> None:
    """The transformed scores decide: a 0 has nearly no share, and no number at all is above 1."""
    label, scores = defined(
        "LinearClassifier", {"x": np.array([[0.0, -0.5, -1.0]], np.float32)}, 2, post_transform=transform,
        coefficients=np.eye(3).reshape(-1).tolist(), intercepts=[0.0, 0.75, 1.5], classlabels_ints=[3, 4, 5],
    )
    # Scores are 0, 0.25 and 0.5.
    by_hand = {"SOFTMAX_ZERO": [0, 1 / (1 + math.exp(0.25)), 1 / (1 + math.exp(-0.25))]}
    if transform in by_hand:
        close(scores, [by_hand[transform]])
    assert label.tolist() == [5]


def test_beside_onnxruntime() -> None:
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(9)
    x = rows(rng, 8, 5)
    for op, outputs, given in (
        ("LinearRegressor", 1, {"targets": 2, "post_transform": "SOFTMAX"}),
        ("LinearClassifier", 2, {"classlabels_ints": [4, 8], "post_transform": "LOGISTIC"}),
        ("LinearClassifier", 2, {"classlabels_strings": ["u", "v"], "post_transform": "SOFTMAX"}),
    ):
        attributes: dict[str, Any] = {"coefficients": floats(rng, 10), "intercepts": floats(rng, 2), **given}
        session = runtime.InferenceSession(model_of(op, {"x": x}, outputs, version=3, opset=15, **attributes)
                                           .SerializeToString(), providers=["CPUExecutionProvider"])
        for theirs, ours in zip(session.run(None, {"x": x}), defined(op, {"x": x}, outputs, **attributes), strict=True):
            if ours.dtype.kind == "f":
                close(ours, theirs)
            else:
                assert ours.tolist() == np.asarray(theirs).tolist()


def test_numbers_of_coefficients() -> None:
    x = {"x": np.zeros((1, 3), np.float32)}
    with pytest.raises(ModelRefused, match="coefficients must have 6 elements, not 5"):
        defined("LinearRegressor", x, coefficients=[0.0] * 5, targets=2)
    with pytest.raises(ModelRefused, match="coefficients must have a row of 3 for each of 3 classes, not 2 rows"):
        defined("LinearClassifier", x, 2, coefficients=[0.0] * 6, classlabels_ints=[1, 2, 3])
    with pytest.raises(ModelRefused, match="intercepts must have 2 elements, not 1"):
        defined("LinearClassifier", x, 2, coefficients=[0.0] * 6, intercepts=[0.0], classlabels_ints=[1, 2])
