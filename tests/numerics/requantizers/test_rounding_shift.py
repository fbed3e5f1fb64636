"""Multiply-add-shift that rounds ties: every value of an interval against Python's rationals, search by brute force."""

from __future__ import annotations

import time
from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.numerics.functions.piecewise import Clip, Relu
from hwflow.numerics.requantizers import requantizer
from hwflow.numerics.requantizers.form import Form
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.numerics.requantizers.staircase import Staircase
from hwflow.numerics.requantizers.threshold_form import ThresholdForm
from tests.numerics.requantizers.staircases import quantizer_staircase, steps_of

ROUNDINGS = (ShiftRounding.HALF_EVEN, ShiftRounding.HALF_ODD)


def find_multiply_add_shift(stairs: list[Staircase]) -> MultiplyAddShift | None:
    return requantizer.find_multiply_add_shift(steps_of(stairs))


def find_rounding_multiply_add_shift(stairs: list[Staircase], max_shift: int = 80) -> MultiplyAddShift | None:
    return requantizer.find_rounding_multiply_add_shift(steps_of(stairs), max_shift)


def realise(stairs: list[Staircase], bits: int, signed: bool) -> Form:
    return requantizer.realise(steps_of(stairs), bits, signed)


def proves(form: Form, stairs: list[Staircase]) -> bool:
    return form.proves(steps_of(stairs))


def rounded(v: int, shift: int, rounding: str) -> int:
    """Python rounds a tie to even; one up and one down again turns that over."""
    exact = F(v, 2**shift)
    return round(exact) if rounding == "half_even" else round(exact + 1) - 1


def values(form: MultiplyAddShift, s: Staircase, channel: int = 0) -> list[int]:
    m, b = form.multipliers[channel], form.addends[channel]
    wanted = (rounded(m * x + b, form.shift, form.rounding) for x in range(s.lo, s.hi + 1))
    return [max(form.low, min(form.high, y)) for y in wanted]


def counted(s: Staircase) -> list[int]:
    return [s.low + sum(x >= t for t in s.thresholds) for x in range(s.lo, s.hi + 1)]


def quantized(lo: int, hi: int, scale: F, zero_point: F | int, out_zero_point: int, low: int, high: int) -> Staircase:
    return quantizer_staircase(lo, hi, scale, zero_point, [], F(1), out_zero_point, low, high)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_evaluate_rounds_as_said(rounding: str) -> None:
    x = np.arange(-40, 41)
    for shift, m, b in product((1, 2, 3), (0, 1, 3), (-5, 0, 2)):
        form = MultiplyAddShift((m,), (b,), shift, -9, 8, rounding)
        expected = [max(-9, min(8, rounded(m * v + b, shift, rounding))) for v in range(-40, 41)]
        assert form.evaluate(x).tolist() == expected
        wide = MultiplyAddShift((m << 70,), (b << 70,), shift + 70, -9, 8, rounding)
        assert wide.evaluate(x).tolist() == expected


def test_ties_by_hand() -> None:
    """x / 4: -6/4 and -2/4, 2/4, 6/4, 10/4 are the ties; to even they give -2, 0, 0, 2, 2, to odd -1, -1, 1, 1, 3."""
    x = np.array([-6, -2, 2, 6, 10])
    assert MultiplyAddShift((1,), (0,), 2, -8, 8, "half_even").evaluate(x).tolist() == [-2, 0, 0, 2, 2]
    assert MultiplyAddShift((1,), (0,), 2, -8, 8, "half_odd").evaluate(x).tolist() == [-1, -1, 1, 1, 3]
    steps = Staircase(-10, 10, -2, (-5, -2, 3, 6))  # -10 / 4 is a tie too: -2
    assert quantized(-10, 10, F(1, 4), 0, 0, -8, 8) == steps
    assert find_multiply_add_shift([steps]) is None
    assert find_rounding_multiply_add_shift([steps]) == MultiplyAddShift((1,), (0,), 2, -2, 2, "half_even")
    # an odd zero point: one level higher, the same inputs, so the ties go to odd levels
    odd = Staircase(-10, 10, -1, (-5, -2, 3, 6))
    assert find_rounding_multiply_add_shift([odd]) == MultiplyAddShift((1,), (4,), 2, -1, 3, "half_odd")


@pytest.mark.parametrize("out_zero_point", [0, 1, 3, -7, -128, 127])
@pytest.mark.parametrize("exponent", range(1, 9))
def test_powers_of_two_of_every_size(exponent: int, out_zero_point: int) -> None:
    """Scale 2**-k: multiplier 1, shift k, and round(x / 2**k) + zero_point for every input."""
    lo, hi = -(5 << exponent), 5 << exponent
    s = quantized(lo, hi, F(1, 1 << exponent), 0, out_zero_point, -128, 127)
    form = find_rounding_multiply_add_shift([s])
    assert form is not None and proves(form, [s])
    wanted = [max(-128, min(127, round(F(x, 1 << exponent)) + out_zero_point)) for x in range(lo, hi + 1)]
    assert values(form, s) == form.evaluate(np.arange(lo, hi + 1)).tolist() == wanted
    if out_zero_point in (0, 1, 3, -7):  # not cut off by the clamp: nothing else will do
        assert (form.multipliers, form.addends, form.shift) == ((1,), (out_zero_point << exponent,), exponent)
        assert form.rounding == ROUNDINGS[out_zero_point % 2]
        assert find_multiply_add_shift([s]) is None


@pytest.mark.parametrize(("function", "low"), [(Relu(), 0), (Clip(F(-3), F(9, 2)), -3)])
@pytest.mark.parametrize("out_zero_point", [0, 1])
def test_behind_an_activation(function: Relu | Clip, low: int, out_zero_point: int) -> None:
    s = quantizer_staircase(-200, 300, F(3, 64), F(5, 3), [function], F(1, 2), out_zero_point, -128, 127)
    # 3 / 64 * (x - 5/3) * 2 = (6 x - 10) / 64 = (3 x - 5) / 32
    form = realise([s], 10, True)
    assert isinstance(form, MultiplyAddShift) and form.rounding == ROUNDINGS[out_zero_point]
    assert form.shift == 5 and form.multipliers == (3,)
    top = F(9, 2) if low else F(1000)
    exact = [2 * max(F(low), min(top, F(3, 64) * (x - F(5, 3)))) for x in range(-200, 301)]
    assert form.evaluate(np.arange(-200, 301)).tolist() == [round(v) + out_zero_point for v in exact]


def test_channels_with_and_without_ties_share_a_form() -> None:
    stairs = [
        quantized(-300, 300, F(1, 16), 0, 0, -128, 127),  # ties everywhere
        quantized(-300, 300, F(5, 64), F(1, 7), 0, -128, 127),  # an offset that is not dyadic: no ties
        quantized(-300, 300, F(1, 23), F(2, 3), 0, -128, 127),  # nor is the scale
        quantized(-300, 300, F(1, 2048), 0, 0, -128, 127),  # constant
        quantized(-300, -300, F(1, 64), 0, 0, -128, 127),  # a single value, -5
    ]
    assert find_multiply_add_shift(stairs) is None and find_multiply_add_shift(stairs[1:]) is not None
    form = find_rounding_multiply_add_shift(stairs)
    assert form is not None and proves(form, stairs) and form.rounding == "half_even"
    assert form.multipliers[0] == 1 << (form.shift - 4) and form.multipliers[3:] == (0, 0)
    for c, s in enumerate(stairs):
        assert values(form, s, c) == counted(s)
    with_zero_point = [*stairs, quantized(-300, 300, F(1, 16), 0, 1, -128, 127)]  # its ties go the other way
    assert find_rounding_multiply_add_shift(with_zero_point) is None
    assert proves(realise(with_zero_point, 10, True), with_zero_point)


@st.composite
def staircases(draw: st.DrawFn) -> Staircase:
    """Dyadic scales and offsets with ties, others without, irregular ones; outputs cut off or not."""
    lo = draw(st.integers(-40, 10))
    hi = lo + draw(st.integers(0, 40))
    low = draw(st.integers(-4, 4))
    if hi > lo and draw(st.integers(0, 4)) == 0:
        return Staircase(lo, hi, low, tuple(sorted(draw(st.lists(st.integers(lo + 1, hi), max_size=6)))))
    if draw(st.booleans()):
        scale = F(draw(st.integers(1, 7)), 2 ** draw(st.integers(0, 4)))
        zero_point = F(draw(st.integers(-20, 20)), 2 ** draw(st.integers(0, 2)))
    else:
        scale = draw(st.fractions(F(1, 20), 3, max_denominator=20))
        zero_point = draw(st.fractions(-20, 20, max_denominator=6))
    return quantized(lo, hi, scale, zero_point, draw(st.integers(-3, 3)), low, low + draw(st.integers(1, 9)))


def brute_force(stairs: list[Staircase], max_shift: int) -> tuple[int, str, list[int]] | None:
    """The least shift and the least multipliers, by trying them all against every value of the interval."""
    low, high = min(s.low for s in stairs), max(s.high for s in stairs)
    for shift, rounding in product(range(1, max_shift + 1), ROUNDINGS):
        span = range(min(low, 0) - 2 << shift, high + 3 << shift)
        to = {v: max(low, min(high, rounded(v, shift, rounding))) for v in span}
        least = {y: min(v for v in span if to[v] == y) for y in set(to.values())}
        most = {y: max(v for v in span if to[v] == y) for y in set(to.values())}
        found: list[int] = []
        for s in stairs:
            results = counted(s)
            for m in range((high - low + 2) * 2**shift + 1):
                at_least = [least[y] - m * x for x, y in enumerate(results, s.lo) if y > low]
                at_most = [most[y] - m * x for x, y in enumerate(results, s.lo) if y < high]
                if not at_least or not at_most or max(at_least) <= min(at_most):
                    found.append(m)
                    break
            else:
                break
        if len(found) == len(stairs):
            return shift, rounding, found
    return None


@settings(max_examples=150, deadline=None)
@given(st.lists(staircases(), min_size=1, max_size=3))
def test_search_against_brute_force(stairs: list[Staircase]) -> None:
    form = find_rounding_multiply_add_shift(stairs, max_shift=5)
    expected = brute_force(stairs, 5)
    if form is None:
        assert expected is None
        return
    assert (form.shift, form.rounding, list(form.multipliers)) == expected
    for c, s in enumerate(stairs):
        assert values(form, s, c) == counted(s) == form.evaluate(np.arange(s.lo, s.hi + 1), c).tolist()


@settings(max_examples=200, deadline=None)
@given(st.lists(staircases(), min_size=1, max_size=3), st.sampled_from(ROUNDINGS), st.integers(1, 6), st.data())
def test_proves_is_equality(stairs: list[Staircase], rounding: str, shift: int, data: st.DataObject) -> None:
    form = find_rounding_multiply_add_shift(stairs)
    if form is None or data.draw(st.booleans()):
        some = st.lists(st.integers(0, 40), min_size=len(stairs), max_size=len(stairs))
        low, high = min(s.low for s in stairs), max(s.high for s in stairs)
        form = MultiplyAddShift(tuple(data.draw(some)), tuple(data.draw(some)), shift, low, high, rounding)
    else:  # a form that works, and its neighbours
        addends = tuple(b + data.draw(st.integers(-2, 2)) for b in form.addends)
        kind = data.draw(st.sampled_from((form.rounding, rounding)))
        form = MultiplyAddShift(form.multipliers, addends, form.shift, form.low, form.high, kind)
    equal = all(values(form, s, c) == counted(s) for c, s in enumerate(stairs))
    assert proves(form, stairs) == equal


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 255), st.integers(0, 9), st.integers(-500, 500), st.integers(0, 3), st.integers(-9, 9), st.booleans()
)
def test_every_dyadic_chain_has_a_form(
    m: int, exponent: int, bias: int, bias_exponent: int, out_zero_point: int, relu: bool
) -> None:
    """m * x / 2**exponent + bias / 2**bias_exponent, rounded: exact, whether it has ties or not."""
    scale, offset = F(m, 2**exponent), F(bias, 2**bias_exponent)
    functions = [Relu()] if relu else []
    s = quantizer_staircase(-99, 99, scale, -offset / scale, functions, F(1), out_zero_point, -128, 127)
    rounding, floor = find_rounding_multiply_add_shift([s]), find_multiply_add_shift([s])
    assert rounding is not None or (floor is not None and floor.shift == 0)
    assert rounding is None or rounding.shift <= max(1, exponent, bias_exponent)
    exact = [scale * x + offset for x in range(-99, 100)]
    wanted = [max(-128, min(127, round(max(F(0), v) if relu else v) + out_zero_point)) for v in exact]
    form = realise([s], 8, True)
    assert form.evaluate(np.arange(-99, 100)).tolist() == wanted
    if rounding is not None:
        assert values(rounding, s) == wanted


def test_rounding_down_is_preferred_unless_it_costs_more() -> None:
    plain = quantized(-60000, 60000, F(1, 937), 0, 0, -128, 127)
    form = realise([plain], 17, True)
    assert isinstance(form, MultiplyAddShift) and form.rounding == "floor"
    layer = quantized(-60000, 60000, F(1, 512), 0, 0, -128, 127)
    form = realise([layer], 17, True)
    assert form == MultiplyAddShift((1,), (0,), 9, -117, 117, "half_even")
    # a multiplier of 1 bit, a sum of 19 bits, rounded to 10, 9 bits taken off: 17 + 19 + 10 + 3
    thresholds = requantizer.threshold_form(steps_of([layer]))
    assert isinstance(thresholds, ThresholdForm) and (form.cost(17), thresholds.cost(17)) == (49, 234 * 18)


def test_wide_values_fall_back_on_python_ints() -> None:
    lo, hi = -(1 << 55), 1 << 55
    stairs = [quantized(lo, hi, F(1, 1 << 49), c, 0, -128, 127) for c in (0, 3)]
    form = find_rounding_multiply_add_shift(stairs, max_shift=60)
    assert form is not None and form.shift == 49
    assert find_rounding_multiply_add_shift(stairs, max_shift=48) is None
    for c, s in enumerate(stairs):
        x = np.array(sorted({lo, hi, *s.thresholds, *(t - 1 for t in s.thresholds)}))
        expected = [max(form.low, min(form.high, round(F(int(v) - 3 * c, 1 << 49)))) for v in x]
        assert form.evaluate(x, c).tolist() == s.evaluate(x).tolist() == expected


def test_arguments() -> None:
    message = "shift must be at least 1 with rounding half_even, not 0; use floor"
    with pytest.raises(ValueError, match=message):
        MultiplyAddShift((1,), (0,), 0, 0, 1, "half_even")
    with pytest.raises(ValueError, match="steps must be one per channel, not none"):
        find_rounding_multiply_add_shift([])


def test_256_channels_of_255_thresholds_are_quick() -> None:
    rng = np.random.default_rng(5)
    tied = [quantized(-(1 << 19), 1 << 19, F(1, 2048), int(b), 3, -128, 127) for b in rng.integers(-9999, 9999, 256)]
    start = time.process_time()
    form = find_rounding_multiply_add_shift(tied)
    assert form is not None and (form.shift, form.rounding) == (11, "half_odd")
    assert time.process_time() - start < 1
