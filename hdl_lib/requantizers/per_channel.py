"""The base of requantizers: a step per beat, and a table of parameters with a word per block."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.adder_tree import Term
from hdl_lib.blocks import ONE_TURN, Turns, block_count, count_behind, count_in_turns, count_up, less
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue


class PerChannel(wiring.Component):
    """A core with one step per beat, which consumes it and produces one; the base of the requantizers.

    Parameters: ``input_shape``, ``output_shape`` of an element; ``channels`` per pixel, ``lanes`` per beat, so
    ``ceil(channels / lanes)`` beats per pixel; ``depth``, the beats of the output queue. ``turns``: (rounds, pixels):
    tables that are not the same for all channels have the words of so many rounds, which follow each other; each serves
    so many pixels before the next one comes. ``blocks``: the words of all rounds, of a table with one for each beat of
    a pixel.
    """

    @property
    def latency(self) -> int:
        """Return the cycles from a step to ``o.valid``."""
        raise NotImplementedError("each requantizer has its own latency")

    def __init__(
        self, input_shape: Shape, output_shape: Shape, *, lanes: int, channels: int, depth: int, turns: Turns = ONE_TURN
    ) -> None:
        self.turns = turns
        self.blocks = turns[0] * block_count(channels, lanes)
        check_depth(depth, least=0)
        self.input_shape = Shape.cast(input_shape)
        self.output_shape = Shape.cast(output_shape)
        self.lanes = lanes
        self.channels = channels
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(input_shape, lanes))),
                "o": Out(stream.Signature(data.ArrayLayout(output_shape, lanes))),
            }
        )

    def _check_table(self, table: Table, width: int, contents: str) -> None:
        if table.width != width:
            raise ValueError(f"the table's words must have {width} bits ({contents}), not {table.width}")
        if table.depth not in (1, self.blocks):
            raise ValueError(
                f"the table must have {self.blocks} words (one for each beat of a pixel) "
                f"or 1 (the same for all), not {table.depth}"
            )

    def _issue(self, m: Module) -> tuple[OutputQueue, Signal]:
        """Return the output queue and the step; the caller drives ``queue.payload`` in the cycle before ``o.valid``."""
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return queue, queue.issue(m, self.i, self.latency - 1)

    def _block(self, m: Module, name: str, words: int, advance: Value) -> Signal:
        """Return the address of the next word of a table with ``words``: those of all rounds, or less than those of a
        round if the same ones serve all."""
        if words < self.blocks:
            return count_up(m, name, words, advance)
        return count_in_turns(m, name, words // self.turns[0], self.turns, advance)

    def _address(self, m: Module, name: str, words: int, advance: Value) -> Signal:
        """Return :meth:`_block` for a table that is read in the same cycle."""
        return (count_behind if self.turns[0] == 1 else self._block)(m, name, words, advance)

    def _operands(self, m: Module, step: Value, table: Table) -> tuple[list[Value], Value]:
        """Return the input's lanes and the block's word of the table, both in registers, 2 cycles after the step."""
        arrived, operand = (Signal(self.i.payload.shape(), name=name, reset_less=True) for name in ("arrived", "x"))
        m.d.sync += [arrived.eq(self.i.payload), operand.eq(arrived)]
        m.submodules.parameters = rom = Rom.of_table(table, output_register=True)
        m.d.comb += rom.addr.eq(self._address(m, "block", table.depth, step))
        return [operand[lane] for lane in range(self.lanes)], rom.data


def limited(m: Module, lane: int, quotient: Term, low: int, high: int, shape: Shape) -> Value:
    """Return a lane's result clamped to ``low .. high``, of ``shape``: comparisons and low bits in registers, the
    choice behind them."""
    shifted = quotient.value
    body = Signal(shape, name=f"body_{lane}", reset_less=True)
    m.d.sync += body.eq(shifted)
    result: Value = body
    for name, limit, beyond, possible in (
        ("below", low, less(shifted, low), quotient.low < low),
        ("above", high, less(high, shifted), quotient.high > high),
    ):
        if possible:
            flag = Signal(name=f"{name}_{lane}", reset_less=True)
            m.d.sync += flag.eq(beyond)
            result = Mux(flag, limit, result)
    return result
