"""The clauses of linear and support vector models: how long their lists are for so many classes and features."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.ml.class_labels import class_labels, label_count
from hwflow.onnxspec.clauses.ml.node_reading import (
    INPUTS,
    LENGTHS,
    VALUES,
    Fault,
    NodeReading,
    OperatorClauses,
    counted,
    legal_text,
    matrix_or_row,
    of_length,
    post_transform,
    present,
    stop,
)

LABELS = ("classlabels_ints", "classlabels_strings")
COEFFICIENTS, INTERCEPTS = "coefficients", "intercepts"
VECTORS, PER_CLASS, KERNEL = "support_vectors", "vectors_per_class", "kernel_params"
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def _multiple(name: str, length: int, divisor: int, what: str) -> Iterator[Fault]:
    """Yield a fault if the length of a list is no multiple."""
    if divisor > 0 and length % divisor:
        yield Fault(LENGTHS, f"{show(name)} must have a multiple of {divisor} entries ({what}), not {length}")


def _product(name: str, length: int, rows: int, what: str, r: NodeReading) -> Iterator[Fault]:
    """Yield a fault if a matrix has not as many columns as the input has features."""
    features = r.features()
    if length and rows > 0 and length % rows == 0 and length != rows * features:
        yield Fault(
            INPUTS,
            f"{show(name)} must have {rows * features} entries ({what}, {features} features of {r.input(0)}), "
            f"not {length}",
        )


def _rows(r: NodeReading) -> set[int]:
    """Return the legal numbers of scores: as many as classes, or one for two classes."""
    classes = label_count(r, LABELS)
    return {1, 2} if classes == 2 else {classes}


def _coefficients(r: NodeReading) -> Iterator[Fault]:
    if r.given(COEFFICIENTS):  # else NOD-33
        yield from present(r, [COEFFICIENTS])


def _classifier(r: NodeReading) -> Iterator[Fault]:
    rows, intercepts = _rows(r), r.length(INTERCEPTS)
    what = counted(label_count(r, LABELS), "class")
    yield from of_length(INTERCEPTS, intercepts, {0, *rows}, what)
    scores = intercepts if intercepts in rows else min(rows)
    yield from _multiple(COEFFICIENTS, r.length(COEFFICIENTS), scores, counted(scores, "score"))


def _classifier_features(r: NodeReading) -> Iterator[Fault]:
    rows, intercepts, length = _rows(r), r.length(INTERCEPTS), r.length(COEFFICIENTS)
    possible = {intercepts} if intercepts in rows else rows
    if length not in {count * r.features() for count in possible}:
        count = min(possible)
        yield from _product(COEFFICIENTS, length, count, counted(count, "score"), r)


def _targets(r: NodeReading) -> int:
    targets = r.integer("targets", 1)
    return targets if targets is not None and targets > 0 else stop()


def _regressor(r: NodeReading) -> Iterator[Fault]:
    yield from present(r, [COEFFICIENTS])
    stated = r.integer("targets", 1)
    if stated is not None and stated < 1:
        yield Fault(VALUES, f"'targets' must be at least 1, not {stated}")
    targets = _targets(r)
    what = counted(targets, "target")
    yield from _multiple(COEFFICIENTS, r.length(COEFFICIENTS), targets, what)
    yield from of_length(INTERCEPTS, r.length(INTERCEPTS), (0, targets), what)


def _regressor_features(r: NodeReading) -> Iterator[Fault]:
    targets = _targets(r)
    yield from _product(COEFFICIENTS, r.length(COEFFICIENTS), targets, counted(targets, "target"), r)


def _kernel(r: NodeReading) -> Iterator[Fault]:
    """Check that the kernel's parameters are gamma, coef0 and degree."""
    length, kind = r.length(KERNEL), r.text("kernel_type", "LINEAR")
    yield from of_length(KERNEL, length, (0, 3), "gamma, coef0, degree")
    if not length and kind in KERNELS[1:]:
        yield Fault(
            VALUES, f"a kernel of type {kind} must have {show(KERNEL)}, but there are none: evaluators take zeros",
            "give gamma, coef0 and degree", Severity.WARNING,
        )
    if length == 3 and kind == "POLY":
        degree = float(r.floats(KERNEL)[2])
        if not degree.is_integer():
            yield Fault(
                VALUES, f"the degree of a kernel must be an integer, not {degree}: evaluators differ on it",
                "round the degree", Severity.WARNING,
            )


def _bias(r: NodeReading, legal: tuple[int, ...], why: str) -> Iterator[Fault]:
    yield from of_length("rho", r.length("rho"), legal, why)


def _vectors(r: NodeReading) -> int:
    """Return the number of support vectors of a classifier, 0 where it is linear."""
    per_class = r.ints(PER_CLASS)
    return int(per_class.sum()) if not (per_class < 0).any() and per_class.max(initial=0) < 2**31 else stop()


def _svm_classifier(r: NodeReading) -> Iterator[Fault]:
    yield from present(r, [COEFFICIENTS])
    per_class = r.ints(PER_CLASS)
    for number in np.flatnonzero(per_class < 0)[:1].tolist():
        yield Fault(VALUES, f"{show(PER_CLASS)} must be at least 0, not {per_class[number]} for class {number}")
    yield from _probabilities(r)
    classes, vectors, coefficients = label_count(r, LABELS), _vectors(r), r.length(COEFFICIENTS)
    what = counted(classes, "class")
    if not vectors:
        yield from _multiple(COEFFICIENTS, coefficients, classes, what)
        if not r.length("rho"):
            yield from _bias(r, (1,), "the bias")
        return
    pairs = comb(classes, 2)
    why = f"pairs of {what}"
    yield from of_length(PER_CLASS, len(per_class), (classes,), what)
    yield from present(r, [VECTORS])
    yield from _multiple(VECTORS, r.length(VECTORS), vectors, counted(vectors, "support vector"))
    if coefficients:
        rows = (classes - 1) * vectors
        yield from of_length(COEFFICIENTS, coefficients, (rows,), f"{vectors} support vectors, {what}")
    yield from _bias(r, (pairs,), why)
    for name in ("prob_a", "prob_b"):
        yield from of_length(name, r.length(name), (0, pairs), why)


def _probabilities(r: NodeReading) -> Iterator[Fault]:
    a, b = r.length("prob_a"), r.length("prob_b")
    if a != b:
        yield Fault(LENGTHS, f"'prob_a' and 'prob_b' must be equally long, not {a} and {b}")


def _svm_classifier_features(r: NodeReading) -> Iterator[Fault]:
    vectors = _vectors(r)
    if vectors:
        yield from _product(VECTORS, r.length(VECTORS), vectors, counted(vectors, "support vector"), r)
    else:
        classes = label_count(r, LABELS)
        yield from _product(COEFFICIENTS, r.length(COEFFICIENTS), classes, counted(classes, "class"), r)


def _svm_regressor(r: NodeReading) -> Iterator[Fault]:
    yield from present(r, [COEFFICIENTS])
    yield from _bias(r, (1,), "the bias")
    supports = r.integer("n_supports", 0) or 0
    if supports < 0:
        yield Fault(VALUES, f"'n_supports' must be at least 0, not {supports}")
    if r.integer("one_class", 0) not in (0, 1):
        yield Fault(VALUES, f"'one_class' must be 0 or 1, not {r.integer('one_class')}")
    if supports > 0:
        what = counted(supports, "support vector")
        yield from present(r, [VECTORS])
        yield from _multiple(VECTORS, r.length(VECTORS), supports, what)
        if r.length(COEFFICIENTS):
            yield from of_length(COEFFICIENTS, r.length(COEFFICIENTS), (supports,), what)


def _svm_regressor_features(r: NodeReading) -> Iterator[Fault]:
    supports = r.integer("n_supports", 0) or 0
    if supports > 0:
        yield from _product(VECTORS, r.length(VECTORS), supports, counted(supports, "support vector"), r)
    elif supports == 0:
        yield from _product(COEFFICIENTS, r.length(COEFFICIENTS), 1, "a weight each", r)


kernel_type = legal_text("kernel_type", "LINEAR", KERNELS)
LINEAR_CLASSIFIER = OperatorClauses(
    (_coefficients, class_labels(LABELS, needed=False), _classifier, post_transform),
    (matrix_or_row, _classifier_features),
)
LINEAR_REGRESSOR = OperatorClauses((_regressor, post_transform), (matrix_or_row, _regressor_features))
SVM_CLASSIFIER = OperatorClauses(
    (class_labels(LABELS, needed=False), _svm_classifier, kernel_type, _kernel, post_transform),
    (matrix_or_row, _svm_classifier_features),
)
SVM_REGRESSOR = OperatorClauses(
    (_svm_regressor, kernel_type, _kernel, post_transform), (matrix_or_row, _svm_regressor_features)
)
