"""Fork: every branch gets every beat, at its own pace."""

import random

import pytest
from amaranth.hdl import Value
from amaranth.lib import data
from amaranth.sim import Simulator

from hdl_lib.streams.fork import Fork
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths


def drive_branches(dut, beats, willing, cycle_count, gap=0.0, seed=0):
    """Run ``cycle_count`` cycles; branch k is ready with probability ``willing[k]``.

    Returns the cycles of the input handshakes, and for each branch its (cycle, beat) pairs.
    """
    rng = random.Random(seed)
    received = [[] for _ in willing]
    accepted = []

    async def bench(ctx):
        held = [None] * len(willing)
        offering = False
        for cycle in range(cycle_count):
            offering = len(accepted) < len(beats) and (offering or rng.random() >= gap)
            ctx.set(dut.i.valid, offering)
            ctx.set(Value.cast(dut.i.payload), beats[len(accepted)] if offering else 0)
            ready = [rng.random() < w for w in willing]
            for branch, r in zip(dut.o, ready, strict=True):
                ctx.set(branch.ready, r)
            if offering and ctx.get(dut.i.ready):
                accepted.append(cycle)
                offering = False
            for k, branch in enumerate(dut.o):
                shown = ctx.get(Value.cast(branch.payload)) if ctx.get(branch.valid) else None
                assert held[k] is None or shown == held[k], f"branch {k} did not hold its beat"
                held[k] = None if ready[k] else shown
                if ready[k] and shown is not None:
                    received[k].append((cycle, shown))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return accepted, received


CASES = [(1, (1,)), (2, (2, 2)), (2, (1, 3)), (3, (2, 5, 20))]


@pytest.mark.parametrize(("outputs", "depths"), CASES)
def test_full_rate_cycles_of_the_law(outputs, depths):
    beats = list(range(40))
    accepted, received = drive_branches(Fork(6, outputs, depths), beats, [1.0] * outputs, 150)
    # All sinks take at once, so the shallowest branch alone decides when a step has its credits.
    taken, delivered = cycles(Process([(True, True)] * 40, min(depths), 1))
    assert accepted == taken
    assert received == [list(zip(delivered, beats, strict=True))] * outputs


@pytest.mark.parametrize(("outputs", "depths"), CASES)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_every_branch_gets_every_beat_at_its_own_pace(outputs, depths, gap, stall):
    dut = Fork(data.ArrayLayout(4, 2), outputs, depths)
    beats = [(37 * k) & 0xFF for k in range(40)]
    willing = [(1 - stall) / (k + 1) for k in range(outputs)]
    _, received = drive_branches(dut, beats, willing, 1000, gap, seed=outputs)
    assert [[beat for _, beat in branch] for branch in received] == [beats] * outputs
    # The shared bench, which watches the protocol, sees one branch while the others always take.
    dut = Fork(data.ArrayLayout(4, 2), outputs, depths)
    if outputs == 1:
        assert drive(dut, beats, 40, gap=gap, stall=stall, o=dut.o[0]).beats == beats


def test_a_branch_that_never_takes_stops_the_others_after_its_depth():
    dut = Fork(8, 2, (5, 3))
    accepted, received = drive_branches(dut, list(range(40)), [1.0, 0.0], 60)
    assert accepted == [0, 1, 2]
    assert received == [[(1, 0), (2, 1), (3, 2)], []]


def test_reset_in_mid_frame():
    for seed in range(4):
        dut = Fork(8, 1, (3,))
        assert after_reset(dut, list(range(20)), 20, seed=seed, o=dut.o[0]) == list(range(20))


@pytest.mark.parametrize(("outputs", "depths"), CASES)
def test_no_combinational_path(outputs, depths):
    dut = Fork(3, outputs, depths)
    check_no_paths(dut, outputs=list(dut.o))


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"^outputs must be an integer of at least 1, not 0$"):
        Fork(8, 0)
    with pytest.raises(ValueError, match=r"^depths must have one entry for each of the 2 outputs, not 3$"):
        Fork(8, 2, (1, 2, 3))
    with pytest.raises(ValueError, match=r"^styles must have one entry for each of the 2 outputs, not 1$"):
        Fork(8, 2, (1, 2), ("block",))
    with pytest.raises(ValueError, match=r"^depth must be an integer of at least 1, not 0$"):
        Fork(8, 2, (1, 0))
