"""Requantization as a multiplication, an addition and a shift."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value

from hdl_lib.arithmetic.adder_tree import Term, adder_tree, registered, shape_of, tree_levels
from hdl_lib.arithmetic.block_product import BLOCK_LATENCY, block_product
from hdl_lib.arithmetic.carried_sum import carried_sum
from hdl_lib.arithmetic.digit_product import Digits, DigitSum
from hdl_lib.arithmetic.multiplier import PART, interval
from hdl_lib.arithmetic.wide_product import Part, part_product, parts_of
from hdl_lib.blocks import ONE_TURN, Turns
from hdl_lib.memories.rom import Table, lies_in_block
from hdl_lib.requantizers.per_channel import PerChannel, limited
from hdl_lib.requantizers.shift_and_clamp import ShiftRounding, check_clamp, checked_rounding, quotient


def _is_shift(constant: int) -> bool:
    """Tell whether a product with ``constant`` needs no multiplier: 0, or plus or minus a power of two."""
    return abs(constant) & (abs(constant) - 1) == 0


def _shifted(x: Value, constant: int) -> Value:
    """Return ``constant * x`` for a constant that satisfies :func:`_is_shift`."""
    if constant == 0:
        return Const(0)
    value = x.shift_left(abs(constant).bit_length() - 1)
    return -value if constant < 0 else value


class MultiplyAddShift(PerChannel):
    """``y = clamp((multiplier * x + addend) >> shift, low, high)`` with a multiplier and an addend for each channel.

    The shift is arithmetic: it rounds down, or, with ``rounding``, to nearest with ties to even or to odd. Exact:
    nothing overflows for any input, multiplier and addend.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    lanes, channels: elements per beat and elements per pixel; ``blocks = ceil(channels / lanes)`` beats per pixel.
    multiplier_shape, addend_shape: of the parameters, integer shapes.
    shift: bits, at least 0; at least 1 if ``rounding`` is not "floor".
    rounding: "floor"; "half_even" or "half_odd": the quotient by ``2**shift`` is rounded to the nearest integer, ties
        to the even or the odd one, and then clamped.
    low, high: the results' limits, values of ``output_shape``.
    parameters: a word for each block, or a single one for all. For each lane, lane 0 in the least significant bits: the
        multiplier in the low bits, the addend above it. A single word given as a number becomes constants.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.
    part: bits without sign (one more with) that a multiplier block of the device takes: 17 for 18 by 18 bits with sign,
        15 for 16 by 16.
    digits: products are in look-up tables, and ``parameters`` has the multipliers as these digits encode them
        (:meth:`hdl_lib.arithmetic.digit_product.Digits.stored`); None: products are in multiplier blocks.

    Members
    -------
    i: In(stream). Elements of ``input_shape``.
    o: Out(stream). Elements of ``output_shape``; lanes beyond ``channels`` follow the table's fields for them.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; ``latency`` cycles later ``o.valid``. Stages:
    input, input again with the parameters, operands, three for products, one for each level of the sum, the rounded
    quotient unless ``rounding`` is "floor", limits, output queue. An operand too wide for a multiplier block is
    split into parts, and each product of two parts has its own block: see :meth:`latency_of` and
    :meth:`multipliers_of`. With ``digits`` there are no stages for operands, but one for each level of the sum of a
    product's rows. If the parameters come from a block RAM and feed multiplier blocks, they and the input have one more
    register. Initiation interval 1 cycle per beat. Under backpressure no step begins; those begun continue.

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
        channels: int,
        multiplier_shape: Shape,
        addend_shape: Shape,
        shift: int,
        low: int,
        high: int,
        parameters: Table,
        depth: int,
        rounding: str = ShiftRounding.FLOOR,
        part: int = PART,
        digits: Digits | None = None,
        turns: Turns = ONE_TURN,
    ) -> None:
        self.digits = digits
        self.multiplier_shape = Shape.cast(multiplier_shape)
        self.addend_shape = Shape.cast(addend_shape)
        self.shift = shift
        self.rounding = checked_rounding(rounding, shift)
        self.part = part
        self.low = low
        self.high = high
        self.parameters = parameters
        super().__init__(input_shape, output_shape, lanes=lanes, channels=channels, depth=depth, turns=turns)
        if part < 2:  # uncovered: a defect of ours
            raise ValueError(f"part must be at least 2 bits, not {part}")
        check_clamp(low, high, self.output_shape)
        for name, shape in (
            ("input_shape", self.input_shape),
            ("multiplier_shape", self.multiplier_shape),
            ("addend_shape", self.addend_shape),
        ):
            if shape.width < 1:
                raise ValueError(f"{name} must have at least 1 bit, not 0")
        self._check_table(
            parameters,
            lanes * (self._factor_bits + self.addend_shape.width),
            f"{lanes} lanes with a multiplier of {self._factor_bits} "
            f"and an addend of {self.addend_shape.width}",
        )

    @staticmethod
    def latency_of(
        input_shape: Shape, multiplier_shape: Shape, rounding: str = ShiftRounding.FLOOR, part: int = PART,
        digits: Digits | None = None, table: tuple[int, int] = (1, 1),
    ) -> int:
        """Return the cycles from a step to ``o.valid``: 9 if both operands fit a multiplier block (``part`` bits, or
        one more with sign), 10 if one of them takes two, or both do, and one more if the parameters, in a ``table`` of
        (bits per word, words), lie in a block RAM; with ``digits`` 5 and the levels of a tree over them, at least one;
        one more if ``rounding`` is not "floor"."""
        if digits is not None:
            return 5 + max(1, tree_levels(digits.count)) + (rounding != ShiftRounding.FLOOR)
        xs, multipliers = (parts_of(Shape.cast(shape), part) for shape in (input_shape, multiplier_shape))
        terms = 1 + len(MultiplyAddShift._sums(xs, multipliers))
        near = MultiplyAddShift.has_near_register(input_shape, multiplier_shape, part, table)
        return 5 + near + BLOCK_LATENCY + tree_levels(terms) + (rounding != ShiftRounding.FLOOR)

    @staticmethod
    def has_near_register(
        input_shape: Shape, multiplier_shape: Shape, part: int, table: tuple[int, int]
    ) -> bool:
        """Tell whether parameters, in a ``table`` of (bits per word, words), have a register between their block RAM
        and multiplier blocks."""
        return lies_in_block(*table) and MultiplyAddShift.multipliers_of(input_shape, multiplier_shape, part) > 0

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(
            self.input_shape, self.multiplier_shape, self.rounding, self.part, self.digits,
            (self.parameters.width, self.parameters.depth),
        )

    @property
    def _factor_bits(self) -> int:
        """Return the bits of a multiplier in the table."""
        return self.multiplier_shape.width if self.digits is None else self.digits.bits

    @staticmethod
    def part_widths(shape: Shape, part: int = PART) -> list[int]:
        """Return the bits of each part of an operand, the least significant one first."""
        return [p.shape.width for p in parts_of(Shape.cast(shape), part)]

    @staticmethod
    def multipliers_of(input_shape: Shape, multiplier_shape: Shape, part: int = PART) -> int:
        """Return the multiplier blocks per lane: one for each product of two parts, none if a part has a single bit."""
        widths = [MultiplyAddShift.part_widths(s, part) for s in (input_shape, multiplier_shape)]
        return sum(w > 1 for w in widths[0]) * sum(w > 1 for w in widths[1])

    @staticmethod
    def part_constants(number: int, shape: Shape, part: int = PART) -> list[int]:
        """Return the parts of a multiplier that is the constant ``number``."""
        return [p.of_number(number) for p in parts_of(Shape.cast(shape), part)]

    @property
    def constants(self) -> tuple[int, ...]:
        """Return each lane's multiplier if it is a constant (a table of a single word given as a number); else ()."""
        if self.parameters.words is None or self.parameters.depth > 1 or self.digits is not None:
            return ()
        width = self.multiplier_shape.width + self.addend_shape.width
        whole = Part(0, self.multiplier_shape)
        return tuple(whole.of_number(self.parameters.words[0] >> (lane * width)) for lane in range(self.lanes))

    @property
    def multipliers(self) -> int:
        """Return the multiplier blocks of all lanes, none with ``digits``. Products with a constant of 0, or plus or
        minus a power of two, need none."""
        if self.digits is not None:
            return 0
        if not self.constants:
            return self.lanes * self.multipliers_of(self.input_shape, self.multiplier_shape, self.part)
        inputs = sum(width > 1 for width in self.part_widths(self.input_shape, self.part))
        return sum(
            inputs * (not _is_shift(part))
            for constant in self.constants
            for part in self.part_constants(constant, self.multiplier_shape, self.part)
        )

    @staticmethod
    def _sums(xs: list[Part], multipliers: list[Part]) -> list[list[tuple[Part, Part]]]:
        """Gather the products of all parts into concatenations: consecutive bit ranges, all but the top one unsigned.
        """
        pairs = sorted(((x, c) for x in xs for c in multipliers), key=lambda pair: pair[0].first + pair[1].first)
        gatherings: list[list[tuple[Part, Part]]] = []
        for x, c in pairs:
            for gathering in gatherings:
                below_x, below_c = gathering[-1]
                end = below_x.first + below_c.first + below_x.shape.width + below_c.shape.width
                if not (below_x.shape.signed or below_c.shape.signed) and end <= x.first + c.first:
                    gathering.append((x, c))
                    break
            else:
                gatherings.append([(x, c)])
        return gatherings

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue, step = self._issue(m)
        xs, word = self._operands(m, step, self.parameters)
        table = self.parameters.width, self.parameters.depth
        if self.digits is None and self.has_near_register(self.input_shape, self.multiplier_shape, self.part, table):
            near = Signal(len(word), name="parameters_near", reset_less=True)
            m.d.sync += near.eq(word)
            word, ends = near, interval(self.input_shape)
            xs = [Value.cast(registered(m, f"x_{lane}_near", Term(x, *ends)).value) for lane, x in enumerate(xs)]
        width = self._factor_bits + self.addend_shape.width
        for lane, x in enumerate(xs):
            fields = word.word_select(lane, width)
            shape = self.multiplier_shape if self.digits is None else Shape(self.digits.bits)
            multiplier = Signal(shape, name=f"multiplier_{lane}")
            addend = Signal(self.addend_shape, name=f"addend_{lane}")
            m.d.comb += Cat(multiplier, addend).eq(fields)
            build = self._multiply_add if self.digits is None else self._add_rows
            total = build(m, lane, x, multiplier, addend)
            shifted = quotient(m, str(lane), total, self.shift, self.rounding)
            m.d.comb += queue.payload[lane].eq(limited(m, lane, shifted, self.low, self.high, self.output_shape))
        return m

    @property
    def _total(self) -> tuple[int, int]:
        """Return the least and the greatest ``multiplier * x + addend``."""
        corners = [a * b for a in interval(self.input_shape) for b in interval(self.multiplier_shape)]
        addend_low, addend_high = interval(self.addend_shape)
        return min(corners) + addend_low, max(corners) + addend_high

    def _add_rows(self, m: Module, lane: int, x: Value, multiplier: Value, addend: Value) -> Term:
        """Return ``multiplier * x + addend`` in a register, the multiplier as digits; all three come from registers."""
        assert self.digits is not None
        low, high = self._total
        rows = DigitSum(self.input_shape, self.digits, 1, accumulated=True)
        later = Term(addend, *interval(self.addend_shape))
        for stage in range(rows.product_latency):
            later = registered(m, f"addend_{lane}_{stage + 1}", later)
        product = rows.product(m, f"_{lane}", x, multiplier)
        whole = carried_sum(Value.cast(product.term.value), Value.cast(later.value), product.carry)
        return registered(m, f"sum_{lane}", Term(whole, low, high))

    def _multiply_add(self, m: Module, lane: int, x: Value, multiplier: Value, addend: Value) -> Term:
        """Return ``multiplier * x + addend`` in a register; all three are registered first."""
        low, high = self._total
        shape = shape_of(low, high)
        addend_low, addend_high = interval(self.addend_shape)
        later = Term(addend, addend_low, addend_high)
        for stage in range(1 + BLOCK_LATENCY):
            later = registered(m, f"addend_{lane}_{stage + 1}", later)
        terms = [later]
        x = Value.cast(registered(m, f"x_{lane}", Term(x, *interval(self.input_shape))).value)
        factor = Term(multiplier, *interval(self.multiplier_shape))
        multiplier = Value.cast(registered(m, f"multiplier_{lane}_1", factor).value)
        parts = (parts_of(shape, self.part) for shape in (self.input_shape, self.multiplier_shape))
        for index, gathering in enumerate(self._sums(*parts)):
            base = gathering[0][0].first + gathering[0][1].first
            bits: Value | None = None
            signed = False
            term_low = term_high = 0
            for part, (x_part, c_part) in enumerate(gathering):
                ends = [a * b for a in x_part.interval for b in c_part.interval]
                first = x_part.first + c_part.first
                constant = c_part.of_number(self.constants[lane]) if self.constants else None
                if constant is not None and _is_shift(constant):
                    term = Term(_shifted(x_part.of(x), constant), min(ends), max(ends))
                else:
                    term = Term(part_product(x_part.of(x), c_part.of(multiplier)), min(ends), max(ends))
                product = Value.cast(block_product(m, f"product_{lane}_{index}_{part}", term).value)
                # Unsigned below: fill the gap up to this product's first bit.
                bits = product if bits is None else Cat(bits, Const(0, first - base - len(bits)), product)
                signed = product.shape().signed
                term_low, term_high = term_low + (min(ends) << first), term_high + (max(ends) << first)
            assert bits is not None, "a sum has at least one product"
            bits = bits.as_signed() if signed else bits
            terms.append(Term(bits.shift_left(base), term_low, term_high))
        total = adder_tree(m, f"sum_{lane}", terms, shape.width).value[: shape.width]
        return Term(total.as_signed() if shape.signed else total, low, high)
