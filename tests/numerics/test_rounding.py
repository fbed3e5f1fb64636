"""Rounding modes against tables made by hand, and bounds against the modes themselves."""

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwflow.numerics.rounding import Quantizer, Rounding, round_half_even

# Hand-made: what each mode makes of the awkward values.
VALUES = [F(-5, 2), F(-7, 4), F(-3, 2), F(-1), F(-3, 4), F(-1, 2), F(-1, 4), F(0),
          F(1, 4), F(1, 2), F(3, 4), F(1), F(3, 2), F(7, 4), F(5, 2)]  # fmt: skip
TABLE = {
    "ROUND":         [-2, -2, -2, -1, -1, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2],
    "CEIL":          [-2, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3],
    "FLOOR":         [-3, -2, -2, -1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 2],
    "UP":            [-3, -2, -2, -1, -1, -1, -1, 0, 1, 1, 1, 1, 2, 2, 3],
    "DOWN":          [-2, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2],
    "ROUND_TO_ZERO": [-2, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2],
    "HALF_UP":       [-3, -2, -2, -1, -1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 3],
    "HALF_DOWN":     [-2, -2, -1, -1, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2],
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_modes_on_awkward_values(name: str) -> None:
    assert [Rounding(name)(x) for x in VALUES] == TABLE[name]


def test_every_mode_has_a_table() -> None:
    assert {mode.value for mode in Rounding} == set(TABLE)


@given(st.fractions(max_denominator=64) | st.integers(-99, 99).map(lambda n: F(n, 2)))
def test_round_half_even_is_pythons(x: F) -> None:
    assert round_half_even(x) == round(x)


@pytest.mark.parametrize("mode", Rounding)
def test_bounds_are_the_preimages(mode: Rounding) -> None:
    for n in range(-4, 5):
        value, strict = mode.bound(n)
        for x in (F(k, 8) for k in range(-44, 45)):
            assert (mode(x) >= n) == (x > value if strict else x >= value), (n, x)


@pytest.mark.parametrize(
    ("x", "zero_point", "expected"),
    [
        (F(5, 4), 0, 2), (F(5, 4), 1, 3),  # 5/4 / (1/2) = 2.5: to 2, then the zero point; never 3.5 to 4
        (F(7, 4), 1, 5), (F(-1, 4), 3, 3), (F(-3, 4), 3, 1), (F(100), 3, 15), (F(-100), 3, -16),
    ],
)  # fmt: skip
def test_quantize_rounds_before_the_zero_point(x: F, zero_point: int, expected: int) -> None:
    assert Quantizer(F(1, 2), zero_point, -16, 15)(x) == expected


def test_qonnx_rounds_after_the_zero_point() -> None:
    inside = Quantizer(F(1, 2), 1, -16, 15, zero_point_inside=True)
    assert inside(F(5, 4)) == 4  # 2.5 + 1 = 3.5 to 4
    assert inside(F(3, 4)) == 2  # 1.5 + 1 = 2.5 to 2
    assert Quantizer(F(1), F(1, 4), -8, 7, zero_point_inside=True)(F(1, 4)) == 0  # 1/2 to 0


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("mode", Rounding)
@pytest.mark.parametrize("zero_point", [-3, 0, 2, 5])
def test_quantizer_bounds_are_the_preimages(mode: Rounding, inside: bool, zero_point: int) -> None:
    q = Quantizer(F(3, 4), zero_point, -4, 3, mode, inside)
    for level in range(-3, 4):
        value, strict = q.bound(level)
        for x in (F(3 * k, 32) for k in range(-90, 90)):
            assert (q(x) >= level) == (x > value if strict else x >= value)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="quantizer scale must be positive, not 0"):
        Quantizer(F(0), 0, 0, 1)
    with pytest.raises(ValueError, match=r"quantizer range must not be empty, not \[1, 0\]"):
        Quantizer(F(1), 0, 1, 0)
    with pytest.raises(ValueError, match="zero point must be an integer, not 1/2"):
        Quantizer(F(1), F(1, 2), 0, 1)
