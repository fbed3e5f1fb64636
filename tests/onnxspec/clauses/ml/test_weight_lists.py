"""Clauses of linear and support vector models."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwflow.onnxspec.clauses.ml.node_reading import INPUTS, LENGTHS, VALUES
from tests.onnxspec.build import value
from tests.onnxspec.clauses.ml.ml_models import CORRECT, INPUT, INT64, LISTS, STRING, twin
from tests.onnxspec.clauses.twins import Twin, check

LC = {"classlabels_ints": [1, 2, 3], "coefficients": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "intercepts": [0.0] * 3}
LB = {"classlabels_strings": ["a", "b"], "coefficients": [1.0, 2.0], "intercepts": [0.0]}
LR = {"coefficients": [1.0, 2.0, 3.0, 4.0], "targets": 2, "intercepts": [0.0, 1.0]}
SV = {
    "classlabels_ints": [1, 2, 3],
    "vectors_per_class": [1, 1, 2],
    "support_vectors": [0.0] * 8,
    "coefficients": [1.0] * 8,
    "rho": [0.0] * 3,
    "prob_a": [0.0] * 3,
    "prob_b": [0.0] * 3,
    "kernel_type": "RBF",
    "kernel_params": [0.5, 0.0, 3.0],
}
SL = {"classlabels_ints": [1, 2, 3], "coefficients": [1.0] * 6, "rho": [0.0]}
SR = {
    "n_supports": 2,
    "support_vectors": [1.0] * 4,
    "coefficients": [1.0, 2.0],
    "rho": [0.0],
    "kernel_type": "POLY",
    "kernel_params": [0.5, 0.0, 3.0],
}
INTEGER_LABELS = {"outputs": [value("y", ["N"], INT64), value("z", ["N", None])]}
TEXT_LABELS = {"outputs": [value("y", ["N"], STRING), value("z", ["N", None])]}


TWINS = [
    twin(
        "coef", LENGTHS, "LinearClassifier", LC,
        {"coefficients": [1.0] * 5},
        [
            ("'coefficients' must have a multiple of 3 entries (3 scores), not 5", LISTS),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "intercepts", LENGTHS, "LinearClassifier", LC,
        {"intercepts": [1.0] * 2},
        [
            ("'intercepts' must have 0 or 3 entries (3 classes), not 2", LISTS),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "binary", LENGTHS, "LinearClassifier", LB,
        {"intercepts": [1.0] * 3},
        [
            ("'intercepts' must have 0, 1 or 2 entries (2 classes), not 3", LISTS),
        ],
        **TEXT_LABELS, version=1,
    ),
    twin(
        "binary two", LENGTHS, "LinearClassifier", {**LB, "intercepts": [0.0, 0.0], "coefficients": [1.0] * 4},
        {"coefficients": [1.0] * 3},
        [
            ("'coefficients' must have a multiple of 2 entries (2 scores), not 3", LISTS),
        ],
        **TEXT_LABELS, version=1,
    ),
    twin(
        "features", INPUTS, "LinearClassifier", LC,
        {"coefficients": [1.0] * 9},
        [
            ("'coefficients' must have 6 entries (3 scores, 2 features of input 'x'), not 9", INPUT),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "features b", INPUTS, "LinearClassifier", LB,
        {"coefficients": [1.0] * 3},
        [
            ("'coefficients' must have 2 entries (1 score, 2 features of input 'x'), not 3", INPUT),
        ],
        **TEXT_LABELS, version=1,
    ),
    twin(
        "both labels", VALUES, "LinearClassifier", LC,
        {"classlabels_strings": ["a", "b", "c"]},
        [
            (
                "exactly one of 'classlabels_ints', 'classlabels_strings' must have entries, not both",
                "remove all but one of them",
            ),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "no labels", VALUES, "LinearClassifier", LC,
        {"classlabels_ints": None},
        [
            (
                "exactly one of 'classlabels_ints', 'classlabels_strings' must have entries, not none",
                "give the labels in one of them", "warning",
            ),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "transform", VALUES, "LinearClassifier", LC,
        {"post_transform": "none"},
        [
            ("'post_transform' must be one of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT, not 'none'", CORRECT),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "coef", LENGTHS, "LinearRegressor", LR,
        {"coefficients": [1.0] * 5},
        [
            ("'coefficients' must have a multiple of 2 entries (2 targets), not 5", LISTS),
        ],
        version=1,
    ),
    twin(
        "intercepts", LENGTHS, "LinearRegressor", LR,
        {"intercepts": [1.0]},
        [
            ("'intercepts' must have 0 or 2 entries (2 targets), not 1", LISTS),
        ],
        version=1,
    ),
    twin(
        "targets", VALUES, "LinearRegressor", LR,
        {"targets": 0},
        [
            ("'targets' must be at least 1, not 0", CORRECT),
        ],
        version=1,
    ),
    twin(
        "missing", VALUES, "LinearRegressor", LR,
        {"coefficients": None},
        [
            ("attribute 'coefficients' must have entries, but it is missing", "give 'coefficients'"),
        ],
        version=1,
    ),
    twin(
        "features", INPUTS, "LinearRegressor", LR,
        {"coefficients": [1.0] * 6},
        [
            ("'coefficients' must have 4 entries (2 targets, 2 features of input 'x'), not 6", INPUT),
        ],
        version=1,
    ),
    twin(
        "labels", VALUES, "SVMClassifier", SV,
        {"classlabels_ints": None},
        [
            (
                "exactly one of 'classlabels_ints', 'classlabels_strings' must have entries, not none",
                "give the labels in one of them", "warning",
            ),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "kernel", VALUES, "SVMClassifier", SV,
        {"kernel_type": "rbf"},
        [
            ("'kernel_type' must be one of LINEAR, POLY, RBF, SIGMOID, not 'rbf'", CORRECT),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "kernel params", LENGTHS, "SVMClassifier", SV,
        {"kernel_params": [1.0, 2.0]},
        [
            ("'kernel_params' must have 0 or 3 entries (gamma, coef0, degree), not 2", LISTS),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "no params", VALUES, "SVMClassifier", SV,
        {"kernel_params": None},
        [
            (
                "a kernel of type RBF must have 'kernel_params', but there are none: evaluators take zeros",
                "give gamma, coef0 and degree", "warning",
            ),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "vectors", LENGTHS, "SVMClassifier", SV,
        {"support_vectors": [0.0] * 7},
        [
            ("'support_vectors' must have a multiple of 4 entries (4 support vectors), not 7", LISTS),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "no vectors", VALUES, "SVMClassifier", SV,
        {"support_vectors": None},
        [
            ("attribute 'support_vectors' must have entries, but it is missing", "give 'support_vectors'"),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "per class", LENGTHS, "SVMClassifier", SV,
        {"vectors_per_class": [2, 2]},
        [
            ("'vectors_per_class' must have 3 entries (3 classes), not 2", LISTS),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "neg", VALUES, "SVMClassifier", SV,
        {"vectors_per_class": [2, -1, 3]},
        [
            ("'vectors_per_class' must be at least 0, not -1 for class 1", CORRECT),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "coef", LENGTHS, "SVMClassifier", SV,
        {"coefficients": [0.0] * 4},
        [
            ("'coefficients' must have 8 entries (4 support vectors, 3 classes), not 4", LISTS),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "rho", LENGTHS, "SVMClassifier", SV,
        {"rho": [0.0]},
        [
            ("'rho' must have 3 entries (pairs of 3 classes), not 1", LISTS),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "prob", LENGTHS, "SVMClassifier", SV,
        {"prob_a": [0.0] * 2, "prob_b": None},
        [
            ("'prob_a' and 'prob_b' must be equally long, not 2 and 0", LISTS),
            ("'prob_a' must have 0 or 3 entries (pairs of 3 classes), not 2", LISTS),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "features", INPUTS, "SVMClassifier", SV,
        {"support_vectors": [0.0] * 12},
        [
            ("'support_vectors' must have 8 entries (4 support vectors, 2 features of input 'x'), not 12", INPUT),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "linear coef", LENGTHS, "SVMClassifier", SL,
        {"coefficients": [1.0] * 5, "rho": None},
        [
            ("'coefficients' must have a multiple of 3 entries (3 classes), not 5", LISTS),
            ("'rho' must have 1 entry (the bias), not 0", LISTS),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "linear features", INPUTS, "SVMClassifier", SL,
        {"coefficients": [1.0] * 9},
        [
            ("'coefficients' must have 6 entries (3 classes, 2 features of input 'x'), not 9", INPUT),
        ],
        **INTEGER_LABELS, version=1,
    ),
    twin(
        "vectors", LENGTHS, "SVMRegressor", SR,
        {"support_vectors": [1.0] * 5},
        [
            ("'support_vectors' must have a multiple of 2 entries (2 support vectors), not 5", LISTS),
        ],
        version=1,
    ),
    twin(
        "coef", LENGTHS, "SVMRegressor", SR,
        {"coefficients": [1.0] * 3, "rho": [1.0, 2.0]},
        [
            ("'rho' must have 1 entry (the bias), not 2", LISTS),
            ("'coefficients' must have 2 entries (2 support vectors), not 3", LISTS),
        ],
        version=1,
    ),
    twin(
        "degree", VALUES, "SVMRegressor", SR,
        {"kernel_params": [1.0, 0.0, 2.5]},
        [
            (
                "the degree of a kernel must be an integer, not 2.5: evaluators differ on it",
                "round the degree", "warning",
            ),
        ],
        version=1,
    ),
    twin(
        "one class", VALUES, "SVMRegressor", SR,
        {"one_class": 2, "n_supports": -1},
        [
            ("'n_supports' must be at least 0, not -1", CORRECT),
            ("'one_class' must be 0 or 1, not 2", CORRECT),
        ],
        version=1,
    ),
    twin(
        "features", INPUTS, "SVMRegressor", SR,
        {"support_vectors": [1.0] * 6},
        [
            ("'support_vectors' must have 4 entries (2 support vectors, 2 features of input 'x'), not 6", INPUT),
        ],
        version=1,
    ),
    twin(
        "linear", INPUTS, "SVMRegressor", dict(coefficients=[1.0, 2.0], rho=[0.0]),
        {"coefficients": [1.0]},
        [
            ("'coefficients' must have 2 entries (a weight each, 2 features of input 'x'), not 1", INPUT),
        ],
        version=1,
    ),
]


@pytest.mark.parametrize("case", TWINS, ids=str)
def test_twins(case: Twin, tmp_path: Path) -> None:
    check(case, tmp_path)
