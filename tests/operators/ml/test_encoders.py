"""Categories to numbers and labels: examples of the specification, and dictionaries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from hwflow.errors import ModelRefused
from hwflow.onnxspec.reference.evaluation import RegionEvaluator
from tests.operators.ml.nodes import ML, Array, defects, defined, flat_of


def by_the_host(op: str, inputs: dict[str, Array], **options: Any) -> list[Any]:
    """What a node without a definition gives."""
    flat = flat_of(op, inputs, **options)
    assert [node.domain for node in flat.graph.node] == [ML]
    return np.asarray(RegionEvaluator(flat).run(["y0"], inputs)["y0"]).tolist()


def test_one_hot_encoder() -> None:
    x = np.array([[2, 1], [0, 3]], np.int64)
    expected = [[[0, 1, 0], [1, 0, 0]], [[0, 0, 0], [0, 0, 1]]]
    for given in (x, x.astype(np.int32), x + 0.75, x.astype(np.float32)):  # reals are cut off
        (found,) = defined("OneHotEncoder", {"x": given}, cats_int64s=[1, 2, 3])
        assert found.dtype == np.float32 and found.tolist() == expected
    reals = np.array([[-3.5, -2.5, -0.75], [40_000.5, 1.99, math.inf]], np.float32)
    (found,) = defined("OneHotEncoder", {"x": reals}, cats_int64s=[-3, -2, 0, 1])
    assert found.argmax(axis=2).tolist() == [[0, 1, 2], [0, 3, 0]]
    assert found.sum(axis=2).tolist() == [[1, 1, 1], [0, 1, 0]]
    (found,) = defined("OneHotEncoder", {"x": reals[1:, :2]}, cats_int64s=[40_000, 2])
    assert found.tolist() == [[[1, 0], [0, 0]]]
    (found,) = defined("OneHotEncoder", {"x": np.array([1, 2], np.int32)}, cats_int64s=[5_000_000_000, 2, 0])
    assert found.tolist() == [[0, 0, 0], [0, 1, 0]]
    texts = {"x": np.array([["b", "?"]], object)}
    assert by_the_host("OneHotEncoder", texts, cats_strings=["a", "b"]) == [[[0, 1], [0, 0]]]
    with pytest.raises(ModelRefused, match="cats_int64s must hold different categories, at least one"):
        defined("OneHotEncoder", {"x": x}, cats_int64s=[1, 1])


@pytest.mark.parametrize("kind", [object, np.int64, np.float32, np.float64])
def test_unknown_categories_without_zeros(kind: Any) -> None:
    """They are an error on the host; where hardware takes the integers, they are zeros."""
    given: dict[str, Any] = {"cats_strings": ["4", "2"]} if kind is object else {"cats_int64s": [4, 2]}
    known, unknown = ({"x": np.array(row).astype(str if kind is object else kind).astype(kind)}
                      for row in ([[2, 4]], [[2, 3]]))  # fmt: skip
    assert by_the_host("OneHotEncoder", known, zeros=0, **given) == [[[0, 1], [1, 0]]]
    (name,) = given
    with pytest.raises(ModelRefused, match=f"every category must be among {name}, since zeros is 0, not '?3'?"):
        by_the_host("OneHotEncoder", unknown, zeros=0, **given)
    (found,) = defined("OneHotEncoder", {"x": np.array([[2, 3]], np.int32)}, zeros=0, cats_int64s=[4, 2])
    assert found.tolist() == [[[0, 1], [0, 0]]]


@pytest.mark.parametrize(
    ("keys", "values", "default"),
    [
        ({"keys_int64s": [3, -5, 3, 9]}, {"values_int64s": [7, 8, 9, -1]}, {"default_int64": 4}),
        ({"keys_int64s": [3, -5]}, {"values_floats": [0.5, 1.5]}, {"default_float": -2.5}),
        ({"keys_int64s": [3, 0]}, {"values_strings": ["x", "y"]}, {}),
        ({"keys_floats": [0.5, math.nan, 0.0, math.nan]}, {"values_int64s": [1, 2, 3, 4]}, {}),
        ({"keys_floats": [0.5, math.inf]}, {"values_floats": [1.0, 2.0]}, {}),
    ],
)
def test_label_encoder_of_numbers(keys: dict[str, Any], values: dict[str, Any], default: dict[str, Any]) -> None:
    of_reals = "keys_floats" in keys
    x = np.array([0.5, math.nan, -0.0, 1.5, math.inf], np.float32) if of_reals else np.array([3, -5, 0, 9, 1])
    ((key_list,), (value_list,)) = keys.values(), values.values()
    table: dict[Any, Any] = {("nan" if k != k else k): v for k, v in zip(key_list, value_list, strict=True)}
    otherwise = next(iter(default.values()), {"values_int64s": -1, "values_floats": -0.0}.get(*values, "_Unused"))
    expected = [table.get("nan" if k != k else k, otherwise) for k in x.tolist()]
    for version in (2, 4):
        (found,) = defined("LabelEncoder", {"x": x}, version=version, **keys, **values, **default)
        assert found.tolist() == expected
        (found,) = defined("LabelEncoder", {"x": x.reshape(-1, 1)}, version=version, **keys, **values, **default)
        assert found.tolist() == [[each] for each in expected]


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.float64])
def test_label_encoder_of_tensors(dtype: Any) -> None:
    keys, values = (numpy_helper.from_array(np.array(v, dtype)) for v in ([2, 3], [20, 30]))
    (found,) = defined("LabelEncoder", {"x": np.array([3, 4, 2], dtype)}, keys_tensor=keys, values_tensor=values,
                       default_tensor=numpy_helper.from_array(np.array([-7], dtype)))
    assert found.dtype == dtype and found.tolist() == [30, -7, 20]


@pytest.mark.parametrize("first", [-(2**31), -(2**31) + 1, -3, 2**31 - 40])
def test_tables(first: int) -> None:
    """Keys near each other, at the ends of the type, too: a table; and elements beyond them."""
    keys = [first + 3 * k for k in range(14)]
    x = np.array(sorted({*keys, *(min(max(k + d, -(2**31)), 2**31 - 1) for k in keys for d in (-1, 1, 50))}), np.int32)
    tensors = {
        name: numpy_helper.from_array(np.array(values, np.int32))
        for name, values in (("keys_tensor", keys), ("values_tensor", range(14)), ("default_tensor", [-1]))
    }
    (found,) = defined("LabelEncoder", {"x": x}, **tensors)
    assert found.tolist() == [keys.index(key) if key in keys else -1 for key in x.tolist()]


def test_many_keys_are_the_hosts() -> None:
    keys = [k * k * 1_000 for k in range(2000)]
    x = {"x": np.array([keys[7], 5, keys[1999]])}
    assert by_the_host("LabelEncoder", x, keys_int64s=keys, values_int64s=[*range(2000)]) == [7, -1, 1999]
    lost = {"x": np.array([math.nan, 3.0, -1.0], np.float32)}
    floats = [math.nan, *map(float, range(1500)), math.nan]
    assert by_the_host("LabelEncoder", lost, keys_floats=floats, values_int64s=[*range(1502)]) == [1501, 4, -1]
    (found,) = defined("LabelEncoder", {"x": np.array([0, 4000, -1])}, keys_int64s=[*range(5000)],
                       values_int64s=[*range(5000, 0, -1)])  # fmt: skip
    assert found.tolist() == [5000, 1000, -1]


def test_strings_are_the_hosts() -> None:
    names = {"x": np.array(["Dori", "Amy", "Amy", "Sally", "Sally"], object)}
    given: dict[str, Any] = {"keys_strings": ["Amy", "Sally"], "values_int64s": [5, 6]}
    for version in (2, 4):
        assert by_the_host("LabelEncoder", names, version=version, **given) == [-1, 5, 5, 6, 6]
    texts = [numpy_helper.from_array(np.array(v, object)) for v in (["Amy", "Sally"], ["a", "s"], ["?"])]
    tensors = dict(zip(("keys_tensor", "values_tensor", "default_tensor"), texts, strict=True))
    assert by_the_host("LabelEncoder", names, **tensors) == ["?", "a", "a", "s", "s"]
    classes = ["Amy", "Sally", "Dori"]
    assert by_the_host("LabelEncoder", names, version=1, classes_strings=classes) == [2, 0, 0, 1, 1]
    (found,) = defined("LabelEncoder", {"x": np.array([2, 0, 7])}, version=1, classes_strings=classes)
    assert found.tolist() == ["Dori", "Amy", "_Unused"]


def test_category_mapper() -> None:
    given: dict[str, Any] = {"cats_int64s": [4, 2], "cats_strings": ["four", "two"]}
    names = {"x": np.array([["two"], ["four"], ["six"]], object)}
    assert by_the_host("CategoryMapper", names, default_int64=-3, **given) == [[2], [4], [-3]]
    (found,) = defined("CategoryMapper", {"x": np.array([[2], [4], [6]])}, **given)
    assert found.tolist() == [["two"], ["four"], ["_Unused"]]


def test_parallel_lists() -> None:
    x = {"x": np.array([1])}
    with pytest.raises(ModelRefused, match="there must be as many keys as values, not 2 and 1"):
        defined("LabelEncoder", x, keys_int64s=[1, 2], values_int64s=[1])
    with pytest.raises(ModelRefused, match="keys must be of the input's type, int64, not float32"):
        defined("LabelEncoder", x, keys_floats=[1.0], values_int64s=[1])


def test_what_the_evaluator_lacks() -> None:
    names = {"x": np.array(["a", "b"], object)}
    for op, given in (
        ("LabelEncoder", {"version": 1, "classes_strings": ["b", "a"]}),
        ("CategoryMapper", {"cats_int64s": [1, 0], "cats_strings": ["a", "b"]}),
    ):
        theirs, (found,), _ = defects(op, names, **given)
        assert isinstance(theirs, str) and found.tolist() == [1, 0]
    reals = {"x": np.array([[1.75, -1.5, math.nan]])}
    theirs, (found,), named = defects("OneHotEncoder", reals, cats_int64s=[1, -1], zeros=1)
    assert named == {"onehotencoder-reals"} and not theirs[0].any() and found.tolist() == [[[1, 0], [0, 1], [0, 0]]]
    theirs, (found,), named = defects("OneHotEncoder", {"x": np.array([[[2]]])}, cats_int64s=[1, 2])
    assert named == {"onehotencoder-axes"} and "not implemented" in theirs and found.tolist() == [[[[0, 1]]]]
