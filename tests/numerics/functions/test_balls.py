"""Balls of functions beside their rational values: where a value is rational, the ball around the point has it."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from flint import arb

from hwflow.numerics.functions.curve import Curve, flint_fraction
from hwflow.numerics.functions.smooth import Exp, HardSwish, Log, Sigmoid, Softsign, Tanh

POINTS = [F(n, 8) for n in (-40, -25, -24, -23, -12, -7, -1, 0, 1, 2, 8, 23, 24, 25, 32, 72)]


@pytest.mark.parametrize(
    "curve", [HardSwish(), Softsign(), Exp(), Log(), Sigmoid(), Tanh()], ids=lambda curve: type(curve).__name__
)
def test_a_ball_has_the_rational_value(curve: Curve) -> None:
    known = {x: curve.rational(x) for x in POINTS if x > 0 or not isinstance(curve, Log)}
    assert any(exact is not None for exact in known.values())
    for x, exact in known.items():
        ball = curve.ball(arb(flint_fraction(x)))
        assert ball.rad() < 1e-12
        assert exact is None or ball.overlaps(arb(flint_fraction(exact))), x
