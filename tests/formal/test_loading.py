"""Proofs for what loads tables: the loader beside a monitor of its packets, the gate beside counts of frames; each
refutes a broken twin. They are of everything that can happen in so many cycles from reset, resets included.

In the loader's the CRC is anybody's guess: whether it matches is a free input, which covers whatever bytes come.
"""

import pytest
from amaranth.hdl import Array, Assert, Assume, Const, Cover, Module, Mux, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.loading import frame_gate, table_loader
from hdl_lib.loading.frame_gate import FrameGate
from hdl_lib.loading.table_loader import Command, Rows, TableLoader
from tests.formal.prover import check_bounded, refute
from tests.formal.scoreboard import stream_rules

TABLES = [Rows(12, 1)]
CRC_BYTES = 1  # instead of four


class AnyCrc(wiring.Component):
    """Stands for the CRC: it matches when ``matches`` says so."""

    start: In(1)
    valid: In(1)
    data: In(8)
    match_detected: Out(1)

    def __init__(self, matches):
        self.matches = matches
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.match_detected.eq(self.matches)
        return m


class LoaderProof(wiring.Component):
    """Packets of any bytes and lengths; answers are taken at any time."""

    data: In(8)
    last: In(1)
    valid: In(1)
    ready: In(1)
    empty: In(1)
    matches: In(1)

    def __init__(self, *, heeds_gate=True):
        self.heeds_gate = heeds_gate
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = TableLoader(TABLES)
        # What each byte behind the command is: of a row (table, row, its last one), or of a CRC (its last one).
        plan = []
        for number, table in enumerate(TABLES):
            plan += [
                (1, number, row, byte == table.row_bytes - 1, 0)
                for row in range(table.rows) for byte in range(table.row_bytes)
            ]
            plan += [(0, number, 0, 0, byte == CRC_BYTES - 1) for byte in range(CRC_BYTES)]
        total = len(plan)
        place = Signal(range(total + 2))  # of the next byte behind the command; total + 1: too many
        in_rows, table, row, ends_row, ends_crc = (
            Array([Const(int(step[k]), 4) for step in plan] + [Const(0, 4)] * 2)[place] for k in range(5)
        )

        m.d.comb += [
            dut.i.payload.data.eq(self.data), dut.i.payload.last.eq(self.last), dut.i.valid.eq(self.valid),
            dut.o.ready.eq(self.ready), dut.empty.eq(self.empty if self.heeds_gate else 1),
        ]
        taken = self.valid & dut.i.ready
        begun, loads, waits, ended = Signal(), Signal(), Signal(), Signal()
        refuses = Signal(reset_less=True)  # as the monitor expects it
        good = Signal()
        check = Signal()  # the cycle behind a CRC
        m.d.sync += check.eq(0)
        with m.If(waits & self.empty):
            m.d.sync += [waits.eq(0), refuses.eq(1)]
        with m.If(taken & ~begun):
            m.d.sync += [
                begun.eq(1), place.eq(0), good.eq(1), ended.eq(self.last),
                loads.eq((self.data == Command.LOAD) & ~self.last), waits.eq((self.data == Command.LOAD) & ~self.last),
            ]
        with m.If(taken & begun):
            m.d.sync += [
                place.eq(Mux(place > total, place, place + 1)), ended.eq(self.last), check.eq(loads & ends_crc[0]),
            ]
        with m.If(check & ~self.matches):
            m.d.sync += good.eq(0)
        whole = loads & good & (place == total)
        answered = dut.o.valid & self.ready & dut.o.payload.last
        with m.If(answered):
            m.d.sync += [begun.eq(0), ended.eq(0), loads.eq(0)]
        unsure, expected = Signal(reset_less=True), Signal()  # a reset came while a load was ending
        m.d.sync += unsure.eq(ResetSignal() & whole)
        m.d.comb += expected.eq(Mux(unsure, dut.refuses, refuses))
        with m.If(whole & dut.o.valid):
            m.d.sync += refuses.eq(0)
        with m.Elif(unsure & ~(waits & self.empty)):
            m.d.sync += refuses.eq(expected)

        # The line shows a byte of a row in the cycle after it was taken.
        shown = Signal()
        byte, of_table, of_row, writes = Signal(8), Signal(4), Signal(4), Signal()
        m.d.sync += [
            shown.eq(taken & begun & loads & in_rows[0]), byte.eq(self.data), of_table.eq(table), of_row.eq(row),
            writes.eq(ends_row[0]),
        ]
        was_empty, held = Signal(), Signal()
        m.d.sync += [was_empty.eq(self.empty), held.eq(dut.hold)]
        line = dut.line
        m.d.comb += [
            Assume(~(held & was_empty) | self.empty),  # of a gate that holds
            Assert(line.shift == shown),
            Assert(line.write == (shown & writes)),
            Assert(~shown | ((line.data == byte) & (line.table == of_table) & (line.row == of_row))),
            Assert(~shown | (dut.hold & was_empty)),  # no frame meets a table that changes
            Assert(~(taken & ended)),  # a packet is answered before the next begins
            Assert(~dut.o.valid | ended),
            Assert(~answered | (dut.o.payload.data[0] == (refuses & ~whole))),
            Assert(begun | (dut.hold == expected)),
            Assert(begun | (dut.refuses == expected)),
            Assert(~(begun & loads & refuses & ~ended) | dut.hold),
            Cover(answered & whole),
            Cover(answered & loads & ended & (place == 2)),  # cut short
            Cover(answered & loads & (place > total)),
            Cover(~begun & refuses & taken & (self.data == Command.STATUS)),
        ]
        stream_rules(m, "answer", dut.o.valid, dut.o.payload.as_value(), self.ready)
        return m


@pytest.fixture
def any_crc(monkeypatch):
    """Set what stands for the loader's CRC."""
    def set_(matches):
        monkeypatch.setattr(table_loader, "Crc32", lambda: AnyCrc(matches))
        monkeypatch.setattr(table_loader, "CRC_BYTES", CRC_BYTES)

    return set_


CYCLES = 13  # of a whole load, without a pause, and its answer


def test_loader(tmp_path, any_crc):
    proof = LoaderProof()
    any_crc(proof.matches)
    check_bounded(proof, tmp_path, depth=CYCLES)


def test_a_loader_that_does_not_wait_is_refuted(tmp_path, any_crc):
    proof = LoaderProof(heeds_gate=False)
    any_crc(proof.matches)
    refute(proof, tmp_path, depth=8)


def test_a_loader_without_a_crc_is_refuted(tmp_path, any_crc):
    proof = LoaderProof()
    any_crc(Const(1))
    refute(proof, tmp_path, depth=CYCLES)


class GateProof(wiring.Component):
    """A core with two inputs, from which frames leave at any time once they have begun everywhere."""

    offers: In(2)
    lasts: In(2)
    leaves: In(1)
    hold: In(1)

    def __init__(self, *, open_=False):
        self.open_ = open_
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = FrameGate(2, 1)
        begun = [Signal(4, name=f"begun{k}") for k in range(2)]
        inside = [Signal(name=f"inside{k}") for k in range(2)]
        left, leaves = Signal(4), Signal()
        m.d.comb += dut.hold.eq(self.hold)
        furthest = Mux(begun[0] > begun[1], begun[0], begun[1])
        for k in range(2):
            enters = self.offers[k] & (1 if self.open_ else getattr(dut, f"open{k}"))
            last = self.lasts[k]
            m.d.comb += [getattr(dut, f"enters{k}").eq(enters), getattr(dut, f"last{k}").eq(last)]
            starts = enters & ~inside[k]
            with m.If(starts):
                m.d.sync += begun[k].eq(begun[k] + 1)
            with m.If(enters):
                m.d.sync += inside[k].eq(~last)
            # held, a frame begins only where another input has had it
            m.d.comb += Assert(~(self.hold & starts) | (begun[k] < furthest))
        m.d.comb += [leaves.eq(self.leaves & (left < begun[0]) & (left < begun[1])), dut.leaves0.eq(leaves)]
        with m.If(leaves):
            m.d.sync += left.eq(left + 1)
        all_out = (begun[0] == begun[1]) & (left == begun[0]) & ~inside[0] & ~inside[1]
        settled = Signal(2)  # cycles in which nothing has moved
        moves = Signal()
        m.d.comb += moves.eq(dut.enters0 | dut.enters1 | dut.leaves0)
        m.d.sync += settled.eq(Mux(moves, 0, Mux(settled == 3, 3, settled + 1)))
        was_held = Signal()
        m.d.sync += was_held.eq(self.hold)
        m.d.comb += [
            Assert(~(dut.empty & was_held) | all_out),
            Assert(~((settled == 3) & all_out) | dut.empty),
            Cover(dut.empty & self.hold & (begun[0] == 2)),
            Cover(self.hold & dut.enters1 & (begun[0] == 2) & (begun[1] == 1)),
        ]
        return m


def test_gate(tmp_path, monkeypatch):
    monkeypatch.setattr(frame_gate, "COUNT", 4)
    check_bounded(GateProof(), tmp_path, depth=9)


def test_an_open_gate_is_refuted(tmp_path):
    refute(GateProof(open_=True), tmp_path, depth=6)
