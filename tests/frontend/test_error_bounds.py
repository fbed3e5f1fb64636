"""Bounds of approximations behind operators, against the operators on integers that are off as far as they may be."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hwflow.cores.registry import OPERATORS
from hwflow.frontend.error_bounds import Bound, _weighted, bound_of
from hwflow.ir.integer_functions import MAXIMUM, MINIMUM, Magnitude, Multiplied, Simple, Times
from hwflow.types import Interval, IntType
from tests.attributes import attributes_of

WINDOW = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
WEIGHTS = np.array([[3, -2, 0, 1], [-1, -1, 4, 2]])

Operand = tuple[tuple[int, ...], int, int, int]
"""Shape, least and greatest integer, and by how much it may be off."""

CASES: dict[str, tuple[str, dict[str, Any], tuple[Operand, ...]]] = {
    "sum": ("scaled_add", {"axis": 0, "multipliers": ((3,), (-2,))}, (((2, 3), -9, 20, 2), ((2, 3), 5, 11, 1))),
    "sum of channels": (
        "scaled_add", {"axis": 0, "multipliers": ((3, -5), (2, 7))}, (((2, 3), -9, 20, 2), ((2, 3), -5, 11, 1)),
    ),
    "product": ("product", {"offsets": (1, -2)}, (((2, 3), -9, 20, 2), ((2, 3), -5, 11, 3))),
    "product with exact integers": ("product", {"offsets": (0, 0)}, (((2, 3), -9, 20, 2), ((2, 3), -5, 11, 0))),
    "matrix product": (
        "matrix_product", {"offsets": (0, 3), "inner": 4}, (((3, 4), 0, 20, 2), ((4, 2), -5, 11, 3)),
    ),
    "dense": ("dense", {"weights": WEIGHTS}, (((3, 4), -7, 12, 2),)),
    "convolution": (
        "conv2d", {"weights": WEIGHTS.reshape(2, 1, 2, 2), **WINDOW, "groups": 1, "pad_value": 0},
        (((1, 3, 3), -7, 12, 2),),
    ),
    "sum of windows": ("sum_pool2d", {**WINDOW, "kernel": (1, 3), "pad_value": 0}, (((2, 1, 3), -7, 12, 2),)),
    "maximum of windows": ("max_pool2d", {**WINDOW, "kernel": (1, 3)}, (((2, 1, 3), -7, 12, 2),)),
    "factors of pixels": ("pixel_product", {"factors": np.array([[2, -6, 1]])}, (((2, 1, 3), -7, 12, 2),)),
    "move": ("reindex", {"index": np.array([2, -1, 0]), "fill": 40}, (((3,), -7, 12, 2),)),
    "transpose": ("transpose", {"perm": (1, 0)}, (((2, 3), -7, 12, 2),)),
    "weighted neighbours": (
        "interpolate", {"axis": 0, "starts": np.array([0, 1]), "weights": np.array([[3, -1], [2, 5]])},
        (((3, 2), -7, 12, 2),),
    ),
}
for _name, _function, _constants, _count in (
    ("difference", Simple("sub"), (None, None), 2), ("greater one", MAXIMUM, (None, None), 2),
    ("less than a constant", MINIMUM, (None, 3), 1), ("magnitude", Magnitude(), (None,), 1),
    ("multiple", Times(-5), (None,), 1), ("elementwise product", Multiplied(), (None, None), 2),
):
    CASES[_name] = (
        "elementwise", {"function": _function, "constants": _constants, "wrap": None},
        (((2, 3), -9, 20, 2), ((2, 3), -5, 11, 3))[:_count],
    )


@pytest.mark.parametrize("name", CASES)
def test_no_result_is_further_off(name: str) -> None:
    op, values, operands = CASES[name]
    attributes = attributes_of(op, **values)
    inputs = [
        Bound(Interval(low, high), {f"input {k}": Fraction(off)} if off else {})
        for k, (_, low, high, off) in enumerate(operands)
    ]
    bound = bound_of(attributes, inputs)
    assert bound is not None and bound.interval is not None
    rng = np.random.default_rng(5)
    frames, most = 4000, 0
    found, exact = [], []
    for shape, low, high, off in operands:  # what is found lies in the interval, what is exact that far around it
        ends = rng.choice([low, high], (frames, *shape))
        found.append(np.where(rng.random(ends.shape) < 0.8, ends, rng.integers(low, high + 1, ends.shape)))
        exact.append(found[-1] + off * rng.choice([-1, 1], ends.shape))
    (results,), (truth,) = (OPERATORS[op].evaluate(attributes, each) for each in (found, exact))
    assert bound.interval.lo <= results.min() and results.max() <= bound.interval.hi
    most = int(np.abs(results - truth).max())
    assert most <= bound.error
    assert 2 * most > bound.error, "half of the bound must be refuted"


def test_each_approximation_has_its_own_share() -> None:
    """3 a - 2 b of a that is off by 1/2 and b that is off by 1/4 of the same approximation and 1 of another."""
    attributes = attributes_of("scaled_add", axis=0, multipliers=((3,), (-2,)))
    inputs = [
        Bound(Interval(0, 9), {"p": Fraction(1, 2)}), Bound(Interval(0, 9), {"p": Fraction(1, 4), "q": Fraction(1)})
    ]
    assert bound_of(attributes, inputs) == Bound(Interval(-18, 27), {"p": Fraction(2), "q": Fraction(2)})


@pytest.mark.parametrize("function", [Simple("less"), Simple("equal")])
def test_what_jumps_takes_no_approximations(function: Simple) -> None:
    attributes = attributes_of("elementwise", function=function, constants=(None, None), wrap=None)
    exact, rough = Bound(Interval(0, 9)), Bound(Interval(0, 9), {"p": Fraction(1)})
    assert bound_of(attributes, [exact, exact]) is not None
    assert bound_of(attributes, [exact, rough]) is None


def test_a_sum_that_wraps_around_takes_no_approximations() -> None:
    attributes = attributes_of("elementwise", function=Simple("add"), constants=(None, 120), wrap=IntType(8, True))
    assert bound_of(attributes, [Bound(Interval(0, 7), {"p": Fraction(1)})]) is not None
    assert bound_of(attributes, [Bound(Interval(0, 9), {"p": Fraction(1)})]) is None


@pytest.mark.parametrize("size", [9, 1 << 40, 1 << 61])
def test_sums_of_weights_of_any_length(size: int) -> None:
    """Each row's weights above and below zero, by Python's integers: those that 64 bits hold, and longer ones."""
    weights = np.random.default_rng(size % 97).integers(-size, size, (4, 6))
    own = Interval(-3, 200)
    interval, (slope,) = _weighted(weights, own)
    rows = [[int(weight) for weight in row] for row in weights]
    above, below = ([sum(w for w in row if (w > 0) == up) for row in rows] for up in (True, False))
    assert interval.hi == max(a * own.hi + b * own.lo for a, b in zip(above, below, strict=True))
    assert interval.lo == min(a * own.lo + b * own.hi for a, b in zip(above, below, strict=True))
    assert slope == max(a - b for a, b in zip(above, below, strict=True))


def test_bounds_of_many_weights_take_no_copy_of_them() -> None:
    weights = np.random.default_rng(1).integers(-127, 128, (64, 1 << 14))
    tracemalloc.start()
    try:
        _weighted(weights, Interval(0, 255))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < weights.nbytes // 2
