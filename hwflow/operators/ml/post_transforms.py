"""The transforms of scores that classifiers and regressors of ai.onnx.ml end with, attribute ``post_transform``, in
operators of ai.onnx.

Source: the specification names the functions; onnx's reference (``_common_classifier.py``) and onnxruntime's
``ml_common.h`` say what two of them are:

* SOFTMAX_ZERO is a Softmax in which scores within 1e-7 of 0 stay that near; of zeros alone every share is 1/2.
* PROBIT, the inverse of the normal distribution's function, is Winitzki's approximation of the inverse error function.
  At 0 and 1 it is infinite, as onnxruntime has it; onnx's reference gives 0 there.
"""

from __future__ import annotations

import math

from hwflow.onnxspec.definitions.dialect_writer import DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined
from hwflow.operators.ml.ml_operands import greatest_of_rows

NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT = TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")

TRANSFORMS_ALLOWED = (
    "transforms NONE, LOGISTIC and SOFTMAX before a quantizer, and PROBIT of scores that all lie between 0 and 1; "
    "all at the model's end"
)
"""What hardware makes: of SOFTMAX_ZERO the scores within 1e-7 of 0 may be the only ones with a share, so its weights
differ too much in size for fixed point; results of PROBIT are infinite at 0 and 1, and no numbers beyond."""

_NEAR = 1e-7  # of 0
_ROOT, _WINITZKI = 1.41421356, 0.147


def transformed(body: DialectWriter, scores: str, transform: str, kind: str = "float32") -> str:
    """Apply a post_transform to ``scores``, [frames, classes or targets] of element type ``kind``; return the result,
    of the same shape and type. Raises :class:`Undefined` for an unknown transform."""
    if transform == NONE:
        return scores
    if transform == SOFTMAX:
        return body.let(f"Softmax <axis = 1> ({scores})")
    if transform == LOGISTIC:
        return body.let(f"Sigmoid ({scores})")
    if transform == SOFTMAX_ZERO:
        return _softmax_zero(body, scores, kind)
    if transform == PROBIT:
        return _probit(body, scores, kind)
    raise Undefined(
        f"post_transform must be one of {', '.join(TRANSFORMS)}, not {transform!r}", "correct the attribute"
    )


def _softmax_zero(body: DialectWriter, scores: str, kind: str) -> str:
    last = body.integers([1])
    greatest = greatest_of_rows(body, scores)
    power = body.let(f"Exp ({body.let(f'Sub ({scores}, {greatest})')})")
    negated = body.let(f"Neg ({greatest})")
    small = body.let(f"Mul ({scores}, {body.let(f'Exp ({negated})')})")
    far = body.let(f"Greater ({body.let(f'Abs ({scores})')}, {body.number(_NEAR, kind)})")
    weights = body.let(f"Where ({far}, {power}, {small})")
    total = body.let(f"ReduceSum <keepdims = 1> ({weights}, {last})")
    nothing = body.let(f"Equal ({total}, {body.number(0.0, kind)})")
    divisor = body.let(f"Where ({nothing}, {body.number(1.0, kind)}, {total})")
    shares = body.let(f"Div ({weights}, {divisor})")
    return body.let(f"Where ({nothing}, {body.number(0.5, kind)}, {shares})")


def _probit(body: DialectWriter, scores: str, kind: str) -> str:
    let = body.let
    one, two, half = (body.number(value, kind) for value in (1.0, 2.0, 0.5))
    x = let(f"Sub ({let(f'Mul ({scores}, {two})')}, {one})")
    left, right = let(f"Sub ({one}, {x})"), let(f"Add ({one}, {x})")
    logarithm = let(f"Log ({let(f'Mul ({left}, {right})')})")
    offset = body.number(2.0 / (math.pi * _WINITZKI), kind)
    middle = let(f"Add ({let(f'Mul ({logarithm}, {half})')}, {offset})")
    squared = let(f"Mul ({middle}, {middle})")
    product = let(f"Mul ({logarithm}, {body.number(1.0 / _WINITZKI, kind)})")
    root = let(f"Sqrt ({let(f'Sub ({squared}, {product})')})")
    # A difference that is never negative, which enclosures of it around 0, of the score 1/2, do not tell.
    square = let(f"Relu ({let(f'Sub ({root}, {middle})')})")
    sign = let(f"Mul ({let(f'Sign ({x})')}, {body.number(_ROOT, kind)})")
    return let(f"Mul ({let(f'Sqrt ({square})')}, {sign})")
