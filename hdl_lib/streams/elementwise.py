"""An elementwise function of several streams."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Const, Module, Value

from hdl_lib.arithmetic.lane_functions import LaneFunction
from hdl_lib.blocks import count_up, held
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.streams.joined import NAMES, Joined

READ_LATENCY = 2
"""Cycles from a step to the word of a table: its memory and the register behind it."""


class Elementwise(Joined):
    """``o = f(a, b, ...)``, element by element.

    Parameters
    ----------
    function: see :mod:`hdl_lib.arithmetic.lane_functions` and :mod:`hdl_lib.arithmetic.divider`; it has the shapes of
        its operands and of the result.
    constants: for each operand its value, if that is one number; a table of values (a word for each beat: for each
        lane, lane 0 in the least significant bits, the operand in two's complement of its shape); or None for a
        stream. The streams are ``a``, ``b`` and so on in order; at least one. All tables have the same number of words,
        one for each beat of a frame, or of a part of it after which they begin again.
    lanes: elements per beat.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    a, b, ...: In(stream). Elements of the inputs.
    o: Out(stream). Results, in every lane.

    Timing
    ------
    As :class:`hdl_lib.streams.joined.Joined` says; :attr:`latency` cycles from a step to ``o.valid``: 2 for a table's
    memory and the register behind it if there is one, the function's stages, 1 for the output queue. Initiation
    interval 1 cycle per beat. Under backpressure no step begins; those begun continue.

    Ordering
    --------
    Beats leave in the order they came; beat n of an input meets beat n of the others.
    """

    def __init__(
        self, function: LaneFunction, *, lanes: int, depth: int, constants: Sequence[int | Table | None] = ()
    ) -> None:
        self.function = function
        self.constants = tuple(constants) or (None,) * len(function.inputs)
        if len(self.constants) != len(function.inputs):
            raise ValueError(f"constants must be {len(function.inputs)} (one per operand), not {len(self.constants)}")
        self.tables = tuple(constant for constant in self.constants if isinstance(constant, Table))
        for shape, table in zip(function.inputs, self.constants, strict=True):
            if isinstance(table, Table) and table.width != lanes * shape.width:
                raise ValueError(f"words of a table must have {lanes * shape.width} bits, not {table.width}")
        if len({table.depth for table in self.tables}) > 1:
            raise ValueError("all tables must have as many words")
        streams = [s for s, c in zip(function.inputs, self.constants, strict=True) if c is None]
        super().__init__(streams, function.output, lanes=lanes, channels=lanes, depth=depth)

    @staticmethod
    def latency_of(function: LaneFunction, *, tables: bool) -> int:
        """Return the cycles from a step to ``o.valid``; ``tables``: whether there are any."""
        return (READ_LATENCY if tables else 0) + function.stages + 1

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.function, tables=bool(self.tables))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue, step, payloads = self._issue(m)
        words = []
        if self.tables:
            beat = count_up(m, "beat", self.tables[0].depth, step)
            for index, table in enumerate(self.tables):
                m.submodules[f"table_{index}"] = rom = Rom.of_table(table, output_register=True)
                m.d.comb += rom.addr.eq(beat)
                words.append(rom.data)
        for lane in range(self.lanes):
            streams, tabled = iter(zip(NAMES, payloads, strict=False)), iter(words)
            operands: list[Value] = []
            for shape, constant in zip(self.function.inputs, self.constants, strict=True):
                if constant is None:
                    name, payload = next(streams)
                    operands.append(self._arrived(m, f"{name}_{lane}", Value.cast(payload[lane])))
                elif isinstance(constant, Table):
                    word = next(tabled).word_select(lane, shape.width)
                    operands.append(word.as_signed() if shape.signed else word)
                else:
                    operands.append(Const(constant, shape))
            m.d.comb += queue.payload[lane].eq(self.function.build(m, f"lane_{lane}", operands))
        return m

    def _arrived(self, m: Module, name: str, value: Value) -> Value:
        """Return an element of a stream, delayed to match those of the tables."""
        for stage in range(READ_LATENCY if self.tables else 0):
            value = held(m, f"{name}_{stage}", value)
        return value
