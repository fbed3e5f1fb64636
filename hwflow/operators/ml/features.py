"""Operators that prepare features: scaling, thresholds, missing values, and their places."""

from __future__ import annotations

import math

import numpy as np
import onnx

from hwflow.onnxspec.clauses.ml import feature_steps
from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined, Use
from hwflow.onnxspec.reading.numpy_tensors import ELEMENT_TYPES
from hwflow.onnxspec.reference import runtime_differences
from hwflow.operators.ml.ml_operands import (
    FLOAT,
    INT64,
    as_float,
    as_reals,
    cast,
    greatest_of_rows,
    integer_kind,
    integers,
    last_axis,
    real_kind,
    reals,
    require_length,
    within,
)
from hwflow.operators.record import ML, Operator


def _scaler(use: Use) -> onnx.FunctionProto:
    """Return (x - offset) * scale."""
    call = Call.of(use)
    body = DialectWriter(call)
    size, kind, x = last_axis(call), real_kind(call), as_reals(body, call)
    for name, operator in (("offset", "Sub ({}, {})"), ("scale", "Mul ({}, {})")):
        values = reals(call, name)
        if len(values):
            require_length(name, values, 1, size)
            x = body.let(operator.format(x, body.number(values, kind)))
    if x == body.argument(0):
        x = body.let(f"Identity ({x})")
    return body.returned(as_float(body, call, x))


def _normalizer(use: Use) -> onnx.FunctionProto:
    """Return x over its row's greatest element, sum of magnitudes, or root of the sum of squares; x where that is 0.

    The greatest element has its sign, as the specification says and onnxruntime computes; onnx's reference takes that
    of magnitudes. For L1 both take magnitudes, and for L2 both keep the signs, though the formulas do not say so
    (onnxruntime does not where the result takes the memory of x).
    """
    call = Call.of(use)
    body = DialectWriter(call)
    last_axis(call)
    x, kind, norm = as_reals(body, call), real_kind(call), call.attribute("norm", "MAX")
    if norm not in ("MAX", "L1", "L2"):
        raise Undefined(f"norm must be one of MAX, L1, L2, not {norm!r}", "correct the attribute")
    if norm != "MAX":  # a row of zeros stays one
        result = body.let(f"LpNormalization <axis = -1, p = {norm[1]}> ({x})")
        return body.returned(as_float(body, call, result))
    greatest = greatest_of_rows(body, x)
    nothing = body.let(f"Equal ({greatest}, {body.number(0.0, kind)})")
    divisor = body.let(f"Where ({nothing}, {body.number(1.0, kind)}, {greatest})")
    return body.returned(as_float(body, call, body.let(f"Div ({x}, {divisor})")))


def _binarizer(use: Use) -> onnx.FunctionProto:
    """Return 1 where x is above a threshold, else 0, in the type of x."""
    call = Call.of(use)
    body = DialectWriter(call)
    kind, threshold = call.kind(0), call.real("threshold", 0.0)
    if integer_kind(kind):  # x > 2.5 if and only if x > 2
        limits = np.iinfo(kind)
        if threshold < limits.min:
            above = body.let(f"GreaterOrEqual ({body.argument(0)}, {body.number(limits.min, kind)})")
        else:
            least = limits.max if math.isnan(threshold) or threshold >= limits.max else math.floor(threshold)
            above = body.let(f"Greater ({body.argument(0)}, {body.number(least, kind)})")
    else:
        above = body.let(f"Greater ({body.argument(0)}, {body.number(threshold, kind)})")
    return body.returned(body.let(f"Cast <to = {ELEMENT_TYPES[kind]}> ({above})"))


def _imputer(use: Use) -> onnx.FunctionProto:
    """Return x, where it is one number (or NaN) another one, which may be one of each feature."""
    call = Call.of(use)
    body = DialectWriter(call)
    x, kind, size = body.argument(0), call.kind(0), last_axis(call)
    if integer_kind(kind):
        numbers = within("imputed_value_int64s", integers(call, "imputed_value_int64s"), kind)
        require_length("imputed_value_int64s", numbers, 1, size)
        (missing,) = within("replaced_value_int64", [call.integer("replaced_value_int64")], kind)
        found = body.let(f"Equal ({x}, {body.number(missing, kind)})")
        return body.returned(body.let(f"Where ({found}, {body.number(numbers, kind)}, {x})"))
    values, lost = reals(call, "imputed_value_floats"), call.real("replaced_value_float", 0.0)
    require_length("imputed_value_floats", values, 1, size)
    found = body.let(f"IsNaN ({x})" if math.isnan(lost) else f"Equal ({x}, {body.number(lost, kind)})")
    return body.returned(body.let(f"Where ({found}, {body.number(values, kind)}, {x})"))


def _feature_vectorizer(use: Use) -> onnx.FunctionProto:
    """Return the inputs' rows one after the other, each cut to its dimension or filled up with zeros, as onnx's
    reference and onnxruntime do. A vector is one column: of each frame it is [1, 1], as the specification says."""
    call = Call.of(use)
    body = DialectWriter(call)
    sizes, parts = integers(call, "inputdimensions"), []
    if sizes:
        require_length("inputdimensions", sizes, len(call.inputs))
    for place in range(len(call.inputs)):
        shape, part = call.shape(place), cast(body, body.argument(place), call.kind(place), FLOAT)
        if shape is None or len(shape) not in (1, 2):
            raise Undefined(f"inputs must have 1 or 2 axes, not {shape}", "reshape them")
        if len(shape) == 1:
            part = body.reshape(part, [-1, 1])
        there = shape[1] if len(shape) == 2 else 1
        wanted = sizes[place] if sizes else there
        if wanted < 1:
            raise Undefined(f"inputdimensions must be at least 1, not {wanted}", "correct the attribute")
        if wanted < there:
            part = body.part(part, 0, wanted, 1)
        elif wanted > there:
            part = body.let(f"Pad ({part}, {body.integers([0, 0, 0, wanted - there])}, {body.number(0.0)})")
        parts.append(part)
    return body.returned(body.let(f"Concat <axis = 1> ({', '.join(parts)})"))


def _array_feature_extractor(use: Use) -> onnx.FunctionProto:
    """Return some elements of the last axis.

    Of constant data, a vector of labels say, the indices are the frames': they have an axis in front, and so has the
    result, in which onnx's reference has the frames on the second.
    """
    call = Call.of(use)
    body = DialectWriter(call)
    shape, picked = call.shape(0), call.shape(1)
    if not shape or picked is None or call.kind(1) != INT64:
        raise Undefined("the operator must have data with an axis, and indices of int64", "correct the inputs")
    data, places = body.argument(0), body.argument(1)
    if len(shape) == 1 and call.constant(0):
        count = math.prod(picked[1:]) if picked else 1
        return body.returned(body.let(f"Gather <axis = 0> ({data}, {body.reshape(places, [-1, count])})"))
    if len(shape) == 1:
        data = body.reshape(data, [-1, 1])
    if len(picked) != 1:
        places = body.reshape(places, [math.prod(picked)])
    return body.returned(body.let(f"Gather <axis = {max(1, len(shape) - 1)}> ({data}, {places})"))


RECORDS = (
    Operator(
        "Scaler", domains=ML, defined="reals and integers", definition=_scaler, clauses=feature_steps.SCALER
    ),
    Operator(
        "Normalizer", domains=ML, defined="before a quantizer",
        definition=_normalizer, clauses=feature_steps.NORMALIZER, differences=(runtime_differences.SIGNS,),
    ),
    Operator("Binarizer", domains=ML, defined="reals and integers", definition=_binarizer),
    Operator(
        "Imputer", domains=ML, defined="reals, which are never NaN in hardware, and integers", definition=_imputer,
        clauses=feature_steps.IMPUTER,
    ),
    Operator(
        "FeatureVectorizer", domains=ML, defined="reals and integers", definition=_feature_vectorizer,
        clauses=feature_steps.FEATURE_VECTORIZER,
    ),
    Operator(
        "ArrayFeatureExtractor", domains=ML, defined="indices or data constant", definition=_array_feature_extractor,
        clauses=feature_steps.ARRAY_FEATURE_EXTRACTOR,
    ),
)
