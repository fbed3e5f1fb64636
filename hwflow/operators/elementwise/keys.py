"""Sums whose terms have no useful common scale, represented by keys: integers in the order of the sums.

A convolution's sums with a float bias, or with the elements of another stream, have a common unit that is, say, 2**40
times smaller than the sums' scale: exact integers would be that much longer. Keys
(:mod:`hwflow.numerics.functions.sum_keys`) are only as long as the number of distinct sums requires. This module
derives the keys of elements such that their sums over a window are keys of the sums. The limits of a Relu or Clip
become limits of keys, because an element at a limit is one more term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.views import Functions, Reals, Sum, as_array, compact, fractions
from hwflow.ir.graph import Fractions, IntArray
from hwflow.ir.integer_functions import MAXIMUM, MINIMUM, Simple
from hwflow.ir.node_attributes import ScaledAddAttributes
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import Affine, Clip, Relu
from hwflow.numerics.functions.sum_keys import SumKeys, find_keys
from hwflow.numerics.requantizers.staircase import LIMIT
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.alignment import multiples
from hwflow.operators.elementwise.clamped import MOST_FACTOR, applied, broadcast_constant, factor_of, limits_of
from hwflow.operators.elementwise.lattice import MAX_POINTS
from hwflow.operators.moves.channels import Channels

Limit = Fraction | float  # the only floats are -inf and inf

_ZERO = Fraction(0)


@dataclass(frozen=True)
class _Elements:
    """The elements of one stream without functions, or of the sum of two, plus ``addend``, limited to ``low`` ..
    ``high`` (these three broadcast over a frame)."""

    streams: tuple[Reals, ...]
    addend: Fractions
    low: Fractions
    high: Fractions


def summable(state: Lowering, node: OnnxNode, view: Reals, count: int, *, padded: bool) -> Reals | None:
    """Return keys of the elements of ``view`` whose sums over ``count`` elements are keys of the sums; the functions of
    the result map a sum's key to its real. None where the integers of ``view`` suffice, or keys do not apply.

    ``padded``: sums may have fewer elements; a key of 0 then represents the real 0.
    """
    if not _needs_keys(state, view, count, padded):
        return None
    elements = _elements(state, view)
    if elements is None:
        return None
    result = _keyed(state, node, view, elements, count, padded)
    if result is None:
        raise refuse(
            node, "sum-keys",
            f"the scales, bias and limits of the summands of {node.op_type} must have a common divisor, or few enough "
            f"distinct sums to sort, not sums over {count} elements of unrelated scales",
            f"insert QuantizeLinear and DequantizeLinear before {show(node.name)}",
        )
    return result


def keyed_sum(
    state: Lowering, node: OnnxNode, left: Reals, right: Reals, multipliers: Sequence[Fractions]
) -> Reals | None:
    """Return the sum of two streams without functions by keys; None where its integers, those of the streams times
    ``multipliers``, are short enough or of unknown magnitude, or no keys exist."""
    reach = reach_of_sum(state, left, right, multipliers)
    if reach is None or reach <= LIMIT:
        return None
    streams = _longer_first(state, left, right)
    elements = _Elements(streams, fractions(0), as_array(-inf), as_array(inf))
    result = _keyed(state, node, left, elements, 1, padded=False)
    if result is None:
        return None
    state.sums[result.value] = Sum(streams, None, None)
    return replace(result, after=(*left.after, node.name))


def remember_sum(
    state: Lowering, total: Reals, left: Reals, right: Reals, multipliers: Sequence[Fractions]
) -> None:
    """Record that ``total`` is the exact sum of two streams, and the bound of its integers."""
    reach = reach_of_sum(state, left, right, multipliers)
    if reach is not None:
        state.reach[total.value] = reach
        state.sums[total.value] = Sum(_longer_first(state, left, right), total.scale, total.zero_point)


def times(view: Reals, factor: Fraction) -> Reals:
    """Return ``factor`` times ``view``, which has no functions or those of :func:`summable`."""
    if not view.functions:
        return replace(view, scale=as_array(view.scale * factor))
    return replace(view, functions=(*view.functions, as_array(Affine(factor, _ZERO))))


def reach_of_sum(
    state: Lowering, left: Reals, right: Reals, multipliers: Sequence[Fractions]
) -> int | None:
    """Return a bound on the magnitude of the sum of both integers times their multipliers; None if unknown."""
    reaches = [_reach(state, view) for view in (left, right)]
    greatest = [max(abs(int(m)) for m in of.reshape(-1)) for of in multipliers]
    return sum(m * r for m, r in zip(greatest, reaches, strict=True) if r is not None) if None not in reaches else None


def _reach(state: Lowering, view: Reals) -> int | None:
    """Return a bound on the magnitude of the integers; None if unknown."""
    if view.low is not None and view.high is not None:
        return max(abs(view.low), abs(view.high))
    return state.reach.get(view.value)


def _longer_first(state: Lowering, left: Reals, right: Reals) -> tuple[Reals, Reals]:
    return (left, right) if (_reach(state, left) or 0) >= (_reach(state, right) or 0) else (right, left)


def _needs_keys(state: Lowering, view: Reals, count: int, padded: bool) -> bool:
    """Tell whether sums of the integers are too long, or limits of functions or padding fall between two integers or
    vary."""
    if view.low is not None and view.high is not None and view.high - view.low < MAX_POINTS:
        return False  # functions are tabulated
    total = state.sums.get(view.value)
    if total is not None and total.scale is None:
        return True
    reach = count * state.reach.get(view.value, 0)
    if not view.functions:
        return reach > LIMIT or (padded and any(z.denominator > 1 for z in view.zero_point.reshape(-1)))
    limits = limits_of(view)
    if limits is None:
        return True  # if keys exist at all
    factor = factor_of(limits)
    return factor > MOST_FACTOR or factor * reach > LIMIT


def _elements(state: Lowering, view: Reals) -> _Elements | None:
    """Decompose the elements of ``view``; None where functions other than sums, products with constants and limits
    occur."""
    total, functions = state.sums.get(view.value), view.functions
    streams: tuple[Reals, ...]
    if total is None:
        streams, addend = (replace(view, functions=()),), fractions(0)
    elif total.scale is None:
        streams, addend = total.streams, fractions(0)
        functions = functions[2:]  # the meaning of its keys
    else:
        streams = tuple(replace(s, scale=as_array(s.scale * view.scale / total.scale)) for s in total.streams)
        addend = as_array(view.scale * (as_array(total.zero_point) - view.zero_point))
    while functions and all(isinstance(f, Affine) for f in functions[0].reshape(-1)):
        factor, more = _lines(functions[0])
        streams = tuple(replace(s, scale=as_array(s.scale * factor)) for s in streams)
        addend, functions = as_array(addend * factor + more), functions[1:]
    if not all(f is None or isinstance(f, Relu | Clip) for step in functions for f in step.reshape(-1)):
        return None
    if any(s == 0 for stream in streams for s in stream.scale.reshape(-1)):
        return None
    low, high = as_array(-inf), as_array(inf)
    for step in functions:
        low, high = (as_array(np.frompyfunc(_limited, 2, 1)(step, end)) for end in (low, high))
    return _Elements(streams, addend, low, high)


def _lines(functions: Functions) -> tuple[Fractions, Fractions]:
    """Return multipliers and addends of affine functions."""
    pairs = np.frompyfunc(lambda f: (Fraction(f.multiplier), Fraction(f.addend)), 1, 2)(functions)
    return as_array(pairs[0]), as_array(pairs[1])


def _limited(function: Elementwise | None, x: Limit) -> Limit:
    if isinstance(function, Relu):
        return max(x, _ZERO)
    if isinstance(function, Clip):
        x = x if function.low is None else max(x, Fraction(function.low))
        return x if function.high is None else min(x, Fraction(function.high))
    return x


class _Key(NamedTuple):
    """The key of an element of one or two streams: ``factor`` and ``weight`` times their integers, limited to ``low``
    .. ``high``, plus ``offset``. ``meaning``, then ``line``: map a sum of keys to its real."""

    factor: int
    weight: int
    offset: int
    low: int | None
    high: int | None
    meaning: SumKeys
    line: Affine


def _keyed(
    state: Lowering, node: OnnxNode, view: Reals, elements: _Elements, count: int, padded: bool
) -> Reals | None:
    """Return keys of the elements; None where no keys exist."""
    first, second = elements.streams[0], elements.streams[-1] if len(elements.streams) > 1 else None
    low, high = _range(state, second) if second is not None else (0, 0)
    if low is None or high is None:
        return None
    other = (second.scale, second.zero_point) if second is not None else (fractions(0), fractions(0))
    parameters = (first.scale, first.zero_point, *other, elements.addend, elements.low, elements.high)
    known: dict[tuple[Any, ...], _Key | None] = {}

    def one(*parameters: Any) -> _Key | None:
        if parameters not in known:
            known[parameters] = _key(*parameters, interval=(low, high), count=count, padded=padded)
        return known[parameters]

    keys = _objects(one, *parameters)
    if any(key is None for key in keys.reshape(-1)):
        return None
    factors, weights, offsets, lows, highs, meaning, line = (_objects(itemgetter(place), keys) for place in range(7))
    factors, weights, offsets = compact(factors), compact(weights), compact(offsets)
    if second is None:
        whole = np.array(factors.tolist(), dtype=np.int64)
        value = multiples(state, node, replace(first, nodes=view.nodes), whole, np.zeros_like(whole)).value
    else:
        channels = Channels(view.shape, factors, weights)
        columns = tuple(tuple(int(number) for number in channels.column(v)) for v in (factors, weights))
        columns = tuple(column[:1] if len(set(column)) == 1 else column for column in columns)
        before = tuple(dict.fromkeys((*view.nodes, *first.nodes, *second.nodes)))
        value = channels.add(
            state, node, [first.value, second.value], lambda axis: ScaledAddAttributes(axis, columns),
            before, origin="",
        )
    reaches = [_reach(state, stream) for stream in elements.streams]
    beyond = LIMIT if None in reaches else sum(
        int(max(abs(v.reshape(-1)))) * reach for v, reach in zip((factors, weights), reaches, strict=False) if reach
    )
    for function, limits, none in ((MAXIMUM, lows, -beyond), (MINIMUM, highs, beyond)):
        if any(v is not None for v in limits.reshape(-1)):
            ends = compact(_objects(lambda v, none=none: none if v is None else v, limits))
            value = applied(state, node, value, function, (None, _constant(ends, view.shape)), view.nodes)
    if padded and any(v for v in offsets.reshape(-1)):
        value = applied(state, node, value, Simple("add"), (None, _constant(offsets, view.shape)), view.nodes)
        offsets = fractions(0)
    return Reals(
        value, view.shape, fractions(1), as_array(-fractions(offsets)), view.anchor, (meaning, line), after=view.after
    )


def _objects(function: Callable[..., Any], *arrays: Fractions) -> Fractions:
    """Apply ``function`` elementwise to arrays that broadcast."""
    return as_array(np.frompyfunc(function, len(arrays), 1)(*arrays))


def _range(state: Lowering, view: Reals) -> tuple[int, int] | tuple[None, None]:
    if view.low is not None and view.high is not None:
        return view.low, view.high
    reach = state.reach.get(view.value)
    return (None, None) if reach is None else (-reach, reach)


def _constant(values: Fractions, shape: tuple[int, ...]) -> int | IntArray:
    return broadcast_constant(np.array(values.tolist(), dtype=np.int64), shape)


def _key(
    scale: Fraction, zero_point: Fraction, other: Fraction, other_zero_point: Fraction, addend: Fraction, least: Limit,
    greatest: Limit, *, interval: tuple[int, int], count: int, padded: bool,
) -> _Key | None:
    """Find a key. In units of the first stream's scale its terms are that stream's integer, ``other / scale`` times the
    second one's (of ``interval``), and a constant, which is added to the sum unless padding makes sums of fewer
    elements. Limits are further terms, for an element is at one of them or between."""
    middle = round(other_zero_point)
    low, high = (v - middle for v in interval)
    ratio = other / scale
    constant = -zero_point - ratio * (other_zero_point - middle) + addend / scale
    within = Fraction(0) if padded else constant  # the origin of limits
    lower, upper = (None if isinstance(v, float) else v / scale - within for v in (least, greatest))
    if scale < 0:
        lower, upper = upper, lower
    terms = [(v, 0, count) for v in (lower, upper) if v is not None]
    if terms or padded:
        low, high = min(low, 0), max(high, 0)  # any number of elements may be at a limit
    terms.append((ratio, count * low, count * high))
    if padded:
        terms.append((constant, 0, count))
    keys = find_keys(terms)
    if keys is None:
        return None
    weight = round(keys.factor * ratio)
    offset = (round(keys.factor * constant) if padded else 0) - weight * middle
    lowest, highest = (None if v is None else round(keys.factor * v) - offset for v in (lower, upper))
    if max(abs(v or 0) for v in (weight, offset, lowest, highest)) > LIMIT:
        return None
    line = Affine(scale, _ZERO if padded else scale * constant * count)
    return _Key(keys.factor, weight, offset, lowest, highest, keys, line)
