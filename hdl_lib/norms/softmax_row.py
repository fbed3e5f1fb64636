"""Exponentials of a row over their sum, with one adder of one bit."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import less, loop
from hdl_lib.memories.buffer_memory import BufferMemory
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.streams.output_queue import OutputQueue

LEAST_BITS = 3
"""Of a sum: the next exponential is read while a rest, a bit longer, passes."""


class SoftmaxRow(wiring.Component):
    """``o[k] = offset + (number of thresholds <= q)`` of ``q = e[k] / sum(e)``, ``e[k] = exponentials[max(i) - i[k]]``.

    ``q`` has ``digits`` bits below the point, none above it, and below them a bit that says that something is left
    (rounded to odd, see :mod:`hdl_lib.arithmetic.recurrence`); a quotient of 1 is all ones. Numbers are added bit by
    bit: division does not restore (Koren, Computer Arithmetic Algorithms, chapter 3), so a step for a digit is a
    single pass of the rest and the sum through one adder. A rest of 0 makes all later ones the negative sum, so it is
    enough to know whether one came.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    size: elements of a row, at least 2.
    exponentials: a word for each distance to the greatest element.
    bits: of the greatest sum of a row, at least :data:`LEAST_BITS` and those of an exponential.
    digits: at least 1.
    thresholds: ``2**levels`` words of ``digits + 1`` bits in the order of :func:`search_order`.
    offset: an integer.
    depth: beats of the output queue.

    Members
    -------
    i: In(stream). Elements, one per beat.
    o: Out(stream). As many results.

    Timing
    ------
    One process; a row takes :func:`row_steps` steps, one per cycle: one for each element, which consumes it; a pass of
    ``bits + 1`` steps in which the sum is cleared; a pass for each element's exponential, which is added; then for each
    element :func:`element_steps`: ``digits + 1`` passes and two steps for each level of the search, the last of which
    produces and needs a credit; one cycle later ``o.valid``. Under backpressure this step waits.

    Ordering
    --------
    Results leave in the order of the elements.
    """

    def __init__(
        self, input_shape: Shape, output_shape: Shape, *, size: int, exponentials: Table, bits: int, digits: int,
        thresholds: Table, offset: int, depth: int,
    ) -> None:
        if size < 2:
            raise ValueError(f"size must be at least 2, not {size}")
        if digits < 1:
            raise ValueError(f"digits must be at least 1, not {digits}")
        if bits < max(LEAST_BITS, exponentials.width):
            raise ValueError(f"bits must be at least {max(LEAST_BITS, exponentials.width)}, not {bits}")
        if thresholds.depth < 2 or thresholds.depth & thresholds.depth - 1:
            raise ValueError(f"thresholds must be a power of two, at least 2, not {thresholds.depth}")
        if thresholds.width != digits + 1:
            raise ValueError(f"thresholds must have {digits + 1} bits, not {thresholds.width}")
        self.input_shape, self.output_shape = Shape.cast(input_shape), Shape.cast(output_shape)
        self.size, self.exponentials, self.bits, self.digits = size, exponentials, bits, digits
        self.thresholds, self.offset, self.depth = thresholds, offset, depth
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(self.input_shape, 1))),
                "o": Out(stream.Signature(data.ArrayLayout(self.output_shape, 1))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        index = Signal(range(self.size))  # of the element that comes or is taken next
        last, first = index == self.size - 1, index == 0  # first: none is left to be taken
        collect, take, finish = Signal(), Signal(), Signal()
        passes = Passes(m, self.bits, self.digits)
        node = Signal(self.thresholds.depth.bit_length(), init=1)
        waits = Signal()  # for the threshold of a node
        reached = passes.quotient >= self._threshold(m, node)
        m.d.comb += [queue.reserve.eq(finish), queue.push.eq(finish)]
        with m.FSM(name="phase"):
            with m.State("COLLECT"):
                m.d.comb += [self.i.ready.eq(1), collect.eq(self.i.valid)]
                with m.If(collect & last):
                    m.next = "CLEAR"
            with m.State("CLEAR"):
                m.d.comb += [passes.clears.eq(1), passes.runs.eq(1), take.eq(passes.ends)]
                with m.If(passes.ends):
                    m.next = "SUM"
            with m.State("SUM"):
                m.d.comb += [passes.runs.eq(1), take.eq(passes.ends)]
                with m.If(passes.ends & first):
                    m.d.comb += passes.begins_division.eq(1)
                    m.next = "DIVIDE"
            with m.State("DIVIDE"):
                m.d.comb += [passes.divides.eq(1), passes.runs.eq(1)]
                m.d.sync += [node.eq(1), waits.eq(0)]
                with m.If(passes.ends & passes.whole):
                    m.next = "SEARCH"
            with m.State("SEARCH"):
                m.d.comb += passes.begins_division.eq(1)
                with m.If(~node[-1]):
                    m.d.sync += waits.eq(~waits)
                    with m.If(~waits):
                        m.d.sync += node.eq(Cat(reached, node))
                with m.Elif(queue.available):
                    m.d.comb += [finish.eq(1), take.eq(~first)]
                    m.next = "DIVIDE"
                    with m.If(first):
                        m.next = "COLLECT"
        with m.If(collect | take):
            m.d.sync += index.eq(Mux(last, 0, index + 1))
        passes.take(m, take, self._exponential(m, index, collect, first))
        m.d.comb += queue.payload[0].eq(node[:-1] + self.offset)
        return m

    def _exponential(self, m: Module, index: Signal, collect: Value, first: Value) -> Value:
        """Return the exponential of the element at ``index``, three cycles later. Elements are written and the
        greatest is kept in a cycle with ``collect``."""
        element = Value.cast(self.i.payload[0])
        greatest = Signal(self.input_shape, reset_less=True)
        with m.If(collect & (first | less(greatest, element))):
            m.d.sync += greatest.eq(element)
        row = BufferMemory("row", self.input_shape.width, self.size)
        row.write(m, collect, index, element)
        m.submodules.exponentials = table = Rom.of_table(self.exponentials)
        distance = Signal(table.address_width, reset_less=True)
        m.d.sync += distance.eq(greatest - row.read_soon(m, index))
        m.d.comb += table.addr.eq(distance)
        return table.data

    def _threshold(self, m: Module, node: Signal) -> Value:
        """Return the threshold of a node of the search, a cycle later."""
        m.submodules.thresholds = table = Rom.of_table(self.thresholds)
        m.d.comb += table.addr.eq(node[:-1])
        return table.data


class Passes:
    """A rest and a sum, which pass through an adder of one bit.

    ``runs``, ``clears``, ``divides``: what the caller does in this cycle, one of the passes above. ``ends``: the pass
    does so in this cycle; ``whole``: this is the last pass of a quotient, which looks for a rest; ``quotient``: valid
    behind that. ``begins_division``: an exponential that is taken in this cycle will be divided, not added.
    """

    def __init__(self, m: Module, bits: int, digits: int) -> None:
        self.runs, self.clears, self.divides, self.begins_division = (
            Signal(name=name) for name in ("runs", "clears", "divides", "begins_division")
        )
        length = bits + 1  # of a rest, which may be negative
        self.rest, self.sum = (Signal(length, name=name, reset_less=True) for name in ("rest", "sum"))
        self.low = Signal(digits + 1)  # a one, and behind it the digits so far
        self.negative, self.carry, self.before, self.some, self.exact = (
            Signal(name=name) for name in ("negative", "carry", "before", "some", "exact")
        )
        self.ends, self.whole = Signal(name="ends"), self.low[-1]
        self.quotient = Cat(~self.exact, self.low[:-1])
        m.d.comb += self.ends.eq(self.runs & loop(m, "bit", length, self.runs))
        self._move(m)

    def _move(self, m: Module) -> None:
        """Move each number by a bit. A division doubles the rest on its way, and adds the sum if it is negative, else
        takes it away; its last bit, the sign of the next rest, is no digit."""
        a = Mux(self.divides, self.before, self.rest[0])
        b = self.sum[0] ^ (self.divides & ~self.negative)
        bit = Signal(name="bit_of_sum")
        m.d.comb += bit.eq(a ^ b ^ self.carry)
        with m.If(self.runs):
            m.d.sync += [
                self.rest.eq(Cat(self.rest[1:], bit)),
                self.sum.eq(Cat(self.sum[1:], Mux(self.divides, self.sum[0], bit & ~self.clears))),
                self.before.eq(self.rest[0] & ~self.ends),
                self.some.eq((self.rest[0] | self.some) & ~self.ends),
                self.carry.eq(Mux(self.ends, ~bit, (a & b) | (a & self.carry) | (b & self.carry))),
            ]
        with m.If(self.ends):
            m.d.sync += [self.negative.eq(bit), self.exact.eq(self.exact | ~(self.rest[0] | self.some))]
            with m.If(~self.whole):
                m.d.sync += self.low.eq(Cat(~bit, self.low))

    def take(self, m: Module, enable: Value, exponential: Value) -> None:
        """Begin with an exponential in a cycle with ``enable``."""
        with m.If(enable):
            m.d.sync += [
                self.rest.eq(exponential), self.low.eq(1), self.negative.eq(0), self.exact.eq(0),
                self.carry.eq(self.begins_division),
            ]


def search_order(thresholds: Sequence[int]) -> list[int]:
    """Return rising numbers, one fewer than a power of two, in the order of a search: node ``k`` is followed by ``2 *
    k``, or ``2 * k + 1`` where its threshold is reached; node 1 is the first, 0 none."""
    levels = len(thresholds).bit_length()
    nodes = range(1, 1 << levels)
    found = [(2 * node + 1 << levels - node.bit_length()) % (1 << levels) for node in nodes]
    return [0, *(thresholds[place - 1] for place in found)]


def row_steps(size: int, bits: int, digits: int, levels: int) -> int:
    """Return the steps of a row."""
    return collected_steps(size, bits) + size * element_steps(bits, digits, levels)


def collected_steps(size: int, bits: int) -> int:
    """Return the steps until the sum of a row is known."""
    return size + (size + 1) * (bits + 1)


def element_steps(bits: int, digits: int, levels: int) -> int:
    """Return the steps for the quotient of an element and its search."""
    return (digits + 1) * (bits + 1) + 2 * levels
