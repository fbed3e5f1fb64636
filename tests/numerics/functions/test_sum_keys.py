"""Keys of sums against all sums there are, in exact rationals."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from hwflow.numerics.functions.float_interval import FloatIntervals
from hwflow.numerics.functions.piecewise import Affine, Relu
from hwflow.numerics.functions.quantizer_steps import quantizer_steps
from hwflow.numerics.functions.smooth import Sigmoid
from hwflow.numerics.functions.sum_keys import SumKeys, Term, _AllSorted, _first_between, _OneBySearch, find_keys
from hwflow.numerics.interval import Interval
from hwflow.numerics.rounding import Quantizer

Terms = list[tuple[Fraction, int, int]]


def float32(x: float) -> Fraction:
    return Fraction(float(np.float32(x)))


def calibrated(rng: random.Random) -> Fraction:
    """A quotient of scales."""
    return float32(rng.uniform(-3, 3)) / (float32(rng.uniform(0.01, 0.1)) * float32(rng.uniform(0.01, 0.1)))


def some_terms() -> dict[str, Terms]:
    rng = random.Random(5)
    ratios = [calibrated(rng) for _ in range(12)]
    third = Fraction(1, 3)
    return {
        "bias": [(ratios[0], 0, 49)],
        "stream": [(ratios[1], -128, 127)],
        "bias_and_limit": [(ratios[2], 0, 12), (ratios[3], 0, 12)],
        "bias_and_stream": [(ratios[4], 0, 9), (ratios[5], -63, 60)],
        "three": [(ratios[6], 0, 4), (ratios[7], -12, 8), (ratios[8], 0, 4)],
        "integer": [(Fraction(7), 0, 5), (ratios[9], -3, 9)],
        "exact": [(third, 0, 9), (Fraction(-5, 7), 0, 4)],
        "opposite": [(ratios[10], 0, 9), (-ratios[10], 0, 9)],
        "nearly_a_half": [(Fraction(1, 2) + Fraction(1, 1 << 30), 0, 20)],
        "nearly_whole": [(Fraction(3) - Fraction(1, 1 << 24), 0, 20)],
        "none": [(Fraction(2), 0, 7)],
    }


def sums(keys: SumKeys, wholes: range) -> dict[int, Fraction]:
    """The real of every key of a sum with one of ``wholes``; two sums of one key must be equal."""
    result: dict[int, Fraction] = {}
    for whole, *numbers in product(wholes, *(range(t.low, t.high + 1) for t in keys.terms)):
        pairs = list(zip(keys.terms, numbers, strict=True))
        key = keys.factor * whole + sum(t.weight * m for t, m in pairs)
        real = whole + sum((t.real * m for t, m in pairs), Fraction(0))
        assert result.setdefault(key, real) == real
    return result


@pytest.mark.parametrize("name", some_terms())
def test_keys_have_the_order_of_the_sums(name: str) -> None:
    keys = find_keys(some_terms()[name])
    assert keys is not None
    reals = [real for _, real in sorted(sums(keys, range(-3, 4)).items())]
    assert all(a < b for a, b in pairwise(reals))


@pytest.mark.parametrize("name", some_terms())
@pytest.mark.parametrize("scale", [Fraction(1, 3), float32(0.0173), Fraction(40)])
def test_a_quantizer_of_the_keys_is_that_of_the_sums(name: str, scale: Fraction) -> None:
    keys = find_keys(some_terms()[name])
    assert keys is not None
    known = sums(keys, range(-3, 4))
    quantizer = Quantizer(scale * 3, 3, -128, 127)
    for line in (Affine(scale, Fraction(1, 7)), Affine(-scale, Fraction(0))):
        steps = quantizer_steps(min(known), max(known), Fraction(1), 0, (keys, line, Relu()), quantizer)
        for key, real in known.items():
            assert steps(key) == quantizer(max(line(real), Fraction(0)))


def test_a_tie_of_the_quantizer_is_one_of_the_keys() -> None:
    keys = find_keys([(Fraction(1, 2) + Fraction(1, 1 << 30), 0, 3), (float32(0.3), 0, 3)])
    assert keys is not None
    for key, real in sums(keys, range(3)).items():
        for level in (2, 3):  # half up, and half down
            at_tie = Quantizer(2 * real / (2 * level + 1) if real else Fraction(1), 0, 0, 9)
            steps = quantizer_steps(key - 1, key + 1, Fraction(1), 0, (keys,), at_tie)
            assert steps(key) == at_tie(real)


def test_behind_an_irrational_function() -> None:
    keys = find_keys(some_terms()["bias_and_stream"])
    assert keys is not None
    known = sums(keys, range(-2, 3))
    chosen = dict(random.Random(1).sample(sorted(known.items()), 60))
    quantizer = Quantizer(Fraction(1, 1 << 12), 0, 0, 1 << 12)
    line = Affine(Fraction(1, 40), Fraction(0))
    for key, real in chosen.items():
        steps = quantizer_steps(key, key, Fraction(1), 0, (keys, line, Sigmoid()), quantizer)
        assert steps(key) == quantizer_steps(0, 0, Fraction(1), -real / 40, (Sigmoid(),), quantizer)(0)
        assert real in keys.enclose(Interval(Fraction(key - 1), Fraction(key)), 64)


def test_weights_that_do_not_order_the_sums_are_found_out() -> None:
    real = Fraction(1, 3) + Fraction(1, 100)
    assert not SumKeys(3, (Term(1, real, 0, 9),)).in_order()  # 3 * real is more than 1, and their keys are alike
    assert SumKeys(35, (Term(12, real, 0, 9),)).in_order()


def test_multiples_of_each_other_cannot_be_rounded_apart() -> None:
    ratio = calibrated(random.Random(3))
    assert find_keys([(ratio, 0, 40), (ratio / 7, 0, 40), (ratio / 11, 0, 40), (ratio / 13, 0, 40)]) is None


def test_a_term_of_many_multiples() -> None:
    """More than are ever listed: neighbours in a random selection, and around the quantizer's steps."""
    rng = random.Random(8)
    ratio = calibrated(rng)
    keys = find_keys([(ratio, -(1 << 23), 1 << 23)])
    assert keys is not None
    quantizer = Quantizer(abs(ratio) * 50000, 0, -128, 127)
    (term,) = keys.terms
    found = []
    for _ in range(3000):
        count = rng.randint(term.low, term.high)
        edge = ratio * 50000 * Fraction(2 * rng.randint(-128, 127) + 1, 2)
        whole = round(edge - ratio * count)  # the nearest to a step of the quantizer
        found.append((keys.factor * whole + term.weight * count, whole + ratio * count))
    found.sort()
    assert all((a == b) == (x == y) and x <= y for (a, x), (b, y) in pairwise(found))
    steps = quantizer_steps(found[0][0], found[-1][0], Fraction(1), 0, (keys,), quantizer)
    assert steps.count > 200
    for key, real in found:
        assert steps(key) == quantizer(real)


def test_the_first_multiple_in_an_interval() -> None:
    rng = random.Random(2)
    for _ in range(3000):
        modulus = rng.randint(1, 60)
        weight, low = rng.randint(-100, 100), rng.randrange(modulus)
        high = rng.randint(low, low + modulus - 1)
        inside = (n for n in range(modulus) if (weight * n - low) % modulus <= high - low)
        assert _first_between(weight, modulus, low, high) == next(inside, None)


def test_both_ways_to_find_multiples() -> None:
    rng = random.Random(4)
    for _ in range(200):
        factor = rng.randint(5, 300)
        term = Term(rng.randint(-500, 500), Fraction(1, 3), -rng.randint(0, 60), rng.randint(0, 60))
        begin = np.array([[rng.randrange(factor) for _ in range(3)]])
        width = rng.randrange(factor // 2)
        listed = sorted(_AllSorted(factor, term).within(begin, width))
        assert listed == sorted(_OneBySearch(factor, term).within(begin, width))
        wanted = [
            (0, column, m) for column in range(3) for m in range(term.low, term.high + 1)
            if (term.weight * m - int(begin[0, column])) % factor <= width
        ]
        assert listed == wanted


def test_keys_by_hand() -> None:
    """35 * 103/300 is 12 and a sixtieth, and 9 times that are off by 3/20. Multiples of 12 are 0, 12, 24, 1, 13, 25, 2,
    14, 26, 3 modulo 35."""
    real = Fraction(103, 300)
    keys = SumKeys(35, (Term(12, real, 0, 9),))
    assert keys.error == Fraction(3, 20)
    assert SumKeys(35, (Term(12, real, -10, 9), Term(12, real, 0, 9))).error == Fraction(1, 6) + Fraction(3, 20)
    assert keys.near([12, 23], 0) == [[(12, real)], []]
    assert [sorted(each) for each in keys.near([59, -35], 1)] == [
        [(59, 1 + 2 * real), (60, 5 * real)], [(-35, Fraction(-1)), (-34, 3 * real - 2)]
    ]
    assert [keys(x) for x in (Fraction(12), Fraction(23), Fraction(1, 2))] == [real, Fraction(23, 35), Fraction(1, 70)]
    off = Fraction(3, 700)
    assert keys.enclose(Interval(Fraction(0), Fraction(35)), 64) == Interval(-off, 1 + off)
    bounds = keys.floats(FloatIntervals.of(np.array([0.0]), np.array([35.0])))
    assert -0.0043 < bounds.lo[0] <= -off and 1 + off <= bounds.hi[0] < 1.0043
    two = SumKeys(35, (Term(12, real, 0, 1), Term(5, Fraction(1, 7), 0, 2)))
    assert [sorted(each) for each in two.near([17], 2)] == [[(17, real + Fraction(1, 7))]]
    assert [sorted(each) for each in two.near([20], 3)] == [
        [(17, real + Fraction(1, 7)), (22, real + Fraction(2, 7))]
    ]


def test_where_keys_are_found() -> None:
    """Thirds in units of a third; of more sums than are listed none; a whole number or a single multiple is no term."""
    third = Fraction(1, 3)
    keys = find_keys([(third, 0, 9), (Fraction(5), 0, 9), (Fraction(2, 7), 4, 4)])
    assert keys == SumKeys(3, (Term(1, third, 0, 9),))
    assert find_keys([(Fraction(4), 0, 9)]) == SumKeys(1, ())
    assert find_keys([(third, 0, 1 << 13), (third, 0, 1 << 13)]) is None
    assert find_keys([(third, 0, 8191), (third, 0, 8191)]) is not None
