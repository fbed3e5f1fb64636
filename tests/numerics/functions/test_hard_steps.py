"""Step functions where float64 does not help: ties, values next to a boundary, wide intervals, undefined places."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from mpmath import mp

from hwflow.numerics.functions import subdivision
from hwflow.numerics.functions.combination import Combination
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import (
    Abs,
    Affine,
    Clip,
    HardSigmoid,
    LeakyRelu,
    Relu,
    Round,
    Sign,
    ThresholdedRelu,
)
from hwflow.numerics.functions.power import Pow, Reciprocal, Sqrt
from hwflow.numerics.functions.smooth import (
    Elu,
    Erf,
    Exp,
    Gelu,
    HardSwish,
    Log,
    Mish,
    Sigmoid,
    Softplus,
    Softsign,
    Tanh,
)
from hwflow.numerics.requantizers.stages import NoSteps, QuantizerStage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.numerics.rounding import Rounding

UNCLEAR = "keep off rounding boundaries, but 6144 bits do not separate one of its values from one"


def stage(
    functions: tuple[Elementwise, ...], scale: F = F(1), out_scale: F = F(1), low: int = -100, high: int = 100,
    rounding: Rounding = Rounding.ROUND, zero_point: F = F(0),
) -> QuantizerStage:  # fmt: skip
    return QuantizerStage(scale, zero_point, functions, out_scale, 0, low, high, rounding)


HAND: list[tuple[str, QuantizerStage, int, int, tuple[int, ...], tuple[int, ...]]] = [
    # x/2 rounded half to even from the right: -x/2 at 3, 2, 1, 0, -1, -2, -3 is -2, -1, 0, 0, 0, 1, 2
    ("falling", stage((), F(-1, 2)), -3, 3, (-2, -1, 2, 3), (2, 1, 0, -1, -2)),
    ("abs", stage((Abs(),)), -2, 2, (-1, 0, 1, 2), (2, 1, 0, 1, 2)),
    ("sign", stage((Sign(),)), -9, 9, (0, 1), (-1, 0, 1)),
    ("leaky_falling", stage((LeakyRelu(F(-1)),)), -2, 1, (-1, 0, 1), (2, 1, 0, 1)),
    ("thresholded", stage((ThresholdedRelu(F(2)),)), 0, 4, (3, 4), (0, 3, 4)),
    ("thresholded_below", stage((ThresholdedRelu(F(-2)),)), -4, 0, (-1, 0), (0, -1, 0)),
    # 4 * clip(x/4 + 1/2): 0 up to -2, then x + 2, 4 from 2
    ("hard_sigmoid", stage((HardSigmoid(F(1, 4), F(1, 2)),), F(1), F(1, 4)), -9, 9, (-1, 0, 1, 2), (0, 1, 2, 3, 4)),
    ("constant", stage((Affine(F(-3), F(5)),), F(0)), -9, 9, (), (5,)),
    ("floor_of_the_negative", stage((Round(Rounding.FLOOR),), F(-1, 2)), 0, 3, (1, 3), (0, -1, -2)),
    ("constant_clip", stage((Clip(F(3), F(1)),)), -9, 9, (), (1,)),
    # 6 x * (x + 3) / 6 at -3 .. 3: 0, -2, -2, 0, 4, 10, 18
    ("hard_swish", stage((HardSwish(),), F(1), F(1, 6)), -9, 3, (-2, 0, 1, 2, 3), (0, -2, 0, 4, 10, 18)),
    # 8 / (1 + e ** -x): 7.05, 5.85, 4, 2.15, 0.95
    ("sigmoid", stage((Sigmoid(),), F(-1), F(1, 8)), -2, 2, (-1, 0, 1, 2), (7, 6, 4, 2, 1)),
    ("square", stage((Pow(F(2)),)), -2, 3, (-1, 0, 1, 2, 3), (4, 1, 0, 1, 4, 9)),
    ("cube", stage((Pow(F(3)),)), -2, 2, (-1, 0, 1, 2), (-8, -1, 0, 1, 8)),
    # 12 / x at 1 .. 6: 12, 6, 4, 3, 2.4, 2
    ("reciprocal", stage((Reciprocal(),), F(1), F(1, 12)), 1, 6, (2, 3, 4, 5), (12, 6, 4, 3, 2)),
    # 10 log x at 1 .. 4: 0, 6.9, 10.99, 13.9
    ("log", stage((Log(),), F(1), F(1, 10)), 1, 4, (2, 3, 4), (0, 7, 11, 14)),
    # sqrt at 0 .. 6: 0, 1, 1.4, 1.7, 2, 2.2, 2.4; 7: 2.6
    ("sqrt", stage((Sqrt(),)), 0, 7, (1, 3, 7), (0, 1, 2, 3)),
    # 2 x / (1 + |x|) at -3 .. 3: -1.5, -1.33, -1, 0, 1, 1.33, 1.5
    ("softsign", stage((Softsign(),), F(1), F(1, 2)), -3, 3, (-2, 0, 1, 3), (-2, -1, 0, 1, 2)),
]


@pytest.mark.parametrize(("of", "lo", "hi", "breaks", "values"), [h[1:] for h in HAND], ids=[h[0] for h in HAND])
def test_by_hand(of: QuantizerStage, lo: int, hi: int, breaks: tuple[int, ...], values: tuple[int, ...]) -> None:
    assert of.steps(lo, hi) == StepFunction(lo, hi, breaks, values)


@pytest.mark.parametrize(
    ("function", "x", "twice"),
    [
        (Sigmoid(), F(0), F(1)), (Tanh(), F(0), F(0)), (Erf(), F(0), F(0)), (Exp(), F(0), F(2)), (Log(), F(1), F(0)),
        (Sqrt(), F(9, 4), F(3)), (Sqrt(), F(1, 4), F(1)), (Pow(F(1, 3)), F(27, 8), F(3)),
        (Pow(F(-3, 2)), F(4), F(1, 4)), (Pow(F(5)), F(-1, 2), F(-1, 16)), (Softsign(), F(1), F(1)),
        (HardSwish(), F(1), F(4, 3)), (Gelu(), F(0), F(0)), (Elu(F(2)), F(5, 2), F(5)), (Mish(), F(0), F(0)),
        (Pow(F(11184811, 1 << 25)), F(1), F(2)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", Rounding)
def test_rational_values_are_exact(function: Elementwise, x: F, twice: F, mode: Rounding) -> None:
    """Rounded where the value is exactly between two levels (or on one): by the mode, with no bit to spare."""
    for out_scale in (F(1), abs(twice) or F(1)):
        of = stage((function,), x or F(1), out_scale, rounding=mode)
        q = 1 if x else 0
        assert of.steps(q, q).values == (mode(twice / 2 / out_scale),)
        assert of.enclosure(q) == (twice / 2 / out_scale, twice / 2 / out_scale)


@pytest.mark.parametrize("bits", [60, 100, 300, 1500])
@pytest.mark.parametrize(
    ("function", "exactly"),
    [
        (Sigmoid(), lambda x: 1 / (1 + mp.exp(-x))), (Exp(), mp.exp), (Tanh(), mp.tanh), (Erf(), mp.erf),
        (Sqrt(), mp.sqrt), (Log(), mp.log), (Softplus(), lambda x: mp.log(1 + mp.exp(x))),
        (Gelu(), lambda x: x * mp.ncdf(x)), (Pow(F(1, 3)), mp.cbrt),
        (Combination("mul", (), (Sigmoid(),)), lambda x: x / (1 + mp.exp(-x))),
    ],
)  # fmt: skip
def test_values_next_to_a_boundary(function: Elementwise, exactly: object, bits: int) -> None:
    """An output scale that puts the value at 2 within 2**-bits above or below a tie: more bits are used, and decide."""
    with mp.workprec(4000):
        value = exactly(mp.mpf(2))
        places = int(mp.floor(value * mp.mpf(2) ** bits))
    for places_above in (0, 1):  # the scale is at most, at least the value doubled
        out_scale = 2 * F(places + places_above, 1 << bits)
        expected = 1 - places_above  # value / out_scale is just above or below 1/2
        assert stage((function,), F(1), out_scale).steps(2, 2).values == (expected,)
        assert stage((function,), F(-1), out_scale).steps(-2, -2).values == (expected,)


def test_equal_irrational_numbers_are_refused() -> None:
    """tanh - tanh is 0, a tie for a floor, and below 0 for all that bits tell."""
    zero = Combination("sub", (Tanh(),), (Tanh(),))
    with pytest.raises(NoSteps) as error:
        stage((zero,), rounding=Rounding.FLOOR).steps(1, 1)
    assert error.value.reason == UNCLEAR
    with pytest.raises(NoSteps) as error:
        stage((zero, Sqrt())).steps(1, 1)
    reason = "have a value everywhere, but 6144 bits do not decide whether one of its values exists"
    assert error.value.reason == reason


def test_more_than_the_most_bits_is_refused() -> None:
    with mp.workprec(9000):
        out_scale = 2 * F(int(mp.floor(mp.e * mp.mpf(2) ** 8000)), 1 << 8000)
    with pytest.raises(NoSteps) as error:
        stage((Exp(),), F(1), out_scale).steps(0, 3)
    assert error.value.reason == UNCLEAR


def test_ends_that_are_never_reached() -> None:
    """A sigmoid of 2**40 is 1 to many more bits than anyone computes, but below 1; likewise the others."""
    wide = 1 << 40
    assert stage((Sigmoid(),), F(1), F(2)).steps(0, wide).values == (0,)  # to even at 0 would be 1/4; at 1 it is 1/2
    assert stage((Sigmoid(),), F(1), F(1), rounding=Rounding.FLOOR).steps(-wide, wide).values == (0,)
    assert stage((Tanh(),), F(1), F(1), rounding=Rounding.CEIL).steps(-wide, wide).values == (0, 1)
    assert stage((Exp(),), F(1), F(1), rounding=Rounding.CEIL).steps(-wide, -1).values == (1,)
    assert stage((Gelu(),), F(1), F(1), rounding=Rounding.FLOOR).steps(-wide, 3).values == (-1, 0, 1, 2)
    assert stage((Softplus(),), F(1), F(1), -5, 5, Rounding.CEIL).steps(-wide, 2).values == (1, 2, 3)
    assert stage((Mish(),), F(1), F(1), rounding=Rounding.CEIL).steps(-wide, 1).values == (0, 1)
    assert stage((Elu(F(3)),), F(1), F(2)).steps(-wide, -5).values == (-1,)  # above -3/2: not to even, to -1
    assert stage((Elu(F(3)), Clip(F(-3), F(0))), F(1), F(1), rounding=Rounding.CEIL).steps(-wide, -9).values == (-2,)
    decomposed = Combination("mul", (), (Erf(), Affine(F(1, 2), F(1, 2))))
    assert stage((decomposed,), F(1), F(1), -9, 9, Rounding.FLOOR).steps(7, wide).values == (6, 7, 8, 9)


CHAINS: list[tuple[Elementwise, ...]] = [
    (Sigmoid(),), (Tanh(),), (Gelu(),), (Gelu(True),), (HardSwish(),), (Mish(),), (Relu(), Sqrt()), (Softplus(), Log()),
    (Combination("mul", (), (Sigmoid(),)),), (Affine(F(-1, 3), F(2)), Relu(), Affine(F(-2), F(1)), Sigmoid()),
    (Combination("mul", (), (Affine(F(1), F(3)), Clip(F(0), F(6)), Affine(F(1, 6), F(0)))),),
    (Abs(), LeakyRelu(F(1, 8)), Affine(F(-1), F(3))),
]  # fmt: skip


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("functions", CHAINS, ids=lambda chain: type(chain[-1]).__name__)
@pytest.mark.parametrize("width", [33, 40])
def test_wide_intervals(functions: tuple[Elementwise, ...], width: int, sign: int) -> None:
    """At every break and before it the value is that of the definition."""
    half = 1 << (width - 1)
    scale = F(sign * 12345, 12289) * F(16, 1 << width)
    of = QuantizerStage(scale, F(777, 10), functions, F(1, 64), 3, -128, 127)
    steps = of.steps(-half, half - 1)
    assert len(steps.breaks) > 40
    for before, begin, after in zip(steps.values, steps.breaks, steps.values[1:], strict=False):
        for q, expected in ((begin - 1, before), (begin, after)):
            low, high = of.enclosure(q, 120)
            assert max(-128, min(127, round(low) + 3)) == expected == max(-128, min(127, round(high) + 3))


@pytest.mark.parametrize(
    ("functions", "lo", "reason"),
    [
        ((Sqrt(),), -1, "it takes the square root of a negative number"),
        ((Affine(F(1), F(-1)), Sqrt()), 0, "it takes the square root of a negative number"),
        ((Log(),), 0, "it takes the logarithm of a number that is not positive"),
        ((Reciprocal(),), -3, "it divides by 0"),
        ((Combination("div", (), (Relu(),)),), -3, "it divides by 0"),
        ((Pow(F(-2)),), -3, "it divides by 0"),
        ((Pow(F(3, 4)),), -3, "it raises a negative number to the power 3/4"),
        ((Log(), Clip(F(0), F(0))), -(1 << 40), "it takes the logarithm of a number that is not positive"),
        ((Tanh(), Sqrt(), Relu()), -(1 << 40), "it takes the square root of a negative number"),
    ],
)
def test_undefined(functions: tuple[Elementwise, ...], lo: int, reason: str) -> None:
    with pytest.raises(NoSteps) as error:
        stage(functions).steps(lo, 5)
    assert error.value.reason == str(error.value) == f"have a value everywhere, but {reason}"


def test_undefined_between_the_integers_is_fine() -> None:
    of = stage((Reciprocal(),), F(1), F(1, 2), zero_point=F(1, 2))
    assert of.steps(0, 1).values == (-4, 4)
    assert stage((Sqrt(),)).steps(0, 1).values == (0, 1)


def test_what_needs_too_many_evaluations_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """x - x + 1/2 is a tie everywhere, which intervals of x cannot see."""
    monkeypatch.setattr(subdivision, "MAX_EXACT", 1000)
    of = stage((Combination("sub", (HardSwish(),), (HardSwish(),)), Affine(F(1), F(1, 2))), high=100, low=0)
    with pytest.raises(NoSteps) as error:
        of.steps(-(1 << 30), 1 << 30)
    reason = "be decided with 1400 exact evaluations, but needs more (quantizing its input first helps)"
    assert error.value.reason == reason


def test_enclosures_of_values() -> None:
    of = QuantizerStage(F(1, 4), F(2), (Sigmoid(), Affine(F(3), F(0))), F(1, 5), 0, 0, 9)
    for bits in (20, 80, 500):
        low, high = of.enclosure(9, bits)
        with mp.workprec(600):
            exact = 15 / (1 + mp.exp(mp.mpf(-7) / 4))
            assert mp.mpf(low.numerator) / low.denominator < exact < mp.mpf(high.numerator) / high.denominator
        assert 0 < high - low < F(64, 1 << bits)
    assert of.enclosure(2) == (F(15, 2), F(15, 2))
    with pytest.raises(NoSteps, match="be at most 2\\*\\*16384 in magnitude, but a value is not"):
        stage((Exp(),)).enclosure(1 << 30)


def test_too_many_levels() -> None:
    with pytest.raises(ValueError, match=r"output range must have at most 1048576 levels, not \[0, 1048576\]"):
        stage((), low=0, high=1 << 20).steps(0, 1)
