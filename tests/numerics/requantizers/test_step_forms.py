"""Forms of any step function, rising, falling or neither: all values of the interval, and all parameters off by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.numerics.requantizers.form import Form
from hwflow.numerics.requantizers.lookup_form import LookupForm, lookup_form
from hwflow.numerics.requantizers.multiply_add_shift import (
    MultiplyAddShift,
    find_multiply_add_shift,
    find_rounding_multiply_add_shift,
)
from hwflow.numerics.requantizers.requantizer import realise
from hwflow.numerics.requantizers.search_form import SearchForm, search_form
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.numerics.requantizers.threshold_form import MAX_THRESHOLDS, ThresholdForm, threshold_form

Tables = list[tuple[int, list[int]]]  # for each channel its least input, and its values from there on


@st.composite
def tables(draw: st.DrawFn) -> Tables:
    """Channels of one kind or of all: any values, few values, staircases up and down, lines up and down, constants."""
    kinds = ("any", "bits", "up", "down", "line", "negative line", "constant")
    kind = draw(st.sampled_from((*kinds, "all")))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        lo, count = draw(st.integers(-40, 10)), draw(st.integers(1, 40))
        here = draw(st.sampled_from(kinds)) if kind == "all" else kind
        if here == "constant":
            values = [draw(st.integers(-5, 5))] * count
        elif "line" in here:
            m, b, shift = draw(st.integers(1, 9)), draw(st.integers(-30, 30)), draw(st.integers(0, 5))
            low, sign = draw(st.integers(-9, 0)), -1 if here == "negative line" else 1
            if draw(st.booleans()):
                values = [max(low, min(low + 9, (sign * m * x + b) >> shift)) for x in range(lo, lo + count)]
            else:  # with ties
                values = [max(low, min(low + 9, round((sign * m * x + b) / 2**shift))) for x in range(lo, lo + count)]
        else:
            ends = (0, 1) if here == "bits" else (-5, 5)
            values = draw(st.lists(st.integers(*ends), min_size=count, max_size=count))
            values = sorted(values, reverse=here == "down") if here in ("up", "down") else values
        found.append((lo, values))
    return found


def functions(channels: Tables) -> list[StepFunction]:
    return [StepFunction.of_table(lo, values) for lo, values in channels]


def rounded(v: int, shift: int, rounding: str) -> int:
    """By the remainder: what Python's round does for ties to even."""
    quotient, rest = divmod(v, 1 << shift)
    if rounding == "floor" or 2 * rest < 1 << shift:
        return quotient
    if 2 * rest > 1 << shift:
        return quotient + 1
    return quotient + ((quotient % 2 == 1) == (rounding == "half_even"))


def computed(form: Form, channel: int, x: int) -> int:
    """What the cores compute, in Python ints."""
    if isinstance(form, MultiplyAddShift):
        y = rounded(form.multipliers[channel] * x + form.addends[channel], form.shift, form.rounding)
        return max(form.low, min(form.high, y))
    if isinstance(form, ThresholdForm):
        counts = ((x >= t) != falls for t, falls in zip(form.thresholds[channel], form.falling[channel], strict=True))
        return form.bases[channel] + sum(counts)
    if isinstance(form, SearchForm):
        found = 0  # bit by bit, the most significant first
        for stage in range(form.stages):
            middle = ((2 * found + 1) << (form.stages - 1 - stage)) - 1
            found = 2 * found + (x >= form.thresholds[channel][middle])
        if form.values is not None:
            return form.values[channel][found]
        return form.base - found if form.falling else form.base + found
    return form.tables[channel][x - form.lo]


def equal(form: Form, channels: Tables) -> bool:
    """By every value of every channel's interval."""
    return all(
        computed(form, c, x) == y for c, (lo, values) in enumerate(channels) for x, y in enumerate(values, lo)
    )


def forms_of(steps: list[StepFunction]) -> list[Form]:
    every = [
        realise(steps, 8, True),
        find_multiply_add_shift(steps),
        find_rounding_multiply_add_shift(steps),
        threshold_form(steps),
        threshold_form(steps, one_base=False),
        search_form(steps, with_values=False),
        search_form(steps, with_values=True),
        lookup_form(steps),
    ]
    return [form for form in every if form is not None]


@settings(max_examples=300, deadline=None)
@given(tables())
def test_every_form_is_the_function(channels: Tables) -> None:
    steps = functions(channels)
    for form in forms_of(steps):
        assert form.proves(steps), form
        assert equal(form, channels), form
        for c, (lo, values) in enumerate(channels):
            assert form.evaluate(np.arange(lo, lo + len(values)), c).tolist() == values
    x = np.array([[lo + n % len(values) for lo, values in channels] for n in (0, 7, 23)])
    together = realise(steps, 8, True).evaluate(x, np.arange(len(channels)))
    assert together.tolist() == [
        [values[n % len(values)] for _, values in channels] for n in (0, 7, 23)
    ]


def varied(form: Form) -> Iterator[Form]:
    """``form`` with one parameter one more or one less, all of them in turn."""

    def changed(table: tuple[tuple[int, ...], ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
        for c, row in enumerate(table):
            for new in flat(row):
                yield (*table[:c], new, *table[c + 1 :])

    def flat(row: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for k, value in enumerate(row):
            for by in (-1, 1):
                yield (*row[:k], value + by, *row[k + 1 :])

    if isinstance(form, MultiplyAddShift):
        yield from (replace(form, multipliers=new) for new in flat(form.multipliers))
        yield from (replace(form, addends=new) for new in flat(form.addends))
        least = 1 if form.rounding != "floor" else 0
        yield from (replace(form, shift=form.shift + by) for by in (-1, 1) if form.shift + by >= least)
        for low, high in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            if form.low + low <= form.high + high:
                yield replace(form, low=form.low + low, high=form.high + high)
        if form.shift:
            yield from (replace(form, rounding=kind) for kind in ("floor", "half_even", "half_odd"))
    elif isinstance(form, ThresholdForm):
        yield from (replace(form, bases=new) for new in flat(form.bases))
        yield from (replace(form, thresholds=new) for new in changed(form.thresholds))
        for c, row in enumerate(form.falling):
            for k in range(len(row)):
                turned = (*row[:k], not row[k], *row[k + 1 :])
                yield replace(form, falling=(*form.falling[:c], turned, *form.falling[c + 1 :]))
    elif isinstance(form, SearchForm):
        yield from (replace(form, thresholds=new) for new in changed(form.thresholds))
        if form.values is not None:
            yield from (replace(form, values=new) for new in changed(form.values))
        else:
            yield from (replace(form, base=form.base + by) for by in (-1, 1))
            yield replace(form, falling=not form.falling)
    else:
        yield from (replace(form, tables=new) for new in changed(form.tables))


@settings(max_examples=25, deadline=None)
@given(tables())
def test_a_form_off_by_one_is_refused_where_it_differs(channels: Tables) -> None:
    """Proved iff equal: where a parameter does not matter (padding, a clamp never reached) the form stays good. Only
    thresholds of a search out of order are refused though they might do: bisection is not argued about then."""
    steps = functions(channels)
    for form in forms_of(steps):
        for other in varied(form):
            if isinstance(other, SearchForm) and any(list(row) != sorted(row) for row in other.thresholds):
                assert not other.proves(steps)
                continue
            assert other.proves(steps) == equal(other, channels), (form, other)


def test_a_falling_channel_has_a_negative_multiplier() -> None:
    """(5 - 3 x) / 4 rounded down beside (5 + 3 x) / 4: the least slopes, found by hand, are -3/4 and 3/4."""
    falling = [(-9, [(5 - 3 * x) // 4 for x in range(-9, 10)])]
    rising = [(-9, [(5 + 3 * x) // 4 for x in range(-9, 10)])]
    form = find_multiply_add_shift(functions(falling + rising))
    assert form is not None
    assert [np.sign(m) for m in form.multipliers] == [-1, 1] and form.multiplier_type[1]
    assert find_multiply_add_shift(functions([(0, [3, 2, 1, 0])])) == MultiplyAddShift((-1,), (3,), 0, 0, 3)
    assert find_multiply_add_shift(functions([(0, [0, 1, 0])])) is None


def test_ties_of_a_falling_channel() -> None:
    """-x / 2 to even: the ties at odd x go to the even level, as they do for x / 2."""
    values = [round(-x / 2) for x in range(-9, 10)]
    assert values[:4] == [4, 4, 4, 3]  # 4.5, 4, 3.5, 3
    form = find_rounding_multiply_add_shift(functions([(-9, values)]))
    assert form == MultiplyAddShift((-1,), (0,), 1, -4, 4, "half_even")


def test_directions_of_thresholds() -> None:
    up, down = (0, [0, 0, 1, 2]), (0, [2, 1, 0, 0])
    assert threshold_form(functions([up])) == ThresholdForm((0,), ((2, 3),), ((False, False),))
    assert threshold_form(functions([down])) == ThresholdForm((0,), ((1, 2),), ((True, True),))
    both = threshold_form(functions([up, down]))
    assert both == ThresholdForm((0, 0), ((2, 3), (1, 2)), ((False, False), (True, True)))
    assert both is not None and both.direction_bits == ((False, True),)  # one bit per channel, not one per threshold
    # up and down again: a base of -1 from which two thresholds count, the falling one from the start
    assert threshold_form(functions([(0, [0, 1, 1, 0])])) == ThresholdForm((-1,), ((1, 3),), ((False, True),))
    # a channel of fewer levels takes the direction that the others have in that place: no bit
    padded = threshold_form(functions([down, (0, [5, 5, 1, 1])]))
    assert padded is not None and padded.direction_bits == ()
    # that of the one that rises there, although it falls elsewhere: one bit less
    mixed = threshold_form(functions([(0, [0, 1, 2]), (0, [1, 0])]))
    assert mixed == ThresholdForm((0, 0), ((1, 2), (2, 1)), ((False, False), (False, True)))


def test_bases_of_thresholds() -> None:
    far = functions([(0, [0, 1]), (0, [101, 100])])
    assert threshold_form(far, one_base=False) == ThresholdForm((0, 100), ((1,), (1,)), ((False,), (True,)))
    one = threshold_form(far)
    assert one is not None and one.levels == 101
    chosen = realise(far, 12, True)
    assert isinstance(chosen, LookupForm)  # 2 words per channel
    assert threshold_form(functions([(0, [0, MAX_THRESHOLDS + 1])])) is None
    assert threshold_form(functions([(0, [0, 1]), (0, [9999, 9998])])) is None
    assert threshold_form(functions([(0, [0, 1]), (0, [9999, 9998])]), one_base=False) is not None


def test_search_forms_by_hand() -> None:
    root = functions([(0, [0, 1, 1, 1, 2, 2, 2, 2, 2, 3])])
    assert search_form(root, with_values=False) == SearchForm(((1, 4, 9),))
    assert search_form(root, with_values=True) == SearchForm(((1, 4, 9),), values=((0, 1, 2, 3),))
    fall = functions([(0, [3, 2, 2, 2, 1])])
    assert search_form(fall, with_values=False) == SearchForm(((1, 4, 5),), 3, True)  # 5: never reached
    assert search_form(functions([(0, [0, 1, 0])]), with_values=False) is None
    assert search_form(functions([(0, [7, 7])]), with_values=True) is None
    # channels that begin at other levels: 2 is reached from the first input on
    pair = functions([(0, [0, 1, 3]), (-5, [1, 1, 2])])
    assert search_form(pair, with_values=False) == SearchForm(((1, 2, 2), (-5, -3, -2)))


def wide(values: list[int], lo: int, hi: int) -> StepFunction:
    """Values in irregular steps over a wide interval."""
    places = np.linspace(lo + 5, hi - 5, len(values) - 1) + 40 * np.arange(len(values) - 1) % 997
    return StepFunction.of(lo, hi, [(lo, values[0]), *zip(map(int, sorted(places)), values[1:], strict=True)])


@pytest.mark.parametrize("uniform", [True, False])
def test_the_choice_for_wide_inputs(uniform: bool) -> None:
    lo, hi, rng = -(1 << 19), (1 << 19) - 1, np.random.default_rng(2)

    def channels(values: list[int]) -> list[StepFunction]:
        return [wide(values, lo, hi)] * 3 if uniform else [wide(values, lo - 99 * c, hi - 99 * c) for c in range(3)]

    crooked = channels([int(v) for v in np.cumsum(1 + rng.integers(0, 2, 255))])
    form = realise(crooked, 21, True)
    assert isinstance(form, SearchForm) and form.stages in (8, 9)
    waves = channels([int(v) for v in np.round(100 * np.sin(np.arange(250) / 9))])
    form = realise(waves, 21, True)
    assert isinstance(form, SearchForm) and form.values is not None
    assert isinstance(realise(channels([0, 1, 0]), 21, True), ThresholdForm)
    assert isinstance(realise(channels([1, 0]), 21, True), ThresholdForm)


def test_costs_by_hand() -> None:
    steps = functions([(0, [0, 1, 1, 1, 2, 2, 2, 2, 2, 3]), (0, [0, 0, 1, 1, 1, 2, 3, 3, 3, 3])])
    search = search_form(steps, with_values=False)
    assert search is not None
    # bounds 0..8 are 4 bits; 2 stages * (10 compared + 1 + 10 kept) + 2 channels * 3 words * 4 bits / 16
    assert search.cost(10) == 2 * 21 + 2
    values = search_form(steps, with_values=True)
    assert values is not None and values.cost(10) == 2 * 21 + 3  # and 2 * 4 words * 2 bits: 40 bits in all
    both = threshold_form(functions([(0, [0, 1]), (0, [1, 0])]))
    # a comparison and its count, the direction; a field of 5 bits and one of the direction, for each of 2 channels
    assert both is not None and both.cost(5) == 6 + 1 + 1


def test_channels_of_all_kinds() -> None:
    """Constant, rising, falling, narrow and wide intervals in one requantizer."""
    kinds: Tables = [
        (-30, [4] * 60),
        (-100, [(x + 2) // 8 for x in range(-100, 100)]),
        (-7, [-x for x in range(-7, 3)]),
        (5, [2]),
        (-200, [(-3 * x + 1) >> 4 for x in range(-200, 300)]),
    ]
    steps = functions(kinds)
    form = realise(steps, 10, True)
    assert isinstance(form, MultiplyAddShift) and equal(form, kinds)
    assert [np.sign(m) for m in form.multipliers] == [0, 1, -1, 0, -1]


def test_many_channels_have_many_comparators() -> None:
    """256 channels that rise 70 levels and fall them again. The search needs a table of values more, which is less than
    140 comparators in a lane; in 16 lanes it is nothing against them."""
    rng, hi = np.random.default_rng(8), (1 << 17) - 1
    levels = [*range(71), *range(69, -1, -1)]
    starts = [sorted(int(t) + 1 for t in rng.choice(hi, 140, replace=False)) for _ in range(256)]
    channels = [StepFunction.of(0, hi, zip([0, *row], levels, strict=True)) for row in starts]
    thresholds, search = threshold_form(channels), search_form(channels, with_values=True)
    assert thresholds is not None and search is not None
    # 140 fields of 17 bits; 140 bounds of 17 bits and 141 values of 7 bits, and one of both as padding; a comparator
    # and its count, or 8 stages
    assert thresholds.cost(17) == 140 * 18 + 256 * 140 * 17 // 16
    assert search.cost(17) == 8 * 35 + 256 * (141 * 17 + 142 * 7) // 16
    assert thresholds.cost(17, 16) == thresholds.cost(17) + 15 * 140 * 18
    assert search.cost(17, 16) == search.cost(17) + 15 * 8 * 35
    assert isinstance(realise(channels, 17, False), SearchForm)
    assert isinstance(realise(channels[:16], 17, False), SearchForm)


def test_the_cost_of_bases_by_hand() -> None:
    """Bases of -3 and 4 are fields of 4 bits: an adder of 4 bits and one of a count up to 1."""
    form = ThresholdForm((-3, 4), ((1,), (2,)), ((False,), (False,)))
    # a comparison of 8 bits and its count, the adder; 2 channels of a threshold of 8 bits and a base
    assert form.cost(8) == 9 + 5 + 2 * (8 + 4) // 16 + 1
    assert form.cost(8, 3) == 3 * (9 + 5) + 2
    assert ThresholdForm((4, 4), ((1,), (2,)), ((False,), (False,))).cost(8) == 9 + 1
