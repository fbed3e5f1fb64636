"""Frame sync and frame mark: good frames, short ones, long ones, and the good one after them."""

import random

import pytest
from amaranth.hdl import Module, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hdl_lib.blocks import delayed
from hdl_lib.chain import Chain, Link
from hdl_lib.streams.frame_mark import FrameMark
from hdl_lib.streams.frame_sync import FrameSync
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths

LAST = 1 << 8


def marked(*frames):
    """Frames as beats of 8 bits, ``last`` above them, set on each frame's last beat."""
    return [beat | (LAST if k == len(frame) - 1 else 0) for frame in frames for k, beat in enumerate(frame)]


GOOD = [[11, 12, 13, 14], [21, 22, 23, 24]]
LONG = list(range(1, 12))
STREAMS = {  # for frames of 4 beats: what is offered, what comes out, whether it is an error
    "good": (marked(*GOOD), [*GOOD[0], *GOOD[1]], False),
    "short": (marked([1, 2], *GOOD), [1, 2, 0, 0, *GOOD[0], *GOOD[1]], True),
    "shortest": (marked([1], *GOOD), [1, 0, 0, 0, *GOOD[0], *GOOD[1]], True),
    "short by one": (marked([1, 2, 3], *GOOD), [1, 2, 3, 0, *GOOD[0], *GOOD[1]], True),
    "long by one": (marked([1, 2, 3, 4, 5], *GOOD), [1, 2, 3, 4, *GOOD[0], *GOOD[1]], True),
    "long by more than a frame": (marked(LONG, *GOOD), [1, 2, 3, 4, *GOOD[0], *GOOD[1]], True),
    "missing mark": ([1, 2, 3, 4, *marked(*GOOD)], [1, 2, 3, 4, *GOOD[1]], True),
    "short after long": (
        marked([1, 2, 3, 4, 5], [6], *GOOD),
        [1, 2, 3, 4, 6, 0, 0, 0, *GOOD[0], *GOOD[1]],
        True,
    ),
    "between good ones": (marked(GOOD[0], [1, 2], GOOD[1]), [*GOOD[0], 1, 2, 0, 0, *GOOD[1]], True),
}


@pytest.mark.parametrize("case", STREAMS)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_whole_frames_come_out(case, gap, stall):
    offered, expected, _ = STREAMS[case]
    dut = FrameSync(8, 4)
    assert drive(dut, offered, len(expected), gap=gap, stall=stall).beats == expected


@pytest.mark.parametrize("case", STREAMS)
def test_error_is_set_the_cycle_after_the_offence_and_stays(case):
    offered, _, wrong = STREAMS[case]
    dut = FrameSync(8, 4)
    # The first beat whose mark is not where the frame of 4 beats has its end.
    offence = next((k for k, beat in enumerate(offered) if (beat >= LAST) != (k % 4 == 3)), None)
    assert (offence is not None) == wrong

    async def bench(ctx):
        taken = 0
        ctx.set(dut.o.ready, 1)
        for _ in range(40):
            ctx.set(dut.i.valid, taken < len(offered))
            ctx.set(dut.i.payload, data.Const(dut.i.payload.shape(), offered[min(taken, len(offered) - 1)]))
            assert ctx.get(dut.error) == (wrong and taken > offence)
            taken += ctx.get(dut.i.valid & dut.i.ready)
            await ctx.tick()
        assert taken == len(offered)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("beats", [1, 2, 3, 7])
def test_full_rate_cycles_of_the_law(beats):
    frames = [[(16 * f + k) & 0xFF for k in range(beats)] for f in range(5)]
    trace = drive(FrameSync(8, beats), marked(*frames), 5 * beats)
    assert trace.beats == [beat for frame in frames for beat in frame]
    assert (trace.in_cycles, trace.out_cycles) == cycles(Process([(True, True)] * (5 * beats), 2, 1))


def test_cycles_of_repairs():
    # Frames of 4: a short one (2 beats, then 2 filled in), a long one (4 beats, then 2 dropped), a good one.
    steps = [(True, True)] * 2 + [(False, True)] * 2 + [(True, True)] * 4 + [(True, False)] * 2 + [(True, True)] * 4
    trace = drive(FrameSync(8, 4), marked([1, 2], [1, 2, 3, 4, 5, 6], GOOD[0]), 12)
    assert (trace.in_cycles, trace.out_cycles) == cycles(Process(steps, 2, 1))
    assert trace.in_cycles == [0, 1, *range(4, 14)]


def test_frames_of_one_beat():
    offered = [7 | LAST, 8, 9, 10 | LAST, 11 | LAST]
    assert drive(FrameSync(8, 1), offered, 3).beats == [7, 8, 11]


def test_random_frames_against_a_model():
    rng = random.Random(1)
    for trial in range(6):
        beats = rng.randrange(1, 6)
        offered = [rng.getrandbits(8) | (LAST if rng.random() < 0.35 else 0) for _ in range(80)] + [LAST]
        expected, position, dropping = [], 0, False
        for beat in offered:
            last = beat >= LAST
            if dropping:
                dropping = not last
                continue
            expected.append(beat & 0xFF)
            position += 1
            if position == beats:
                position, dropping = 0, not last
            elif last:
                expected += [0] * (beats - position)
                position = 0
        trace = drive(FrameSync(8, beats), offered, len(expected), gap=0.2, stall=0.3, seed=trial)
        assert trace.beats == expected


@pytest.mark.parametrize("case", STREAMS)
def test_reset_in_mid_frame(case):
    offered, expected, _ = STREAMS[case]
    for seed in range(3):
        dut = FrameSync(8, 4)
        assert after_reset(dut, offered, len(expected), seed=seed) == expected


def test_no_combinational_path():
    check_no_paths(FrameSync(data.ArrayLayout(4, 2), 3), cycles=200)


@pytest.mark.parametrize("beats", [1, 2, 5])
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_frame_mark_marks_each_last_beat(beats, gap, stall):
    frames = [[(16 * f + k) & 0xFF for k in range(beats)] for f in range(4)]
    offered = [beat for frame in frames for beat in frame]
    trace = drive(FrameMark(unsigned(8), beats), offered, len(offered), gap=gap, stall=stall)
    assert trace.beats == marked(*frames)
    if not gap and not stall:
        assert trace.in_cycles == trace.out_cycles == list(range(4 * beats))


def test_frame_mark_after_reset():
    for seed in range(3):
        assert after_reset(FrameMark(8, 3), [1, 2, 3, 4, 5, 6], 6, seed=seed) == marked([1, 2, 3], [4, 5, 6])


def test_wrong_arguments_are_named():
    for core in (FrameSync, FrameMark):
        with pytest.raises(ValueError, match=r"^beats must be an integer of at least 1, not 0$"):
            core(8, 0)


@pytest.mark.parametrize(("gap", "stall"), STALLS)
@pytest.mark.parametrize("depth", [2, 5])
def test_a_chain_drops_beats_and_loses_no_credit(gap, stall, depth):
    """Frames of one beat in front of another core: a beat without a mark is passed on, those after it up to the next
    mark are dropped. More are dropped than there are credits."""
    sync, core = FrameSync(8, 1, depth=0), Pipeline()
    chain = Chain([("sync", Link(sync, sync.i, sync.o)), ("core", Link(core, core.i, core.o))], depth=depth)
    offered = [3 | LAST, 5, *range(20, 31), 40 | LAST, *(k | LAST for k in range(50, 60)), 7, 60 | LAST, 61 | LAST]
    expected = [3, 5, *range(50, 60), 7, 61]
    assert drive(chain, offered, len(expected), gap=gap, stall=stall).beats == expected


def test_only_frames_of_a_beat_need_no_queue():
    with pytest.raises(ValueError, match="depth must be 2, or 0 with frames of a beat, not 0 with 2"):
        FrameSync(8, 2, depth=0)


class Pipeline(wiring.Component):
    """Gives each beat two cycles later."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.valid.eq(delayed(m, "valid", self.i.valid, 2))
        m.d.comb += self.o.payload.eq(delayed(m, "beat", self.i.payload, 2))
        return m
