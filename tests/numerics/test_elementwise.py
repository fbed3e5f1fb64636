"""Preimages against membership: x lies in the preimage iff f(x) lies in the bound."""

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwflow.numerics.bound import Bound, Ladder
from hwflow.numerics.elementwise import Affine, Clip, Elementwise, QuantizeDequantize, Relu
from hwflow.numerics.rounding import Rounding

numbers = st.fractions(-9, 9, max_denominator=12)
bounds = st.builds(Bound, numbers, st.booleans()) | st.sampled_from([Bound.ALL, Bound.NONE])
functions: st.SearchStrategy[Elementwise] = st.one_of(
    st.builds(Affine, st.fractions(0, 5, max_denominator=9), numbers),
    st.builds(Clip, st.none() | numbers, st.none() | numbers),
    st.just(Relu()),
    st.builds(
        QuantizeDequantize, st.sampled_from([F(1), F(1, 2), F(3, 7)]), st.integers(-5, 5), st.integers(-9, 0),
        st.integers(0, 9), st.sampled_from(Rounding), st.booleans(),
    ),
)


@given(functions, bounds, numbers)
def test_preimage(f: Elementwise, bound: Bound, x: F) -> None:
    pre = f.preimage(bound)
    points = [x] if pre.value is None else [x, pre.value, pre.value - F(1, 999), pre.value + F(1, 999)]
    for point in points:
        assert (point in pre) == (f(point) in bound)


@given(functions, st.lists(st.builds(Bound, numbers, st.booleans()), max_size=9))
def test_a_ladder_pulls_back_like_its_bounds(f: Elementwise, finite: list[Bound]) -> None:
    nested = sorted(finite, key=lambda b: (b.value, b.strict))
    ladder = Ladder.of([Bound.ALL, *nested, Bound.NONE, Bound.NONE])
    assert f.pull(ladder).bounds() == [f.preimage(b) for b in ladder.bounds()]


def test_flat_parts_by_hand() -> None:
    zero, one = F(0), F(1)
    assert Relu().preimage(Bound(zero)) == Bound.ALL
    assert Relu().preimage(Bound(zero, True)) == Bound(zero, True)
    assert Clip(zero, one).preimage(Bound(one)) == Bound(one)
    assert Clip(zero, one).preimage(Bound(one, True)) == Bound.NONE
    assert Clip(zero, one).preimage(Bound(F(-1), True)) == Bound.ALL
    assert Clip(F(3), one).preimage(Bound(one)) == Bound.ALL  # low > high: the result is high everywhere
    assert Affine(F(2), F(1)).preimage(Bound(F(2), True)) == Bound(F(1, 2), True)
    assert Affine(zero, F(1)).preimage(Bound(one)) == Bound.ALL
    assert Affine(zero, F(1)).preimage(Bound(one, True)) == Bound.NONE
    # scale 1/2, zero point 1, levels 0..3 stand for -1/2, 0, 1/2, 1; 1/2 is rounded from (1/4, 3/4)
    qdq = QuantizeDequantize(F(1, 2), 1, 0, 3)
    assert qdq.preimage(Bound(F(1, 2))) == Bound(F(1, 4), True)
    assert qdq.preimage(Bound(F(1, 2), True)) == Bound(F(3, 4))
    assert qdq.preimage(Bound(one, True)) == Bound.NONE
    assert qdq.preimage(Bound(F(-1, 2))) == Bound.ALL


def test_a_decreasing_function_is_refused() -> None:
    with pytest.raises(ValueError, match="multiplier of an Affine must not be negative, not -1"):
        Affine(F(-1), F(0))
