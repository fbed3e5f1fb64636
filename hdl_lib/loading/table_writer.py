"""The way of a loader's bytes to the tables of a design: a line from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.rom import WritePort

TABLE_BITS, ROW_BITS = 8, 20
"""Of the number of a table, and of the number of a row. Synthesis leaves out what a design does not use."""

LINE = wiring.Signature(
    {"data": Out(8), "shift": Out(1), "write": Out(1), "table": Out(TABLE_BITS), "row": Out(ROW_BITS)}
)
"""``shift``: ``data`` is the next byte of a row, the highest byte first; ``write``: and its last one, so that it is row
``row`` of table ``table``."""

FIELDS = tuple(LINE.members)


class TableWriter(wiring.Component):
    """Collects the bytes that pass on the line, and writes a row of its table when the line says so.

    Parameters: ``port``: of the table; ``offset``: its number in this core.

    Members: ``i`` (in), ``o`` (out): :data:`LINE`; ``first`` (in): the number of this core's first table.

    Timing: ``o`` is ``i`` a cycle later; the row is written two cycles after ``i.write``. A byte a cycle. After reset
    nothing is written.
    """

    def __init__(self, port: WritePort, offset: int) -> None:
        self.port, self.offset = port, offset
        super().__init__({"i": In(LINE), "o": Out(LINE), "first": In(TABLE_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        late = {
            name: Signal.like(getattr(self.i, name), name=f"late_{name}", reset_less=name not in ("shift", "write"))
            for name in FIELDS
        }
        m.d.sync += [signal.eq(getattr(self.i, name)) for name, signal in late.items()]
        m.d.comb += [getattr(self.o, name).eq(signal) for name, signal in late.items()]
        port = self.port
        word = Signal(len(port.data), name="row", reset_less=True)
        with m.If(late["shift"]):
            m.d.sync += word.eq(Cat(late["data"], word))
        enable, address = Signal(), Signal(len(port.address), reset_less=True)
        m.d.sync += [
            enable.eq(late["write"] & (late["table"] == self.first + self.offset)),
            address.eq(late["row"]),
        ]
        m.d.comb += [port.enable.eq(enable), port.address.eq(address), port.data.eq(word)]
        return m


class LoadableCore(wiring.Component):
    """A core with tables, and a writer for each on the line of the loader.

    Parameters: ``core``: the component; ``ports``: of its tables, in order.

    Members: those of ``core``, the same signals; ``load_i`` (in), ``load_o`` (out): :data:`LINE`; ``load_first`` (in):
    the number of its first table in the design.

    Timing: of the streams as ``core``; ``load_o`` is ``load_i`` as many cycles later as there are tables.
    """

    def __init__(self, core: wiring.Component, ports: Sequence[WritePort]) -> None:
        self.core, self.ports = core, tuple(ports)
        members = core.signature.members
        super().__init__(
            {
                **{name: members[name] for name in members},
                "load_i": In(LINE), "load_o": Out(LINE), "load_first": In(TABLE_BITS),
            }
        )
        for name in members:
            setattr(self, name, getattr(core, name))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = self.core
        line: Any = self.load_i
        for number, port in enumerate(self.ports):
            m.submodules[f"writer_{number}"] = writer = TableWriter(port, number)
            m.d.comb += [getattr(writer.i, name).eq(getattr(line, name)) for name in FIELDS]
            m.d.comb += writer.first.eq(self.load_first)
            line = writer.o
        m.d.comb += [getattr(self.load_o, name).eq(getattr(line, name)) for name in FIELDS]
        return m
