"""The bench that drives every core, on a register of one beat and on twins that break a rule of streams."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tests.hdl_lib import bench, protocol

BEATS = list(range(30))


class Register(wiring.Component):
    """Holds one beat; ``defect``: "drop" withdraws valid now and then, "change" counts up while it waits, "surplus"
    shows a beat again, "through" is ready when the sink is, "reset" has no reset."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def __init__(self, defect: str = "") -> None:
        self.defect = defect
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        full, data, age = Signal(reset_less=self.defect == "reset"), Signal(8), Signal(8)
        m.d.comb += [self.o.valid.eq(full), self.o.payload.eq(data), self.i.ready.eq(~full)]
        m.d.sync += age.eq(age + 1)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [full.eq(1), data.eq(self.i.payload)]
        with m.If(full & self.o.ready):
            m.d.sync += full.eq(0)
        with m.If((self.defect == "drop") & age[:3].all()):
            m.d.comb += self.o.valid.eq(0)
        with m.If((self.defect == "change") & full & ~self.o.ready):
            m.d.sync += data.eq(data + 1)
        with m.If((self.defect == "surplus") & (age == 100)):
            m.d.sync += full.eq(1)
        if self.defect == "through":
            m.d.comb += self.i.ready.eq(~full & self.o.ready)
        return m


@pytest.mark.parametrize(("gap", "stall"), bench.STALLS)
def test_what_goes_through(gap: float, stall: float) -> None:
    trace = bench.drive(Register(), BEATS, 30, gap=gap, stall=stall, seed=3)
    assert trace.beats == BEATS
    assert all(taken < given for taken, given in zip(trace.in_cycles, trace.out_cycles, strict=True))
    if gap == stall == 0:  # full in one cycle, empty in the next
        assert trace.in_cycles == [2 * beat for beat in BEATS]
        assert trace.out_cycles == [2 * beat + 1 for beat in BEATS]
    else:
        assert trace.out_cycles[-1] > 2 * 30


def test_the_second_run_begins_where_the_first_has_ended() -> None:
    """Twenty cycles after the first run's last beat, without a reset."""
    runs = [bench.Run([BEATS], 30), bench.Run([BEATS[:5]], 5)]
    core = Register()
    first, second = bench.drive_in_turn(core, runs, [core.i], core.o)
    assert (first.beats, second.beats) == (BEATS, BEATS[:5])
    assert second.in_cycles[0] > first.out_cycles[-1] + 20


@pytest.mark.parametrize(
    ("defect", "message"),
    [
        ("drop", "valid was withdrawn before ready"), ("change", "payload changed from .* before ready"),
        ("surplus", "31 beats came out, not 30"),
    ],
)
def test_broken_twins_are_found_where_the_sink_stalls(defect: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        bench.drive(Register(defect), BEATS, 30, stall=0.4, seed=3)


def test_a_beat_that_never_comes_is_missed() -> None:
    with pytest.raises(AssertionError, match="no 31 beats within 500 cycles, only 30"):
        bench.drive(Register(), BEATS, 31, timeout=500)


def test_what_survives_a_reset_is_found() -> None:
    assert protocol.after_reset(Register(), BEATS, 30, seed=1) == BEATS
    with pytest.raises(AssertionError):
        for seed in range(20):  # some reset finds the register full
            assert protocol.after_reset(Register("reset"), BEATS, 30, seed=seed) == BEATS


def test_a_path_through_is_found() -> None:
    protocol.check_no_paths(Register())
    with pytest.raises(AssertionError, match="a combinational path"):
        protocol.check_no_paths(Register("through"))
