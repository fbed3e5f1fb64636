"""What stands between a quantized value and the next quantizer: a function of one real number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from math import inf

import numpy as np

from hwflow.numerics.functions.float_interval import FloatIntervals
from hwflow.numerics.interval import Interval


class Elementwise(ABC):
    """A function of the reals; subclasses are frozen dataclasses (hashable, comparable)."""

    @property
    def rising(self) -> bool:
        """Whether it is known not to fall anywhere that it is defined: a maximum then commutes with it."""
        return False

    @property
    def size(self) -> int:
        """How many functions and operations it is made of."""
        return 1

    @abstractmethod
    def enclose(self, x: Interval, bits: int) -> Interval:
        """An interval that contains every value over ``x``.

        Of one number it is exact where the value is known to be rational, and else narrower than ``2**-bits`` of the
        value (for a function made of several, as narrow as these make it). Raises
        :class:`~hwflow.numerics.interval.Undefined` if the function is undefined somewhere in ``x``.
        """

    @abstractmethod
    def floats(self, x: FloatIntervals) -> FloatIntervals:
        """The same for many intervals at once, as good as float64 can."""

    def slopes(self, x: FloatIntervals) -> FloatIntervals:
        """Bounds of ``(f(b) - f(a)) / (b - a)`` for all numbers a < b of each interval at which f is defined; infinite
        where nothing is known."""
        unknown = np.full(x.lo.shape, inf)
        return FloatIntervals.of(np.zeros(x.lo.shape) if self.rising else -unknown, unknown)


def enclose(functions: Iterable[Elementwise], x: Interval, bits: int) -> Interval:
    """The values of ``functions``, one after the other, over ``x``. Raises NoSteps for an exact value that is too long
    (see :meth:`~hwflow.numerics.interval.Interval.limited`)."""
    for function in functions:
        x = function.enclose(x, bits).limited(bits)
    return x


def floats(functions: Iterable[Elementwise], x: FloatIntervals) -> FloatIntervals:
    """The same in float64."""
    for function in functions:
        x = function.floats(x)
    return x
