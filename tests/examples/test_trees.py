"""The committed classifiers of scikit-learn: their form, what they tell by exact sums over trees, the golden model."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest

import hwflow

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "trees"
RIGHT = {"tumours": 160, "digits": 510}
"""Samples of the test split that scikit-learn tells right."""


@pytest.fixture(scope="module", params=RIGHT)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_form(name: str) -> None:
    counts = Counter(node.op_type for node in onnx.load(FOLDER / f"{name}.onnx").graph.node)
    assert counts["TreeEnsembleClassifier"] == counts["ZipMap"] == 1
    assert counts["Scaler"] == (name == "tumours")


def test_compared(name: str) -> None:
    comparison = hwflow.compare(FOLDER / f"{name}.onnx", inputs=FOLDER / f"{name}.npz", frames=40)
    assert comparison.unexplained == comparison.mismatches == 0


def test_accuracy(name: str) -> None:
    """Classes by rational sums of the leaves behind float32 comparisons."""
    with np.load(FOLDER / f"{name}.npz") as arrays:
        features, label = arrays["features"], arrays["label"]
    nodes = {node.op_type: node for node in onnx.load(FOLDER / f"{name}.onnx").graph.node}
    if "Scaler" in nodes:
        scaler = attributes(nodes["Scaler"])
        features = (features - np.float32(scaler["offset"])) * np.float32(scaler["scale"])
    ensemble = attributes(nodes["TreeEnsembleClassifier"])
    tree = {
        key: (feature, np.float32(limit), true, false) if mode != b"LEAF" else None
        for *key_, mode, feature, limit, true, false in zip(
            *(ensemble[f"nodes_{what}"] for what in (
                "treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids"
            )), strict=True,
        ) for key in [tuple(key_)]
    }
    leaves: dict[tuple[int, int], list[tuple[int, Fraction]]] = {}
    for *key_, target, weight in zip(
        *(ensemble[f"class_{what}"] for what in ("treeids", "nodeids", "ids", "weights")), strict=True
    ):
        leaves.setdefault(tuple(key_), []).append((target, Fraction(weight)))
    trees = sorted({number for number, _ in tree})
    right = 0
    for row, expected in zip(features, label, strict=True):
        scores: Counter[int] = Counter()
        for number in trees:
            node = 0
            while (test := tree[number, node]) is not None:
                feature, limit, true, false = test
                node = true if row[feature] <= limit else false
            for target, weight in leaves[number, node]:
                scores[target] += weight
        if name == "tumours":  # one score, of the second class
            found = int(sum(scores.values()) + Fraction(ensemble["base_values"][0]) > 0)
        else:
            found = max(range(10), key=lambda target: scores[target])
        right += found == expected
    assert right == RIGHT[name]


def attributes(node: onnx.NodeProto) -> dict[str, object]:
    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
