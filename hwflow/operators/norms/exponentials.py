"""Exponentials of distances: of what lies below the greatest element of a row.

What is so far below that its exponential is less than a quarter of the result's unit is 0, so the argument is bounded.
A short one has a table. Of a longer one each digit has a table, and their results are multiplied: e^-(a + b) =
e^-a e^-b. A product of two fractions of many bits is made of products with parts of one, from the lowest on, each of
less than 62 bits.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from hwflow.display import show
from hwflow.frontend.context import Lowering, refuse, require_behind
from hwflow.frontend.error_bounds import Bound, added
from hwflow.frontend.views import Reals, fractions, uniform
from hwflow.ir.graph import IntArray, Value
from hwflow.ir.integer_functions import MINIMUM, Function, Shifted, Simple
from hwflow.ir.node_attributes import ElementwiseAttributes, ProductAttributes, RequantizeAttributes
from hwflow.numerics.functions.function import enclose
from hwflow.numerics.functions.smooth import Exp
from hwflow.numerics.interval import Interval as RealInterval
from hwflow.numerics.requantizers.stages import StepStage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.moves.channels import Channels
from hwflow.types import Interval

MOST_BITS = 50
"""The longest results: a product with a part of 11 bits is exact in 62."""

MOST_TABLE = 1 << 11
"""The longest table of whole distances: four block RAMs of 18 kbit, no more than the multiplier blocks of a product."""

DIGIT = 9
"""Bits of a digit: a table of 512 numbers of up to 36 bits is a block RAM of 18 kbit."""

_PRODUCT = 61  # bits of a product without its sign
_LN2 = Fraction(6931471806, 10**10)  # rounded up
_HALF, _QUARTER, _EIGHTH = Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)
_FAR = Fraction(1, 1 << 36)  # e^-60, in units of at most 50 bits


def exponentials(state: Lowering, node: OnnxNode, view: Reals, beyond: int | None = None) -> Reals:
    """Return the exponentials of the integers of ``view``, from 0 on with a negative scale and no zero point, some of
    them 0. From the integer ``beyond`` on they are 0."""
    require_behind(
        state, node, "quantized-result", f"the result of {node.op_type} must be quantized, not left in float",
        "leave it to the host, or quantize its result",
    )
    name = state.approximations.fresh(node.name)
    bits = min(state.precision.of(name), MOST_BITS)
    before = state.bound(view.value)
    assert before.interval is not None
    steepest = max(abs(s) for s in view.scale.reshape(-1))
    flattest = min(abs(s) for s in view.scale.reshape(-1))
    cut = -(-(bits + 2) * _LN2 // flattest)  # from here on less than a quarter of the unit
    own = _FAR
    last = before.interval.hi
    if beyond is not None and beyond <= cut:
        last = min(last, beyond)
    elif cut <= last:
        last, beyond, own = int(cut), int(cut), own + _QUARTER
    else:
        beyond = None
    distances = _Distances(state, node, view, bits)
    if last < MOST_TABLE:
        value = distances.table(last, beyond)
        own += _HALF
    else:
        if uniform(view.scale) is None:
            raise refuse(
                node, "scale-range", f"the input of {node.op_type} must have one scale, not one per channel",
                f"quantize it per tensor before {show(node.name)}",
            )
        value, more = distances.product(last, beyond)
        own += more
    errors = added(before.times(steepest * (1 << bits)), {name: own + _EIGHTH})
    interval = state.bound(value).interval
    assert interval is not None
    state.bounds[value] = Bound(interval, errors)
    state.facts.floors[value] = state.facts.zeros.get(view.value, ()), Fraction(1)
    after = tuple(dict.fromkeys((*view.after, node.name)))
    found = Reals(value, view.shape, fractions(Fraction(1, 1 << bits)), fractions(0), view.anchor, after=after)
    state.facts.powers[value] = found, replace(view, functions=())
    return found


class _Digit(NamedTuple):
    """Bits ``low`` to ``low + width - 1`` of a distance."""

    low: int
    width: int


class _Distances:
    """The integers of ``view``, whose exponentials get ``bits`` bits below the point."""

    def __init__(self, state: Lowering, node: OnnxNode, view: Reals, bits: int) -> None:
        self._state, self._node, self._view, self._bits = state, node, view, bits

    def table(self, last: int, beyond: int | None) -> Value:
        """Look up every integer up to ``last``."""
        view = self._view
        channels = Channels(view.shape, view.scale)
        column = channels.column(view.scale)
        value = self._limited(last, beyond, last)
        made = {
            scale: (_stage([0 if beyond == k else self._exponential(scale * k) for k in range(last + 1)]),)
            for scale in dict.fromkeys(column)
        }
        stages = tuple(made[scale] for scale in column)
        nodes: tuple[str, ...] = () if value is not view.value else view.nodes
        return channels.add(
            self._state, self._node, [self._exactly(value)], lambda axis: RequantizeAttributes(axis, stages), nodes,
            origin="",
        )

    def product(self, last: int, beyond: int | None) -> tuple[Value, Fraction]:
        """Multiply the exponentials of digits. Return the results and by how much, in units, they may be off."""
        scale = uniform(self._view.scale)
        assert scale is not None
        dropped = 0
        while -scale * (1 << dropped + 1) * (1 << self._bits + 1) <= 1:
            dropped += 1
        size = (last >> dropped).bit_length()
        count = max(2, -(-size // DIGIT))
        width = -(-size // count)
        lowest = [_Digit(dropped + k * width, width) for k in range(count - 1)]
        top = dropped + (count - 1) * width
        value = last if beyond is None else -(-last >> top) << top  # whose upper digit is that of no other
        distances = self._limited(last, beyond, value)
        error = _HALF + (_HALF if dropped else 0)
        greatest = (value if beyond is not None else last) >> top
        zero = greatest if beyond is not None else None
        table = [0 if k == zero else self._exponential(scale * (k << top)) for k in range(greatest + 1)]
        result = self._looked_up(self._shifted(distances, top), table)
        for digit in reversed(lowest):
            shifted = self._shifted(distances, digit.low) if digit.low else distances
            index = self._applied(Simple("and"), [shifted], (None, (1 << digit.width) - 1))
            table = [self._exponential(scale * (k << digit.low)) for k in range(1 << digit.width)]
            result, floors = self._multiplied(result, index, table)
            error += _HALF + floors
        return result, error

    def _multiplied(self, factor: Value, index: Value, table: list[int]) -> tuple[Value, Fraction]:
        """Multiply by the numbers of a table, in parts. Return also by how much the result may be too small, in units:
        each shift drops less than one of its own."""
        bits = self._bits
        count = 1
        while bits + -(-(bits + 1) // count) > _PRODUCT:
            count += 1
        width = -(-(bits + 1) // count)
        total: Value | None = None
        lost = Fraction(0)
        for part in range(count):
            numbers = [number >> part * width & (1 << width) - 1 for number in table]
            product = self._product(factor, self._looked_up(index, numbers))
            total = product if total is None else self._applied(Simple("add"), [product, total], (None, None))
            shift = width if part + 1 < count else bits - width * (count - 1)
            total = self._shifted(total, shift)
            lost = (lost + (1 - Fraction(1, 1 << shift)) * (1 << shift)) / (1 << shift)
        assert total is not None
        return total, lost

    def _exponential(self, exponent: Fraction) -> int:
        """Return the exponential of a number that is not positive, to the nearest."""
        found = enclose([Exp()], RealInterval.point(exponent), self._bits + 32)
        assert isinstance(found.lo, Fraction)
        return round(found.lo * (1 << self._bits))

    def _limited(self, last: int, beyond: int | None, instead: int) -> Value:
        """Return the distances, from ``beyond`` on (which is ``last``) ``instead``."""
        value = self._view.value
        if beyond is None:
            return value
        if instead == last:
            return self._applied(MINIMUM, [value], (None, last))
        near = self._applied(Simple("less"), [value], (None, beyond))
        return self._applied(Simple("where"), [near, value], (None, None, instead))

    def _looked_up(self, index: Value, numbers: list[int]) -> Value:
        return self._state.add(
            self._node, [self._exactly(index)], RequantizeAttributes(0, ((_stage(numbers),),)), origin=""
        )

    def _shifted(self, value: Value, by: int) -> Value:
        return self._applied(Shifted(left=False, bits=64), [value], (None, by))

    def _product(self, left: Value, right: Value) -> Value:
        return self._state.add(self._node, [left, right], ProductAttributes((0, 0)), origin="")

    def _applied(
        self, function: Function, values: list[Value], constants: tuple[int | IntArray | None, ...]
    ) -> Value:
        """Apply a function to integers as they are, whatever they approximate."""
        ranges = [self._state.bound(value).interval for value in values]
        streams = iter([r for r in ranges if r is not None])
        operands = [next(streams) if c is None else Interval(int(c), int(c)) for c in constants]
        return self._state.add(
            self._node, values, ElementwiseAttributes(function, constants, None), self._view.nodes, origin="",
            bound=Bound(function.interval(operands)),
        )

    def _exactly(self, value: Value) -> Value:
        """Return a value for whose integers, whatever they approximate, there is a table: its error is counted for
        the whole result."""
        bound = self._state.bound(value)
        if not bound.errors:
            return value
        assert bound.interval is not None
        return self._applied(MINIMUM, [value], (None, bound.interval.hi))


def _stage(numbers: list[int]) -> StepStage:
    return StepStage(StepFunction.of_table(0, numbers))
