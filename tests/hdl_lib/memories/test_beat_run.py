"""BeatRun: a part of each frame's beats, in the cycles of the law, whatever the sides do."""

from __future__ import annotations

import pytest
from amaranth.hdl import unsigned

from hdl_lib.memories.beat_run import BeatRun
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.law import Process, cycles

FRAMES = 4
RUNS = [(5, 0, 2), (5, 1, 3), (5, 4, 1), (5, 0, 4), (8, 3, 5), (2, 0, 1), (2, 1, 1)]


@pytest.mark.parametrize(("beats", "first", "count"), RUNS)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_beats_of_the_run(beats: int, first: int, count: int, gap: float, stall: float) -> None:
    sent = [(7 * k) % 64 for k in range(FRAMES * beats)]
    trace = drive(BeatRun(unsigned(6), 1, beats, first, count, depth=2), sent, FRAMES * count, gap=gap, stall=stall)
    assert trace.beats == [beat for k, beat in enumerate(sent) if first <= k % beats < first + count]


@pytest.mark.parametrize(("beats", "first", "count"), RUNS)
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_cycles_of_the_law(beats: int, first: int, count: int, depth: int) -> None:
    dut = BeatRun(unsigned(6), 1, beats, first, count, depth=depth)
    steps = [(True, first <= k % beats < first + count) for k in range(FRAMES * beats)]
    taken, shown = cycles(Process(steps, depth, BeatRun.latency))
    trace = drive(dut, list(range(FRAMES * beats)), FRAMES * count)
    assert trace.out_cycles == shown
    assert taken[: len(trace.in_cycles)] == trace.in_cycles[: len(taken)]


@pytest.mark.parametrize(("first", "count"), [(-1, 2), (0, 0), (0, 5), (3, 3)])
def test_no_part(first: int, count: int) -> None:
    with pytest.raises(ValueError, match=f"^the run must be a part of 5 beats, not {count} from beat {first} on$"):
        BeatRun(unsigned(6), 1, 5, first, count, depth=2)
