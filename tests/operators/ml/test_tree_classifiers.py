"""Classifiers of trees, and transforms behind ensembles: against onnx's own evaluator and onnxruntime."""

from __future__ import annotations

import random
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

import hwflow
from hwflow.errors import ModelRefused
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.host.random_inputs import random_inputs
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.operators.ml import ensembles
from tests.operators.ml.ensembles import MODES, Branch, Leaf, grown, model_of, named_attributes, reached

TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def forest(rng: random.Random, ids: list[int], scale: float, modes: Any = MODES) -> list[Any]:
    values = [[float(np.float32(rng.gauss(0, 1))) for _ in range(5)] for _ in range(4)]

    def leaf() -> list[tuple[int, float]]:
        return [(k, float(np.float32(rng.gauss(0, scale)))) for k in ids]

    return [grown(rng, 3, values, leaf, modes) for _ in range(5)]


def outputs_of(model: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    return model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays)


def saved(proto: onnx.ModelProto, folder: Any) -> Any:
    onnx.save(proto, folder / "m.onnx")
    return hwflow.load(folder / "m.onnx")


def onnx_results(proto: onnx.ModelProto, arrays: dict[str, Any]) -> list[Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return list(ReferenceEvaluator(proto).run(None, arrays))


CLASSES = {
    "two": ([0], [0, 1]), "named": ([0], [7, -3]), "both": ([0, 1], [0, 1]),
    "three": ([0, 1, 2], [5, 1, 9]), "strings": ([0, 1, 2], ["a", "b", "c"]), "two strings": ([0], ["no", "yes"]),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("case", CLASSES)
def test_against_onnx(case: str, transform: str, tmp_path: Any) -> None:
    """Labels are equal, scores up to floats."""
    ids, labels = CLASSES[case]
    rng = random.Random(f"{case} {transform}")
    trees = forest(rng, ids, 0.1 if transform == "PROBIT" else 1.0)
    strings = isinstance(labels[0], str)
    attributes = named_attributes(trees, "class") | {
        "post_transform": transform, "classlabels_strings" if strings else "classlabels_int64s": labels,
        "base_values": [0.25] * len(ids),
    }
    kind = TensorProto.STRING if strings else TensorProto.INT64
    outputs = [("label", kind, []), ("scores", TensorProto.FLOAT, [max(2, len(labels))])]
    proto = model_of("TreeEnsembleClassifier", attributes, 4, outputs)
    model = saved(proto, tmp_path)
    arrays = random_inputs(model, 100, np.random.default_rng(1))
    with np.errstate(all="ignore"):
        found = outputs_of(model, arrays)
    label, scores = onnx_results(proto, arrays)
    with np.errstate(invalid="ignore"):
        defined = np.isfinite(scores).all(axis=1) & np.isfinite(found["scores"]).all(axis=1)
    assert defined.sum() > 20
    assert found["label"][defined].tolist() == label[defined].tolist()
    np.testing.assert_allclose(found["scores"][defined], scores[defined], **near(transform))


def near(transform: str) -> dict[str, float]:
    """The evaluators' float errors; PROBIT subtracts numbers that are nearly equal."""
    return {"rtol": 2e-5, "atol": 2e-4 if transform == "PROBIT" else 2e-6}


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_against_onnxruntime(transform: str, tmp_path: Any) -> None:
    """The common kinds of exports: scores for each of three classes, or a logistic score for two."""
    for ids, labels in (([0, 1, 2], [0, 1, 2]), *((([0], [0, 1]),) if transform == "LOGISTIC" else ())):
        trees = forest(random.Random(3), ids, 1.0, ("LEQ",))  # one mode a model, as onnxruntime has it
        attributes = named_attributes(trees, "class") | {"post_transform": transform, "classlabels_int64s": labels}
        outputs = [("label", TensorProto.INT64, []), ("scores", TensorProto.FLOAT, [len(labels)])]
        proto = model_of("TreeEnsembleClassifier", attributes, 4, outputs)
        model = saved(proto, tmp_path)
        arrays = random_inputs(model, 200, np.random.default_rng(2))
        label, scores = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, arrays)
        found = outputs_of(model, arrays)
        assert found["label"].tolist() == label.tolist()
        np.testing.assert_allclose(found["scores"], scores, rtol=2e-5, atol=2e-6)
        assert compare(model, frames=100).unexplained == 0


def test_ties_and_labels_are_decided_exactly(tmp_path: Any) -> None:
    """Scores that float32 sums confuse: 2**25 + 1 and 2**25, and equal ones, of which the first counts."""
    big = 2.0**25
    leaves = [[(0, big), (1, big)], [(1, 1.0)], [(0, 1.0), (1, 0.0)]]
    trees = [Leaf(leaves[0]), Branch("LEQ", 0, 0.0, False, Leaf(leaves[1]), Leaf(leaves[2]))]
    for _ in range(2):
        attributes = named_attributes(trees, "class") | {"classlabels_int64s": [0, 1]}
        outputs = [("label", TensorProto.INT64, []), ("scores", TensorProto.FLOAT, [2])]
        model = saved(model_of("TreeEnsembleClassifier", attributes, 1, outputs), tmp_path)
        x = np.array([[-1.0], [1.0]], np.float32)
        label = outputs_of(model, {"x": x})["label"].tolist()
        adds = [[add for tree in trees for add in reached(tree, row).adds] for row in x.tolist()]
        exact = [[sum(Fraction(value) for k, value in row if k == c) for c in range(2)] for row in adds]
        assert label == [int(scores[1] > scores[0]) for scores in exact]
        trees.append(Branch("LEQ", 0, 0.0, False, Leaf([(0, 1.0)]), Leaf([(1, 1.0)])))  # a tie each


@pytest.mark.parametrize("transform", range(5))
def test_transforms_of_ensembles(transform: int, tmp_path: Any) -> None:
    """Version 5 and regressors: the transform of the exact sums, as classifiers have it."""
    rng = random.Random(transform)
    values = [[float(np.float32(rng.gauss(0, 1))) for _ in range(5)] for _ in range(3)]

    def leaf() -> list[tuple[int, float]]:
        return [(rng.randrange(3), float(np.float32(rng.uniform(0.0, 0.1))))]

    trees = [grown(rng, 3, values, leaf, MODES) for _ in range(4)]
    shape = [("y", TensorProto.FLOAT, [3])]
    attributes = {**ensembles.placed_attributes(trees, "float32"), "n_targets": 3, "post_transform": transform}
    models = [saved(model_of("TreeEnsemble", attributes, 3, shape, version=5), tmp_path)]
    name = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[transform]
    attributes = {**named_attributes(trees, "target"), "n_targets": 3, "post_transform": name}
    models.append(saved(model_of("TreeEnsembleRegressor", attributes, 3, shape), tmp_path))
    classes = named_attributes(trees, "class") | {"post_transform": name, "classlabels_int64s": [0, 1, 2]}
    outputs = [("label", TensorProto.INT64, []), ("y", TensorProto.FLOAT, [3])]
    proto = model_of("TreeEnsembleClassifier", classes, 3, outputs)
    arrays = random_inputs(models[0], 60, np.random.default_rng(0))
    expected = onnx_results(proto, arrays)[1]
    for model in models:
        with np.errstate(all="ignore"):
            found = outputs_of(model, arrays)["y"]
        defined = np.isfinite(found) & np.isfinite(expected)
        np.testing.assert_allclose(found[defined], expected[defined], **near(name))


def test_refusals(tmp_path: Any) -> None:
    trees = [Leaf([(0, 1.0)])]
    outputs = [("label", TensorProto.INT64, []), ("scores", TensorProto.FLOAT, [2])]
    cases: dict[str, list[int]] = {"exactly one of": [], "classlabels must be at least 2, not 1": [4]}
    for said, labels in cases.items():
        attributes = named_attributes(trees, "class") | ({"classlabels_int64s": labels} if labels else {})
        outputs[1] = ("scores", TensorProto.FLOAT, [max(1, len(labels))])
        with pytest.raises(ModelRefused, match=said):
            saved(model_of("TreeEnsembleClassifier", attributes, 1, outputs), tmp_path)
