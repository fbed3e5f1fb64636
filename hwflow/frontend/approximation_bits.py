"""How precise approximations are: what no integers carry exactly (quotients of streams, exponentials, roots) is rounded
to so many bits that no quantizer behind it can be wrong, but where the true real lies within :data:`EPSILON` of a
rounding boundary.

Which quantizer follows is not known where an approximation is made. A model is therefore lowered with
:data:`FIRST_BITS`; each quantizer says how many more or fewer bits of the approximations before it are needed; and
where these differ, the model is lowered again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

EPSILON = Fraction(1, 1 << 24)
"""The greatest distance of a true real to a rounding boundary, in output steps, that may be rounded to its other
side."""

OF_SCALES = EPSILON / 8
"""The part of it that rounding a quantizer's scale may take."""

FIRST_BITS = 32

MOST_LOWERINGS = 4
"""A model is lowered so often at most. The second time nearly always settles it: errors halve with each bit, but for
products of two of them."""


@dataclass
class Precision:
    """``bits``: of the greatest result of an approximation, by its name, where not :data:`FIRST_BITS`; ``missing``: how
    many more quantizers need, the greatest number found (negative: fewer suffice); ``epsilon``: the greatest of all
    quantizers."""

    bits: Mapping[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    epsilon: Fraction = Fraction(0)

    def of(self, name: str) -> int:
        """Return the bits of the approximation ``name``, at least 1: a coarse quantizer might need none."""
        return max(1, self.bits.get(name, FIRST_BITS))

    def need(self, errors: Mapping[str, Fraction], own: Fraction = Fraction(0)) -> Fraction:
        """Record by how much approximations may move the number that a quantizer rounds, in output steps; each may use
        an equal share of what the quantizer's ``own`` error leaves of :data:`EPSILON`. Return the quantizer's
        epsilon."""
        for name, error in errors.items():
            missing = bits_above(error * len(errors) / (EPSILON - own))
            self.missing[name] = max(missing, self.missing.get(name, missing))
        epsilon = sum(errors.values(), own)
        self.epsilon = max(self.epsilon, epsilon)
        return epsilon

    def within(self, errors: Mapping[str, Fraction], most: Fraction) -> bool:
        """Tell whether approximations move a number by at most ``most``; record what they lack where not."""
        if sum(errors.values(), Fraction(0)) <= most:
            return True
        for name, error in errors.items():
            missing = bits_above(error * len(errors) / most)
            self.missing[name] = max(missing, self.missing.get(name, missing))
        self.epsilon = max(self.epsilon, Fraction(1))
        return False

    @property
    def settled(self) -> bool:
        """Tell whether every quantizer has the bits that it needs, and no approximation more than one too many."""
        enough = all(missing >= -1 or self.of(name) == 1 for name, missing in self.missing.items())
        return self.epsilon <= EPSILON and enough

    def next(self) -> Precision:
        """Return the precision that is needed."""
        return Precision({**self.bits, **{name: self.of(name) + more for name, more in self.missing.items()}})


def bits_above(ratio: Fraction) -> int:
    """Return the least k with ``ratio <= 2**k``; 0 of 0."""
    if ratio <= 0:
        return 0
    k = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    while Fraction(2) ** k < ratio:
        k += 1
    while Fraction(2) ** (k - 1) >= ratio:
        k -= 1
    return k
