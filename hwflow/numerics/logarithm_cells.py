"""The parts of ``log s = log c + 2 z + 2 (atanh z - z)``, ``z = (s - c) / (s + c)``, in fixed point: cells of integers
s with a middle c each, the logarithms of these, and where the last term reaches each whole number of units.

Source of the series: Abramowitz and Stegun, Handbook of Mathematical Functions, 4.1.28.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp, isqrt, log
from typing import Any

from flint import arb, ctx, fmpq

_FEWEST_CELLS, _MOST_CELLS = 32, 4096
_ENCLOSURE_BITS = 160
_FINE = 1 << 30


class Cells:
    """Cells of about equal ratios of the integers ``low`` to ``high``. ``starts``: of the cells but the first;
    ``middles``: of all; ``most``: the greatest magnitude of z."""

    def __init__(self, low: int, high: int, count: int) -> None:
        ratio = log(high) - log(low)
        places = (round(low * exp(ratio * k / count)) for k in range(1, count))
        inner = {min(high, max(low + 1, place)) for place in places}
        self.starts = sorted(inner) if high > low else []
        begins, ends = [low, *self.starts], [*(start - 1 for start in self.starts), high]
        self.middles = [isqrt(begin * end) for begin, end in zip(begins, ends, strict=True)]
        self.most = max(
            Fraction(abs(end - middle), end + middle)
            for begin, last, middle in zip(begins, ends, self.middles, strict=True) for end in (begin, last)
        )

    @classmethod
    def of(cls, low: int, high: int, fraction: int) -> Cells:
        """Return as many cells as there are levels of the last term at least."""
        count = _FEWEST_CELLS
        while True:
            cells = cls(low, high, count)
            if count >= _MOST_CELLS or 2 * _rest(cells.most) * 2**fraction <= count:
                return cells
            count *= 2


def _rest(z: Fraction) -> float:
    """Return 2 (atanh z - z), a little more than it is."""
    small = float(z)
    return 2 / 3 * small**3 / max(1e-9, 1 - small**2)


def fixed_logarithms(middles: list[int], scale: Fraction, fraction: int) -> tuple[list[int], Fraction]:
    """Return the logarithms of the middles in fixed point, and by how much they may be off, in units."""
    with ctx.workprec(_ENCLOSURE_BITS):
        unit = fmpq(1, 1 << fraction)
        balls = [(arb(_ratio(middle * scale)).log() / arb(unit)) for middle in middles]
        whole = [round(Fraction(str(ball.mid().fmpq()))) for ball in balls]
        off = max(float(abs(ball - number).upper()) for ball, number in zip(balls, whole, strict=True))
    return whole, _up(off)


def rest_breaks(end: int, fraction: int) -> tuple[list[int], Fraction]:
    """Return the least z, in units of ``2**-(fraction + 1)``, at which the last term is nearer to 1, 2, ... units than
    to one less, and how far it is from there at most, with the effect of an error of 1 of z."""
    breaks: list[int] = []
    off = 0.0
    with ctx.workprec(_ENCLOSURE_BITS):
        scale = arb(fmpq(1, 2 << fraction))

        def rest(place: int) -> Any:
            z = scale * place
            return (z.atanh() - z) * 2 * (1 << fraction)

        while True:
            at = max(_reaching((len(breaks) + 0.5) / 2**fraction, fraction), breaks[-1] + 1 if breaks else 1)
            if at > end:
                break
            off = max(off, *(float(abs(rest(p) - n).upper()) for p, n in (
                (at, len(breaks) + 1), (at - 1, len(breaks)))))
            breaks.append(at)
        off = max(off, float(abs(rest(end) - len(breaks)).upper()))
        steep = 2 * (end / 2.0 ** (fraction + 1)) ** 2
    return breaks, _up(off + steep)


def _ratio(number: Fraction) -> fmpq:
    return fmpq(number.numerator, number.denominator)


def _reaching(number: float, fraction: int) -> int:
    """Return about the least z, in units of ``2**-(fraction + 1)``, whose last term is ``number``: its first three
    terms, by iteration."""
    z = 0.0
    for _ in range(4):
        z = (1.5 * max(0.0, number - 2 / 5 * z**5 - 2 / 7 * z**7)) ** (1 / 3)
    return ceil(z * (2 << fraction))


def _up(number: float) -> Fraction:
    return Fraction(ceil(number * _FINE) + 1, _FINE)

