"""Support vector machines beside plain Python, which computes kernels and decisions one by one, and onnxruntime."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hwflow.errors import ModelRefused
from hwflow.onnxspec.reference.evaluation import RegionEvaluator
from hwflow.onnxspec.reference.svm_defects import coupled
from hwflow.operators.float_errors.analysis import analyse
from tests.operators.ml.nodes import ML, Array, close, defects, defined, flat_of, floats, model_of, rows
from tests.operators.ml.test_linear_models import TRANSFORMS

PARAMETERS = [0.25, 0.5, 2.0]
KERNELS: dict[str, Any] = {
    "LINEAR": lambda a, b: dot(a, b),
    "POLY": lambda a, b: (0.25 * dot(a, b) + 0.5) ** 2,
    "RBF": lambda a, b: math.exp(-0.25 * sum((x - y) ** 2 for x, y in zip(a, b, strict=True))),
    "SIGMOID": lambda a, b: math.tanh(0.25 * dot(a, b) + 0.5),
}


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def kernels(kernel: str, x: Array, vectors: Sequence[float]) -> list[list[float]]:
    size = x.shape[1]
    parts = [vectors[k : k + size] for k in range(0, len(vectors), size)]
    return [[KERNELS[kernel](row, part) for part in parts] for row in x.astype(float).tolist()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("kernel", KERNELS)
def test_regressor(dtype: Any, kernel: str) -> None:
    rng = np.random.default_rng(len(kernel))
    x, vectors, weights = rows(rng, 5, 3, dtype), floats(rng, 12), floats(rng, 4)
    given: dict[str, Any] = {
        "coefficients": weights, "support_vectors": vectors, "n_supports": 4, "rho": [0.125], "kernel_type": kernel,
        "kernel_params": PARAMETERS,
    }
    expected = [[dot(row, weights) + 0.125] for row in kernels(kernel, x, vectors)]
    (found,) = defined("SVMRegressor", {"x": x}, **given)
    assert found.dtype == np.float32
    close(found, expected, 1e-4)
    (found,) = defined("SVMRegressor", {"x": x}, one_class=1, **given)
    assert found.tolist() == [[1.0 if score > 0 else -1.0] for (score,) in expected]


def test_regressor_without_vectors() -> None:
    x = np.array([[2, 1], [-1, 0]], np.float32)
    (found,) = defined("SVMRegressor", {"x": x}, coefficients=[1.0, 0.5], rho=[0.25], post_transform="LOGISTIC")
    close(found, [[1 / (1 + math.exp(-2.75))], [1 / (1 + math.exp(0.75))]])


def machine(rng: np.random.Generator, counts: Sequence[int], kernel: str) -> dict[str, Any]:
    """The attributes of a classifier of so many support vectors of three features."""
    classes, total = len(counts), sum(counts)
    return {
        "coefficients": floats(rng, (classes - 1) * total), "support_vectors": floats(rng, 3 * total),
        "vectors_per_class": [*counts], "rho": floats(rng, classes * (classes - 1) // 2), "kernel_type": kernel,
        "kernel_params": PARAMETERS,
    }


def decided(x: Array, given: dict[str, Any]) -> list[list[float]]:
    """The decisions of each frame: of classes 0 and 1, 0 and 2, ..., 1 and 2, ..."""
    counts, total = given["vectors_per_class"], sum(given["vectors_per_class"])
    owners = [owner for owner, count in enumerate(counts) for _ in range(count)]
    result = []
    for row in kernels(given["kernel_type"], x, given["support_vectors"]):
        decisions = []
        for i in range(len(counts)):
            for j in range(i + 1, len(counts)):
                score = given["rho"][len(decisions)]
                for vector, owner in enumerate(owners):
                    if owner in (i, j):
                        line = j - 1 if owner == i else i
                        score += given["coefficients"][line * total + vector] * row[vector]
                decisions.append(score)
        result.append(decisions)
    return result


def winner(decisions: Sequence[float], classes: int) -> int:
    votes, index = [0] * classes, 0
    for i in range(classes):
        for j in range(i + 1, classes):
            votes[i if decisions[index] > 0 else j] += 1
            index += 1
    return votes.index(max(votes))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("counts", "names"), [((2, 1), [8, 5]), ((1, 3), ["no", "yes"]), ((2, 1, 3, 1), [3, 2, 1, 0])])
def test_classifier(kernel: str, counts: tuple[int, ...], names: list[Any]) -> None:
    rng = np.random.default_rng(sum(counts))
    x, given = rows(rng, 8, 3), machine(rng, counts, kernel)
    key = "classlabels_strings" if names[0] == "no" else "classlabels_ints"
    middle = np.median(decided(x, given), axis=0)
    given["rho"] = [r - float(m) - 0.01 for r, m in zip(given["rho"], middle, strict=True)]
    decisions = decided(x, given)
    assert len({winner(row, len(counts)) for row in decisions}) > 1
    for transform, function in TRANSFORMS.items():
        label, scores = defined("SVMClassifier", {"x": x}, 2, post_transform=transform, **{key: names}, **given)
        assert label.tolist() == [names[winner(row, len(counts))] for row in decisions]
        both = [[-row[0], row[0]] if len(counts) == 2 else row for row in decisions]
        close(scores, [function(row) for row in both], 1e-4)


def test_classifier_without_vectors() -> None:
    x = np.array([[2, 1], [-1, 0], [0, -3]], np.float32)
    given: dict[str, Any] = {"coefficients": [1, 0, 0, 1, -1, -1.0], "rho": [0.5], "classlabels_ints": [7, 8, 9]}
    label, scores = defined("SVMClassifier", {"x": x}, 2, **given)
    assert scores.tolist() == [[2.5, 1.5, -2.5], [-0.5, 0.5, 1.5], [0.5, -2.5, 3.5]]
    assert label.tolist() == [7, 9, 9]


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize(("counts", "names"), [((2, 1), ["a", "b"]), ((2, 1, 3), [5, 6, 7])])
def test_probabilities_couple_the_decisions(dtype: Any, counts: tuple[int, ...], names: list[Any]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(4)
    x, given = rows(rng, 6, 3, dtype), machine(rng, counts, "RBF")
    given |= {"prob_a": floats(rng, len(given["rho"])), "prob_b": floats(rng, len(given["rho"]))}
    given |= {"classlabels_strings" if names[0] == "a" else "classlabels_ints": names}
    flat = flat_of("SVMClassifier", {"x": x}, 2, **given)
    (coupling,) = (node for node in flat.graph.node if node.domain == ML)
    assert coupling.input[0] != "x" and coupling.output[0] != "y0"
    ours = RegionEvaluator(flat).run(["y0", "y1"], {"x": x})
    session = runtime.InferenceSession(model_of("SVMClassifier", {"x": x}, 2, version=3, opset=15, **given)
                                       .SerializeToString(), providers=["CPUExecutionProvider"])
    label, scores = session.run(None, {"x": x})
    session = runtime.InferenceSession(flat.SerializeToString(), providers=["CPUExecutionProvider"])
    for found, shares in (ours["y0"], ours["y1"]), session.run(["y0", "y1"], {"x": x}):
        assert np.asarray(found).tolist() == np.asarray(label).tolist()
        close(shares, scores, 1e-5)


def test_defects_of_the_evaluator() -> None:
    rng = np.random.default_rng(4)
    x, three, two = rows(rng, 6, 3), machine(rng, (2, 1, 3), "RBF"), machine(rng, (2, 1), "RBF")
    three |= {"prob_a": floats(rng, 3), "prob_b": floats(rng, 3), "classlabels_ints": [5, 6, 7]}
    theirs, (_, scores), names = defects("SVMClassifier", {"x": x}, 2, **three)
    assert names == {"svmclassifier-coupling"} and not np.allclose(theirs[1], scores, atol=0.01)
    probable = {"prob_a": [-1.0], "prob_b": [0.5]}
    theirs, (label, _), names = defects("SVMClassifier", {"x": x}, 2, classlabels_strings=["a", "b"], **two, **probable)
    assert names == {"svmclassifier-strings"} and isinstance(theirs, str) and {*label.tolist()} <= {"a", "b"}
    theirs, (_, scores), names = defects(
        "SVMClassifier", {"x": x.astype(np.int64)}, 2, classlabels_ints=[1, 2], **two, **probable
    )
    assert names == {"svmclassifier-integers"} and not np.any(theirs[1]) and np.allclose(scores.sum(axis=1), 1)


def test_pairwise_coupling() -> None:
    """Pairs that come from probabilities of classes give these again."""
    wanted = np.array([0.5, 0.3, 0.15, 0.05])
    pairs = wanted[:, None] / (wanted[:, None] + wanted)
    np.fill_diagonal(pairs, 0)
    close(coupled(pairs), wanted, 0.01)


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_the_bound_of_coupled_probabilities(classes: int) -> None:
    """Decisions within their errors give probabilities within the bound, which is of use; a label is sure or not."""
    rng, pairs = np.random.default_rng(classes), classes * (classes - 1) // 2
    x = (rng.normal(size=(12, pairs)) * 2).astype(np.float32)
    given: dict[str, Any] = machine(rng, [1] * classes, "LINEAR")
    given |= {"prob_a": [-float(v) for v in rng.uniform(0.5, 1.5, pairs)], "prob_b": floats(rng, pairs)}
    proto = model_of("SVMClassifier", {"x": x}, 2, classlabels_ints=[*range(classes)], **of_decisions(classes, given))
    region = RegionEvaluator(proto).region(["y0", "y1"], frozenset(["x"]))
    for error in (0.0, 1e-3, 0.05):
        reach = np.full(x.shape, error)
        bounds = analyse(region, {"x": x}, {"x": reach})
        label, shares = (bounds.errors[name] for name in ("y0", "y1"))
        assert not bounds.unbounded and label is not None and shares is not None
        assert np.isinf(label).tolist() == [error > 0 and bool((abs(row) <= error).any()) for row in x]
        assert 0 < shares.max() < 0.05 + 2 * error
        moved = 0.0
        for _ in range(20):
            near = (x + rng.choice([-1, 1], x.shape) * reach * 0.99).astype(np.float32)
            found = np.asarray(region.values({"x": near})["y1"], np.float64)
            moved = max(moved, float((abs(found - bounds.values["y1"]) / shares).max()))
        assert moved <= 1 and (not error or moved > 0.001)


def of_decisions(classes: int, given: dict[str, Any]) -> dict[str, Any]:
    """The node behind the decisions, as the definition makes it."""
    weights = np.zeros((classes - 1, classes * (classes - 1) // 2))
    seconds = [j for i in range(classes) for j in range(i + 1, classes)]
    weights[[j - 1 for j in seconds], range(len(seconds))] = 1
    return {
        **given, "kernel_type": "LINEAR", "kernel_params": [0.0] * 3, "rho": [0.0] * len(seconds),
        "vectors_per_class": [classes - 1 - k for k in range(classes)], "coefficients": weights.reshape(-1).tolist(),
        "support_vectors": np.eye(len(seconds)).reshape(-1).tolist(),
    }


def test_many_classes_are_the_hosts() -> None:
    classes = 130
    given = machine(np.random.default_rng(3), [1] * classes, "LINEAR")
    flat = flat_of("SVMClassifier", {"x": np.zeros((1, 3), np.float32)}, 2, classlabels_ints=[*range(classes)], **given)
    assert [node.domain for node in flat.graph.node] == [ML]


def test_numbers_of_vectors() -> None:
    x = {"x": np.zeros((1, 3), np.float32)}
    with pytest.raises(ModelRefused, match="kernel_params must have 3 elements, not 0"):
        defined("SVMRegressor", x, coefficients=[1.0], support_vectors=[0.0] * 3, n_supports=1, rho=[0.0],
                kernel_type="RBF")
    with pytest.raises(ModelRefused, match="support_vectors must have 6 elements, not 3"):
        defined("SVMRegressor", x, coefficients=[1.0, 1.0], support_vectors=[0.0] * 3, n_supports=2, rho=[0.0])
    with pytest.raises(ModelRefused, match="rho must have 3 elements, not 1"):
        defined("SVMClassifier", x, 2, coefficients=[1.0] * 6, support_vectors=[0.0] * 9, vectors_per_class=[1, 1, 1],
                rho=[0.0], classlabels_ints=[1, 2, 3])
    with pytest.raises(ModelRefused, match="kernel_type must be one of LINEAR, POLY, RBF, SIGMOID, not 'CUBIC'"):
        defined("SVMRegressor", x, coefficients=[1.0], support_vectors=[0.0] * 3, n_supports=1, rho=[0.0],
                kernel_type="CUBIC")
