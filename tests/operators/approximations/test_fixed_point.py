"""Tables in fixed point, judged by 200 digits: the stated error holds also where parts of a function nearly cancel."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from hwflow.numerics.functions.function import enclose
from hwflow.numerics.functions.piecewise import Affine
from hwflow.numerics.functions.smooth import Exp
from hwflow.numerics.interval import Interval
from hwflow.operators.norms.approximations import fixed_point


@pytest.mark.parametrize("scale", [Fraction(1, 1 << 60), Fraction(1, 1 << 20), Fraction(1)])
def test_an_exponential_less_one(scale: Fraction) -> None:
    """exp(k * scale) - 1: of the bits of the exponential few are left where the scale is small."""
    chain = (Exp(), Affine(Fraction(1), Fraction(-1)))
    values = [enclose(chain, Interval.point(scale * k), 64) for k in range(9)]
    known = {(): [(value.lo, value.hi) for value in values]}
    unit, tables, error = fixed_point(known, 30)
    with ctx.workdps(200):
        for k, integer in enumerate(tables[()]):
            exact = (arb(fmpq(k) * fmpq(*scale.as_integer_ratio()))).expm1() / arb(fmpq(*unit.as_integer_ratio()))
            assert abs(exact - integer) <= arb(fmpq(*error.as_integer_ratio()))
    assert Fraction(1, 2) <= error
    assert (error - Fraction(1, 2) > Fraction(1, 1000)) == (scale < Fraction(1, 1 << 50))
