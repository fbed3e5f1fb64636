"""What trees add to their targets, as integers: multiples of one number, so that sums are exact."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hwflow.operators.ml.ensembles import Ensemble, Floats, IntArray
from hwflow.types import Interval

MOST_BITS = 62
"""Of the sums of all trees."""


class TooFine(ValueError):
    """Raised where the integers would be too long. ``bits``: how long."""

    def __init__(self, bits: int) -> None:
        super().__init__(f"{bits} bits")
        self.bits = bits


@dataclass(frozen=True, eq=False)
class Leaves:
    """``value[start[k]:start[k + 1]]`` times ``unit`` is what leaf k adds to targets ``target``, to none twice."""

    start: IntArray
    target: IntArray
    value: IntArray
    unit: Fraction


def leaves_of(ensemble: Ensemble, base: Floats, *, add: bool) -> Leaves:
    """Return the leaves of an ensemble and, behind them, one with the numbers ``base`` of each target. ``add``: sums of
    the values must be short, too, and what a leaf adds to one target in several parts is added up, else the last
    counts.

    Raises :class:`TooFine`, and ValueError for a value that is not finite.
    """
    leaf = np.repeat(np.arange(len(ensemble.leaf_start) - 1), np.diff(ensemble.leaf_start))
    leaf = np.append(leaf, np.full(len(base), len(ensemble.leaf_start) - 1))
    target = np.append(ensemble.leaf_target, np.arange(len(base)))
    value = np.append(ensemble.leaf_value, base)
    if not np.isfinite(value).all():
        raise ValueError(f"{value[~np.isfinite(value)][0]}")
    exponent = least_exponent(value)
    length = length_of(value, ensemble.trees if add else 0)
    if length > MOST_BITS:
        raise TooFine(length)
    whole = np.ldexp(value, -exponent).astype(np.int64)
    order = np.lexsort((target, leaf))
    leaf, target, whole = leaf[order], target[order], whole[order]
    same = np.append(False, (leaf[1:] == leaf[:-1]) & (target[1:] == target[:-1]))
    group = np.cumsum(~same) - 1
    sums = np.zeros(int(group[-1]) + 1 if len(group) else 0, np.int64)
    if add:
        np.add.at(sums, group, whole)
    else:
        sums[group] = whole
    leaf, target = leaf[~same], target[~same]
    divisor = max(1, int(np.gcd.reduce(sums)))  # shares of a forest are multiples of one float
    start = np.searchsorted(leaf, np.arange(len(ensemble.leaf_start) + 1))
    return Leaves(start, target, sums // divisor, divisor * Fraction(2) ** exponent)


def length_of(value: Floats, trees: int) -> int:
    """Return the bits of sums of one value of each of so many trees, in units of their least exponent."""
    most = float(np.abs(value).max(initial=0.0))
    return (0 if most == 0 else int(np.frexp(most)[1]) - least_exponent(value)) + trees.bit_length()


def least_exponent(value: Floats) -> int:
    """Return the exponent of the greatest power of two of which all numbers are multiples; 0 of zeros alone."""
    numbers = value[value != 0]
    if not len(numbers):
        return 0
    mantissa, exponent = np.frexp(numbers)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return int((exponent - 53 + trailing).min())


def ends(leaves: Leaves, tree: IntArray) -> Interval:
    """Return bounds of sums, and of extremes, for all targets; ``tree``: of each leaf but the last one, rising."""
    owner = np.append(tree, tree.max(initial=-1) + 1)[np.repeat(np.arange(len(tree) + 1), np.diff(leaves.start))]
    least, most = np.zeros((2, int(owner.max(initial=-1)) + 1), np.int64)  # what a leaf does not name gets 0
    np.minimum.at(least, owner, leaves.value)
    np.maximum.at(most, owner, leaves.value)
    return Interval(int(least.sum()), int(most.sum()))
