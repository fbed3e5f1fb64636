"""Floats of exact numbers of any size."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np

from hwflow.numerics.functions.nearest_float import nearest_float, nearest_floats


def test_nearest_float() -> None:
    assert nearest_float(Fraction(1, 3)) == 1 / 3
    assert nearest_float(Fraction(10) ** 400) == inf
    assert nearest_float(-(Fraction(10) ** 400)) == -inf
    assert nearest_float(Fraction(1, 10**400)) == 0.0


def test_nearest_floats() -> None:
    found = nearest_floats(np.array([[Fraction(1, 4), -(Fraction(2) ** 2000)]], dtype=object))
    assert found.dtype == np.float64
    assert found.tolist() == [[0.25, -inf]]
    assert nearest_floats(Fraction(1, 2)).shape == ()
