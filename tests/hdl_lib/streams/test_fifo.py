"""FIFO and skid buffer: values, cycles, level, capacity, reset, no combinational path."""

import random

import pytest
from amaranth.hdl import signed, unsigned
from amaranth.lib import data
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl_lib.streams.fifo import Fifo
from hdl_lib.streams.skid_buffer import SkidBuffer
from tests.hdl_lib.bench import STALLS, drive
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths

LATENCY = {"register": 1, "lutram": 1, "block": 3}
CASES = [
    (Fifo, (unsigned(5), 1, "register")),
    (Fifo, (signed(9), 2, "register")),
    (Fifo, (data.ArrayLayout(signed(3), 3), 5, "register")),
    (Fifo, (unsigned(5), 1, "lutram")),
    (Fifo, (data.StructLayout({"a": 4, "b": signed(2)}), 6, "lutram")),
    (Fifo, (unsigned(1), 17, "lutram")),
    (Fifo, (unsigned(5), 1, "block")),
    (Fifo, (unsigned(5), 2, "block")),
    (Fifo, (signed(9), 3, "block")),
    (Fifo, (signed(9), 4, "block")),
    (Fifo, (data.ArrayLayout(signed(3), 3), 13, "block")),
    (SkidBuffer, (data.ArrayLayout(unsigned(4), 2),)),
]


def build(core, arguments):
    return core(*arguments[:2], style=arguments[2]) if core is Fifo else core(*arguments)


def width_of(dut):
    return len(dut.i.payload.as_value()) if hasattr(dut.i.payload, "as_value") else len(dut.i.payload)


def random_beats(dut, count, seed=0):
    rng = random.Random(seed)
    return [rng.getrandbits(width_of(dut)) for _ in range(count)]


@pytest.mark.parametrize(("core", "arguments"), CASES)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_values_in_order_and_cycles_of_the_law(core, arguments, gap, stall):
    dut = build(core, arguments)
    beats = random_beats(dut, 50)
    trace = drive(dut, beats, len(beats), gap=gap, stall=stall)
    assert trace.beats == beats
    if not gap and not stall:
        depth, latency = (arguments[1], LATENCY[arguments[2]]) if core is Fifo else (2, 1)
        assert (trace.in_cycles, trace.out_cycles) == cycles(Process([(True, True)] * 50, depth, latency))
        assert dut.latency == latency


@pytest.mark.parametrize(("core", "arguments"), CASES)
def test_reset_in_mid_frame(core, arguments):
    for seed in range(3):
        dut = build(core, arguments)
        beats = random_beats(dut, 20, seed)
        assert after_reset(dut, beats, len(beats), seed=seed) == beats


@pytest.mark.parametrize(("core", "arguments"), CASES)
def test_no_combinational_path(core, arguments):
    check_no_paths(build(core, arguments))


@pytest.mark.parametrize("style", ["register", "lutram", "block"])
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 7, 16])
def test_holds_exactly_depth_beats_and_counts_them(style, depth):
    dut = Fifo(8, depth, style=style)

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        for level in range(depth):  # the sink never takes: one beat goes in each cycle
            ctx.set(dut.i.payload, level)
            assert (ctx.get(dut.level), ctx.get(dut.i.ready)) == (level, 1)
            await ctx.tick()
        for _ in range(5):
            assert (ctx.get(dut.level), ctx.get(dut.i.ready)) == (depth, 0)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, 1)
        for level in range(depth, 0, -1):  # and comes out one each cycle
            assert (ctx.get(dut.level), ctx.get(dut.o.valid), ctx.get(dut.o.payload)) == (level, 1, depth - level)
            await ctx.tick()
        assert (ctx.get(dut.level), ctx.get(dut.o.valid), ctx.get(dut.i.ready)) == (0, 0, 1)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@settings(max_examples=15, deadline=None)
@given(
    depth=st.integers(1, 40),
    style=st.sampled_from(["register", "lutram", "block"]),
    gap=st.sampled_from([0.0, 0.3, 0.8]),
    stall=st.sampled_from([0.0, 0.3, 0.8]),
    seed=st.integers(0, 1000),
)
def test_any_depth(depth, style, gap, stall, seed):
    dut = Fifo(7, depth, style=style)
    beats = random_beats(dut, 60, seed)
    assert drive(dut, beats, 60, gap=gap, stall=stall, seed=seed).beats == beats


def test_auto_chooses_by_size():
    # 4 entries are flip-flops; 4096 bits and more go to block RAM; the rest is look-up table memory.
    assert [Fifo(8, depth).style for depth in (1, 4, 5, 511, 512)] == [
        "register", "register", "lutram", "lutram", "block",
    ]
    assert Fifo(data.ArrayLayout(signed(8), 16), 32).style == "block"
    assert Fifo.latency_of(8, 4) == 1
    assert Fifo.latency_of(8, 512) == 3
    assert Fifo.latency_of(8, 512, "lutram") == 1


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"^depth must be an integer of at least 1, not 0$"):
        Fifo(8, 0)
    with pytest.raises(
        ValueError, match=r"^style must be one of 'auto', 'register', 'lutram', 'block', not 'bram'$"
    ):
        Fifo(8, 4, style="bram")
