"""The interface of functions between a quantized value and the next quantizer: functions of one real number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from hwflow.numerics.functions.float_interval import FloatIntervals
from hwflow.numerics.interval import Interval


class Elementwise(ABC):
    """A function of the reals; subclasses are frozen dataclasses (hashable, comparable)."""

    @property
    def rising(self) -> bool:
        """Whether the function is known to be non-decreasing on its domain: a maximum then commutes with it."""
        return False

    @property
    def size(self) -> int:
        """The number of functions and operations it consists of."""
        return 1

    @abstractmethod
    def enclose(self, x: Interval, bits: int) -> Interval:
        """Return an interval that contains every value over ``x``.

        For a single number it is exact where the value is known to be rational, else narrower than ``2**-bits`` of the
        value (for a composed function, as narrow as its parts allow). Raises
        :class:`~hwflow.numerics.interval.Undefined` if the function is undefined somewhere in ``x``.
        """

    @abstractmethod
    def floats(self, x: FloatIntervals) -> FloatIntervals:
        """Enclose the values over many intervals at once, as tight as float64 can."""


def enclose(functions: Iterable[Elementwise], x: Interval, bits: int) -> Interval:
    """Enclose the values of the composed ``functions``, the first applied first, over ``x``. Raises NoSteps for an
    exact value that is too long (see :meth:`~hwflow.numerics.interval.Interval.limited`)."""
    for function in functions:
        x = function.enclose(x, bits).limited(bits)
    return x


def floats(functions: Iterable[Elementwise], x: FloatIntervals) -> FloatIntervals:
    """Enclose the values of the composed ``functions`` in float64."""
    for function in functions:
        x = function.floats(x)
    return x
