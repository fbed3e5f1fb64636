"""A delay: any beat leaves after those before it, behind the first ones, which are given; its broken twins do not."""

import pytest
from amaranth.hdl import Assert, Cover, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl_lib.memories import delay
from hdl_lib.memories.delay import Delay
from tests.formal.prover import check_bounded, has_path, refute
from tests.formal.scoreboard import stream_rules

WIDTH, FIRST = 2, 2


class DelayProof(wiring.Component):
    """``period``: beats after which the first ones come again; None: never."""

    i_valid: In(1)
    i_payload: In(WIDTH)
    o_ready: In(1)
    pick: In(1)

    def __init__(self, dut: Delay, beats: int, period: int | None) -> None:
        self.dut, self.beats, self.period = dut, beats, period
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        enter, leave = Signal(), Signal()
        m.d.comb += [
            dut.i.valid.eq(self.i_valid),
            dut.i.payload.eq(self.i_payload),
            dut.o.ready.eq(self.o_ready),
            enter.eq(dut.i.valid & dut.i.ready),
            leave.eq(dut.o.valid & dut.o.ready),
        ]
        stream_rules(m, "o", dut.o.valid, dut.o.payload, dut.o.ready)
        most = 2 * self.beats + dut.depth
        level = Signal(range(most + 2), init=self.beats)
        number = Signal(range((self.period or self.beats) + 1))  # of the beat at the output
        with m.If(leave):
            m.d.sync += number.eq(number + 1)
            if self.period is None:
                with m.If(number == self.beats):
                    m.d.sync += number.eq(number)
            else:
                with m.If(number == self.period - 1):
                    m.d.sync += number.eq(0)
        following, value, ahead = Signal(), Signal(WIDTH), Signal(range(most + 1))
        m.d.sync += level.eq(level + enter - leave)
        with m.If(following & leave):
            m.d.sync += ahead.eq(ahead - 1)
            with m.If(ahead == 0):
                m.d.sync += [following.eq(0), ahead.eq(0)]
        with m.Elif(~following & enter & self.pick):
            m.d.sync += [following.eq(1), value.eq(dut.i.payload), ahead.eq(level - leave)]
        arrives, first = following & (ahead == 0), number < self.beats
        m.d.comb += [
            Assert(level <= most),
            Assert(~(dut.o.valid & first) | (dut.o.payload == FIRST)),
            Assert(~(dut.o.valid & arrives & ~first) | (dut.o.payload == value)),
            Assert(~dut.o.valid | (level != 0)),
            Cover(arrives & leave & ~first & (value == 3)),
            Cover(arrives & leave & Mux(first, value != FIRST, 0)) if self.period else Cover(leave & first),
        ]
        return m


@pytest.mark.parametrize(("beats", "period"), [(1, None), (2, None), (1, 2)])
def test_delay(beats, period, tmp_path):
    core = Delay(WIDTH, beats, first=FIRST, again=period, depth=2)
    check_bounded(DelayProof(core, beats, period), tmp_path, depth=11)




def test_a_delay_that_never_forgets_its_first_beats_is_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(Delay, "_is_first", lambda self, m, give: Signal(name="first", init=1))
    refute(DelayProof(Delay(WIDTH, 2, first=FIRST, depth=2), 2, None), tmp_path)


def test_a_delay_that_forgets_to_begin_anew_is_refuted(tmp_path):
    refute(DelayProof(Delay(WIDTH, 1, first=FIRST, depth=2), 1, 2), tmp_path, depth=12)


def test_a_delay_whose_rows_stand_still_is_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(delay, "count_up", lambda m, name, count, advance: Signal(range(max(2, count)), name=name))
    refute(DelayProof(Delay(WIDTH, 2, first=FIRST, depth=2), 2, None), tmp_path)


def test_no_combinational_path(tmp_path):
    assert not has_path(Delay(WIDTH, 2, first=FIRST, depth=2), tmp_path)
