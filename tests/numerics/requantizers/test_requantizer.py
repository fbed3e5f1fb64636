"""Requantizers: every value of the interval against the staircase's definition, and the search against brute force."""

from __future__ import annotations

import time
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.numerics.accumulator_bounds import bounds, width_of
from hwflow.numerics.functions.piecewise import Relu
from hwflow.numerics.requantizers import requantizer
from hwflow.numerics.requantizers.form import Form
from hwflow.numerics.requantizers.lookup_form import LookupForm
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.search_form import SearchForm
from hwflow.numerics.requantizers.staircase import Staircase
from hwflow.numerics.requantizers.threshold_form import ThresholdForm
from tests.numerics.requantizers.staircases import quantizer_staircase, steps_of


def find_multiply_add_shift(stairs: list[Staircase], max_shift: int = 80) -> MultiplyAddShift | None:
    return requantizer.find_multiply_add_shift(steps_of(stairs), max_shift)


def realise(stairs: list[Staircase], bits: int, signed: bool) -> Form:
    return requantizer.realise(steps_of(stairs), bits, signed)


def proves(form: Form, stairs: list[Staircase]) -> bool:
    return form.proves(steps_of(stairs))


def threshold_form(stairs: list[Staircase]) -> ThresholdForm:
    form = requantizer.threshold_form(steps_of(stairs))
    assert form is not None
    return form


def lookup_form(stairs: list[Staircase]) -> LookupForm:
    return requantizer.lookup_form(steps_of(stairs))


def counted(s: Staircase) -> list[int]:
    return [s.low + sum(x >= t for t in s.thresholds) for x in range(s.lo, s.hi + 1)]


def hardware(form: Form, x: int, channel: int) -> int:
    """What the cores compute, in Python ints."""
    if isinstance(form, MultiplyAddShift):
        v = form.multipliers[channel] * x + form.addends[channel]
        y = v // 2**form.shift
        if form.rounding != "floor":
            tie_to_odd = form.rounding == "half_odd"
            y = round(F(v, 2**form.shift) + tie_to_odd) - tie_to_odd
        return max(form.low, min(form.high, y))
    if isinstance(form, ThresholdForm):
        counts = ((x >= t) != falls for t, falls in zip(form.thresholds[channel], form.falling[channel], strict=True))
        return form.bases[channel] + sum(counts)
    if isinstance(form, SearchForm):
        found = 0  # bit by bit, the most significant first
        for stage in range(form.stages):
            middle = ((2 * found + 1) << (form.stages - 1 - stage)) - 1
            found = 2 * found + (x >= form.thresholds[channel][middle])
        return form.row(channel)[found]
    return form.tables[channel][x - form.lo]


def equal(form: Form, stairs: list[Staircase]) -> bool:
    """By every value of every channel's interval."""
    return all(
        [hardware(form, x, c) for x in range(s.lo, s.hi + 1)] == counted(s) for c, s in enumerate(stairs)
    )


@st.composite
def staircases(draw: st.DrawFn) -> Staircase:
    """Any staircase: jumps, constants, single steps, regular and irregular ones."""
    lo = draw(st.integers(-40, 10))
    hi = lo + draw(st.integers(0, 40))
    low = draw(st.integers(-4, 4))
    if draw(st.booleans()) and hi > lo:
        t = tuple(sorted(draw(st.lists(st.integers(lo + 1, hi), max_size=8))))
        return Staircase(lo, hi, low, t)
    scale = draw(st.fractions(F(1, 20), 3, max_denominator=20))
    zero_point = draw(st.fractions(-20, 20, max_denominator=6))
    return quantizer_staircase(lo, hi, scale, zero_point, [], F(1), draw(st.integers(-3, 3)), low, low + 9)


def brute_force(stairs: list[Staircase], max_shift: int) -> tuple[int, list[int]] | None:
    """The least shift and the least multipliers, by trying them all against every value of the interval."""
    low, high = min(s.low for s in stairs), max(s.high for s in stairs)
    for shift in range(max_shift + 1):
        found: list[int] = []
        for s in stairs:
            values = counted(s)
            for m in range((high - low + 1) * 2**shift + 1):
                # clamp(floor(e / 2**shift)) == v: what that says of e = m * x + b
                at_least = [v * 2**shift - m * x for x, v in enumerate(values, s.lo) if v > low]
                at_most = [(v + 1) * 2**shift - 1 - m * x for x, v in enumerate(values, s.lo) if v < high]
                if not at_least or not at_most or max(at_least) <= min(at_most):
                    found.append(m)
                    break
            else:
                break
        if len(found) == len(stairs):
            return shift, found
    return None


@settings(max_examples=150, deadline=None)
@given(st.lists(staircases(), min_size=1, max_size=3))
def test_search_against_brute_force(stairs: list[Staircase]) -> None:
    form = find_multiply_add_shift(stairs, max_shift=5)
    expected = brute_force(stairs, 5)
    if form is None:
        assert expected is None
        return
    assert (form.shift, list(form.multipliers)) == expected
    assert equal(form, stairs)


@settings(max_examples=200, deadline=None)
@given(st.lists(staircases(), min_size=1, max_size=3), st.integers(0, 6), st.data())
def test_proves_is_equality_on_the_interval(stairs: list[Staircase], shift: int, data: st.DataObject) -> None:
    form = find_multiply_add_shift(stairs)
    if form is None or data.draw(st.booleans()):
        some = st.lists(st.integers(0, 40), min_size=len(stairs), max_size=len(stairs))
        low, high = min(s.low for s in stairs), max(s.high for s in stairs)
        form = MultiplyAddShift(tuple(data.draw(some)), tuple(data.draw(some)), shift, low, high)
    else:  # a form that works, and its neighbours
        moved = [b + data.draw(st.integers(-2, 2)) for b in form.addends]
        form = MultiplyAddShift(form.multipliers, tuple(moved), form.shift, form.low, form.high)
    assert proves(form, stairs) == equal(form, stairs)


@settings(max_examples=150, deadline=None)
@given(st.lists(staircases(), min_size=1, max_size=3), st.data())
def test_every_form_and_its_evaluate(stairs: list[Staircase], data: st.DataObject) -> None:
    forms: list[Form] = [realise(stairs, 8, True), threshold_form(stairs), lookup_form(stairs)]
    found = find_multiply_add_shift(stairs) or requantizer.find_rounding_multiply_add_shift(steps_of(stairs))
    searches = [requantizer.search_form(steps_of(stairs), with_values=values) for values in (False, True)]
    forms += [found] if found else [form for form in searches if form is not None]
    others = [f for f in forms if not (isinstance(f, ThresholdForm) and not f.levels)]
    assert forms[0].cost(8) <= min(f.cost(8) for f in others)
    for form in forms:
        assert proves(form, stairs) and equal(form, stairs)
        for c, s in enumerate(stairs):
            assert form.evaluate(np.arange(s.lo, s.hi + 1), c).tolist() == counted(s)
        x = np.array([[data.draw(st.integers(s.lo, s.hi)) for s in stairs] for _ in range(3)])
        expected = [[hardware(form, int(v), c) for c, v in enumerate(row)] for row in x]
        assert form.evaluate(x, np.arange(len(stairs))).tolist() == expected


def test_single_steps_and_constants_by_hand() -> None:
    # one threshold: m = 1, b puts the step at the clamp; a constant channel: m = 0
    assert find_multiply_add_shift([Staircase(-9, 9, 0, (4,))]) == MultiplyAddShift((1,), (-3,), 0, 0, 1)
    assert find_multiply_add_shift([Staircase(-9, 9, 3, ())]) == MultiplyAddShift((0,), (0,), 0, 3, 3)
    # beside a channel of levels 0..2, the constant 1 needs 1 <= b < 2
    pair = [Staircase(0, 9, 0, (2, 4)), Staircase(0, 9, 1, ())]
    assert find_multiply_add_shift(pair) == MultiplyAddShift((1, 0), (0, 2), 1, 0, 2)


def test_ends_of_the_interval_count_when_the_clamp_is_wider() -> None:
    """Channel 0 stops at level 1 of 3: the line must stay below 2 up to hi; alone, it may go on."""
    narrow, wide = Staircase(0, 20, 0, (2,)), Staircase(0, 20, 0, (5, 10, 15))
    alone = find_multiply_add_shift([narrow])
    both = find_multiply_add_shift([narrow, wide])
    assert alone == MultiplyAddShift((1,), (-1,), 0, 0, 1)
    assert both is not None and proves(both, [narrow, wide])
    assert all(0 <= both.multipliers[0] * x + both.addends[0] < 2 << both.shift for x in range(21))
    assert not proves(MultiplyAddShift((1,), (-1,), 0, 0, 3), [narrow])


def test_jumps_of_several_levels() -> None:
    assert find_multiply_add_shift([Staircase(0, 9, 0, (3, 3, 3, 4, 4, 4, 5))]) == MultiplyAddShift(
        (3,), (-6,), 0, 0, 7
    )
    assert find_multiply_add_shift([Staircase(0, 9, 0, (3, 3, 3, 9))]) is None  # no line jumps by 3, then waits


def test_none_and_the_maximum_shift() -> None:
    crooked = Staircase(0, 40, 0, (2, 4, 20))
    assert find_multiply_add_shift([crooked]) is None
    assert isinstance(realise([crooked], 6, False), LookupForm)  # 64 words of 2 bits, 8 LUTs; thresholds 3 * 7
    fine = quantizer_staircase(-60000, 60000, F(1, 937), 0, [], F(1), 0, -128, 127)
    form = find_multiply_add_shift([fine])
    assert form is not None and find_multiply_add_shift([fine], max_shift=form.shift - 1) is None
    assert find_multiply_add_shift([fine], max_shift=form.shift) == form


def test_thresholds_of_channels_with_fewer_levels_are_padded() -> None:
    form = threshold_form([Staircase(-8, 7, 1, (0,)), Staircase(-8, 7, 0, (-3, 2, 5))])
    assert form == ThresholdForm((0, 0), ((-8, 0, 8), (-3, 2, 5)), ((False,) * 3,) * 2)
    assert form.threshold_type == (5, True)


def test_choice_follows_cost() -> None:
    line = quantizer_staircase(-(1 << 19), (1 << 19) - 1, F(1, 3001), 0, [], F(1), 0, -128, 127)
    assert isinstance(realise([line], 20, True), MultiplyAddShift)
    binary = Staircase(-(1 << 19), (1 << 19) - 1, 0, (1234,))
    # thresholds: 1 * (20 + 1); multiply-add-shift: 20 * 1 + 22
    assert (threshold_form([binary]).cost(20), (find_multiply_add_shift([binary]) or line).cost(20)) == (21, 42)
    assert isinstance(realise([binary], 20, True), ThresholdForm)
    curve = Staircase(0, 255, 0, tuple(sorted(round(255 * (k / 200) ** 2) + 1 for k in range(1, 200))))
    # ROM: 256 words of 8 bits, 16 bits per LUT
    assert (lookup_form([curve]).cost(8), type(realise([curve], 8, False))) == (128, LookupForm)


def test_wide_values_fall_back_on_python_ints() -> None:
    lo, hi = -(1 << 50), 1 << 50
    stairs = [quantizer_staircase(lo, hi, F(k, 10**13), F(7, 3), [Relu()], F(1), 0, 0, 255) for k in (20, 31)]
    form = find_multiply_add_shift(stairs, max_shift=120)
    assert form is not None
    for c, s in enumerate(stairs):
        x = np.array(sorted({lo, hi, *s.thresholds, *(t - 1 for t in s.thresholds)}))
        expected = [max(0, min(255, round(F(20 + 11 * c, 10**13) * (int(v) - F(7, 3))))) for v in x]
        assert form.evaluate(x, c).tolist() == expected == [hardware(form, int(v), c) for v in x]


def test_lookup_refuses_what_it_has_no_word_for() -> None:
    with pytest.raises(ValueError, match=r"inputs of a lookup must lie in \[-1, 1\], not \[0, 2\]"):
        LookupForm(-1, ((5, 3, 4),)).evaluate(np.array([0, 2]))
    with pytest.raises(ValueError, match=r"intervals must lie within the input type \[0, 7\], not \[-1, 3\]"):
        realise([Staircase(-1, 3, 0, ())], 3, False)


def layer(rng: np.random.Generator, channels: int, k: int) -> list[Staircase]:
    """A random int8 layer with float32 scales and a float bias, as a per-channel quantizer would leave it."""
    w = np.clip(np.round(rng.normal(0, 30, (channels, k))), -127, 127).astype(np.int64)
    in_scale = F(float(np.float32(rng.uniform(0.005, 0.05))))
    spread = float(in_scale) * 0.005 * 30 * 70 * k**0.5
    out_scale = F(float(np.float32(spread * 3 / 127)))
    scales = [in_scale * F(float(np.float32(v))) for v in rng.uniform(0.001, 0.01, channels)]
    biases = [F(float(np.float32(v))) for v in rng.normal(0, spread, channels)]
    return [
        quantizer_staircase(lo, hi, s, -b / s, [], out_scale, 3, -128, 127)
        for lo, hi, s, b in zip(*bounds(w, -128, 127), scales, biases, strict=True)
    ]


def test_random_int8_layers_need_few_bits() -> None:
    rng = np.random.default_rng(3)
    bits: list[int] = []
    for channels, k in [(32, 27), (64, 144), (64, 576), (32, 2304)]:
        stairs = layer(rng, channels, k)
        bits += [found.multiplier_bits for s in stairs if (found := find_multiply_add_shift([s]))]
        together = find_multiply_add_shift(stairs)
        assert together is not None and together.multiplier_bits <= 32
        lo, hi = min(s.lo for s in stairs), max(s.hi for s in stairs)
        assert isinstance(realise(stairs, *width_of(lo, hi)), MultiplyAddShift)
        x = rng.integers(lo, hi, (500, channels)).clip([s.lo for s in stairs], [s.hi for s in stairs])
        expected = np.stack([s.evaluate(x[:, c]) for c, s in enumerate(stairs)], axis=1)
        assert np.array_equal(together.evaluate(x, np.arange(channels)), expected)
    # each channel with a shift of its own; measured with this and three other seeds: 21.3 to 21.8 on average, 26 or
    # 27 at most; with one shift for all channels the field is 24 to 30 bits
    assert len(bits) == 192 and max(bits) <= 28 and sum(bits) / len(bits) <= 22


def test_256_channels_of_255_thresholds_are_quick() -> None:
    stairs = layer(np.random.default_rng(5), 256, 576)
    start = time.process_time()
    assert find_multiply_add_shift(stairs) is not None
    assert time.process_time() - start < 1


@pytest.mark.parametrize("bits", [20, 31, 33, 40])
def test_proofs_where_products_and_addends_nearly_cancel(bits: int) -> None:
    """y = x - 2**bits from 0 to 1, by multiplier and shift of so many bits: products and addends of twice as many."""
    unit = 1 << bits
    stairs = [Staircase(unit - 8, unit + 8, 0, (unit + 1,))]
    addend = -unit * unit
    assert proves(MultiplyAddShift((unit,), (addend,), bits, 0, 1), stairs)
    assert proves(MultiplyAddShift((unit,), (addend + unit - 1,), bits, 0, 1), stairs)
    assert not proves(MultiplyAddShift((unit,), (addend + unit,), bits, 0, 1), stairs)
    assert not proves(MultiplyAddShift((unit,), (addend - 1,), bits, 0, 1), stairs)
