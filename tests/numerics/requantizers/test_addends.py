"""The addends that go with a multiplier: all of them and no others, found by trying every one."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hwflow.numerics.requantizers.multiply_add_shift import _Conditions
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.numerics.requantizers.staircase import Staircase


def rounded(value: int, shift: int, rounding: ShiftRounding) -> int:
    quotient = Fraction(value, 1 << shift)
    below = quotient.numerator // quotient.denominator
    if rounding == ShiftRounding.FLOOR or quotient == below:
        return below
    if quotient - below != Fraction(1, 2):
        return below + (quotient - below > Fraction(1, 2))
    return below + (below % 2 == (rounding == ShiftRounding.HALF_EVEN))


@settings(max_examples=150, deadline=None)
@given(
    st.integers(-6, 2), st.integers(0, 7), st.integers(0, 9), st.integers(-20, 20), st.integers(1, 3),
    st.integers(-3, 0), st.integers(1, 4), st.sampled_from(ShiftRounding), st.integers(0, 9),
)  # fmt: skip
def test_addends(lo, length, multiplier, addend, shift, low, high, rounding, m):
    """Of a function that some multiplier and addend make, for any multiplier."""
    inputs = range(lo, lo + length + 1)

    def values(m: int, b: int) -> list[int]:
        return [min(max(rounded(m * x + b, shift, rounding), low), high) for x in inputs]

    made = values(multiplier, addend)
    assume(low < made[-1] and made[0] < high)  # else any addend beyond some bound will do
    thresholds = [x for x, before, y in zip(inputs[1:], made, made[1:], strict=False) for _ in range(y - before)]
    least, most = _Conditions(Staircase(lo, lo + length, made[0], thresholds), shift, low, high, rounding).addends(m)
    tried = range(-250, 251)  # beyond, every value is cut off at one end
    right = [b for b in tried if values(m, b) == made]
    assert right == [b for b in tried if (least is None or b >= least) and (most is None or b <= most)]
