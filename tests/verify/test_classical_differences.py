"""Where onnxruntime computes operators of ai.onnx.ml in another way than they are defined: each difference in the list,
shown, and the nodes that it does not apply to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.onnxspec.graphs.attribute_values import python_attributes
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.reference.evaluation import RegionEvaluator
from hwflow.operators.onnx_operators import RECORDS
from hwflow.operators.record import ML
from tests.operators.ml.ensembles import Branch, Leaf, named_attributes, placed_attributes
from tests.operators.ml.nodes import flat_of, model_of

X = np.array([[-1.5, 2.0], [0.5, -0.25], [3.0, 0.0], [-0.25, -4.0]], np.float32)
Attributes = Mapping[str, Any]


def trees(*leaves: tuple[list[tuple[int, float]], list[tuple[int, float]]], mode: str = "LEQ") -> list[Any]:
    """Trees of one test each, of features in turn against 0.25."""
    return [Branch(mode, k % 2, 0.25, False, Leaf(low), Leaf(high)) for k, (low, high) in enumerate(leaves)]


def classes(*leaves: Any, labels: int, **attributes: Any) -> dict[str, Any]:
    return named_attributes(trees(*leaves), "class") | {"classlabels_int64s": [*range(labels)]} | attributes


def targets(*leaves: Any, mode: str = "LEQ", **attributes: Any) -> dict[str, Any]:
    return named_attributes(trees(*leaves, mode=mode), "target") | attributes


def placed(trees: list[Any], targets: int, **attributes: Any) -> dict[str, Any]:
    return placed_attributes(trees, "float32") | {"n_targets": targets} | attributes


ONE = ([(0, -1.0)], [(0, 0.75)]), ([(0, 0.5)], [(0, -0.25)])
POSITIVE = ([(0, 0.125)], [(0, 0.75)]), ([(0, 0.5)], [(0, 0.0)])
BOTH = ([(0, -1.0), (1, -2.0)], [(0, 0.5), (1, 0.25)]), ([(0, 0.5), (1, 0.25)], [(0, -0.5), (1, 0.5)])
SOME = ([(0, -1.0)], [(1, 0.75)]), ([(2, 0.5)], [(0, -0.25)])
NAMED = ([(0, 1.0)], [(1, 0.75)]), ([(2, 0.5)], [(0, 0.25)])
TWO = {"classlabels_int64s": [0, 1]}
ROW = {"coefficients": [1.0, -0.5], "intercepts": [0.25], "classlabels_ints": [3, 8]}
NONE_ABOVE_0 = {"coefficients": [0.0] * 6, "intercepts": [0.0, -1.0, -2.0]}  # 0 has no share
ROWS = {"coefficients": [1.0, -0.5, 0.5, 2.0, -1.0, 0.25], "intercepts": [0.25, 0, 0.5], "classlabels_ints": [3, 8, 1]}
NUMBERS = placed(trees(([(0, -1.0)], [(1, 0.75)]), ([(1, 0.5)], [(0, -0.25)])), 2)

CLASSIFIER, REGRESSOR, LINEAR = "TreeEnsembleClassifier", "TreeEnsembleRegressor", "LinearClassifier"
DIFFERENT: list[tuple[str, str, Attributes]] = [
    ("runtime-two-classes", CLASSIFIER, classes(*ONE, labels=2)),
    ("runtime-two-classes", CLASSIFIER, classes(*POSITIVE, labels=2, post_transform="LOGISTIC")),
    ("runtime-two-classes", CLASSIFIER, classes(*ONE, labels=2, post_transform="SOFTMAX")),
    ("runtime-two-classes", CLASSIFIER, classes(*BOTH, labels=2)),
    ("runtime-two-classes", CLASSIFIER, classes(*POSITIVE, labels=2, base_values=[0.25, 0.25])),
    ("runtime-one-row", LINEAR, ROW),
    ("runtime-one-row", LINEAR, ROW | {"post_transform": "SOFTMAX"}),
    ("runtime-choice", LINEAR, ROWS | {"post_transform": "SOFTMAX_ZERO"} | NONE_ABOVE_0),
    ("runtime-one-target", "LinearRegressor", {"coefficients": [1.0, -0.5], "post_transform": "LOGISTIC"}),
    ("runtime-one-target", REGRESSOR, targets(*ONE, n_targets=1, post_transform="SOFTMAX")),
    ("runtime-one-target", "TreeEnsemble", placed(trees(*ONE), 1, post_transform=3)),
    ("runtime-base", REGRESSOR, targets(*SOME, n_targets=3, base_values=[0.5, 1.0, 2.0])),
    ("runtime-unnamed", CLASSIFIER, classes(*SOME, labels=3)),
    ("runtime-unequal", REGRESSOR, targets(*ONE, mode="NEQ", n_targets=1)),
    ("runtime-unequal", CLASSIFIER, named_attributes(trees(*POSITIVE, mode="NEQ"), "class") | TWO),
    ("runtime-unequal", "TreeEnsemble", placed(trees(*ONE, mode="NEQ"), 1)),
    ("runtime-numbers", "TreeEnsemble", NUMBERS | {"post_transform": 1}),
    ("runtime-numbers", "TreeEnsemble", NUMBERS | {"post_transform": 2}),
]
EQUAL: list[tuple[str, Attributes]] = [
    (CLASSIFIER, classes(*POSITIVE, labels=2)),
    (CLASSIFIER, classes(*POSITIVE, labels=2, base_values=[0.25])),
    (CLASSIFIER, classes(*ONE, labels=2, post_transform="LOGISTIC")),
    (CLASSIFIER, classes(*SOME, labels=3, base_values=[0.5, 1.0, 2.0])),
    (CLASSIFIER, classes(*NAMED, labels=3, post_transform="SOFTMAX")),
    (CLASSIFIER, classes(*BOTH, ([(2, 1.0)], [(2, -1.0)]), labels=3, base_values=[0.5, 1.0, 2.0])),
    (LINEAR, ROW | {"post_transform": "LOGISTIC"}),
    (LINEAR, ROWS),
    ("LinearRegressor", {"coefficients": [1.0, -0.5], "post_transform": "PROBIT", "intercepts": [0.1]}),
    (REGRESSOR, targets(*SOME, n_targets=3, post_transform="SOFTMAX_ZERO")),
    (REGRESSOR, targets(*BOTH, n_targets=2, base_values=[0.5, 1.0])),
    ("TreeEnsemble", NUMBERS | {"post_transform": 3}),
    ("Normalizer", {"norm": "L1"}),
]


def sides(op: str, attributes: Attributes) -> tuple[bool, set[str]]:
    """Whether onnxruntime gives what the definition does, and the names of the differences that apply."""
    x = X.copy()
    if "NEQ" in str(attributes.get("nodes_modes")) or "nodes_splits" in attributes:
        x[0, 0] = np.nan
    outputs, version = (2 if "Classifier" in op else 1), 5 if op == "TreeEnsemble" else 3
    proto = model_of(op, {"x": x}, outputs, version=version, opset=15, **attributes)
    names = [f"y{k}" for k in range(outputs)]
    theirs = onnxruntime.InferenceSession(proto.SerializeToString()).run(names, {"x": x})
    flat = flat_of(op, {"x": x}, outputs, version=version, opset=15, **attributes)
    ours = RegionEvaluator(flat).run(names, {"x": x})
    equal = all(
        np.allclose(np.asarray(found, float), ours[name].astype(float), atol=1e-5, equal_nan=True)
        for name, found in zip(names, theirs, strict=True)
    )
    given = python_attributes(proto.graph.node[0], None)
    return equal, {each.name for each in facts_of(ML[0], op).differences if each.applies(given)}


def test_every_difference_is_shown_here() -> None:
    names = {each.name for record in RECORDS if ML[0] in record.domains for each in record.differences}
    assert names == {name for name, _, _ in DIFFERENT} | {"runtime-signs"}


@pytest.mark.parametrize(("name", "op", "attributes"), DIFFERENT)
def test_results_differ(name: str, op: str, attributes: Attributes) -> None:
    equal, names = sides(op, attributes)
    assert name in names and not equal


@pytest.mark.parametrize(("op", "attributes"), EQUAL)
def test_where_none_applies_results_are_equal(op: str, attributes: Attributes) -> None:
    assert sides(op, attributes) == (True, set())


def test_signs_are_lost_in_place() -> None:
    """The quotients of -3 and 4 by 5, where products of a known shape come before and after: nothing else reads it."""
    proto = model_of("Normalizer", {"x": X}, norm="L2", version=3, opset=15)
    (node,) = proto.graph.node
    node.input[0], node.output[0] = "before", "after"
    proto.graph.node.insert(0, helper.make_node("Mul", ["x", "two"], ["before"]))
    proto.graph.node.append(helper.make_node("Mul", ["after", "two"], ["y0"]))
    proto.graph.value_info.append(helper.make_tensor_value_info("after", TensorProto.FLOAT, ["N", 2]))
    proto.graph.initializer.append(numpy_helper.from_array(np.float32(2), "two"))
    found = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": np.array([[-3, 4]], np.float32)})
    np.testing.assert_allclose(found[0], [[1.2, 1.6]], rtol=1e-6)
    (difference,) = facts_of(ML[0], "Normalizer").differences
    assert difference.applies({"norm": "L2"}) and not difference.applies({})

