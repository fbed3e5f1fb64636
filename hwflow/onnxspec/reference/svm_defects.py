"""The reference evaluator's SVMClassifier with probabilities: the defects of its iteration, and a substitute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx.reference.op_run import OpRun
from onnx.reference.ops.aionnxml import op_svm_classifier

from hwflow.onnxspec.reference.defect import AnyArray, Attributes, Defect, Inputs, Mended, Tell, operator_class
from hwflow.onnxspec.shapes.dialects import ML_DOMAIN

_ITERATIONS, _LEAST = 100, 1e-7
TOLERANCE = 0.005
"""Of n classes, the iteration ends within an n-th of it."""
_Own: Any = op_svm_classifier.SVMClassifier  # untyped


def coupled(pairs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the probabilities of classes whose pairwise ones, ``pairs`` [i, j], agree best (Wu, Lin and Weng,
    "Probability estimates for multi-class classification by pairwise coupling", their second method)."""
    count, matrix = len(pairs), coupling_matrix(pairs)
    found = np.full(count, 1 / count)
    for _ in range(max(_ITERATIONS, count)):
        products = matrix @ found
        square = float(found @ products)
        if np.abs(products - square).max() < TOLERANCE / count:
            break
        for place in range(count):
            step = (square - products[place]) / matrix[place, place]
            found[place] += step
            square = (square + step * (step * matrix[place, place] + 2 * products[place])) / (1 + step) ** 2
            products = (products + step * matrix[place]) / (1 + step)
            found /= 1 + step
    return found


def coupling_matrix(pairs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the matrix of that method."""
    matrix = -pairs.T * pairs
    np.fill_diagonal(matrix, (pairs**2).sum(axis=0))  # the diagonal of pairs is 0
    return matrix


def pairwise(decisions: AnyArray, slopes: AnyArray, offsets: AnyArray, classes: int) -> npt.NDArray[np.float64]:
    """Return the probability [i, j] of class i against j, of the decisions of each pair."""
    pairs = np.zeros((classes, classes))
    every = iter(zip(decisions, slopes, offsets, strict=True))
    for i in range(classes):
        for j in range(i + 1, classes):
            pairs[i, j] = min(max(_probability(*map(float, next(every))), _LEAST), 1 - _LEAST)
            pairs[j, i] = 1 - pairs[i, j]
    return pairs


def _probability(decision: float, slope: float, offset: float) -> float:
    """Return Platt's probability of the first class of a pair."""
    return float(1 / (1 + np.exp(decision * slope + offset)))


class _Coupled(_Own):  # type: ignore[misc]
    def _probabilities(self, scores: AnyArray, class_count_: int) -> AnyArray:
        return coupled(pairwise(scores, self._svm.atts.prob_a, self._svm.atts.prob_b, class_count_))


def _substitute(name: str, version: int, tell: Tell) -> type[OpRun]:
    def run(self: Any, X: AnyArray, **attributes: Any) -> tuple[AnyArray, ...]:
        tell(attributes, [X])
        x = X if X.dtype == np.float64 else X.astype(np.float32)
        names = attributes.pop("classlabels_strings", None)
        if not names:
            label, scores = _Own._run(self, x, **attributes)
            return label, scores.astype(np.float32)
        attributes["classlabels_ints"] = [*range(len(names))]
        label, scores = _Own._run(self, x, **attributes)
        return np.array(names, object)[label], scores.astype(np.float32)

    return operator_class(name, version, (_Coupled,), run, ML_DOMAIN)


def _three_classes(attributes: Attributes, inputs: Inputs) -> bool:
    return len(attributes.get("prob_a") or ()) > 1


def _named_pair(attributes: Attributes, inputs: Inputs) -> bool:
    return len(attributes.get("classlabels_strings") or ()) == 2


def _of_integers(attributes: Attributes, inputs: Inputs) -> bool:
    (x,) = inputs
    return x is not None and x.dtype.kind != "f"


SVM_CLASSIFIER = Mended(
    (
        Defect("svmclassifier-coupling", "probabilities of three classes and more are not the pairs'", _three_classes),
        Defect("svmclassifier-strings", "with two labels that are strings it fails", _named_pair),
        Defect("svmclassifier-integers", "scores of integers are cut to integers", _of_integers),
    ),
    _substitute,
)
