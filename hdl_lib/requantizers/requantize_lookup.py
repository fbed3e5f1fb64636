"""Requantization by a table of results."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Shape, Signal
from amaranth.utils import ceil_log2

from hdl_lib.blocks import ONE_TURN, Turns, delayed
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.requantizers.per_channel import PerChannel


class LookupRequantizer(PerChannel):
    """``y = table[x - low]``, with one table per channel or one for all.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    lanes, channels: elements per beat and elements per pixel; ``blocks = ceil(channels / lanes)`` beats per pixel.
    low: the least input.
    tables: one for each lane, words of ``output_shape``'s width, all of the same depth. The result for input x in
        block k is at address ``k * span + x - low``, ``span`` a power of two. The last block may end with the greatest
        input. The result for an input beyond the table is unspecified.
    shared: the tables have one block, used for all.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). Elements of ``input_shape``.
    o: Out(stream). Elements of ``output_shape``; lanes beyond ``channels`` are unspecified.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; ``latency`` (5) cycles later ``o.valid``.
    Stages: input, address, table, its output register, output queue. Initiation interval 1 cycle per beat. Under
    backpressure no step begins; those begun continue.

    Ordering
    --------
    Beats leave in the order they came.
    """

    latency = 5

    def __init__(
        self,
        input_shape: Shape,
        output_shape: Shape,
        *,
        lanes: int,
        channels: int,
        low: int,
        tables: Sequence[Table],
        depth: int,
        shared: bool = False,
        turns: Turns = ONE_TURN,
    ) -> None:
        super().__init__(input_shape, output_shape, lanes=lanes, channels=channels, depth=depth, turns=turns)
        self.low = low
        self.tables = tuple(tables)
        self.table_blocks = 1 if shared else self.blocks
        if len(self.tables) != lanes:
            raise ValueError(f"tables must be {lanes}, one for each lane, not {len(self.tables)}")
        words = self.tables[0].depth
        self.span = 1 << ceil_log2(-(-words // self.table_blocks))
        for lane, table in enumerate(self.tables):
            if table.width != self.output_shape.width:
                raise ValueError(
                    f"the words of table {lane} must have {self.output_shape.width} bits as output_shape, "
                    f"not {table.width}"
                )
            if table.depth != words:
                raise ValueError(f"table {lane} must have {words} words as table 0, not {table.depth}")
        if words <= (self.table_blocks - 1) * self.span:
            raise ValueError(
                f"the tables must have {self.table_blocks} blocks of a power of two words, not {words} words in all; "
                "only the last block may be shorter"
            )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue, step = self._issue(m)
        arrived = Signal(self.i.payload.shape(), reset_less=True)
        m.d.sync += arrived.eq(self.i.payload)
        offset_bits = ceil_log2(self.span)
        block = delayed(m, "block", self._block(m, "block", self.table_blocks, step), 2)[: ceil_log2(self.table_blocks)]
        for lane, table in enumerate(self.tables):
            offset = Signal(offset_bits, name=f"offset_{lane}", reset_less=True)
            m.d.sync += offset.eq(arrived[lane] - self.low)
            m.submodules[f"table_{lane}"] = rom = Rom.of_table(table, output_register=True)
            m.d.comb += [rom.addr.eq(Cat(offset, block)), queue.payload[lane].eq(rom.data)]
        return m
