"""Matrix products of approximated operands that are long: sums of products of their parts.

What a result has beyond :data:`LONGEST` bits is dropped: far below what approximations in front of it are off by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hwflow.frontend.context import Lowering
from hwflow.frontend.error_bounds import Bound, added, bound_of
from hwflow.ir.graph import Value
from hwflow.ir.integer_functions import Shifted, Simple
from hwflow.ir.node_attributes import ElementwiseAttributes, MatrixProductAttributes, ScaledAddAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.types import Interval, IntType

MOST_BITS = 32
"""Of an operand of one product: two multiplier blocks."""

PART = 17
"""Bits of a part of a longer operand: with a sign, those of a multiplier block."""

_EXACT = 62
"""Bits of the longest exact results."""

LONGEST = 56
"""Bits of results that would be longer than those."""


@dataclass(frozen=True)
class _Product:
    """A product is ``value`` times ``2**dropped``, which may be too small by less than ``lost`` of its units."""

    value: Value
    dropped: int = 0
    lost: Fraction = Fraction(0)


def product_in_parts(
    state: Lowering, node: OnnxNode, values: Sequence[Value], attributes: MatrixProductAttributes,
    before: tuple[str, ...],
) -> tuple[Value, int] | None:
    """Return a product of which an approximated operand has more than :data:`MOST_BITS` bits, or which would have more
    than 62, and how many of its bits are dropped; None where there is no such operand."""
    found = _in_parts(state, node, values, attributes, before)
    return None if found is None else (found.value, found.dropped)


def _in_parts(
    state: Lowering, node: OnnxNode, values: Sequence[Value], attributes: MatrixProductAttributes,
    before: tuple[str, ...],
) -> _Product | None:
    bounds = [state.bound(value) for value in values]
    whole = bound_of(attributes, bounds)
    if whole is None or whole.interval is None:
        return None
    size = IntType.holding(whole.interval).bits
    place = _longest(bounds, attributes, MOST_BITS if size <= _EXACT else PART)
    if place is None:
        return None
    high, low = (
        _product(state, node, [part if k == place else v for k, v in enumerate(values)], attributes)
        for part in _parts(state, node, values[place], before)
    )
    dropped = size - LONGEST if size > _EXACT else 0
    lost = Fraction(0)
    summands, factors = [], []
    for part, exponent in ((high, high.dropped + PART - dropped), (low, low.dropped - dropped)):
        lost += part.lost * Fraction(2) ** exponent
        value = part.value
        if exponent < 0:
            value = _shifted(state, node, value, -exponent)
            lost += 1
        summands.append(value)
        factors.append((1 << max(0, exponent),))
    slack = -(-lost.numerator // lost.denominator)
    interval = Interval((whole.interval.lo >> dropped) - slack, (whole.interval.hi >> dropped) + slack + bool(dropped))
    first = next(iter(bounds[place].errors))
    errors = added(whole.times(Fraction(1, 1 << dropped)), {first: lost} if lost else {})
    total = state.add(
        node, summands, ScaledAddAttributes(0, tuple(factors)), origin="", bound=Bound(interval, errors)
    )
    return _Product(total, dropped, lost)


def _longest(bounds: Sequence[Bound], attributes: MatrixProductAttributes, most: int) -> int | None:
    """Return the place of the longest approximated operand; None where none has more than ``most`` bits."""
    sizes = [
        IntType.holding(bound.interval).bits if bound.errors and bound.interval is not None and not offset else 0
        for bound, offset in zip(bounds, attributes.offsets, strict=True)
    ]
    return sizes.index(max(sizes)) if max(sizes) > most else None


def _product(
    state: Lowering, node: OnnxNode, values: Sequence[Value], attributes: MatrixProductAttributes
) -> _Product:
    return _in_parts(state, node, values, attributes, ()) or _Product(
        state.add(node, [*values], attributes, origin="")
    )


def _parts(state: Lowering, node: OnnxNode, value: Value, before: tuple[str, ...]) -> tuple[Value, Value]:
    """Return a value without its lowest :data:`PART` bits, and these."""
    bound = state.bound(value)
    assert bound.interval is not None
    ends = Bound(Interval(bound.interval.lo >> PART, bound.interval.hi >> PART), dict(bound.errors))
    attributes = ElementwiseAttributes(Simple("and"), (None, (1 << PART) - 1), None)
    low = state.add(node, [value], attributes, before, origin="", bound=Bound(Interval(0, (1 << PART) - 1)))
    return _shifted(state, node, value, PART, ends, before), low


def _shifted(
    state: Lowering, node: OnnxNode, value: Value, by: int, bound: Bound | None = None, before: tuple[str, ...] = ()
) -> Value:
    """Drop the lowest bits of a value."""
    if bound is None:
        interval = state.bound(value).interval
        assert interval is not None
        bound = Bound(Interval(interval.lo >> by, interval.hi >> by))
    attributes = ElementwiseAttributes(Shifted(left=False, bits=64), (None, by), None)
    return state.add(node, [value], attributes, before, origin="", bound=bound)
