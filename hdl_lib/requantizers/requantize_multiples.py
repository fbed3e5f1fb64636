"""Requantization by tables of a multiplier's multiples, one for each digit of the input, and a sum of their words.

A product with a factor that is known beforehand is a sum of its multiples, each read from a table with a digit of the
other factor (K. Chapman, "Fast Integer Multipliers Fit in FPGAs", EDN, 1994). Here a table has the multiples of every
channel's multiplier, and lies in block RAM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value
from amaranth.utils import ceil_log2

from hdl_lib.arithmetic.adder_tree import Term, registered, tree_levels
from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import delayed
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.requantizers.per_channel import PerChannel, limited
from hdl_lib.requantizers.shift_and_clamp import check_clamp


class Digit(NamedTuple):
    """The input's ``bits`` from bit ``first`` on; of the table's words that they choose, the ``shape``, and the
    ``place``: a word counts ``2**place``."""

    first: int
    bits: int
    shape: Shape
    place: int


class MultiplesRequantizer(PerChannel):
    """``y = clamp(sum of table[block, digit] * 2**place >> shift, low, high)`` over the digits of ``x``.

    Digits are bits of the input as they are: in two's complement the words of the highest one say that its first bit is
    negative. The shift is arithmetic: it rounds down. Exact: nothing overflows for any input and words.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    lanes, channels: elements per beat and elements per pixel; ``blocks = ceil(channels / lanes)`` beats per pixel.
    digits: at least two; their places do not fall, and the first one's is at most the shift.
    tables: one for each digit of lane 0, then of lane 1, and so on: the word of block k and digit d at
        ``k << bits | d``.
    shift: bits, at least 0; low, high: the results' limits, values of ``output_shape``.
    shared: the tables have one block, used for all.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). Elements of ``input_shape``.
    o: Out(stream). Elements of ``output_shape``; lanes beyond ``channels`` follow the tables' words for them.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; ``latency`` cycles later ``o.valid``. Stages:
    input, two for the words, a tree of sums, limits, output queue. Initiation interval 1 cycle per beat. Under
    backpressure no step begins; those begun continue.

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
        digits: Sequence[Digit],
        tables: Sequence[Table],
        shift: int,
        low: int,
        high: int,
        depth: int,
        shared: bool = False,
    ) -> None:
        super().__init__(input_shape, output_shape, lanes=lanes, channels=channels, depth=depth)
        self.digits = tuple(digits)
        self.tables = tuple(tables)
        self.shift = shift
        self.low = low
        self.high = high
        self.table_blocks = 1 if shared else self.blocks
        check_clamp(low, high, self.output_shape)
        if shift < 0:
            raise ValueError(f"shift must be at least 0, not {shift}")
        if len(self.digits) < 2:
            raise ValueError(f"digits must be at least 2, not {len(self.digits)}: take the table of requantize_lookup")
        places = [digit.place for digit in self.digits]
        if places != sorted(places) or places[0] > shift:
            raise ValueError(f"the digits' places must not fall, from at most {shift} (the shift) on, not be {places}")
        if len(self.tables) != lanes * len(self.digits):
            raise ValueError(
                f"tables must be {lanes * len(self.digits)}, {len(self.digits)} for each lane, not {len(self.tables)}"
            )
        for index, table in enumerate(self.tables):
            digit = self.digits[index % len(self.digits)]
            size = self.table_blocks << digit.bits, digit.shape.width
            if (table.depth, table.width) != size:
                raise ValueError(
                    f"table {index} must have {size[0]} words of {size[1]} bits, not {table.depth} of {table.width}"
                )

    @staticmethod
    def latency_of(digits: int) -> int:
        """Return the cycles from a step to ``o.valid`` with so many digits."""
        return 5 + tree_levels(digits)

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(len(self.digits))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue, step = self._issue(m)
        arrived = Signal(self.i.payload.shape(), reset_less=True)
        m.d.sync += arrived.eq(self.i.payload)
        block = delayed(m, "block", self._block(m, "block", self.table_blocks, step), 1)[: ceil_log2(self.table_blocks)]
        for lane in range(self.lanes):
            x = Value.cast(arrived[lane])
            terms = []
            for index, digit in enumerate(self.digits):
                rom = Rom.of_table(self.tables[lane * len(self.digits) + index], output_register=True)
                m.submodules[f"multiples_{lane}_{index}"] = rom
                m.d.comb += rom.addr.eq(Cat(x[digit.first : digit.first + digit.bits], block))
                word = rom.data.as_signed() if digit.shape.signed else rom.data
                terms.append((digit.place, Term(word, *interval(digit.shape))))
            total = _sum(m, f"sum_{lane}", terms)
            shift = self.shift - self.digits[0].place
            quotient = Term(Value.cast(total.value).shift_right(shift), total.low >> shift, total.high >> shift)
            m.d.comb += queue.payload[lane].eq(limited(m, lane, quotient, self.low, self.high, self.output_shape))
        return m


def _sum(m: Module, name: str, terms: list[tuple[int, Term]]) -> Term:
    """Return the sum, in units of the first term, a register behind every adder; ``terms``: with their places."""
    level = 0
    while len(terms) > 1:
        sums = []
        for index in range(0, len(terms), 2):
            (place, total), *others = terms[index : index + 2]
            for above, other in others:
                total = _joined(total, other, above - place)
            sums.append((place, registered(m, f"{name}_{level}_{index // 2}", total)))
        terms = sums
        level += 1
    return terms[0][1]


def _joined(lower: Term, upper: Term, distance: int) -> Term:
    """Return ``lower + upper * 2**distance``; what lies below the upper term goes past the adder."""
    value = Value.cast(lower.value)
    low, high = lower.low + (upper.low << distance), lower.high + (upper.high << distance)
    top = value[-1] if value.shape().signed else Const(0, 1)
    past = Cat(value, top.replicate(max(0, distance - len(value))))[:distance]
    bits = Cat(past, value.shift_right(distance) + upper.value)
    return Term(bits.as_signed() if low < 0 else bits, low, high)
