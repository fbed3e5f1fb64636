"""Piecewise quadratics against full tables."""

import math

import numpy as np
import pytest

from hwflow.numerics.requantizers.lookup_form import LookupForm
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.quadratics import QuadraticForm, find_quadratics
from hwflow.numerics.requantizers.requantizer import realise
from hwflow.numerics.requantizers.search_form import SearchForm
from hwflow.numerics.requantizers.step_function import StepFunction

X = range(1 << 16)


def table(function, lo=0):
    return StepFunction.of_table(lo, [math.floor(function(x) + 0.5) for x in X])


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


SMOOTH = {
    "sigmoid": lambda x: 32768 * sigmoid((x - 32000) / 1000),
    "tanh": lambda x: 16384 * (1 + math.tanh((x - 30000) / 2000)),
    "exp": lambda x: 65535 * math.exp((x - 65535) / 4000),
    "silu": lambda x: (x - 20000) * sigmoid((x - 20000) / 2000),
    "clipped": lambda x: min((x - 20000) ** 2 / 30011, 40000),
    "leaky_relu": lambda x: (x - 30001) * (0.937 if x > 30001 else 0.0713),
    "hard_swish": lambda x: (x - 20003) * min(max((x - 20003) / 40000 + 0.5, 0), 1),
    "elu": lambda x: max(x - 32768, 8000 * math.expm1(min(x - 32768, 0) / 8000)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_take_an_eighth(name):
    """By the definition, in Python's integers, at every entry."""
    steps = table(SMOOTH[name])
    form = realise([steps], 16, False)
    assert isinstance(form, QuadraticForm)
    assert 8 * form.segments * form.width <= 65536 * 16
    rows = list(zip(form.constants.tolist(), form.slopes.tolist(), form.curvatures.tolist(), strict=True))
    half, expected = 1 << form.offset_bits - 1, steps.evaluate(np.array(X)).tolist()
    for x in X:
        segment, place = divmod(x - form.first, 2 * half)
        if not form.first <= x <= form.last:
            segment, place = -1 if x < form.first else len(rows) - 2, 0
        c0, c1, c2 = rows[segment + 1]
        t = place - half
        assert c0 + t * (c1 + c2 * t // half) // half >> form.shift == expected[x]
    assert np.array_equal(form.evaluate(np.array(X)), expected)


def test_words_hold_the_coefficients():
    form = find_quadratics(table(SMOOTH["sigmoid"]))
    assert form is not None
    for word, *numbers in zip(form.words.tolist(), form.constants, form.slopes, form.curvatures, strict=True):
        place = 0
        for number, (bits, signed) in zip(numbers, form.types, strict=True):
            field = word >> place & (1 << bits) - 1
            assert number == field - (signed and field >> bits - 1) * (1 << bits)
            place += bits


def test_rough_functions_keep_their_form():
    """A staircase with random jumps, random numbers, a root's first steps: no parabola goes through them."""
    rng = np.random.default_rng(1)
    for entries in (
        np.cumsum(rng.integers(0, 3, 1 << 16)),
        rng.integers(0, 1 << 16, 1 << 16),
        np.floor(np.sqrt(np.arange(1 << 16) * 65535)).astype(np.int64),
    ):
        steps = StepFunction.of_table(0, entries)
        assert find_quadratics(steps) is None
        assert isinstance(realise([steps], 16, False), SearchForm)


def test_cheaper_forms_are_kept():
    line = table(lambda x: 3 * x / 7)
    assert isinstance(realise([line], 16, False), MultiplyAddShift)
    few = table(lambda x: 255 * sigmoid((x - 32000) / 1000))  # 255 thresholds
    assert isinstance(realise([few], 16, False), SearchForm)
    short = StepFunction.of_table(0, [math.floor(32768 * sigmoid((x - 2000) / 1000)) for x in range(4096)])
    assert isinstance(realise([short], 12, False), LookupForm)
    other = table(lambda x: 32768 * sigmoid((x - 33000) / 900))
    assert isinstance(realise([table(SMOOTH["sigmoid"]), other], 16, False), SearchForm)  # a function per channel


def test_there_is_none():
    assert find_quadratics(StepFunction(0, 65535, [], [7])) is None
    assert find_quadratics(StepFunction(0, 1 << 40, [9, 1 << 39], [0, 1, 2])) is None  # far apart
    long = StepFunction.of_table(0, [x * x << 35 for x in range(1 << 13)])  # beyond what coefficients hold
    assert find_quadratics(long) is None
    assert isinstance(realise([long], 13, False), SearchForm)


def test_breaks_at_the_ends_of_a_long_interval():
    """Beyond the first and the last break the function is constant, on however many inputs."""
    entries = [math.floor(20000 * math.sin(x / 9000)) for x in range(20000)]
    inside = StepFunction.of_table(-3000, entries)
    steps = StepFunction(-(1 << 30), 1 << 31, inside.breaks, inside.values)
    form = find_quadratics(steps)
    assert form is not None and form.proves([steps])
    assert form.evaluate([-(1 << 30), 1 << 31]).tolist() == [entries[0], entries[-1]]


def test_a_wrong_coefficient_is_not_proved():
    steps = table(SMOOTH["tanh"])
    form = find_quadratics(steps)
    assert form is not None and form.proves([steps])
    for name in ("constants", "slopes", "curvatures"):
        numbers = getattr(form, name).copy()
        numbers[form.segments // 2] += 1 << form.shift
        fields = {each: getattr(form, each) for each in form.__dataclass_fields__} | {name: numbers}
        assert not QuadraticForm(**fields).proves([steps])
    assert not form.proves([steps, steps])
    assert form.cost(16) * 4 < realise([table(SMOOTH["tanh"]), table(SMOOTH["silu"])], 16, False).cost(16)
