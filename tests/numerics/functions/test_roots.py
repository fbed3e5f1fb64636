"""Steps behind a multiple of a square root (BatchNormalization), decided by squares; counts of thresholds."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.numerics.functions.function import enclose
from hwflow.numerics.functions.piecewise import Affine, Relu, Steps
from hwflow.numerics.functions.power import RootMultiply
from hwflow.numerics.functions.quantizer_steps import quantizer_steps
from hwflow.numerics.functions.smooth import Sigmoid
from hwflow.numerics.interval import Interval
from hwflow.numerics.rounding import Quantizer, Rounding

HALF = Fraction(1, 2)
fractions = st.fractions(min_value=-20, max_value=20, max_denominator=16)


def at_least(multiple: Fraction, radicand: Fraction, bound: Fraction) -> bool:
    """multiple * sqrt(radicand) >= bound, by squares."""
    if (multiple >= 0) != (bound >= 0):
        return multiple >= 0
    squares = multiple * multiple * radicand, bound * bound
    return squares[0] >= squares[1] if multiple >= 0 else squares[0] <= squares[1]


def level_of(multiple: Fraction, radicand: Fraction, addend: Fraction, low: int, high: int) -> int:
    """Round half down of multiple * sqrt(radicand) + addend: the levels n with value > n - 1/2 (by floor of what is
    negated) are counted one by one."""
    level = low
    while level < high and at_least(multiple, radicand, level + 1 - addend):
        level += 1
    return level


@given(
    scale=fractions, zero_point=fractions, gamma=fractions, beta=fractions,
    radicand=st.one_of(st.fractions(min_value=Fraction(1, 30), max_value=50, max_denominator=30),
                       st.sampled_from([Fraction(4), Fraction(9, 16), Fraction(2)])),
)  # fmt: skip
@settings(max_examples=150, deadline=None, derandomize=True)
def test_a_line_with_an_irrational_slope(
    scale: Fraction, zero_point: Fraction, gamma: Fraction, beta: Fraction, radicand: Fraction
) -> None:
    """floor(gamma * scale * (q - zero_point) * sqrt(radicand) + beta), clamped to [-8, 7], at every q."""
    functions = (RootMultiply(radicand), Affine(gamma, beta))
    quantizer = Quantizer(Fraction(1), 0, -8, 7, Rounding.FLOOR)
    steps = quantizer_steps(-40, 40, scale, zero_point, functions, quantizer)
    for q in range(-40, 41):
        assert steps(q) == level_of(gamma * scale * (q - zero_point), radicand, beta, -8, 7), q


def test_a_value_next_to_a_boundary_needs_more_than_the_first_precision() -> None:
    """With p*p = 2*d*d + 1 (a convergent of sqrt 2), p and d * sqrt(2) are 1 / (p + d sqrt 2) apart: of numbers beyond
    2**130, 128 bits do not tell them apart."""
    p, d = 3, 2
    while d < 1 << 140:
        p, d = 3 * p + 4 * d, 2 * p + 3 * d
    assert p * p == 2 * d * d + 1
    quantizer = Quantizer(Fraction(1), 0, 0, 1, Rounding.FLOOR)
    for beta, expected in ((1 - p, 0), (2 - p, 1)):  # d * sqrt(2) + 1 - p is a little less than 1
        functions = (RootMultiply(Fraction(2)), Affine(Fraction(1), Fraction(beta)))
        steps = quantizer_steps(1, 1, Fraction(d), 0, functions, quantizer)
        assert steps(1) == expected


def test_a_rational_root_is_exact() -> None:
    """sqrt(9/4) * 2 = 3 lies on the boundary of floor."""
    quantizer = Quantizer(Fraction(1), 0, 0, 5, Rounding.FLOOR)
    steps = quantizer_steps(0, 2, Fraction(1), 0, (RootMultiply(Fraction(9, 4)),), quantizer)
    assert [steps(q) for q in range(3)] == [0, 1, 3]


def test_a_root_between_other_functions() -> None:
    """relu, then sqrt(2) * x, then a sigmoid: levels of 16 sigmoid(sqrt(2) q / 4), rounded, by hand at q = 0, 1, 4.
    sigmoid(0.35355) = 0.58748, sigmoid(1.41421) = 0.80442."""
    quantizer = Quantizer(Fraction(1, 16), 0, 0, 16)
    functions = (Relu(), RootMultiply(Fraction(2)), Sigmoid())
    steps = quantizer_steps(-3, 4, Fraction(1, 4), 0, functions, quantizer)
    assert [steps(q) for q in (-3, 0, 1, 4)] == [8, 8, 9, 13]


def test_counts_of_thresholds() -> None:
    steps = Steps((Fraction(-1), HALF, HALF, Fraction(3)))
    assert [steps(Fraction(v)) for v in (-2, -1, 0)] == [0, 1, 1]
    assert [steps(v) for v in (HALF, Fraction(299, 100), Fraction(3))] == [3, 3, 4]
    levels = Quantizer(Fraction(1), 0, 0, 4, Rounding.FLOOR)
    for scale, expected in (
        (HALF, [0, 0, 0, 1, 1, 1, 3, 3, 3, 3, 3, 4]), (-HALF, [3, 3, 3, 3, 3, 1, 1, 1, 0, 0, 0, 0]),
    ):
        found = quantizer_steps(-5, 6, scale, 0, (steps,), levels)
        assert [found(q) for q in range(-5, 7)] == expected
    assert enclose((steps,), Interval(Fraction(0), Fraction(3)), 64) == Interval(Fraction(1), Fraction(4))


@pytest.mark.parametrize("bits", [10, 100])
def test_bounds_of_a_root(bits: int) -> None:
    for radicand in (Fraction(2), Fraction(1, 3000), Fraction(10**9, 7)):
        low, high = RootMultiply(radicand).root(bits)
        assert low * low < radicand < high * high
        assert (high - low) <= low / 2 ** (bits - 1)
    assert RootMultiply(Fraction(9, 4)).root(bits) == (Fraction(3, 2), Fraction(3, 2))
