"""Requantization by piecewise quadratics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value

from hdl_lib.arithmetic.multiplier import FORMS, Multiplier, ProductForm, interval
from hdl_lib.blocks import delayed, less
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.requantizers.per_channel import PerChannel

TO_WORD = 6
"""Cycles from a step to its segment's word: input, comparisons, address, table, its output register and one more, since
words go to multiplier blocks."""


@dataclass(frozen=True)
class Coefficients:
    """The shapes of what :class:`QuadraticRequantizer` computes with, each of at least 1 bit: the fields of a word,
    ``constant`` lowest, then ``slope``, then ``curvature``; and ``moved``, the slope at an input, modulo
    ``2**moved.width``. ``offset_bits``: of an input's place in its segment, at least 2."""

    constant: Shape
    slope: Shape
    curvature: Shape
    moved: Shape
    offset_bits: int

    @property
    def width(self) -> int:
        """Return the bits of a word."""
        return sum(shape.width for shape in (self.constant, self.slope, self.curvature))

    def multipliers(self, form: ProductForm, part: int | None) -> tuple[Multiplier, Multiplier]:
        """Return those of curvature and of slope, by the place."""
        place = Shape(self.offset_bits, signed=True)
        return Multiplier(self.curvature, place, form, part), Multiplier(self.moved, place, form, part)


class QuadraticRequantizer(PerChannel):
    """``y = (constant + (t * (slope + (curvature * t >> k - 1)) >> k - 1)) >> shift``, with the coefficients of the
    segment in which ``x`` lies, one function for all channels.

    ``x - first`` is ``(segment - 1) * 2**k + t + 2**(k - 1)``, ``k`` the offset bits. For ``x`` below ``first`` it is
    the least ``t`` of segment 0, above ``last`` that of the last segment, which no other input has.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    lanes: elements per beat.
    first, last: the inputs of segments between the first one and the last one; ``last`` is a value of ``input_shape``,
        ``first`` one or less.
    coefficients: see :class:`Coefficients`.
    shift: bits of the fraction, at least 0. Results are modulo ``2**output_shape.width``.
    tables: one for each lane, a word for each segment.
    multiplier: "dsp" or "lut", part: see :mod:`hdl_lib.arithmetic.multiplier`.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). Elements of ``input_shape``.
    o: Out(stream). Elements of ``output_shape``.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; :meth:`latency_of` cycles later ``o.valid``.
    Stages: :data:`TO_WORD`, a product, a sum, a product, a sum, output queue. Initiation interval 1 cycle per beat.
    Under backpressure no step begins; those begun continue.

    Ordering
    --------
    Beats leave in the order they came.
    """

    def __init__(
        self,
        input_shape: Shape,
        output_shape: Shape,
        *,
        lanes: int,
        first: int,
        last: int,
        coefficients: Coefficients,
        shift: int,
        tables: Sequence[Table],
        multiplier: ProductForm,
        depth: int,
        part: int | None = None,
    ) -> None:
        super().__init__(input_shape, output_shape, lanes=lanes, channels=lanes, depth=depth)
        self.first, self.last = first, last
        self.coefficients = coefficients
        self.shift = shift
        self.tables = tuple(tables)
        self.multiplier = multiplier
        self.part = part
        low, high = interval(self.input_shape)
        if not (low <= last <= high and first <= last):
            raise ValueError(
                f"last must be in {low}..{high}, the range of {self.input_shape}, and first at most last, "
                f"not {last} and {first}"
            )
        if multiplier not in FORMS:
            raise ValueError(f"multiplier must be one of {', '.join(FORMS)}, not {multiplier!r}")
        if len(self.tables) != lanes:
            raise ValueError(f"tables must be {lanes}, one for each lane, not {len(self.tables)}")
        segments = ((last - first) >> coefficients.offset_bits) + 3
        for lane, table in enumerate(self.tables):
            if (table.depth, table.width) != (segments, coefficients.width):
                raise ValueError(
                    f"table {lane} must have {segments} words of {coefficients.width} bits, "
                    f"not {table.depth} of {table.width}"
                )

    @staticmethod
    def latency_of(coefficients: Coefficients, multiplier: ProductForm, part: int | None = None) -> int:
        """Return the cycles from a step to ``o.valid``."""
        products = coefficients.multipliers(multiplier, part)
        return TO_WORD + sum(each.operand_latency + each.latency + 1 for each in products) + 1

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.coefficients, self.multiplier, self.part)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue, _ = self._issue(m)
        arrived = Signal(self.i.payload.shape(), reset_less=True)
        m.d.sync += arrived.eq(self.i.payload)
        for lane in range(self.lanes):
            m.d.comb += queue.payload[lane].eq(self._result(m, lane, arrived[lane]))
        return m

    def _result(self, m: Module, lane: int, x: Value) -> Value:
        shapes, half = self.coefficients, self.coefficients.offset_bits - 1
        offset = self._offset(m, lane, x)
        m.submodules[f"table_{lane}"] = rom = Rom.of_table(self.tables[lane], output_register=True)
        m.d.comb += rom.addr.eq(offset[half + 1 :])
        place = Cat(offset[:half], ~offset[half]).as_signed()
        place = delayed(m, f"place_{lane}", place, rom.latency + 1, reset=False)
        word = delayed(m, f"word_{lane}", rom.data, 1, reset=False)
        fields, start = [], 0
        for shape in (shapes.constant, shapes.slope, shapes.curvature):
            field = word[start : start + shape.width]
            fields.append(field.as_signed() if shape.signed else field)
            start += shape.width
        constant, slope, factor = fields
        total = Shape(self.output_shape.width + self.shift)
        names, multipliers = ("moved", "total"), shapes.multipliers(self.multiplier, self.part)
        cycles = 0
        for name, multiplier, addend, shape in zip(
            names, multipliers, (slope, constant), (shapes.moved, total), strict=True
        ):
            operand = multiplier.operand(m, f"{name}_{lane}", factor)
            ahead = multiplier.operand_latency - multiplier.weight_lead
            weight = delayed(m, f"{name}_{lane}_place", place, ahead, reset=False)
            product = Value.cast(multiplier.product(m, f"{name}_{lane}_product", operand, weight).value)
            taken = multiplier.operand_latency + multiplier.latency
            cycles += taken
            addend = delayed(m, f"{name}_{lane}_addend", addend, cycles, reset=False)
            factor = Signal(shape, name=f"{name}_{lane}", reset_less=True)
            m.d.sync += factor.eq(addend + product.shift_right(half))
            place = delayed(m, f"{name}_{lane}_next", place, taken + 1, reset=False)
            cycles += 1
        return factor[self.shift :]

    def _offset(self, m: Module, lane: int, x: Value) -> Signal:
        """Return the place of ``x`` in all segments together, in a register two cycles later."""
        low, high = interval(self.input_shape)
        bits = self.coefficients.offset_bits
        places = range((self.tables[lane].depth - 1 << bits) + 1)
        offset, within = (Signal(places, name=f"{n}_{lane}", reset_less=True) for n in ("offset", "within"))
        m.d.sync += within.eq(x - (self.first - (1 << bits)))
        limited: Value = within
        for name, place, beyond, possible in (
            ("below", 0, less(x, self.first), low < self.first),
            ("above", places[-1], less(self.last, x), high > self.last),
        ):
            if possible:
                flag = Signal(name=f"{name}_{lane}", reset_less=True)
                m.d.sync += flag.eq(beyond)
                limited = Mux(flag, place, limited)
        m.d.sync += offset.eq(limited)
        return offset
