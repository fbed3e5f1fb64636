"""Loads the tables of a design with other words while it runs: from packets, checked by a CRC a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.links.crc import Crc32
from hdl_lib.loading.table_writer import LINE, ROW_BITS, TABLE_BITS

PACKET_BYTE = data.StructLayout({"data": 8, "last": 1})
CRC_BYTES = 4


class Command(IntEnum):
    """The first byte of a packet: tables follow; or nothing, it is only asked how they are."""

    LOAD = 1
    STATUS = 2


@dataclass(frozen=True)
class Rows:
    """A table as it is loaded: ``rows`` of ``width`` bits."""

    width: int
    rows: int

    @property
    def row_bytes(self) -> int:
        return -(-self.width // 8)

    @property
    def bytes(self) -> int:
        return self.rows * self.row_bytes


class TableLoader(wiring.Component):
    """Takes packets: :attr:`Command.LOAD`, then of each table its rows (each in whole bytes, the highest first) and the
    CRC-32 of these bytes as in zlib, the lowest byte first; or :attr:`Command.STATUS` alone. Answers each packet.

    Tables are written only while ``empty`` is high, and from the command on ``hold`` is, so that no frame meets a table
    while it changes. It stays high until a load has succeeded: all tables have come with their CRCs, and ``last`` at
    the last byte. After one that has not, frames are refused until the next. Other commands change nothing.

    An answer has a byte for each table, 0 or 1: it has not come whole and with its CRC in the load before; and one more
    byte, which is its last: bit 0: frames are refused; bit 1: tables are not as they were when the device was
    configured.

    Parameters: ``tables``: 1 to 255, each of at most 2**20 rows.

    Members: ``i`` (in), ``o`` (out): streams of ``PACKET_BYTE``; ``line`` (out): to the tables; ``hold`` (out) and
    ``empty`` (in): of the gate; ``refuses`` (out): no load is under way, and frames wait for one. Reset ends a load
    that is under way as if it had failed; it does not change what the tables hold, and the loader knows that.

    Timing: a byte a cycle while tables come, but for three cycles behind each CRC; ``hold`` is high from the cycle
    after the command, and as many cycles after the last CRC as there are tables, and three. The first row is taken once
    ``empty`` has been high.
    """

    def __init__(self, tables: Sequence[Rows]) -> None:
        if not 1 <= len(tables) < 1 << TABLE_BITS:
            raise ValueError(f"tables must be 1 to {(1 << TABLE_BITS) - 1}, not {len(tables)}")
        if any(table.rows > 1 << ROW_BITS for table in tables):
            raise ValueError(f"tables must have at most {1 << ROW_BITS} rows")
        self.tables = tuple(tables)
        super().__init__(
            {
                "i": In(stream.Signature(PACKET_BYTE)),
                "o": Out(stream.Signature(PACKET_BYTE)),
                "line": Out(LINE),
                "hold": Out(1),
                "empty": In(1),
                "refuses": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = crc = Crc32()
        tables = self.tables
        # Of the tables, not of the session: they outlive a reset.
        wrong = Signal(len(tables), reset_less=True)
        failed, changed = Signal(reset_less=True), Signal(reset_less=True)

        table = Signal(range(len(tables) + 1))
        row = Signal(range(max(2, *(each.rows for each in tables))))
        byte = Signal(range(max(2, CRC_BYTES, *(each.row_bytes for each in tables))))
        last_row, last_byte = Signal.like(row), Signal.like(byte)
        with m.Switch(table):  # registers: known long before they are compared with
            for number, each in enumerate(tables):
                with m.Case(number):
                    m.d.sync += [last_row.eq(each.rows - 1), last_byte.eq(each.row_bytes - 1)]
        final = Signal()
        m.d.sync += final.eq(table == len(tables) - 1)

        taken, ended = Signal(), Signal()
        m.d.comb += [taken.eq(self.i.valid & self.i.ready), ended.eq(self.i.payload.last)]
        # The line: registers, whose strobes are low unless set below.
        line = self.line
        late = {
            name: Signal.like(getattr(line, name), name=f"line_{name}", reset_less=name not in ("shift", "write"))
            for name in LINE.members
        }
        m.d.comb += [getattr(line, name).eq(signal) for name, signal in late.items()]
        m.d.sync += [
            late["data"].eq(self.i.payload.data), late["row"].eq(row), late["table"].eq(table),
            late["shift"].eq(0), late["write"].eq(0),
        ]
        m.d.comb += crc.data.eq(self.i.payload.data)
        cut = Signal()  # the packet has ended

        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.comb += [self.i.ready.eq(1), crc.start.eq(1)]
                m.d.sync += [table.eq(0), row.eq(0), byte.eq(0), cut.eq(ended)]
                with m.If(taken):
                    with m.If((self.i.payload.data == Command.LOAD) & ~ended):
                        m.next = "WAIT"
                    with m.Elif(ended):
                        m.next = "ANSWER"
                    with m.Else():
                        m.next = "SKIP"
            with m.State("WAIT"):
                m.d.comb += crc.start.eq(1)
                with m.If(self.empty):
                    m.d.sync += [failed.eq(1), changed.eq(1), wrong.eq(~0)]
                    m.next = "ROWS"
            with m.State("ROWS"):
                m.d.comb += [self.i.ready.eq(1), crc.valid.eq(taken)]
                with m.If(taken):
                    m.d.sync += [late["shift"].eq(1), byte.eq(byte + 1), cut.eq(ended)]
                    with m.If(byte == last_byte):
                        m.d.sync += [late["write"].eq(1), byte.eq(0), row.eq(row + 1)]
                        with m.If(row == last_row):
                            m.d.sync += row.eq(0)
                            m.next = "CRC"
                    with m.If(ended):
                        m.d.sync += table.eq(0)
                        m.next = "ANSWER"
            with m.State("CRC"):
                m.d.comb += [self.i.ready.eq(1), crc.valid.eq(taken)]
                with m.If(taken):
                    m.d.sync += [byte.eq(byte + 1), cut.eq(ended)]
                    with m.If(byte == CRC_BYTES - 1):
                        m.d.sync += byte.eq(0)
                        m.next = "CHECK"
                    with m.Elif(ended):
                        m.d.sync += table.eq(0)
                        m.next = "ANSWER"
            with m.State("CHECK"):
                with m.If(crc.match_detected):
                    m.d.sync += wrong.bit_select(table, 1).eq(0)
                m.next = "NEXT"
            with m.State("NEXT"):
                m.d.comb += crc.start.eq(1)
                m.d.sync += table.eq(table + 1)
                with m.If(final | cut):
                    m.d.sync += table.eq(0)
                    with m.If(~cut):
                        m.next = "SKIP"
                    with m.Elif(final & ~wrong.any()):
                        m.next = "DRAIN"
                    with m.Else():
                        m.next = "ANSWER"
                with m.Else():
                    m.next = "SETTLE"
            with m.State("SETTLE"):  # the next table's sizes
                m.next = "ROWS"
            with m.State("DRAIN"):  # a cycle for each register of the line
                m.d.sync += table.eq(table + 1)
                with m.If(table == len(tables)):
                    m.d.sync += [table.eq(0), failed.eq(0)]
                    m.next = "ANSWER"
            with m.State("SKIP"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(taken & ended):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += [
                    self.o.valid.eq(1),
                    self.o.payload.last.eq(table == len(tables)),
                    self.o.payload.data.eq(
                        Mux(self.o.payload.last, Cat(failed, changed), wrong.bit_select(table, 1))
                    ),
                ]
                with m.If(self.o.ready):
                    m.d.sync += table.eq(table + 1)
                    with m.If(self.o.payload.last):
                        m.next = "IDLE"
        loading = Signal()
        m.d.comb += [
            loading.eq(~(fsm.ongoing("IDLE") | fsm.ongoing("SKIP") | fsm.ongoing("ANSWER"))),
            self.hold.eq(loading | failed),
            self.refuses.eq(failed & ~loading),
        ]
        return m
