"""Requantization as a multiplication, an addition and a shift, over several cycles and without multiplier blocks."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import wiring

from hdl_lib.arithmetic.adder_tree import Term, registered, shape_of
from hdl_lib.arithmetic.carried_sum import carried_sum
from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import ONE_TURN, Turns, delayed
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.requantizers.per_channel import PerChannel, limited
from hdl_lib.requantizers.shift_and_clamp import check_clamp
from hdl_lib.streams.output_queue import OutputQueue

WORDS = 2
"""Of the table for each block: the multiplier, the addend."""


@dataclass(frozen=True)
class SerialSteps:
    """The digits of ``x``, ``together`` of them per step, from which ``multiplier * x + addend`` is computed.

    The input's digits 0 .. 3 of radix 4 (of two's complement with the top bit inverted), less 2 each, are digits of the
    input less :attr:`offset`. Such a digit is two bits, and a bit of its product with a word is one 4-input table. Each
    step adds the multiplier times digits, least significant first, and divides the sum by ``4**together``, so that it
    never gets longer than a word and the digits of a step. Bits shifted out are lost: addend plus ``multiplier *
    offset`` must be a multiple of ``4**digits``, and is added in the last step, divided by that.
    """

    input_shape: Shape
    multiplier_shape: Shape
    addend_shape: Shape
    together: int

    @property
    def digits(self) -> int:
        """Return the digits of the input, a multiple of those of a step."""
        return -(-self.input_shape.width // (2 * self.together)) * self.together

    @property
    def offset(self) -> int:
        """Return the input less the value of its digits."""
        twos = 2 * (4**self.digits - 1) // 3
        return twos - (1 << 2 * self.digits - 1 if self.input_shape.signed else 0)

    @property
    def count(self) -> int:
        """Return the steps per element."""
        return self.digits // self.together + 1

    @property
    def word_shape(self) -> Shape:
        """Return the shape of a word of the table."""
        multipliers = interval(self.multiplier_shape)
        moved = [multiplier * self.offset for multiplier in multipliers]
        low, high = interval(self.addend_shape)
        ends = [*multipliers, low + min(moved) >> 2 * self.digits, high + max(moved) >> 2 * self.digits]
        return Shape(shape_of(min(-1, *ends), max(ends)).width, signed=True)

    def stored(self, multiplier: int, addend: int) -> tuple[int, int]:
        """Return the two words for a channel, as bit patterns."""
        mask = (1 << self.word_shape.width) - 1
        high, low = divmod(addend + multiplier * self.offset, 4**self.digits)
        if low:
            raise ValueError(
                f"addend + multiplier * {self.offset} must be a multiple of {4**self.digits}, not {addend} with "
                f"{multiplier}"
            )
        return multiplier & mask, high & mask


class SerialMultiplyAddShift(PerChannel):
    """``y = clamp((multiplier * x + addend) >> shift, low, high)`` with a multiplier and an addend for each channel.

    The shift is arithmetic: it rounds down. Exact: nothing overflows for any input, multiplier and addend. Addends are
    restricted: see :class:`SerialSteps`.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    lanes, channels: elements per beat and elements per pixel; ``blocks = ceil(channels / lanes)`` beats per pixel.
    multiplier_shape, addend_shape: of the parameters, integer shapes.
    together: digits of two bits of the input that a step takes, at least 1.
    shift: bits, at least twice the digits of :class:`SerialSteps`.
    low, high: the results' limits, values of ``output_shape``.
    parameters: for each block, or once for all, :data:`WORDS` words, each with one field per lane, lane 0 in the least
        significant bits: what :meth:`SerialSteps.stored` says.
    depth: beats of the output queue; 2 sustain the full rate if there are as many steps as cycles of latency.

    Members
    -------
    i: In(stream). Elements of ``input_shape``.
    o: Out(stream). Elements of ``output_shape``; lanes beyond ``channels`` follow the table's fields for them.

    Timing
    ------
    :attr:`SerialSteps.count` steps per beat, at most one per cycle. The first consumes the beat, the last one produces,
    and needs a credit; :meth:`serial_latency_of` cycles later ``o.valid``. Stages: input, digit and word, its row, sums
    of the rows of a step, the sum of all, limits, output queue. Under backpressure the last step waits.

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
        together: int,
        shift: int,
        low: int,
        high: int,
        parameters: Table,
        depth: int,
        turns: Turns = ONE_TURN,
    ) -> None:
        if together < 1:
            raise ValueError(f"together must be at least 1 digit, not {together}")
        shapes = Shape.cast(input_shape), Shape.cast(multiplier_shape), Shape.cast(addend_shape)
        self.steps = SerialSteps(*shapes, together)
        self.shift = shift
        self.low = low
        self.high = high
        self.parameters = parameters
        super().__init__(input_shape, output_shape, lanes=lanes, channels=channels, depth=depth, turns=turns)
        if shift < 2 * self.steps.digits:
            raise ValueError(
                f"shift must be at least {2 * self.steps.digits}, twice the digits, not {shift}: take the products of "
                "requantize_mas"
            )
        check_clamp(low, high, self.output_shape)
        width = lanes * self.steps.word_shape.width
        if parameters.width != width or parameters.depth not in (WORDS, WORDS * self.blocks):
            raise ValueError(
                f"the table must have {WORDS} words for each of {self.blocks} blocks or for all, of {width} bits "
                f"({lanes} lanes of {self.steps.word_shape.width}), not {parameters.depth} of {parameters.width}"
            )

    @staticmethod
    def serial_latency_of(together: int) -> int:
        """Return the cycles from a beat's last step to ``o.valid``."""
        return 5 + together

    @property
    def latency(self) -> int:
        """Return this core's :meth:`serial_latency_of`."""
        return self.serial_latency_of(self.steps.together)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        wiring.connect(m, queue.o, wiring.flipped(self.o))

        # The steps of a beat in a ring of registers: which of them is next.
        count = self.steps.count
        ring = Signal(count, name="next_step", init=1)
        step, first, last = Signal(), ring[0], ring[-1]
        m.d.comb += [
            self.i.ready.eq(first),
            step.eq((self.i.valid | ~first) & (queue.available | ~last)),
            queue.reserve.eq(step & last),
            queue.push.eq(delayed(m, "push", queue.reserve, self.latency - 1)),
        ]
        with m.If(step):
            m.d.sync += ring.eq(Cat(last, ring[:-1]))

        # The multiplier stays for all steps but the last one.
        m.submodules.parameters = rom = Rom.of_table(self.parameters, output_register=True)
        moves = step & (ring[-2] | last)
        m.d.comb += rom.addr.eq(self._address(m, "parameter", self.parameters.depth, moves))

        stages = self.latency - 3  # from a step to the sum it changes
        update = delayed(m, "update", step, stages)
        ends = delayed(m, "end", queue.reserve, stages)
        for lane in range(self.lanes):
            word = Signal(self.steps.word_shape, name=f"word_{lane}")
            m.d.comb += word.eq(rom.data.word_select(lane, self.steps.word_shape.width))
            total = self._sum(m, lane, self._digits(m, lane, first, last), word, update, ends)
            m.d.comb += queue.payload[lane].eq(
                limited(m, lane, total, self.low, self.high, self.output_shape)
            )
        return m

    def _digits(self, m: Module, lane: int, first: Value, last: Value) -> list[Signal]:
        """Return the digits of a step, 2 cycles later; in the addend's step a 1 and zeros above it."""
        together, bits = self.steps.together, 2 * self.steps.digits
        # Between its first and its last step a beat never waits: nothing here asks for steps.
        turned = Signal(bits, name=f"turned_{lane}")
        left = Signal(bits, name=f"x_{lane}", reset_less=True)
        m.d.comb += turned.eq(self.i.payload[lane])
        if self.input_shape.signed:
            turned = Cat(turned[:-1], ~turned[-1])
        m.d.sync += left.eq(Mux(first, turned, left[2 * together :]))
        is_addend = delayed(m, f"addend_{lane}", last, 1)
        found = []
        for place in range(together):
            digit = Signal(2, name=f"digit_{lane}_{place}", reset_less=True)
            less_two = Cat(left[2 * place], ~left[2 * place + 1])
            m.d.sync += digit.eq(Mux(is_addend, Const(int(place == 0), 2), less_two))
            found.append(digit)
        return found

    def _sum(
        self, m: Module, lane: int, digits: list[Signal], word: Value, update: Value, ends: Value
    ) -> Term:
        """Return the shifted sum of all steps of a beat, in a register, one cycle after ``ends``."""
        together, width = self.steps.together, self.steps.word_shape.width
        rows = []
        for place, digit in enumerate(digits):
            row = Signal(Shape(width + 1, signed=True), name=f"row_{lane}_{place}", reset_less=True)
            negative = Signal(name=f"negative_{lane}_{place}", reset_less=True)
            magnitude = Signal(Shape(width + 1, signed=True), name=f"magnitude_{lane}_{place}")
            m.d.comb += magnitude.eq(Mux(digit[0], word, Mux(digit[1], word.shift_left(1), 0)))
            m.d.sync += [row.eq(magnitude ^ digit[1].replicate(width + 1)), negative.eq(digit[1])]
            rows.append((row, negative))
        total, carry = rows[0]
        for place in range(1, together):
            row, negative = rows[place]
            for stage in range(1, place):
                row = self._later(m, f"row_{lane}_{place}_{stage}", row)
                negative = self._later(m, f"negative_{lane}_{place}_{stage}", negative)
            above = carried_sum(total.shift_right(2 * place), row, negative)
            joined = Signal(Shape(width + 2 + 2 * place, signed=True), name=f"rows_{lane}_{place}", reset_less=True)
            m.d.sync += joined.eq(Cat(total[: 2 * place], above).as_signed())
            total, carry = joined, self._later(m, f"negative_{lane}_0_{place}", carry)
        left = Signal(Shape(width, signed=True), name=f"left_{lane}")
        whole = Signal(Shape(width + 2 * together, signed=True), name=f"sum_{lane}")
        m.d.comb += whole.eq(carried_sum(left, total, carry))
        with m.If(ends):
            m.d.sync += left.eq(0)
        with m.Elif(update):
            m.d.sync += left.eq(whole.shift_right(2 * together))
        low, high = (end >> self.shift for end in self._total)
        quotient = whole.shift_right(self.shift - 2 * self.steps.digits)
        return registered(m, f"quotient_{lane}", Term(quotient, low, high))

    @staticmethod
    def _later(m: Module, name: str, value: Signal) -> Signal:
        register = Signal.like(value, name=name, reset_less=True)
        m.d.sync += register.eq(value)
        return register

    @property
    def _total(self) -> tuple[int, int]:
        """Return the least and the greatest ``multiplier * x + addend``."""
        corners = [a * b for a in interval(self.steps.input_shape) for b in interval(self.steps.multiplier_shape)]
        low, high = interval(self.steps.addend_shape)
        return min(corners) + low, max(corners) + high
