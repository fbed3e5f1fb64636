"""Staircases, value by value, against the plain definition: Python's ``round`` of a Fraction, then saturation."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import Affine, Clip, Relu, Round
from hwflow.numerics.requantizers.staircase import Staircase
from hwflow.numerics.rounding import Rounding
from tests.numerics.requantizers.staircases import quantizer_staircase


def plain(q: int, scale: F, zero_point: F, functions: list[Elementwise], out: tuple[F, int, int, int]) -> int:
    """The definition, a second time."""
    x = scale * (q - zero_point)
    for f in functions:
        match f:
            case Affine(m, a):
                x = m * x + a
            case Clip(low, high):
                x = x if low is None or x >= low else low
                x = x if high is None or x <= high else high
            case Relu():
                x = x if x > 0 else F(0)
            case Round(Rounding.ROUND):
                x = F(round(x))
    out_scale, out_zero_point, out_low, out_high = out
    return sorted((out_low, round(x / out_scale) + out_zero_point, out_high))[1]


def check(
    lo: int, hi: int, scale: F, zero_point: F, functions: list[Elementwise], out: tuple[F, int, int, int]
) -> Staircase:
    s = quantizer_staircase(lo, hi, scale, zero_point, functions, *out)
    expected = [plain(q, scale, zero_point, functions, out) for q in range(lo, hi + 1)]
    assert s.evaluate(np.arange(lo, hi + 1)).tolist() == expected
    assert [s(q) for q in range(lo, hi + 1)] == expected
    assert (s.low, s.high) == (expected[0], expected[-1])
    return s


dyadic = st.builds(lambda n, k: F(n, 1 << k), st.sampled_from([1, 3, 4]), st.integers(0, 5))
scales = dyadic | st.fractions(F(1, 50), 4, max_denominator=50) | st.floats(1 / 64, 4, width=32).map(F)
numbers = st.fractions(-6, 6, max_denominator=8)
functions: st.SearchStrategy[Elementwise] = st.one_of(
    st.builds(Affine, st.fractions(0, 4, max_denominator=8), numbers),
    st.builds(Clip, st.none() | numbers, st.none() | numbers),
    st.just(Relu()),
    st.just(Round(Rounding.ROUND)),
)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(-70, 40), st.integers(0, 90), st.just(F(0)) | scales, st.fractions(-20, 20, max_denominator=16),
    st.lists(functions, max_size=3), st.tuples(scales, st.integers(-9, 9), st.integers(-20, 0), st.integers(0, 20)),
)  # fmt: skip
def test_equals_the_definition(
    lo: int, extent: int, scale: F, zero_point: F, chain: list[Elementwise], out: tuple[F, int, int, int]
) -> None:
    check(lo, lo + extent, scale, zero_point, chain, out)


@pytest.mark.parametrize("out_zero_point", [-1, 0, 1, 3])
def test_ties_with_power_of_two_scales_and_odd_zero_points(out_zero_point: int) -> None:
    for shift in range(4):
        check(-64, 63, F(1, 1 << shift), F(0), [], (F(1), out_zero_point, -16, 15))
        check(-64, 63, F(1, 1 << shift), F(1, 2), [Relu()], (F(1), out_zero_point, -16, 15))


def test_by_hand() -> None:
    # x/2 rounded half to even, saturated to 0..2: 1 -> 0, 2 -> 1, 3 -> 2; the zero point 1 does not move the ties
    assert quantizer_staircase(-4, 9, F(1, 2), 0, [], F(1), 0, 0, 2) == Staircase(-4, 9, 0, (2, 3))
    assert quantizer_staircase(-4, 9, F(1, 2), 0, [], F(1), 1, 0, 3) == Staircase(-4, 9, 0, (-1, 2, 3))
    # jumps of several levels repeat a threshold: 3x into 0..7
    assert quantizer_staircase(0, 3, F(3), 0, [], F(1), 0, 0, 7) == Staircase(0, 3, 0, (1, 1, 1, 2, 2, 2, 3))
    # a float bias of 1/8 on an accumulator of scale 1/4: 4x + ... crosses 1/2 one step earlier
    assert quantizer_staircase(0, 9, F(1, 4), F(-1, 2), [], F(1), 0, 0, 1) == Staircase(0, 9, 0, (2,))
    assert quantizer_staircase(0, 9, F(1, 4), 0, [], F(1), 0, 0, 1) == Staircase(0, 9, 0, (3,))
    # BatchNormalization with a zero factor; Relu flat everywhere
    assert quantizer_staircase(0, 9, F(1), 0, [Affine(F(0), F(5))], F(1), 0, 0, 7) == Staircase(0, 9, 5, ())
    assert quantizer_staircase(-9, 0, F(1), 0, [Relu()], F(1), 3, 0, 7) == Staircase(-9, 0, 3, ())


def test_equal_functions_are_equal_objects() -> None:
    a = quantizer_staircase(0, 20, F(1, 4), 0, [], F(1), 0, 0, 3)
    b = quantizer_staircase(0, 20, F(1, 4), 0, [Relu(), Clip(F(-1), F(100))], F(1), 0, -8, 3)
    assert a == b and hash(a) == hash(b)
    assert quantizer_staircase(0, 20, F(1), F(1, 7), [], F(4), 0, 0, 3) == quantizer_staircase(
        0, 20, F(2), F(1, 7), [], F(8), 0, 0, 3
    )


def test_refusals() -> None:
    for arguments, message in [
        ((1, 0, 0, ()), r"interval of a staircase must not be empty, not \[1, 0\]"),
        ((0, 9, 0, (3, 2)), "thresholds of a staircase must be sorted"),
        ((0, 9, 0, (0, 2)), r"thresholds must lie in \(0, 9\], not in \[0, 2\]"),
        ((0, 1 << 63, 0, ()), "interval of a staircase must lie within 62 bits"),
    ]:
        with pytest.raises(ValueError, match=message):
            Staircase(*arguments)
    s = Staircase(0, 9, 0, (3,))
    with pytest.raises(ValueError, match=r"input of a staircase must lie in \[0, 9\], not 10"):
        s(10)
    with pytest.raises(ValueError, match=r"inputs of a staircase must lie in \[0, 9\], not \[-1, 3\]"):
        s.evaluate([-1, 3])
    with pytest.raises(ValueError, match="output range must have at most 1048576 levels"):
        quantizer_staircase(0, 1, F(1), 0, [], F(1), 0, 0, 1 << 20)


def test_an_interval_up_to_its_limits() -> None:
    limit = 1 << 62
    whole = Staircase(-limit, limit, 0, (1 - limit, limit))
    assert [whole(x) for x in (-limit, 1 - limit, limit - 1, limit)] == [0, 1, 1, 2]
    for lo, hi in ((-limit - 1, 0), (0, limit + 1)):
        with pytest.raises(ValueError, match="interval of a staircase must lie within 62 bits"):
            Staircase(lo, hi, 0, ())
