"""Rows that are handed on as a whole: beats keep their order, no row begins to leave before its last beat is there, and
none comes in while two are; broken twins fail."""

import pytest
from amaranth.hdl import Assert, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl_lib.matrices import whole_rows
from hdl_lib.matrices.whole_rows import WholeRows
from tests.formal.prover import check_bounded, has_path, refute
from tests.formal.scoreboard import Follower, stream_rules


class RowsProof(wiring.Component):
    """Counts what came in and left by itself, in beats of both."""

    i_valid: In(1)
    i_payload: In(2)
    o_ready: In(1)
    pick: In(1)

    def __init__(self, dut: WholeRows) -> None:
        self.dut = dut
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        beats, most = dut.beats, 2 * dut.beats
        enter, leave = Signal(), Signal()
        m.d.comb += [
            dut.i.valid.eq(self.i_valid),
            dut.i.payload.eq(self.i_payload),
            dut.o.ready.eq(self.o_ready),
            enter.eq(dut.i.valid & dut.i.ready),
            leave.eq(dut.o.valid & dut.o.ready),
        ]
        stream_rules(m, "o", dut.o.valid, dut.o.payload, dut.o.ready)
        Follower(
            m, "beat", self.pick, enter=enter, value=self.i_payload, leave=leave, valid=dut.o.valid,
            payload=dut.o.payload, capacity=most,
        )
        came, left, rows = Signal(range(beats + 1)), Signal(range(beats + 1)), Signal(range(4))
        ends, gone = enter & (came == beats - 1), leave & (left == beats - 1)
        with m.If(enter):
            m.d.sync += came.eq(came + 1)
            with m.If(came == beats - 1):
                m.d.sync += came.eq(0)
        with m.If(leave):
            m.d.sync += left.eq(left + 1)
            with m.If(left == beats - 1):
                m.d.sync += left.eq(0)
        m.d.sync += rows.eq(rows + ends - gone)
        m.d.comb += [Assert(~dut.o.valid | (rows != 0)), Assert(dut.i.ready == (rows < 2))]
        # Of a row that has begun to leave a beat shows in every cycle.
        m.d.comb += Assert(~(left != 0) | dut.o.valid)
        return m


@pytest.mark.parametrize("beats", [1, 2, 3])
def test_rows(beats, tmp_path):
    check_bounded(RowsProof(WholeRows(2, beats)), tmp_path, depth=10)


def test_rows_that_leave_before_they_are_whole_are_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(whole_rows, "count", lambda m, whole, comes, goes: m.d.sync.__iadd__(whole.eq(0)))
    refute(RowsProof(WholeRows(2, 2)), tmp_path)


def test_rows_that_do_not_count_beats_are_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(whole_rows, "loop", lambda m, name, beats, advance: advance)
    refute(RowsProof(WholeRows(2, 2)), tmp_path)


def test_no_combinational_path(tmp_path):
    assert not has_path(WholeRows(2, 3), tmp_path)
