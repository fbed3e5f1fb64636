"""Step functions of the reals with rational cuts.

The levels of a quantizer are one, and so is what a piecewise affine function or another quantizer makes of it: pulling
the cuts back through a chain of functions gives exact thresholds without a search.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

Cut = tuple[Fraction, bool]  # (v, strict): where x > v begins if strict, else where x >= v begins


@dataclass(frozen=True)
class Levels:
    """``values[k]`` at x, with k the number of cuts at or below x: ``x >= numerators[k] / denominator``, or greater if
    ``strict[k]``.

    Cuts rise (of two at one number the strict one is later). One common denominator (positive, the fractions not
    reduced) makes a pull-back a few integer operations a cut.
    """

    values: tuple[int, ...]
    numerators: tuple[int, ...]
    strict: tuple[bool, ...]
    denominator: int

    @classmethod
    def of(cls, first: int, cuts: Iterable[tuple[Cut, int]]) -> Levels:
        """``first``, then from each cut in rising order the value with it; of equal cuts the last counts, and
        neighbours of equal value are joined."""
        values, kept = [first], list[Cut]()
        for cut, value in cuts:
            if kept and kept[-1] == cut:
                kept.pop()
                values.pop()
            if values[-1] != value:
                kept.append(cut)
                values.append(value)
        denominator = lcm(*(v.denominator for v, _ in kept))
        numerators = tuple([v.numerator * (denominator // v.denominator) for v, _ in kept])
        return cls(tuple(values), numerators, tuple([s for _, s in kept]), denominator)

    def cuts(self) -> list[tuple[Cut, int]]:
        """Every cut with the value that begins there."""
        cuts = [(Fraction(n, self.denominator), s) for n, s in zip(self.numerators, self.strict, strict=True)]
        return list(zip(cuts, self.values[1:], strict=True))

    def before(self, cut: Cut) -> int:
        """How many cuts lie before ``cut``."""
        (value, strict), indices = cut, range(len(self.numerators))
        key = (value.numerator * self.denominator, strict)
        return bisect_left(indices, key, key=lambda k: (self.numerators[k] * value.denominator, self.strict[k]))

    def until(self, cut: Cut) -> int:
        """How many cuts lie before ``cut`` or at it."""
        (value, strict), indices = cut, range(len(self.numerators))
        key = (value.numerator * self.denominator, strict)
        return bisect_right(indices, key, key=lambda k: (self.numerators[k] * value.denominator, self.strict[k]))

    def __call__(self, x: Fraction) -> int:
        """The value at ``x``."""
        return self.values[self.until((x, False))]

    def affine(self, multiplier: Fraction, addend: Fraction) -> Levels:
        """As a function of x, with these the levels of ``multiplier * x + addend``."""
        if multiplier == 0:
            return Levels((self(addend),), (), (), 1)
        if multiplier == 1 and addend == 0:
            return self
        # y >= n/d with y = m*x + a is x >= (n/d - a) / m (or <= if m is negative), over one denominator again
        sign = 1 if multiplier > 0 else -1
        factor = sign * addend.denominator * multiplier.denominator
        offset = -sign * addend.numerator * self.denominator * multiplier.denominator
        denominator = self.denominator * addend.denominator * abs(multiplier.numerator)
        g = gcd(factor, offset, denominator)
        factor, offset, denominator = factor // g, offset // g, denominator // g
        numerators = tuple([n * factor + offset for n in self.numerators])
        if sign > 0:
            return Levels(self.values, numerators, self.strict, denominator)
        return Levels(self.values[::-1], numerators[::-1], tuple([not s for s in self.strict[::-1]]), denominator)


def join(pieces: Sequence[Levels], cuts: Sequence[Cut]) -> Levels:
    """``pieces[0]`` before ``cuts[0]``, ``pieces[1]`` from there to ``cuts[1]`` and so on."""
    common = lcm(*(p.denominator for p in pieces), *(v.denominator for v, _ in cuts))
    values: list[int] = []
    numerators: list[int] = []
    strict: list[bool] = []
    for k, piece in enumerate(pieces):
        first = piece.until(cuts[k - 1]) if k else 0
        last = max(first, piece.before(cuts[k])) if k < len(cuts) else len(piece.numerators)
        if k and piece.values[first] != values[-1]:
            v, s = cuts[k - 1]
            numerators.append(v.numerator * (common // v.denominator))
            strict.append(s)
            values.append(piece.values[first])
        elif not k:
            values.append(piece.values[first])
        factor = common // piece.denominator
        numerators += [n * factor for n in piece.numerators[first:last]]
        strict += piece.strict[first:last]
        values += piece.values[first + 1 : last + 1]
    return Levels(tuple(values), tuple(numerators), tuple(strict), common)
