"""Short multipliers of quantized sums against exact rationals, on every pair of inputs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import floor, gcd

import numpy as np
import pytest

from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.numerics.requantizers.sum_shift import Grid, SumShift, find_sum_shift


def grid_of(
    scales: tuple[Fraction, Fraction], a: tuple[int, int], b: tuple[int, int], out: tuple[int, int], zero_point: int = 0
) -> Grid:
    """Quantize ``scales[0] * a + scales[1] * b``, with scale 1."""
    denominator = scales[0].denominator * scales[1].denominator // gcd(scales[0].denominator, scales[1].denominator)
    multipliers = tuple(int(s * denominator) for s in scales)
    ends = [m * x for m, interval in zip(multipliers, (a, b), strict=True) for x in interval]
    lo, hi = min(ends[:2]) + min(ends[2:]), max(ends[:2]) + max(ends[2:])
    stage = QuantizerStage(Fraction(1, denominator), Fraction(0), (), Fraction(1), zero_point, *out)
    return Grid(a, b, multipliers, stage.steps(lo, hi))


def value(form: SumShift, a: int, b: int) -> int:
    """By the definition; ``round`` of a Fraction takes ties to the even number."""
    quotient = Fraction(form.multipliers[0] * a + form.multipliers[1] * b + form.addend, 1 << form.shift)
    if form.rounding == "floor":
        rounded = floor(quotient)
    else:  # ties to odd are ties to even of the number one less, and one more
        odd = form.rounding == "half_odd"
        rounded = round(quotient - odd) + odd
    return max(form.low, min(form.high, rounded))


def check(form: SumShift, scales: tuple[Fraction, Fraction], grid: Grid, out: tuple[int, int], zero_point: int) -> None:
    """Form and step function on every pair."""
    corners = [form.multipliers[0] * x + form.multipliers[1] * y for x in grid.a for y in grid.b]
    steps = form.steps(min(corners), max(corners))
    for a in range(grid.a[0], grid.a[1] + 1):
        for b in range(grid.b[0], grid.b[1] + 1):
            expected = max(out[0], min(out[1], round(scales[0] * a + scales[1] * b) + zero_point))
            assert value(form, a, b) == expected, (a, b)
            assert steps(form.multipliers[0] * a + form.multipliers[1] * b) == expected, (a, b)


def float32(x: float) -> Fraction:
    return Fraction(float(np.float32(x)))


@pytest.mark.parametrize("seed", range(12))
def test_scales_of_32_bit_floats(seed: int) -> None:
    """Multipliers of 24 bits and more become those of 16 bits at most, where the pairs are 2**10."""
    rng = np.random.default_rng(seed)
    scales = float32(rng.uniform(0.05, 2)), float32(rng.uniform(0.05, 2) * rng.choice([-1, 1]))
    out, zero_point = ((-8, 7), 0) if seed % 2 else ((0, 255), 7)
    grid = grid_of(scales, (0, 31), (-16, 15), out, zero_point)
    form = find_sum_shift(grid, "floor")
    assert form is not None
    assert max(map(abs, form.multipliers)).bit_length() <= 16 < max(map(abs, grid.multipliers)).bit_length()
    check(form, scales, grid, out, zero_point)


@pytest.mark.parametrize("zero_point", [0, 3])
def test_ties(zero_point: int) -> None:
    """Dyadic scales: half of all sums lie in the middle between two levels."""
    scales = Fraction(1, 2), Fraction(3, 2)
    grid = grid_of(scales, (-20, 20), (-20, 20), (-64, 63), zero_point)
    found = {rounding: find_sum_shift(grid, rounding) for rounding in ShiftRounding}
    right = "half_odd" if zero_point % 2 else "half_even"
    form = found.pop(right)
    assert form is not None
    assert (form.multipliers, form.shift) == ((1, 3), 1)
    check(form, scales, grid, (-64, 63), zero_point)
    assert set(found.values()) == {None}


def test_the_least_shift_by_hand() -> None:
    """y = floor((a + b) / 4) of exact sums a + b: shift 2 and no less, multipliers 1."""
    steps = StepFunction.of(0, 30, [(4 * k, k) for k in range(8)])
    form = find_sum_shift(Grid((0, 15), (0, 15), (1, 1), steps), "floor")
    assert form == SumShift((1, 1), 0, 2, 0, 7, "floor")


def test_what_is_no_line_has_no_form() -> None:
    squares = StepFunction.of(0, 30, [(k * k, k) for k in range(6)])
    for rounding in ShiftRounding:
        assert find_sum_shift(Grid((0, 15), (0, 15), (1, 1), squares), rounding) is None


def test_two_levels_are_left_alone() -> None:
    steps = StepFunction.of(0, 30, [(0, 0), (17, 1)])
    assert find_sum_shift(Grid((0, 15), (0, 15), (1, 1), steps), "floor") is None


@pytest.mark.parametrize(
    ("scales", "multipliers", "shift"),
    [
        ((Fraction(25, 37), Fraction(11, 28)), (87, 50), 7),  # 86.49 and 50.29: the nearest are 86 and 50
        ((Fraction(1, 7), Fraction(5, 17)), (9, 18), 6),  # 9.14 and 18.82
        ((Fraction(27, 26), Fraction(23, 17)), (67, 87), 6),  # 66.46 and 86.59
        ((Fraction(3, 2), Fraction(36, 43)), (95, 54), 6),  # 96 and 53.58
    ],
)
def test_neighbours_of_the_rounded_slopes(
    scales: tuple[Fraction, Fraction], multipliers: tuple[int, int], shift: int
) -> None:
    """No pair of multipliers up to 5 from the slopes is right at a smaller shift."""
    grid = grid_of(scales, (0, 15), (-8, 7), (-8, 7))
    form = find_sum_shift(grid, "floor")
    assert form is not None
    assert (form.multipliers, form.shift) == (multipliers, shift)
    check(form, scales, grid, (-8, 7), 0)
    a, b = (x.reshape(-1) for x in np.meshgrid(np.arange(16), np.arange(-8, 8)))
    values = np.array([value(form, int(x), int(y)) for x, y in zip(a, b, strict=True)])
    low, high = values.min(), values.max()
    for less in range(1, shift):
        near = [range(round(s * (1 << less)) - 5, round(s * (1 << less)) + 6) for s in scales]
        for pair in product(*near):
            sums = pair[0] * a + pair[1] * b
            # what the addend must be at least, and at most, for the values that are not at an end
            at_least = ((values << less) - sums)[values > low].max()
            at_most = ((values + 1 << less) - 1 - sums)[values < high].min()
            assert at_least > at_most, (less, pair)
