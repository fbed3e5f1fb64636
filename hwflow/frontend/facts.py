"""What is known of reals beyond the intervals of their integers, because they come from the same numbers.

An element less the greatest of its row is at most 0, and 0 somewhere in the row; an exponential of it is then 1
somewhere; a part of a sum is no greater than the sum; no number is greater than the root of a sum of squares with its
own, nor a distance from the mean greater than the root of as many variances as there are; a mean of squares is at
least the square of the mean; and a product with a reciprocal is a quotient.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hwflow.frontend.views import Reals, uniform
from hwflow.ir.graph import Value
from hwflow.numerics.functions.power import RootMultiply


@dataclass(frozen=True)
class OfRows:
    """``result`` has one element for each row of ``source`` along ``axes``."""

    result: Reals
    source: Reals
    axes: tuple[int, ...]


@dataclass
class Facts:
    """By hardware value. ``maxima``, ``totals``: the greatest element or the sum of each row; ``zeros``: the axes along
    which each row has a 0; ``floors``: for values that are not negative, axes and a real number that an element of each
    row along these reaches; ``squares``, ``roots``, ``reciprocals``, ``powers`` of e: the result, and of what;
    ``variances``, ``distances``: the result, and the means of the rows whose variance or distances from the mean it
    is."""

    maxima: dict[Value, OfRows] = field(default_factory=dict)
    totals: dict[Value, OfRows] = field(default_factory=dict)
    zeros: dict[Value, tuple[int, ...]] = field(default_factory=dict)
    floors: dict[Value, tuple[tuple[int, ...], Fraction]] = field(default_factory=dict)
    squares: dict[Value, tuple[Reals, Reals]] = field(default_factory=dict)
    roots: dict[Value, tuple[Reals, Reals]] = field(default_factory=dict)
    reciprocals: dict[Value, tuple[Reals, Reals]] = field(default_factory=dict)
    powers: dict[Value, tuple[Reals, Reals]] = field(default_factory=dict)
    variances: dict[Value, tuple[Reals, OfRows]] = field(default_factory=dict)
    distances: dict[Value, tuple[Reals, OfRows]] = field(default_factory=dict)

    def note_rows(self, table: dict[Value, OfRows], result: Reals, source: Reals, axes: tuple[int, ...]) -> None:
        """Note that ``result`` has one element for each row of ``source``, if it keeps the axes."""
        kept = tuple(1 if axis in axes else size for axis, size in enumerate(source.shape))
        if result.shape == kept and not source.functions:
            table[result.value] = OfRows(result, source, axes)

    def axes_below(self, left: Reals, right: Reals) -> tuple[int, ...] | None:
        """Return the axes along which ``right`` has the greatest elements of ``left``."""
        found = self.maxima.get(right.value)
        if found is None or not (_same(found.source, left) and _same(found.result, right)):
            return None
        return found.axes

    def divisor_of(self, factor: Reals) -> Reals | None:
        """Return the reals whose reciprocals ``factor`` has."""
        result, source = self.reciprocals.get(factor.value, (None, None))
        return source if result is not None and _same(result, factor) else None

    def means_of(self, left: Reals, right: Reals) -> OfRows | None:
        """Return the means that ``right`` has of the rows of ``left``."""
        means = self.totals.get(right.value)
        return means if means is not None and _are_means(means, left, right) else None

    def means_of_variance(self, left: Reals, right: Reals) -> OfRows | None:
        """Return the means of rows if ``left`` are means of squares, and ``right`` the squares of means, of the same
        rows: their difference is the variance."""
        squares, (square, mean) = self.totals.get(left.value), self.squares.get(right.value, (None, None))
        means = None if mean is None else self.totals.get(mean.value)
        if squares is None or means is None or square is None or mean is None:
            return None
        of_square, base = self.squares.get(squares.source.value, (None, None))
        same = (
            of_square is not None and base is not None and _are_means(squares, of_square, left)
            and _same(square, right) and _are_means(means, base, mean) and squares.axes == means.axes
        )
        return means if same else None

    def softmax_of(self, dividend: Reals, divisor: Reals) -> tuple[Reals, tuple[int, ...]] | None:
        """Return whose softmax a quotient is, and along which axes: of powers of e, by the sum of their row."""
        total, (power, exponent) = self.totals.get(divisor.value), self.powers.get(dividend.value, (None, None))
        if total is None or power is None or exponent is None or _share(total) != 1:
            return None
        same = _same(total.result, divisor) and _same(total.source, dividend) and _same(power, dividend)
        return (exponent, total.axes) if same else None

    def limits(self, dividend: Reals, divisor: Reals) -> tuple[Fraction | None, Fraction | None]:
        """Return an upper bound of the quotient's magnitude and a lower one of the divisor's, both of reals without
        functions; None where only intervals say."""
        total = self.totals.get(divisor.value)
        if total is not None and _same(total.result, divisor) and total.source.value in self.floors:
            share = _share(total)
            axes, floor = self.floors[total.source.value]
            most = 1 / share if share and _same(total.source, dividend) else None
            return most, floor * share if share and set(axes) <= set(total.axes) else None
        root, radicand = self.roots.get(divisor.value, (None, None))
        if root is None or radicand is None or not _same(root, divisor):
            return None, None
        return self._over_root(dividend, radicand), None

    def _over_root(self, dividend: Reals, radicand: Reals) -> Fraction | None:
        """Return an upper bound of a quotient by the root of a sum of squares, or of a variance, and a constant."""
        variance, means = self.variances.get(radicand.value, (None, None))
        distance, own = self.distances.get(dividend.value, (None, None))
        if variance is not None and means is not None and own is means and distance is not None:
            scale, zero, one, own_zero = (
                uniform(v) for each in (radicand, variance) for v in (each.scale, each.zero_point)
            )
            if not scale or not one or zero is None or own_zero is None or not _same(distance, dividend):
                return None
            if zero > own_zero or scale < 0 or one < 0:  # something is taken from the variance
                return None
            return RootMultiply(_count(means) * one / scale).root(32)[1]
        total = self.totals.get(radicand.value)
        if total is None:
            return None
        square, base = self.squares.get(total.source.value, (None, None))
        scale, one, zero = (uniform(v) for v in (radicand.scale, total.source.scale, radicand.zero_point))
        if square is None or base is None or not (_same(base, dividend) and _same(square, total.source)):
            return None
        if not scale or not one or zero is None or zero > 0 or scale < 0 or one < 0:
            return None
        return RootMultiply(one / scale).root(32)[1]


def _same(a: Reals, b: Reals) -> bool:
    """Tell whether two views of one shape, without functions, are the same reals."""
    return (
        a.value is b.value and a.shape == b.shape and not a.functions and not b.functions
        and np.array_equal(a.scale, b.scale) and np.array_equal(a.zero_point, b.zero_point)
    )


def _are_means(rows: OfRows, source: Reals, result: Reals) -> bool:
    return _same(rows.source, source) and _same(rows.result, result) and _share(rows) == Fraction(1, _count(rows))


def _count(rows: OfRows) -> int:
    return int(np.prod([rows.source.shape[axis] for axis in rows.axes], dtype=np.int64))


def _share(rows: OfRows) -> Fraction | None:
    """Return what part of the sum of a row its result is: 1, or of a mean 1 / n."""
    ours, theirs = uniform(rows.result.scale), uniform(rows.source.scale)
    return None if not ours or not theirs else ours / theirs
