"""Rows of a read-only table, each asked for by its number."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl_lib.blocks import block_count, count_up, delayed, loop
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue


class TableRows(wiring.Component):
    """For each number that comes, the row of ``columns`` elements with that number; negative ones count from the end.

    Parameters
    ----------
    number_shape, shape: of a number and of an element, integer shapes.
    rows, columns: of the table, at least 1.
    lanes: elements per output beat; a row is ``blocks = ceil(columns / lanes)`` beats.
    table: ``rows * blocks`` words of ``lanes`` elements, lane 0 lowest: word ``block * rows + row``.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream of ArrayLayout(number_shape, 1)). Row numbers, from ``-rows`` to ``rows - 1``; others give an
        unspecified row.
    o: Out(stream of ArrayLayout(shape, lanes)). Lanes beyond ``columns`` in a row's last beat are unspecified.

    Timing
    ------
    One step per output beat, which needs a credit; the first step of a row consumes its number. :attr:`latency` cycles
    after a step its beat shows on ``o.valid``: 5, or 4 where a row is one beat (number, address, table, its output
    register, queue). Initiation interval ``blocks`` cycles per row. Under backpressure no step begins; those begun
    continue.

    Ordering
    --------
    Rows leave in the order of their numbers, a row's beats from its first element on.
    """

    def __init__(
        self, number_shape: Shape, shape: Shape, rows: int, columns: int, *, lanes: int, table: Table, depth: int
    ) -> None:
        self.blocks = block_count(columns, lanes)
        check_depth(depth)
        if rows < 1:
            raise ValueError(f"rows must be at least 1, not {rows}")
        width = lanes * Shape.cast(shape).width
        if (table.depth, table.width) != (rows * self.blocks, width):
            raise ValueError(
                f"the table must have {rows * self.blocks} words (rows times beats of a row) of {width} bits (lanes "
                f"times bits of an element), not {table.depth} words of {table.width} bits"
            )
        self.rows = rows
        self.table = table
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(number_shape, 1))),
                "o": Out(stream.Signature(data.ArrayLayout(shape, lanes))),
            }
        )

    @staticmethod
    def latency_of(blocks: int) -> int:
        """Return the latency for rows of so many beats."""
        return 4 + (blocks > 1)

    @property
    def latency(self) -> int:
        """Return the cycles from a step to ``o.valid``."""
        return self.latency_of(self.blocks)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        m.submodules.rom = rom = Rom.of_table(self.table, output_register=True)
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        number = self.i.payload[0]
        from_front = Mux(number < 0, number + self.rows, number) if number.shape().signed else number
        row = Signal(ceil_log2(self.rows) or 1, name="row", reset_less=True)
        m.d.comb += Value.cast(queue.payload).eq(rom.data)
        if self.blocks == 1:
            queue.issue(m, self.i, self.latency - 1)
            m.d.sync += row.eq(from_front)
            m.d.comb += rom.addr.eq(row)
            return m
        first, step = Signal(init=1, name="first"), Signal(name="step")
        m.d.comb += [
            self.i.ready.eq(queue.available & first),
            step.eq(queue.available & (self.i.valid | ~first)),
            queue.reserve.eq(step),
            queue.push.eq(delayed(m, "push", step, self.latency - 1)),
        ]
        with m.If(first):  # held for the other steps of the row
            m.d.sync += row.eq(from_front)
        last = loop(m, "block", self.blocks, step)
        with m.If(step):
            m.d.sync += first.eq(last)
        address = Signal(len(rom.addr), name="address", reset_less=True)
        m.d.sync += address.eq(self._address(m, row, step, last))
        m.d.comb += rom.addr.eq(address)
        return m

    def _address(self, m: Module, row: Signal, step: Value, last: Value) -> Value:
        """Return the address of the word of ``row`` that the step of the cycle before asked for."""
        if self.rows & (self.rows - 1) == 0:
            block = delayed(m, "block", count_up(m, "number", self.blocks, step), 1, reset=False)
            return Cat(row[: ceil_log2(self.rows)], block)
        start = Signal(range(self.rows * self.blocks), name="start")
        with m.If(step):
            m.d.sync += start.eq(Mux(last, 0, start + self.rows))
        return row + delayed(m, "start", start, 1, reset=False)
