"""A run of beats: any beat of the run leaves after those before it, no other does; its broken twins fail."""

import pytest
from amaranth.hdl import Assert, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl_lib.memories import beat_run
from hdl_lib.memories.beat_run import BeatRun
from tests.formal.prover import check_bounded, has_path, refute
from tests.formal.scoreboard import Follower, stream_rules


class RunProof(wiring.Component):
    """``first``, ``count``: of the run that is to leave, of each ``beats``; what is beside it is never waited for."""

    i_valid: In(1)
    i_payload: In(2)
    o_ready: In(1)
    pick: In(1)

    def __init__(self, dut: BeatRun, beats: int, first: int, count: int) -> None:
        self.dut, self.beats, self.run = dut, beats, range(first, first + count)
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        step, wanted, place = Signal(), Signal(), Signal(range(self.beats + 1))
        payload = dut.o.payload.as_value()
        m.d.comb += [
            dut.i.valid.eq(self.i_valid),
            dut.i.payload.as_value().eq(self.i_payload),
            dut.o.ready.eq(self.o_ready),
            step.eq(dut.i.valid & dut.i.ready),
            wanted.eq((place >= self.run.start) & (place < self.run.stop)),
        ]
        with m.If(step):
            m.d.sync += place.eq(place + 1)
            with m.If(place == self.beats - 1):
                m.d.sync += place.eq(0)
        stream_rules(m, "o", dut.o.valid, payload, dut.o.ready)
        Follower(
            m, "beat", self.pick, enter=step & wanted, value=self.i_payload, leave=dut.o.valid & dut.o.ready,
            valid=dut.o.valid, payload=payload, capacity=dut.depth,
        )
        m.d.comb += Assert(wanted | dut.i.ready)
        return m


@pytest.mark.parametrize(("beats", "first", "count"), [(2, 0, 1), (2, 1, 1), (3, 0, 2), (3, 1, 1), (3, 1, 2)])
def test_run(beats, first, count, tmp_path):
    check_bounded(RunProof(BeatRun(2, 1, beats, first, count, depth=2), beats, first, count), tmp_path, depth=11)


def test_a_run_that_begins_a_beat_late_is_refuted(tmp_path):
    refute(RunProof(BeatRun(2, 1, 4, 2, 2, depth=2), 4, 1, 2), tmp_path)


def test_a_run_that_does_not_count_beats_is_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(beat_run, "count_up", lambda m, name, count, advance: Signal(range(count), name=name))
    refute(RunProof(BeatRun(2, 1, 3, 0, 2, depth=2), 3, 0, 2), tmp_path)


def test_no_combinational_path(tmp_path):
    assert not has_path(BeatRun(2, 1, 3, 1, 1, depth=2), tmp_path)
