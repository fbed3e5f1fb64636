"""Sum the remaining digits of a row in an adder tree of limited depth.

Greedy: the pair with the cheapest adder is added first. The cost is the carry chain plus the distance of the two (bits
that bypass an adder are bits of later ones). Only pairs within the depth limit count: a tree of ``levels`` levels
remains while ``sum(2**depth)`` over the digits is at most ``2**levels`` (see
:mod:`hwflow.numerics.shift_add.search`).

A sum has the sign of its lower operand, so that this one's low bits bypass the adder: ``-(a - (b << d))`` for
``(b << d) - a``. If a row's sum ends up negative, signs are flipped where that costs the fewest bits: by
``(b << d) - a`` itself, whose low bits do not bypass the adder, or by a second adder for a shared term. Neither makes
the tree deeper. Only a row of subtracted inputs alone needs a negation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from hwflow.numerics.shift_add.network import Terms, width_of


class Digit(NamedTuple):
    """``sign * (term << shift)``."""

    term: int
    shift: int
    sign: int


@dataclass(frozen=True)
class _Part:
    """A digit, or a planned sum of two parts: ``sign * (value << shift)``."""

    shift: int
    sign: int
    depth: int
    low: int
    high: int
    digit: Digit | None
    lower: _Part | None = None
    upper: _Part | None = None

    @cached_property
    def width(self) -> int:
        return width_of(self.low, self.high)


_NEVER = 1 << 30


def row_sum(terms: Terms, digits: Sequence[Digit], limit: int) -> tuple[int, int]:
    """Add one or more digits; return the sum as (term, shift). ``limit``: 2**levels, at least the sum of 2**depth."""
    parts = [
        _Part(d.shift, d.sign, terms.depth[d.term], terms.low[d.term], terms.high[d.term], d) for d in sorted(digits)
    ]
    load = sum(1 << part.depth for part in parts)
    waiting = [(_price(a, b), x, y) for y, b in enumerate(parts) for x, a in enumerate(parts[:y])]
    heapify(waiting)
    left = set(range(len(parts)))
    while len(left) > 1:
        _, x, y = heappop(waiting)
        more = abs((1 << parts[x].depth) - (1 << parts[y].depth))
        if x not in left or y not in left or load + more > limit:  # once there is no room there never is
            continue
        load += more
        left -= {x, y}
        new = _sum(parts[x], parts[y])
        for z in sorted(left):
            heappush(waiting, (_price(parts[z], new), z, len(parts)))
        left.add(len(parts))
        parts.append(new)
    return _built(terms, parts[-1], 1), parts[-1].shift


def _price(a: _Part, b: _Part) -> int:
    """Return the cost of adding the two; on a tie operands of equal depth come first."""
    apart = abs(a.shift - b.shift)
    lower, upper = (a, b) if a.shift <= b.shift else (b, a)
    return 2 * (max(lower.width - apart, upper.width) + 1 + apart) + (a.depth != b.depth)


def _sum(a: _Part, b: _Part) -> _Part:
    lower, upper = (a, b) if (a.shift, -a.sign) <= (b.shift, -b.sign) else (b, a)
    apart = upper.shift - lower.shift
    low, high = upper.low << apart, upper.high << apart
    if lower.sign != upper.sign:
        low, high = -high, -low
    depth = 1 + max(a.depth, b.depth)
    return _Part(lower.shift, lower.sign, depth, lower.low + low, lower.high + high, None, lower, upper)


def _turning(terms: Terms, part: _Part) -> tuple[int, int]:
    """Return the bits that making the part's sign positive costs, and how it is done: 0 it is positive, 1 by flipping
    the lower part, 2 by flipping the upper one."""
    if part.sign > 0:
        return 0, 0
    if part.digit is not None:
        return _negating(terms, part.digit.term), 0
    assert part.lower is not None and part.upper is not None, "a sum has two parts"
    by_lower = _turning(terms, part.lower)[0], 1
    by_upper = _turning(terms, part.upper)[0] + part.upper.shift - part.lower.shift, 2
    return min(by_lower, by_upper)


def _negating(terms: Terms, term: int) -> int:
    """Return the bits of a second set of adders, of the same depth, for the negative of a term; _NEVER if the term
    subtracts nothing."""
    if term not in terms.negating:
        cost = _NEVER
        if term >= len(terms.inputs):
            adder = terms.adders[term - len(terms.inputs)]
            if adder.left is not None:
                cost = 0 if adder.subtract else min(_negating(terms, t) for t in adder.operands)
        terms.negating[term] = min(_NEVER, cost + terms.width[term])
    return terms.negating[term]


def _negative(terms: Terms, term: int) -> int:
    """Return the negative of a term, whose cost :func:`_negating` gives."""
    adder = terms.adders[term - len(terms.inputs)]
    left, right = adder.left, adder.right
    assert left is not None, "a negation has no negative of finite cost"
    if adder.subtract:
        return terms.add(right, adder.right_shift, left, adder.left_shift, subtract=True)
    if _negating(terms, left) <= _negating(terms, right):
        return terms.add(_negative(terms, left), adder.left_shift, right, adder.right_shift, subtract=True)
    return terms.add(_negative(terms, right), adder.right_shift, left, adder.left_shift, subtract=True)


def _built(terms: Terms, part: _Part, sign: int) -> int:
    """Build ``sign * part >> shift``, with the part's sign kept or flipped, and return its term."""
    turned = part.sign != sign  # then a positive sign is asked of a negative part
    cost, way = _turning(terms, part) if turned else (0, 0)
    if cost >= _NEVER:
        return terms.add(None, 0, _built(terms, part, part.sign), 0, subtract=True)
    if part.digit is not None:
        return _negative(terms, part.digit.term) if turned else part.digit.term
    assert part.lower is not None and part.upper is not None, "a sum has two parts"
    lower, upper = part.lower, part.upper
    apart = upper.shift - lower.shift
    signs = [lower.sign, upper.sign]
    if turned:
        signs[way - 1] = 1
    first, second = (_built(terms, p, s) for p, s in ((lower, signs[0]), (upper, signs[1])))
    if signs[0] == sign:
        return terms.add(first, 0, second, apart, subtract=signs[0] != signs[1])
    return terms.add(second, apart, first, 0, subtract=True)
