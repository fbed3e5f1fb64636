"""Requantization by constants: sums of shifted inputs, an addition, a shift, saturation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.adder_network import AdderNetwork
from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.arithmetic.wide_product import shifted_sum
from hdl_lib.blocks import less
from hdl_lib.memories.storage import check_depth
from hdl_lib.requantizers.shift_and_clamp import ShiftRounding, check_clamp, checked_rounding
from hdl_lib.streams.output_queue import OutputQueue

FEW_BITS = 3  # which a look-up table of four inputs takes beside a bit of the result


@dataclass(frozen=True)
class ConstantLane:
    """The function of one lane: the sum of a product and a constant, and the limits of its result.

    ``product``: the interval of ``product >> distance``, which loses no set bit, or None for a product of 0;
    ``negative``: it is subtracted. The others are as in :class:`ConstantRequantizer`.
    """

    product: tuple[int, int] | None
    distance: int
    negative: bool
    addend: int
    shift: int
    low: int
    high: int
    rounding: ShiftRounding

    def sum_interval(self) -> tuple[int, int]:
        """Return the interval of the sum, rounding included."""
        low, high = (0, 0) if self.product is None else (end << self.distance for end in self.product)
        if self.negative:
            low, high = -high, -low
        return low + self.offset(), high + self.offset()

    def carry_bits(self) -> int:
        """Return the bits of the sum's carry chain: those of the result without those that bypass it."""
        upper = self.offset() >> self.distance
        if self.product is None or (not upper and not self.negative):
            return 0
        passing = self.distance if self.negative else self.distance + _zeros(upper)
        return max(0, shape_of(*self.sum_interval()).width - passing)

    def offset(self) -> int:
        """Return the constant: the addend plus the rounding constant."""
        half = 1 << self.shift >> 1
        constants = {ShiftRounding.FLOOR: 0, ShiftRounding.HALF_EVEN: half, ShiftRounding.HALF_ODD: half - 1}
        return self.addend + constants[self.rounding]

    def limits(self) -> tuple[int | None, int | None]:
        """Return the bounds of shifted sums below and above which they are clamped; None if never."""
        least, greatest = (end >> self.shift for end in self.sum_interval())
        # A tie moves a quotient of the other parity by one: beyond a limit of that parity.
        low = self.low + (self.rounding == ShiftRounding.HALF_EVEN and self.low & 1)
        high = self.high - (self.rounding == ShiftRounding.HALF_ODD and not self.high & 1)
        return low if least < low else None, high if greatest > high else None

    def quotient_bits(self) -> int:
        """Return the bits of the shifted sum."""
        return max(shape_of(*self.sum_interval()).width, self.shift + 1) - self.shift

    def limited_at_once(self) -> bool:
        """Tell whether so few upper bits of the sum decide the clamping that each bit of the result is a function of
        one bit of the sum and these."""
        low, high = self.limits()
        least, _ = self.sum_interval()
        upper = self.quotient_bits()
        first = upper - (least < 0)  # of the bits that are looked at
        for limit in (high, None if low is None or low >= 0 else ~low):
            if limit is not None:
                if limit < 0 or limit & (limit + 1):
                    return False
                first = min(first, limit.bit_length())
        return (low is None or low <= 0) and upper - first <= FEW_BITS

    def result_shape(self) -> Shape:
        """Return the narrowest shape of the results."""
        low, high = (end >> self.shift for end in self.sum_interval())
        low -= self.rounding == ShiftRounding.HALF_EVEN and low & 1
        high += self.rounding == ShiftRounding.HALF_ODD and not high & 1
        return shape_of(*(min(max(end, self.low), self.high) for end in (low, high)))


class ConstantRequantizer(wiring.Component):
    """``y = clamp((multiplier * x + addend) >> shift, low, high)`` with constants for each lane, without multipliers.

    The same function as :class:`hdl_lib.requantizers.requantize_mas.MultiplyAddShift`, exact for all inputs within the
    network's intervals. Rounding to nearest takes no adder of its own: half a unit is part of the addend (less one for
    ties to odd), and in a tie, which shows in the bits shifted out, the last bit is made even or odd.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    products: the network of the multipliers' magnitudes times ``x``: its k-th input and output are lane k's.
    negative: for each lane, whether its multiplier is negative.
    addends: one per lane.
    shift: bits, at least 0; at least 1 if ``rounding`` is not "floor".
    low, high: the limits of the results, values of ``output_shape``.
    rounding: "floor", "half_even" or "half_odd".
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.
    held: False for a core without registers in front of its queue, whose reader and whose source have some.

    Members
    -------
    i: In(stream). Elements of ``input_shape``, one per lane.
    o: Out(stream). Elements of ``output_shape``.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; ``latency`` cycles later ``o.valid``. Stages:
    input, those of the network, sum, result, output queue; without ``held`` only the last. Initiation interval 1 cycle
    per beat. Under backpressure no step begins; those begun continue.

    Ordering
    --------
    Beats leave in the order they came.
    """

    def __init__(
        self,
        input_shape: Shape,
        output_shape: Shape,
        products: AdderNetwork,
        negative: Sequence[bool],
        addends: Sequence[int],
        *,
        shift: int,
        low: int,
        high: int,
        depth: int,
        rounding: str = ShiftRounding.FLOOR,
        held: bool = True,
    ) -> None:
        self.input_shape = Shape.cast(input_shape)
        self.output_shape = Shape.cast(output_shape)
        self.products = products
        self.negative = tuple(negative)
        self.addends = tuple(addends)
        self.shift = shift
        self.low = low
        self.high = high
        self.depth = depth
        self.held = held
        if not held and products.stages:
            raise ValueError(f"held must be True for products of {products.stages} stages, which have registers")
        self.rounding = checked_rounding(rounding, shift)
        check_depth(depth, least=0)
        lanes = len(self.addends)
        there = len(products.inputs), len(products.outputs), len(self.negative)
        if not lanes or there != (lanes, lanes, lanes):
            raise ValueError(
                f"there must be an input and an output of products and a sign for each addend, {lanes} and at least "
                f"1, not {there[0]}, {there[1]} and {there[2]}"
            )
        check_clamp(low, high, self.output_shape)
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(self.input_shape, lanes))),
                "o": Out(stream.Signature(data.ArrayLayout(self.output_shape, lanes))),
            }
        )

    @staticmethod
    def latency_of(stages: int, *, held: bool = True) -> int:
        """Return the cycles from a step to ``o.valid`` for products of ``stages``."""
        return 4 + stages if held else 1

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.products.stages, held=self.held)

    @cached_property
    def lanes(self) -> list[ConstantLane]:
        """Return every lane's sum and limits."""
        ends = [None if term is None else self.products.intervals[term] for term, _ in self.products.outputs]
        return [
            ConstantLane(product, distance, negative, addend, self.shift, self.low, self.high, self.rounding)
            for product, (_, distance), negative, addend in zip(
                ends, self.products.outputs, self.negative, self.addends, strict=True
            )
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shapes = [lane.result_shape() for lane in self.lanes]
        m.submodules.queue = queue = OutputQueue(Shape(sum(shape.width for shape in shapes)), self.depth)
        arrived = Signal(self.i.payload.shape(), reset_less=True)
        domain = self._domain(m)
        domain += arrived.eq(self.i.payload)
        queue.issue(m, self.i, self.latency - 1)
        m.d.comb += [self.o.valid.eq(queue.o.valid), queue.o.ready.eq(self.o.ready)]
        products = self.products.build(m, "term", [arrived[lane] for lane in range(len(shapes))])
        first = 0
        for lane, shape in enumerate(shapes):
            total = self._sum(m, lane, products[lane])
            bits = slice(first, first + shape.width)
            first += shape.width
            result = self._result(m, lane, total)
            held = queue.o.payload[bits]
            m.d.comb += [
                queue.payload[bits].eq(result),
                self.o.payload[lane].eq(held.as_signed() if shape.signed else held),
            ]
        return m

    def _sum(self, m: Module, lane: int, product: Value) -> Value:
        """Return the product plus the constant, in a register; bits that meet zeros bypass the adder."""
        term, distance = self.products.outputs[lane]
        offset = self.lanes[lane].offset()
        value: Value = Const(offset)
        if term is not None:
            rest = offset >> distance
            if self.negative[lane]:
                upper = rest - product
            elif rest:
                zeros = _zeros(rest)
                upper = shifted_sum(product, Const(rest >> zeros), zeros)
            else:
                upper = product
            value = Cat(Const(offset & ((1 << distance) - 1), distance), upper)
            value = value.as_signed() if upper.shape().signed else value
        # Kept without a register: synthesis would take it for a part of the sums in front of it.
        kept = {} if self.held else {"keep": 1}
        total = Signal(
            shape_of(*self.lanes[lane].sum_interval()), name=f"sum_{lane}", reset_less=True, attrs=kept
        )
        domain = self._domain(m)
        domain += total.eq(value)
        return total

    def _domain(self, m: Module) -> Any:
        """Return where registers are, if there are some."""
        return m.d.sync if self.held else m.d.comb

    def _result(self, m: Module, lane: int, total: Value) -> Value:
        """Return the shifted sum, with ties to even or odd, clamped.

        If a few upper bits decide the clamping, the result is in a register. Otherwise each bit would be a function of
        all bits of the sum: comparisons and low bits are in registers, the choice is behind them. (Without ``held``,
        nothing is in a register.)
        """
        # Wide enough that the bits of the remainder and the last one of the quotient are there.
        wide = Signal(Shape(max(len(total), self.shift + 1), total.shape().signed), name=f"total_{lane}")
        m.d.comb += wide.eq(total)
        quotient, rest = wide.shift_right(self.shift), wide[: self.shift]
        value: Value = quotient
        if self.rounding != ShiftRounding.FLOOR:
            last = quotient[0] & rest.any() if self.rounding == ShiftRounding.HALF_EVEN else quotient[0] | rest.all()
            value = Cat(last, quotient[1:])
            value = value.as_signed() if quotient.shape().signed else value
        low, high = self.lanes[lane].limits()
        at_once = self.lanes[lane].limited_at_once()
        register = Signal(self.lanes[lane].result_shape(), name=f"result_{lane}", reset_less=True)
        result: Value = value if at_once else register
        clocked = self._domain(m)
        domain = m.d.comb if at_once else clocked
        for name, limit, beyond in (("above", high, _above), ("below", low, _below)):
            if limit is not None:
                flag = Signal(name=f"{name}_{lane}", reset_less=True)
                domain += flag.eq(beyond(quotient, limit))
                result = Mux(flag, self.high if name == "above" else self.low, result)
        clocked += register.eq(result if at_once else value)
        return register if at_once else result


def _zeros(number: int) -> int:
    """Return the trailing zeros of a number other than 0."""
    return (number & -number).bit_length() - 1


def _above(value: Value, limit: int) -> Value:
    """Return ``value > limit``: by the upper bits if the limit is one below a power of two."""
    if limit >= 0 and limit & (limit + 1) == 0:
        upper = value[limit.bit_length() : len(value) - value.shape().signed]
        return upper.any() & ~value[-1] if value.shape().signed else upper.any()
    return less(limit, value)


def _below(value: Value, limit: int) -> Value:
    """Return ``value < limit``: by the upper bits if the limit is 0 or minus a power of two."""
    if not value.shape().signed:
        return less(value, limit)
    if limit <= 0 and -limit & (-limit - 1) == 0:
        return value[-1] & ~value[(-limit).bit_length() - 1 if limit else 0 : -1].all() if limit else value[-1]
    return less(value, limit)
