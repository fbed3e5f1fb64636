"""What is known of reals beyond the intervals of their integers, because they come from the same numbers.

An element less the greatest of its row is at most 0, and 0 somewhere in the row; an exponential of it is then 1
somewhere; a part of a sum is no greater than the sum; no number is greater than the root of a sum of squares with its
own; such a sum of integers is at least 1, or all of them are 0; a mean of squares is at least the square of the mean;
and a product with a reciprocal is a quotient.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
    row along these reaches; ``magnitudes``, ``squares``, ``roots``, ``reciprocals``, ``powers`` (of e): the result, and
    of what; ``quotients``: the result, dividend and divisor, which broadcast; ``distances``: each element less the mean
    of its row of ``source``; ``variances``: of the rows of ``source``; ``limited``: the result, what it is no less
    than, and the other limit; ``repeated``: the elements, with other axes of length 1, that a value repeats;
    ``zero_tests``: what a bool tells to be 0; ``guarded``: the result, what it is where that is not 0, and the constant
    that it is elsewhere (None: none)."""

    maxima: dict[Value, OfRows] = field(default_factory=dict)
    totals: dict[Value, OfRows] = field(default_factory=dict)
    zeros: dict[Value, tuple[int, ...]] = field(default_factory=dict)
    floors: dict[Value, tuple[tuple[int, ...], Fraction]] = field(default_factory=dict)
    distances: dict[Value, OfRows] = field(default_factory=dict)
    variances: dict[Value, OfRows] = field(default_factory=dict)
    magnitudes: dict[Value, tuple[Reals, Reals]] = field(default_factory=dict)
    limited: dict[Value, tuple[Reals, Reals, Fraction]] = field(default_factory=dict)
    repeated: dict[Value, Reals] = field(default_factory=dict)
    squares: dict[Value, tuple[Reals, Reals]] = field(default_factory=dict)
    roots: dict[Value, tuple[Reals, Reals]] = field(default_factory=dict)
    powers: dict[Value, tuple[Reals, Reals]] = field(default_factory=dict)
    quotients: dict[Value, tuple[Reals, Reals, Reals]] = field(default_factory=dict)
    zero_tests: dict[Value, Reals] = field(default_factory=dict)
    guarded: dict[Value, tuple[Reals, Reals, Fraction | None]] = field(default_factory=dict)
    reciprocals: dict[Value, tuple[Reals, Reals]] = field(default_factory=dict)

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

    def note_guarded(self, result: Reals, condition: Value, other: Reals, instead: Fraction | None) -> None:
        """Note that ``result`` is ``other`` unless ``condition``, if this tells that ``other`` is 0; then it is
        ``instead``, or no constant."""
        tested = self.zero_tests.get(condition)
        if tested is not None and _same(tested, other):
            self.guarded[result.value] = result, other, instead

    def greatest_guarded(self, dividend: Reals, divisor: Reals) -> Reals | None:
        """Return the greatest elements of the rows of ``dividend``, if ``divisor`` is that where it is not 0."""
        result, greatest, _ = self.guarded.get(divisor.value, (None, None, None))
        if result is not divisor or greatest is None or self.axes_below(dividend, greatest) is None:
            return None
        return greatest

    def unless_zero(self, divisor: Reals) -> tuple[Reals, Fraction] | None:
        """Return what ``divisor`` is where that is not 0, and the constant other than 0 that it is elsewhere."""
        result, other, instead = self.guarded.get(divisor.value, (None, None, None))
        return (other, instead) if result is divisor and other is not None and instead else None

    def divisor_of(self, factor: Reals) -> Reals | None:
        """Return the reals whose reciprocals ``factor`` has."""
        result, source = self.reciprocals.get(factor.value, (None, None))
        return source if result is not None and _same(result, factor) else None

    def quotient_of(self, view: Reals) -> tuple[Reals, Reals] | None:
        """Return dividend and divisor, which broadcast to the shape of ``view``, that it is the quotient of."""
        result, dividend, divisor = self.quotients.get(view.value, (None, None, None))
        same = result is not None and _same(result, view)
        return (dividend, divisor) if same and dividend is not None and divisor is not None else None

    def exponent_of(self, view: Reals) -> Reals | None:
        """Return the reals whose exponentials ``view`` has."""
        result, exponent = self.powers.get(view.value, (None, None))
        return exponent if result is not None and _same(result, view) else None

    def note_distances(self, result: Reals, left: Reals, right: Reals) -> None:
        """Note that ``result`` is ``left`` less ``right``, if these are the means of its rows."""
        means = self.totals.get(right.value)
        if means is not None and _same(means.result, right) and _same(means.source, left) and _is_mean(means):
            self.distances[result.value] = OfRows(result, left, means.axes)

    def variance(self, left: Reals, right: Reals) -> OfRows | None:
        """Return the rows whose mean of squares is ``left`` and the square of whose mean is ``right``."""
        squares, (square, mean) = self.totals.get(left.value), self.squares.get(right.value, (None, None))
        means = None if mean is None else self.totals.get(mean.value)
        if squares is None or means is None or square is None or mean is None:
            return None
        of_square, base = self.squares.get(squares.source.value, (None, None))
        alike = (
            of_square is not None and base is not None and _same(squares.result, left) and _same(square, right)
            and _same(means.result, mean) and _same(means.source, base) and _same(of_square, squares.source)
            and squares.axes == means.axes and _is_mean(squares) and _is_mean(means)
        )
        return means if alike else None

    def softmax_of(self, dividend: Reals, divisor: Reals) -> tuple[Reals, tuple[int, ...]] | None:
        """Return whose softmax a quotient is, and along which axes: of powers of e, by the sum of their row."""
        found, total = self.powers_in(divisor), self.totals.get(divisor.value)
        return found if total is not None and _same(total.source, dividend) else None

    def powers_in(self, total: Reals) -> tuple[Reals, tuple[int, ...]] | None:
        """Return the exponents of the powers of e whose sums ``total`` has, and along which axes."""
        rows = self.totals.get(total.value)
        if rows is None or not _same(rows.result, total) or _share(rows) != 1:
            return None
        exponent = self.exponent_of(rows.source)
        return None if exponent is None else (exponent, rows.axes)

    def least(self, view: Reals) -> Fraction | None:
        """Return a number that sums without functions are at least; None where only intervals say."""
        total = self.totals.get(view.value)
        if total is None or not _same(total.result, view) or total.source.value not in self.floors:
            return None
        share, (axes, floor) = _share(total), self.floors[total.source.value]
        return floor * share if share and set(axes) <= set(total.axes) else None

    def limits(self, dividend: Reals, divisor: Reals) -> Limits:
        """Return what is known of the quotient of two reals without functions."""
        divisor = self._once(divisor)
        total = self.totals.get(divisor.value)
        if total is not None and _same(total.result, divisor) and total.source.value in self.floors:
            share = _share(total)
            return Limits(1 / share if share and _same(total.source, dividend) else None, self.least(divisor))
        result, norm, limit = self.limited.get(divisor.value, (None, None, ZERO))
        if result is None or norm is None or not _same(result, divisor):
            return self._of_norm(dividend, divisor, above=False)
        found = self._of_norm(dividend, norm, above=limit > 0)
        if found.nonzero is not None and limit <= found.nonzero:
            return replace(found, norm=norm)
        return found

    def _of_norm(self, dividend: Reals, divisor: Reals, *, above: bool) -> Limits:
        """Return the limits where the divisor is no less than ``divisor``; ``above``: and is not 0."""
        divisor = self._once(divisor)
        root, radicand = self.roots.get(divisor.value, (None, None))
        if root is not None and radicand is not None:
            offset = _above(divisor, root)
            return UNLIMITED if offset is None else self._of_root(dividend, radicand, above=above or offset > 0)
        total = self.totals.get(divisor.value)
        offset = None if total is None else _above(divisor, total.result)
        magnitude, base = (None, None) if total is None else self.magnitudes.get(total.source.value, (None, None))
        if total is None or offset is None or magnitude is None or base is None:
            return UNLIMITED
        share, scale = _share(total), uniform(total.result.scale)
        if not share or not scale or not (_same(base, dividend) and _same(magnitude, total.source)):
            return UNLIMITED
        return Limits(1 / share, None, abs(scale) if _whole(base) and (above or offset > 0) else None)

    def _once(self, view: Reals) -> Reals:
        """Return what ``view`` repeats."""
        while view.value in self.repeated and uniform(view.scale) is not None and uniform(view.zero_point) is not None:
            source = self.repeated[view.value]
            view = replace(view, value=source.value, shape=source.shape)
        return view

    def _of_root(self, dividend: Reals, radicand: Reals, *, above: bool) -> Limits:
        """Return the limits where the divisor is no less than the roots of a sum of the dividend's squares, or of its
        variance; ``above``: and is not 0."""
        radicand = self._once(radicand)
        variance = self.variances.get(radicand.value)
        if variance is not None:
            distance, scale = self.distances.get(dividend.value), uniform(variance.source.scale)
            count = _count(variance)
            if (
                distance is None or not scale or _above(radicand, variance.result) is None
                or distance.axes != variance.axes or not _same(distance.source, variance.source)
                or not _same(distance.result, dividend)
            ):
                return UNLIMITED
            # n times the sum of squares less the square of the sum is at least n - 1, unless all are equal.
            apart = abs(scale) * _root(Fraction(max(1, count - 1), count**2))[0]
            return Limits(_root(Fraction(count))[1], None, apart if above else None)
        total = self.totals.get(radicand.value)
        square, base = (None, None) if total is None else self.squares.get(total.source.value, (None, None))
        if total is None or square is None or base is None:
            return UNLIMITED
        if not (_same(base, dividend) and _same(square, total.source)):
            return UNLIMITED
        scale, one, zero = (uniform(v) for v in (radicand.scale, total.source.scale, radicand.zero_point))
        if not scale or not one or zero is None or zero > 0 or scale < 0 or one < 0:
            return UNLIMITED
        nonzero = _root(scale)[0] if above and _whole(base) else None
        return Limits(_root(one / scale)[1], None, nonzero)


@dataclass(frozen=True)
class Limits:
    """``most``: an upper bound of a quotient's magnitude; ``least``: a lower one of the divisor's, ``nonzero``: where
    the dividend is not 0, of reals; None where only intervals say. ``norm``: the divisor may be this as well, which
    lacks a limit that only divisors of 0 are below."""

    most: Fraction | None = None
    least: Fraction | None = None
    nonzero: Fraction | None = None
    norm: Reals | None = None


UNLIMITED = Limits()

ZERO = Fraction(0)


def _root(number: Fraction) -> tuple[Fraction, Fraction]:
    return RootMultiply(number).root(32)


def _whole(view: Reals) -> bool:
    """Tell whether integers that are not the zero point are at least 1 away from it."""
    return all(zero.denominator == 1 for zero in view.zero_point.reshape(-1))


def _above(view: Reals, other: Reals) -> Fraction | None:
    """Return by how much ``view`` is above ``other``, a constant number; None where that is not known, or negative."""
    scale, zero, before = uniform(view.scale), uniform(view.zero_point), uniform(other.zero_point)
    if scale is None or zero is None or before is None or view.value is not other.value or view.functions:
        return None
    offset = scale * (before - zero)
    return offset if scale == uniform(other.scale) and scale > 0 and offset >= 0 else None


def _same(a: Reals, b: Reals) -> bool:
    """Tell whether two views of one shape, without functions, are the same reals."""
    return (
        a.value is b.value and a.shape == b.shape and not a.functions and not b.functions
        and np.array_equal(a.scale, b.scale) and np.array_equal(a.zero_point, b.zero_point)
    )


def _count(rows: OfRows) -> int:
    return int(np.prod([rows.source.shape[axis] for axis in rows.axes], dtype=np.int64))


def _is_mean(rows: OfRows) -> bool:
    return _share(rows) == Fraction(1, _count(rows))


def _share(rows: OfRows) -> Fraction | None:
    """Return what part of the sum of a row its result is: 1, or of a mean 1 / n."""
    ours, theirs = uniform(rows.result.scale), uniform(rows.source.scale)
    return None if not ours or not theirs else ours / theirs
