"""A staircase: a non-decreasing function from an integer interval to a small integer range, held as its thresholds.

It is the canonical form of every requantization, whatever that came from: two staircases are the same function on the
same interval if and only if they compare equal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from hwflow.numerics.bound import Bound, Ladder
from hwflow.numerics.elementwise import Elementwise
from hwflow.numerics.rounding import Quantizer, Rounding

IntArray = npt.NDArray[np.int64]

LIMIT = 1 << 62  # of input values: thresholds and values stay within int64
MAX_LEVELS = 1 << 20  # of an output range


@dataclass(frozen=True)
class Staircase:
    """``y(x) = low + #{k : x >= thresholds[k]}`` for integers ``lo <= x <= hi``.

    ``thresholds`` are sorted and lie in ``(lo, hi]``; a threshold that is repeated is a jump of several levels.
    ``low`` is ``y(lo)``. Raises ValueError where that does not hold, or an end of the interval exceeds 2**62.
    """

    lo: int
    hi: int
    low: int
    thresholds: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise ValueError(f"interval of a staircase must not be empty, not [{self.lo}, {self.hi}]")
        if self.lo < -LIMIT or self.hi > LIMIT:
            raise ValueError(f"interval of a staircase must lie within 62 bits, not [{self.lo}, {self.hi}]")
        t = self.thresholds
        if list(t) != sorted(t):
            raise ValueError("thresholds of a staircase must be sorted")
        if t and (t[0] <= self.lo or t[-1] > self.hi):
            raise ValueError(f"thresholds must lie in ({self.lo}, {self.hi}], not in [{t[0]}, {t[-1]}]")

    @property
    def high(self) -> int:
        """``y(hi)``, the greatest value."""
        return self.low + len(self.thresholds)

    def __call__(self, x: int) -> int:
        """The value at ``x``; ValueError if ``x`` is outside the interval."""
        if not self.lo <= x <= self.hi:
            raise ValueError(f"input of a staircase must lie in [{self.lo}, {self.hi}], not {x}")
        return self.low + bisect_right(self.thresholds, x)

    @cached_property
    def array(self) -> IntArray:
        """The thresholds as int64."""
        return np.array(self.thresholds, dtype=np.int64)

    def evaluate(self, x: npt.ArrayLike) -> IntArray:
        """The values at an integer array of any shape; ValueError if one is outside the interval."""
        x = np.asarray(x)
        if x.size and (int(x.min()) < self.lo or int(x.max()) > self.hi):
            raise ValueError(f"inputs of a staircase must lie in [{self.lo}, {self.hi}], not [{x.min()}, {x.max()}]")
        return np.asarray(self.low + np.searchsorted(self.array, x, side="right"), dtype=np.int64)


def quantizer_staircase(
    lo: int,
    hi: int,
    scale: Fraction,
    zero_point: Fraction | int,
    functions: Sequence[Elementwise],
    out_scale: Fraction,
    out_zero_point: Fraction | int,
    out_low: int,
    out_high: int,
    *,
    rounding: Rounding = Rounding.ROUND,
    zero_point_inside: bool = False,
) -> Staircase:
    """The staircase of: dequantize (``scale * (q - zero_point)``), then ``functions`` in order, then quantize.

    ``q`` runs over ``[lo, hi]``. ``scale`` must not be negative (0: the input is always 0), ``zero_point`` may be any
    rational (a float bias is absorbed there). The output is ``saturate(round_half_even(y / out_scale) +
    out_zero_point)`` in ``[out_low, out_high]`` unless ``rounding`` and ``zero_point_inside`` say otherwise (QONNX).

    Exact, and no search: the bound ``{y : level(y) >= n}`` of each output level is pulled back through the chain.
    """
    scale, zero_point = Fraction(scale), Fraction(zero_point)
    if scale < 0:
        raise ValueError(f"input scale must not be negative, not {scale}")
    if out_high - out_low >= MAX_LEVELS:
        raise ValueError(f"output range must have at most {MAX_LEVELS} levels, not [{out_low}, {out_high}]")
    quantizer = Quantizer(Fraction(out_scale), out_zero_point, out_low, out_high, rounding, zero_point_inside)
    ladder = _pulled(tuple(functions), quantizer)
    if scale == 0:
        return Staircase(lo, hi, out_low + ladder.holding(0), ())

    # q >= n / (d * scale) + zero_point, over one denominator; least such integer, or least greater integer if strict
    factor = scale.denominator * zero_point.denominator
    offset = zero_point.numerator * ladder.denominator * scale.numerator
    denominator = ladder.denominator * scale.numerator * zero_point.denominator
    numerators, strict = ladder.numerators, ladder.strict

    def threshold(k: int) -> int:
        return (numerators[k] * factor + offset - (not strict[k])) // denominator + 1

    levels = range(len(numerators))
    first = bisect_right(levels, lo, key=threshold)
    last = bisect_right(levels, hi, lo=first, key=threshold)
    thresholds = tuple(
        [
            (n * factor + offset - (not s)) // denominator + 1
            for n, s in zip(numerators[first:last], strict[first:last], strict=True)
        ]
    )
    return Staircase(lo, hi, out_low + ladder.always + first, thresholds)


def real_value(
    q: int, scale: Fraction, zero_point: Fraction | int, functions: Iterable[Elementwise] = ()
) -> Fraction:
    """The exact real number that reaches the quantizer for the integer ``q`` (explains a float evaluator's result)."""
    x = Fraction(scale) * (q - Fraction(zero_point))
    for function in functions:
        x = function(x)
    return x


@lru_cache(maxsize=64)
def _levels(quantizer: Quantizer) -> Ladder:
    """The bounds of the levels ``low + 1 .. high``."""
    return Ladder.of(Bound(*quantizer.bound(n)) for n in range(quantizer.low + 1, quantizer.high + 1))


@lru_cache(maxsize=64)
def _pulled(functions: tuple[Elementwise, ...], quantizer: Quantizer) -> Ladder:
    """The same, pulled back through ``functions``; channels that differ in scale and bias only share it."""
    ladder = _levels(quantizer)
    for function in reversed(functions):
        ladder = function.pull(ladder)
    return ladder
