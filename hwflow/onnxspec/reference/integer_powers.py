"""Defects of the reference evaluator's Pow of integers, and a substitute."""

from __future__ import annotations

import numpy as np

from hwflow.onnxspec.dialect_operators.call_arguments import need
from hwflow.onnxspec.reference.defect import AnyArray, Attributes, Defect, Inputs, Mended, exactly

_EXACT = 2.0**53  # integers below are exact in float64


def _whole(x: AnyArray, exponent: AnyArray) -> bool:
    """Tell whether these are powers of integers by whole numbers that numpy computes in floats."""
    through_floats = exponent.dtype.kind == "f" or exponent.dtype == np.uint64
    if x.dtype.kind not in "iu" or not through_floats:
        return False
    values = exponent.astype(np.float64)
    return bool(((values >= 0) & (values < _EXACT) & (values == np.trunc(values))).all())


def _beyond(attributes: Attributes, inputs: Inputs) -> bool:
    x, exponent = need(inputs, 0), need(inputs, 1)
    if not _whole(x, exponent):
        return False
    with np.errstate(all="ignore"):
        size = np.power(np.abs(x.astype(np.float64)), exponent.astype(np.float64))
    return bool((size >= min(_EXACT, float(np.iinfo(x.dtype).max))).any())


def power(x: AnyArray, exponent: AnyArray) -> AnyArray:
    """Compute Pow: for integers by whole numbers modulo the type's width, otherwise like numpy."""
    if _whole(x, exponent):
        return np.asarray(np.power(x.astype(np.int64), exponent.astype(np.int64)).astype(x.dtype))
    with np.errstate(all="ignore"):
        return np.asarray(np.power(x, exponent).astype(x.dtype))


POW = Mended(
    (
        Defect(
            "pow-cast", "powers of integers by floats are cast from floats, of which not all fit the type", _beyond
        ),
    ),
    exactly(lambda inputs, attributes: power(need(inputs, 0), need(inputs, 1))),
)
