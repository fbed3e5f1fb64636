"""Scaling, thresholds, missing values and places of features: the specification's words in plain Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hwflow.errors import ModelRefused
from tests.operators.ml.nodes import Array, close, defined, floats, rows

TYPES = [np.float32, np.float64, np.int32, np.int64]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lengths", [(3, 3), (1, 1), (1, 3), (0, 3), (3, 0)])
def test_scaler(dtype: Any, lengths: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    x = rows(rng, 5, 3, dtype)
    offsets, scales = (floats(rng, length) for length in lengths)
    given = {name: v for name, v in (("offset", offsets), ("scale", scales)) if v}
    (found,) = defined("Scaler", {"x": x}, **given)
    assert found.dtype == np.float32
    by, times = (offsets or [0.0]) * 3, (scales or [1.0]) * 3
    close(found, [[(float(v) - by[k]) * times[k] for k, v in enumerate(row)] for row in x])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(dtype: Any, norm: str) -> None:
    x = rows(np.random.default_rng(2), 6, 4, dtype)
    x[2] = [-1, -3, -2, -5]
    (found,) = defined("Normalizer", {"x": x}, norm=norm)
    expected = []
    for row in x.astype(float).tolist():
        by = {"MAX": max(row), "L1": sum(map(abs, row)), "L2": math.sqrt(sum(v * v for v in row))}[norm]
        expected.append([v / by for v in row] if by else row)
    assert found.dtype == np.float32
    close(found, expected)


@pytest.mark.parametrize(
    ("dtype", "threshold"),
    [
        (np.float32, 0.5), (np.float64, 0.1), (np.float32, math.inf), (np.int64, 0.5), (np.int32, -1.5),
        (np.int32, 2.0), (np.int32, 3e9), (np.int32, -3e9), (np.int64, math.nan),
        (np.int64, -math.inf), (np.int64, math.inf),
    ],
)
def test_binarizer(dtype: Any, threshold: float) -> None:
    x = np.array([[-3, -2, -1], [0, 1, 2], [3, 4, 0]], dtype)
    if x.dtype.kind == "f":
        x[0] = [math.nan, np.float32(threshold) if math.isfinite(threshold) else 0, math.inf]
    (found,) = defined("Binarizer", {"x": x}, threshold=threshold)
    assert found.dtype == dtype
    limit = float(np.float32(threshold))
    assert found.tolist() == [[int(float(v) > limit) for v in row] for row in x]


def test_imputer() -> None:
    x = np.array([[1, math.nan, -2], [math.nan, 7, 7]], np.float32)
    kept: dict[str, Any] = {"imputed_value_floats": [10.0, 20.0, 30.0]}
    close(defined("Imputer", {"x": x}, replaced_value_float=math.nan, **kept)[0], [[1, 20, -2], [10, 7, 7]])
    close(defined("Imputer", {"x": x}, replaced_value_float=7.0, imputed_value_floats=[0.5])[0],
          [[1, math.nan, -2], [math.nan, 0.5, 0.5]])
    for dtype in (np.int32, np.int64):
        (found,) = defined("Imputer", {"x": np.array([[0, 5, 0]], dtype)}, imputed_value_int64s=[1, 2, 3])
        assert found.dtype == dtype and found.tolist() == [[1, 5, 3]]
    with pytest.raises(ModelRefused, match="imputed_value_int64s must be within int32, not 5000000000"):
        defined("Imputer", {"x": np.array([[0]], np.int32)}, imputed_value_int64s=[5_000_000_000])
    with pytest.raises(ModelRefused, match="imputed_value_floats must have 1 or 3 elements, not 2"):
        defined("Imputer", {"x": x}, imputed_value_floats=[1.0, 2.0])


def test_feature_vectorizer() -> None:
    a, b, c = np.array([[1, 2], [3, 4]], np.int64), np.array([[5], [6]], np.int64), np.array([7, 8], np.int64)
    (found,) = defined("FeatureVectorizer", {"a": a, "b": b, "c": c}, inputdimensions=[2, 1, 1])
    assert found.dtype == np.float32 and found.tolist() == [[1, 2, 5, 7], [3, 4, 6, 8]]
    (found,) = defined("FeatureVectorizer", {"a": a, "b": b}, inputdimensions=[1, 3])
    assert found.tolist() == [[1, 5, 0, 0], [3, 6, 0, 0]]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, object])
def test_array_feature_extractor_of_features(dtype: Any) -> None:
    x = np.array([[[1, 2, 3]], [[4, 5, 6]]], dtype)
    x = x if dtype is not object else x.astype(str).astype(object)
    for places in (np.array([2, 0]), np.array([[2, 0]]), np.array([[2], [0]])):
        (found,) = defined("ArrayFeatureExtractor", {"x": x}, constants={"z": places})
        assert found.tolist() == [[[row[0][2], row[0][0]]] for row in x.tolist()]


def test_array_feature_extractor_of_labels() -> None:
    """scikit-learn's exporters take labels by the index of the class: one index, and one label, of each frame."""
    labels = np.array(["a", "b", "c"], object)
    for places in (np.array([[2], [0], [1], [2]]), np.array([2, 0, 1, 2])):
        (found,) = defined("ArrayFeatureExtractor", {"z": places}, constants={"a": labels})
        assert found.tolist() == [["c"], ["a"], ["b"], ["c"]]


@pytest.mark.parametrize("opset", [None, 9, 13, 22])
def test_any_operator_set_of_onnx(opset: int | None) -> None:
    x: Array = np.array([[3.0, -4.0]], np.float32)
    close(defined("Normalizer", {"x": x}, norm="MAX", opset=opset, version=1)[0], [[1, -4 / 3]])
    close(defined("FeatureVectorizer", {"x": x}, inputdimensions=[3], opset=opset, version=1)[0], [[3, -4, 0]])
