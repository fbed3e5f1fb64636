"""Linear models: scores by a product with coefficients, a transform, and classes."""

from __future__ import annotations

import onnx

from hwflow.onnxspec.clauses.ml import weight_lists
from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined, Use
from hwflow.onnxspec.reference import runtime_differences
from hwflow.operators.ml.labels import Labels, both_sides
from hwflow.operators.ml.ml_operands import as_float, as_reals, columns, real_kind, reals, require_length
from hwflow.operators.ml.post_transforms import LOGISTIC, NONE, SOFTMAX, TRANSFORMS_ALLOWED, transformed
from hwflow.operators.record import ML, Operator


def _scores(body: DialectWriter, call: Call, rows: int) -> str:
    """Return the product of the input with ``rows`` rows of coefficients, and the intercepts, [frames, rows]."""
    size, kind = columns(call), real_kind(call)
    weights, addends = reals(call, "coefficients"), reals(call, "intercepts")
    require_length("coefficients", weights, rows * size)
    x, matrix = as_reals(body, call), body.number(weights.reshape(rows, size), kind)
    if not len(addends):
        return body.let(f"Gemm <transB = 1> ({x}, {matrix})")
    require_length("intercepts", addends, rows)
    return body.let(f"Gemm <transB = 1> ({x}, {matrix}, {body.number(addends, kind)})")


def _linear_regressor(use: Use) -> onnx.FunctionProto:
    """Return a score for each target. A transform applies to every vector of targets, also of one, where onnxruntime
    leaves LOGISTIC out."""
    call = Call.of(use)
    body = DialectWriter(call)
    targets = call.integer("targets", 1)
    if targets < 1:
        raise Undefined(f"targets must be at least 1, not {targets}", "correct the attribute")
    scores = _scores(body, call, targets)
    scores = transformed(body, scores, call.attribute("post_transform", NONE), real_kind(call))
    return body.returned(as_float(body, call, scores))


def _linear_classifier(use: Use) -> onnx.FunctionProto:
    """Return the label of the greatest score, and the scores.

    One row of coefficients for two classes is that of the second, and the first has the negative score: so onnx's
    reference says, and onnxruntime with LOGISTIC (without it the first has 1 less the score there, which is no score of
    a linear model). One row for one class, which onnxruntime refuses: the label, or 0 (of strings the empty one) where
    the score, transformed, is below 1/2, or without a transform below 0, as in onnx's reference.

    Classes are chosen by the transformed scores, as in onnx's reference. Those of LOGISTIC and SOFTMAX are in the order
    of the scores themselves, by which onnxruntime chooses with every transform.
    """
    call = Call.of(use)
    body = DialectWriter(call)
    labels = Labels.of(call, "classlabels_ints")
    size, kind, transform = columns(call), real_kind(call), call.attribute("post_transform", NONE)
    rows = max(1, len(reals(call, "coefficients")) // max(1, size))
    if len(labels) not in (0, rows) and (rows, len(labels)) != (1, 2):
        raise Undefined(
            f"coefficients must have a row of {size} for each of {len(labels)} classes, not {rows} rows",
            "correct the attributes",
        )
    raw = _scores(body, call, rows)
    two = (rows, len(labels)) == (1, 2)
    each = both_sides(body, raw) if two else raw
    scores = transformed(body, each, transform, kind)
    ordered = transform in (NONE, LOGISTIC, SOFTMAX)
    if two and ordered:
        above = body.let(f"Greater ({raw}, {body.number(0.0, kind)})")
        label = labels.chosen(body, above, labels.values[1], labels.values[0])
    elif two or rows > 1:
        label = labels.greatest(body, each if ordered else scores)
    else:
        label = _single(body, labels, scores, transform, kind)
    return body.returned(label, as_float(body, call, scores))


def _single(body: DialectWriter, labels: Labels, scores: str, transform: str, kind: str) -> str:
    """Return the label of one class, or the one of none, of scores [frames, 1]."""
    threshold = body.number(0.0 if transform == NONE else 0.5, kind)
    there = body.let(f"GreaterOrEqual ({scores}, {threshold})")
    if not len(labels):
        return body.let(f"Cast <to = 7> ({body.reshape(there, [-1])})")
    return labels.chosen(body, there, labels.values[0], type(labels.values[0])())


_DEFINED = (
    "of quantized numbers and integers; coefficients as they are, where those of an output have a common divisor that "
    f"makes them integers of at most 40 bits; {TRANSFORMS_ALLOWED}; "
    "labels that are strings are the host's"
)

RECORDS = (
    Operator(
        "LinearRegressor", domains=ML, definition=_linear_regressor, defined=_DEFINED,
        clauses=weight_lists.LINEAR_REGRESSOR, exact_weights=True, differences=(runtime_differences.ONE_TARGET,),
    ),
    Operator(
        "LinearClassifier", domains=ML, definition=_linear_classifier, defined=_DEFINED,
        clauses=weight_lists.LINEAR_CLASSIFIER, exact_weights=True,
        differences=(runtime_differences.ONE_ROW, runtime_differences.CHOICE),
    ),
)
