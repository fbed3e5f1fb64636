"""What lowering knows of the integers of hardware values: their interval, and how far approximations may be off.

Most integers are exact. What none carries exactly (an exponential, a root, a quotient of streams) is rounded; operators
behind it carry the error on, by how far their results move at most with each operand, up to a quantizer, which says by
how much the real number that it rounds may be off (:mod:`hwflow.frontend.approximation_bits`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

import numpy as np

from hwflow.ir.graph import Attributes, IntArray
from hwflow.ir.integer_functions import Extreme, Magnitude, Multiplied, Simple, Times
from hwflow.ir.node_attributes import (
    ConcatAttributes,
    Conv2dAttributes,
    DenseAttributes,
    ElementwiseAttributes,
    InterpolateAttributes,
    MatrixProductAttributes,
    MaxPool2dAttributes,
    PixelProductAttributes,
    ProductAttributes,
    ReindexAttributes,
    RequantizeAttributes,
    ReshapeAttributes,
    ScaledAddAttributes,
    SumPool2dAttributes,
    TransposeAttributes,
)
from hwflow.numerics.requantizers.stages import QuantizerStage, Stage, StepStage
from hwflow.types import Interval

ZERO, ONE = Fraction(0), Fraction(1)
_LONGEST_SUM = 1 << 62  # in 64 bits


@dataclass(frozen=True)
class Bound:
    """Of the integers of a value: ``interval``; ``errors``: for each approximation by its name, how far they may be off
    by it from what exact computation gives. None of a bound is known where ``interval`` is None."""

    interval: Interval | None
    errors: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def error(self) -> Fraction:
        """Return the sum of the errors."""
        return sum(self.errors.values(), ZERO)

    def times(self, factor: Fraction) -> dict[str, Fraction]:
        """Return the errors of a result that moves by at most ``factor`` per unit."""
        return {name: error * factor for name, error in self.errors.items()} if factor else {}

    @property
    def magnitude(self) -> Fraction | None:
        """Return the greatest absolute value, of exact computation too."""
        return None if self.interval is None else max(abs(self.interval.lo), abs(self.interval.hi)) + self.error


UNKNOWN = Bound(None)

Slopes = Sequence[Fraction | None]
"""For each input by how much a result moves at most per unit of it; None: by any number."""


def added(*parts: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Return the sums of errors by name."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum((part.get(name, ZERO) for part in parts), ZERO) for name in names}


def greatest(*parts: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Return the greatest of errors by name, for results that are one of several operands."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: max(part.get(name, ZERO) for part in parts) for name in names}


def bound_of(attributes: Attributes, inputs: Sequence[Bound]) -> Bound | None:
    """Return the bound of a node's result; None where approximations must not be its operands."""
    rule = _RULES.get(type(attributes))
    approximated = any(bound.errors for bound in inputs)
    if rule is None or any(bound.interval is None for bound in inputs) or _lacks_elements(attributes):
        if approximated:
            return None
        if isinstance(attributes, RequantizeAttributes):  # its levels are known whatever is before it
            return Bound(_requantize(attributes, (), ())[0])
        return UNKNOWN
    intervals = [bound.interval for bound in inputs if bound.interval is not None]
    interval, slopes = rule(attributes, intervals, [bound.error for bound in inputs])
    if not approximated:
        return Bound(interval)
    parts = []
    for bound, slope in zip(inputs, slopes, strict=True):
        if bound.errors and slope is None:
            return None
        parts.append(bound.times(slope or ZERO))
    return Bound(interval, (greatest if _is_choice(attributes) else added)(*parts))


def _lacks_elements(attributes: Attributes) -> bool:
    """Tell whether constants of a node are empty, as in models whose sizes are refused."""
    parts = [part for each in vars(attributes).values() for part in (each if isinstance(each, tuple) else (each,))]
    return any(part.size == 0 if isinstance(part, np.ndarray) else part == () for part in parts)


def _is_choice(attributes: Attributes) -> bool:
    if isinstance(attributes, ElementwiseAttributes):
        return isinstance(attributes.function, Extreme) or attributes.function == Simple("where")
    return isinstance(attributes, ConcatAttributes)


Ruled = tuple[Interval, Slopes]
Rule = Callable[..., Ruled]


def _same(attributes: Attributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    return ranges[0], (ONE,)


def _concat(attributes: ConcatAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    return Interval.hull_of(ranges), [ONE] * len(ranges)


def _reindex(attributes: ReindexAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    filled, own = attributes.index < 0, Interval(attributes.fill, attributes.fill)
    if filled.all():
        return own, (ZERO,)
    return ranges[0].hull(own) if filled.any() else ranges[0], (ONE,)


def _scaled_add(attributes: ScaledAddAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    ends = {column: _scaled(column, ranges) for column in zip(*_columns(attributes.multipliers), strict=True)}
    sizes = [Fraction(max(abs(v) for v in column)) for column in attributes.multipliers]
    return Interval.hull_of(ends.values()), sizes


def _columns(multipliers: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    count = max(map(len, multipliers))
    return [column if len(column) == count else tuple(column) * count for column in multipliers]


def _scaled(factors: Sequence[int], ranges: Sequence[Interval]) -> Interval:
    parts = [own.times(Interval(factor, factor)) for factor, own in zip(factors, ranges, strict=True)]
    return Interval(sum(part.lo for part in parts), sum(part.hi for part in parts))


def _product(attributes: ProductAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    moved = [own.plus(-offset) for own, offset in zip(ranges, attributes.offsets, strict=True)]
    interval = moved[0].times(moved[1])
    if attributes.square:
        interval = Interval(0 if moved[0].includes(0) else min(moved[0].lo ** 2, moved[0].hi ** 2), interval.hi)
    if attributes.wrap is not None:
        return attributes.wrap.interval, (None, None)
    sizes = [max(abs(own.lo), abs(own.hi)) for own in moved]
    return interval, (sizes[1] + errors[1], Fraction(sizes[0]))


def _matrix_product(
    attributes: MatrixProductAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]
) -> Ruled:
    interval, slopes = _product(ProductAttributes(attributes.offsets), ranges, errors)
    inner = attributes.inner
    return interval.times(Interval(inner, inner)), [None if slope is None else inner * slope for slope in slopes]


def _elementwise(attributes: ElementwiseAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    function, streams = attributes.function, list(ranges)
    operands = [streams.pop(0) if constant is None else _range(constant) for constant in attributes.constants]
    interval = function.interval(operands)
    slopes: list[Fraction | None] = [None] * len(operands)
    if isinstance(function, Extreme | Magnitude) or function in (Simple("add"), Simple("sub")):
        slopes = [ONE] * len(operands)
    elif function == Simple("where"):
        slopes = [None, ONE, ONE]
    elif isinstance(function, Times):
        slopes = [Fraction(abs(function.factor))]
    elif isinstance(function, Multiplied):
        slopes = [Fraction(max(abs(other.lo), abs(other.hi))) + max(errors) for other in operands[::-1]]
    if attributes.wrap is not None:
        limits = attributes.wrap.interval
        if not (limits.lo <= interval.lo and interval.hi <= limits.hi):
            interval, slopes = limits, [None] * len(operands)
    return interval, [s for s, constant in zip(slopes, attributes.constants, strict=True) if constant is None]


def _range(constant: int | IntArray) -> Interval:
    return Interval(int(np.min(constant)), int(np.max(constant)))


def _sum_pool(attributes: SumPool2dAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    count, own = prod(attributes.window.kernel), ranges[0]
    if any(attributes.window.pads):
        own = own.hull(Interval(attributes.pad_value, attributes.pad_value))
    return own.times(Interval(count, count)), (Fraction(count),)


def _weighted(weights: IntArray, own: Interval) -> Ruled:
    """Return the bound of sums with the weights of each row."""
    rows = weights.reshape(-1, weights.shape[-1])
    if max(int(rows.max()), -int(rows.min())) * rows.shape[1] > _LONGEST_SUM:
        rows = rows.astype(object)
    # A hundred million weights have no copies here.
    above, below = (rows.sum(axis=1, where=of, initial=0).astype(object) for of in (rows > 0, rows < 0))
    ends = [int(end) for end in (*(above * own.lo + below * own.hi), *(above * own.hi + below * own.lo))]
    return Interval.around(ends), (Fraction(int(max(above - below))),)


def _dense(attributes: DenseAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    if attributes.binary:
        return Interval(0, attributes.weights.shape[-1]), (None,)
    return _weighted(attributes.weights, ranges[0])


def _conv(attributes: Conv2dAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    weights = attributes.weights.reshape(len(attributes.weights), -1)
    if attributes.binary:
        return Interval(0, weights.shape[1]), (None,)
    own = ranges[0]
    if any(attributes.pads):
        own = own.hull(Interval(attributes.pad_value, attributes.pad_value))
    return _weighted(weights, own.plus(-attributes.pad_value) if attributes.centred else own)


def _interpolate(attributes: InterpolateAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    return _weighted(attributes.weights, ranges[0])


def _pixel_product(attributes: PixelProductAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    factors = _range(attributes.factors)
    return ranges[0].times(factors), (Fraction(max(abs(factors.lo), abs(factors.hi))),)


def _requantize(attributes: RequantizeAttributes, ranges: Sequence[Interval], errors: Sequence[Fraction]) -> Ruled:
    ends = [_levels(stages[-1]) for stages in {id(stages): stages for stages in attributes.stages}.values()]
    return Interval.hull_of(ends), (None,)


def _levels(stage: Stage) -> Interval:
    if isinstance(stage, QuantizerStage):
        return Interval(stage.low, stage.high)
    assert isinstance(stage, StepStage)
    return Interval(stage.function.low, stage.function.high)


_RULES: dict[type[Attributes], Rule] = {
    ConcatAttributes: _concat,
    Conv2dAttributes: _conv,
    DenseAttributes: _dense,
    ElementwiseAttributes: _elementwise,
    InterpolateAttributes: _interpolate,
    MatrixProductAttributes: _matrix_product,
    MaxPool2dAttributes: _same,
    PixelProductAttributes: _pixel_product,
    ProductAttributes: _product,
    ReindexAttributes: _reindex,
    RequantizeAttributes: _requantize,
    ReshapeAttributes: _same,
    ScaledAddAttributes: _scaled_add,
    SumPool2dAttributes: _sum_pool,
    TransposeAttributes: _same,
}
"""An interval of the result, and its slopes; ``ranges``, ``errors``: of the inputs."""

