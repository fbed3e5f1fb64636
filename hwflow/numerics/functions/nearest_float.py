"""Convert exact numbers of any size to floats: for messages, and for estimates that exact arithmetic verifies."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt


def nearest_float(x: Fraction) -> float:
    """Return the float nearest to ``x``; infinity beyond the range of floats (where ``float`` raises OverflowError)."""
    try:
        return float(x)
    except OverflowError:
        return inf if x > 0 else -inf


def nearest_floats(values: Any) -> npt.NDArray[np.float64]:
    """Apply :func:`nearest_float` to an array of Fractions, keeping its shape."""
    array = np.asarray(values, dtype=object)
    return np.array([nearest_float(v) for v in array.reshape(-1)], dtype=np.float64).reshape(array.shape)
