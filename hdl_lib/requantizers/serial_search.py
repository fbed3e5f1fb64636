"""Requantization by a binary search among thresholds, over several cycles with one comparator."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.utils import ceil_log2

from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import ONE_TURN, Turns, delayed, less
from hdl_lib.memories.rom import Rom, Table, banks_of
from hdl_lib.requantizers.per_channel import PerChannel
from hdl_lib.streams.output_queue import OutputQueue


def read_latency(width: int, depth: int) -> int:
    """Return the cycles from a table's address to a word in a register: the memory, its register, one more behind the
    choice among several banks."""
    return 2 + (banks_of(width, depth) > 1)


class SerialSearch(PerChannel):
    """``y = f(number of the channel's bounds B with x > B)``, found by bisection, one element at a time: what
    :class:`hdl_lib.requantizers.requantize_search.SearchRequantizer` computes, with one comparator and one table.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    channels: elements per pixel; a beat has one.
    bound_shape: of a bound, an integer shape of at least 1 bit.
    stages: comparisons of an element, at least 1; each channel has ``2**stages - 1`` bounds.
    bounds: a table of ``2**stages`` words for each channel, or for all: a binary tree, word 1 its root, the children of
        word n at ``2 * n`` (for ``x`` at most the bound) and ``2 * n + 1``. Word 0 is not read.
    values: a table of ``output_shape``'s width with as many words: at n the result where ``x`` is above n bounds. None:
        the result is ``base + n``, or ``base - n`` with ``falling``, modulo ``2**output_shape.width``.
    base, falling: see ``values``; ``base`` is a value of ``output_shape``.
    depth: beats of the output queue.

    Members
    -------
    i: In(stream). Elements of ``input_shape``.
    o: Out(stream). Elements of ``output_shape``.

    Timing
    ------
    :meth:`steps_of` steps per beat, at most one per cycle. The first consumes the beat, the last one produces, and
    needs a credit; :meth:`serial_latency_of` cycles later ``o.valid``. A comparison has a cycle for the tree's word and
    those of :func:`read_latency`. Under backpressure the last step waits.

    Ordering
    --------
    Beats leave in the order they came.
    """

    def __init__(
        self,
        input_shape: Shape,
        output_shape: Shape,
        *,
        channels: int,
        bound_shape: Shape,
        stages: int,
        bounds: Table,
        depth: int,
        values: Table | None = None,
        base: int = 0,
        falling: bool = False,
        turns: Turns = ONE_TURN,
    ) -> None:
        super().__init__(input_shape, output_shape, lanes=1, channels=channels, depth=depth, turns=turns)
        self.bound_shape = Shape.cast(bound_shape)
        self.stages = stages
        self.bounds = bounds
        self.values = values
        self.base = base
        self.falling = falling
        if stages < 1:
            raise ValueError(f"stages must be at least 1, not {stages}; a constant needs no requantizer")
        if self.bound_shape.width < 1:
            raise ValueError("bound_shape must have at least 1 bit, not 0")
        least, greatest = interval(self.output_shape)
        if not least <= base <= greatest:
            raise ValueError(f"base must be in {least}..{greatest}, the range of {self.output_shape}, not {base}")
        self.words = bounds.depth >> stages
        tables = ("bounds", bounds, self.bound_shape.width), ("values", values, self.output_shape.width)
        for name, table, width in tables:
            if table is None:
                continue
            if table.width != width:
                raise ValueError(f"the words of {name} must have {width} bits, not {table.width}")
            if self.words not in (1, self.blocks) or table.depth != self.words << stages:
                raise ValueError(
                    f"{name} must have {self.blocks << stages} words ({1 << stages} for each of {self.blocks} blocks) "
                    f"or {1 << stages} for all, not {table.depth}"
                )

    @staticmethod
    def steps_of(stages: int, bound_bits: int, words: int) -> int:
        """Return the steps of an element, with so many ``words`` of bounds for each stage's node."""
        return (1 + read_latency(bound_bits, words << stages)) * stages + 1

    @staticmethod
    def serial_latency_of(stages: int, words: int, value_bits: int) -> int:
        """Return the cycles from a beat's last step to ``o.valid``; ``value_bits``: of a result that is read, 0 if none
        is."""
        return 2 + (read_latency(value_bits, words << stages) if value_bits else 0)

    @property
    def latency(self) -> int:
        """Return this core's :meth:`serial_latency_of`."""
        bits = 0 if self.values is None else self.output_shape.width
        return self.serial_latency_of(self.stages, self.words, bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        wiring.connect(m, queue.o, wiring.flipped(self.o))

        # A ring of the cycles of a comparison, and the tree's word, whose leading 1 counts the comparisons: no step but
        # a beat's first finds a leaf.
        ring = Signal(1 + read_latency(self.bounds.width, self.bounds.depth), init=1)
        node = Signal(self.stages + 1, init=1 << self.stages)
        step, first, last, compares = Signal(), node[-1], Signal(), ring[-1]
        m.d.comb += [
            last.eq(compares & node[-2]),
            self.i.ready.eq(first),
            step.eq(Mux(first, self.i.valid, queue.available | ~last)),
            queue.reserve.eq(step & last),
            queue.push.eq(delayed(m, "push", queue.reserve, self.latency - 1)),
        ]
        x = Signal(self.input_shape, reset_less=True)
        block = self._kept_block(m, step & first)
        bound = self._read(m, "bounds", self.bounds, Cat(node[:-1], block))
        above = less(bound.as_signed() if self.bound_shape.signed else bound, x)
        with m.If(step & first):
            m.d.sync += [x.eq(self.i.payload[0]), node.eq(1), ring.eq(1)]
        with m.Elif(step):
            m.d.sync += ring.eq(Cat(compares, ring[:-1]))
            with m.If(compares):
                m.d.sync += node.eq(Cat(above, node))

        number: Value = node[:-1]
        if self.values is None:
            result = self.base - number if self.falling else self.base + number
        else:
            result = self._read(m, "values", self.values, Cat(number, block))
        m.d.comb += queue.payload[0].eq(result)
        return m

    def _kept_block(self, m: Module, begins: Value) -> Value:
        """Return the address of an element's tables, from the cycle behind its first step to that of the next one."""
        block = self._block(m, "block", self.words, begins)
        kept = Signal(ceil_log2(self.words), name="kept_block", reset_less=True)
        with m.If(begins):
            m.d.sync += kept.eq(block)
        return kept

    @staticmethod
    def _read(m: Module, name: str, table: Table, address: Value) -> Value:
        m.submodules[name] = rom = Rom.of_table(table, output_register=True)
        m.d.comb += rom.addr.eq(address)
        return delayed(m, name, rom.data, read_latency(table.width, table.depth) - rom.latency, reset=False)
