"""A stream between two clocks: every beat, in order, as fast as the slower one, and none of before a reset."""

from __future__ import annotations

import random

import pytest
from amaranth import ClockDomain, Elaboratable, Module, ResetSignal, Signal
from amaranth.sim import Simulator

from hdl_lib.clocks import stream_crossing
from hdl_lib.clocks.stream_crossing import StreamCrossing

CLOCKS = [(10, 5), (5, 10), (10, 10), (13, 10), (10, 33)]  # periods of source and target, in ns
BEATS = random.Random(3).choices(range(512), k=150)


class Bench(Elaboratable):
    """The crossing, and resets of both domains."""

    def __init__(self, pauses=False):
        self.crossing = StreamCrossing(9, "source", "target", pauses=pauses)
        self.source_reset, self.target_reset = Signal(), Signal()

    def elaborate(self, platform):
        m = Module()
        m.domains += ClockDomain("source"), ClockDomain("target")
        m.d.comb += [ResetSignal("source").eq(self.source_reset), ResetSignal("target").eq(self.target_reset)]
        m.submodules.crossing = self.crossing
        return m


def simulate(bench, clocks, *processes, until=None):
    simulator = Simulator(bench)
    for domain, period, phase in zip(("source", "target"), clocks, (0, 3e-9), strict=True):
        simulator.add_clock(period * 1e-9, phase=phase, domain=domain)
    for process in processes[:-1]:
        simulator.add_testbench(process, background=True)
    simulator.add_testbench(processes[-1])
    simulator.run()


def send(bench, beats, gap=0.0):
    rng, port = random.Random(1), bench.crossing.i

    async def process(ctx):
        for beat in beats:
            while rng.random() < gap:
                await ctx.tick("source")
            ctx.set(port.payload, beat)
            ctx.set(port.valid, 1)
            await ctx.tick("source").until(port.ready)
            ctx.set(port.valid, 0)

    return process


async def receive(ctx, bench, count, stall=0.0):
    rng, port, got = random.Random(2), bench.crossing.o, []
    while len(got) < count:
        while rng.random() < stall:
            await ctx.tick("target")
        ctx.set(port.ready, 1)
        (beat,) = await ctx.tick("target").sample(port.payload).until(port.valid)
        ctx.set(port.ready, 0)
        got.append(beat)
    return got


@pytest.mark.parametrize("clocks", CLOCKS)
@pytest.mark.parametrize(("gap", "stall"), [(0, 0), (0.5, 0), (0, 0.5), (0.7, 0.7)])
@pytest.mark.parametrize("pauses", [False, True])
def test_every_beat_in_order(clocks, gap, stall, pauses):
    bench = Bench(pauses)

    async def check(ctx):
        assert await receive(ctx, bench, len(BEATS), stall) == BEATS

    simulate(bench, clocks, send(bench, BEATS, gap), check)


def cycles_at_full_rate(clocks, pauses=False):
    """Cycles of the slower clock from the first beat to the last one."""
    bench, took = Bench(pauses), []

    async def check(ctx):
        await receive(ctx, bench, 1)
        port, cycles, got = bench.crossing.o, 0, 1
        ctx.set(port.ready, 1)
        while got < len(BEATS):
            _, _, valid = await ctx.tick("target").sample(port.valid)
            cycles, got = cycles + 1, got + valid
        took.append(cycles * clocks[1] / max(clocks))

    simulate(bench, clocks, send(bench, BEATS), check)
    return took[0]


@pytest.mark.parametrize("clocks", CLOCKS)
def test_a_beat_each_cycle_of_the_slower_clock(clocks):
    assert len(BEATS) - 16 <= cycles_at_full_rate(clocks) <= len(BEATS) + 1


def test_pauses_do_not_slow_a_clock_of_half_the_target():
    assert len(BEATS) - 16 <= cycles_at_full_rate((10, 5), pauses=True) <= len(BEATS) + 1
    assert cycles_at_full_rate((10, 10), pauses=True) > 1.9 * (len(BEATS) - 16)


@pytest.mark.parametrize("pauses", [False, True])
def test_what_changes_a_beat(pauses):
    """With pauses a beat stays for a cycle behind its handshake: ``ready`` does not load the beat's registers."""
    bench, changed = Bench(pauses), []

    async def check(ctx):
        port = bench.crossing.o
        ctx.set(port.ready, 1)
        taken = before = None
        for _ in range(100):
            _, _, valid, beat = await ctx.tick("target").sample(port.valid, port.payload)
            if taken:
                changed.append(beat != before)
            taken, before = valid, beat

    simulate(bench, (5, 5), send(bench, BEATS[:40]), check)
    assert len(changed) > 30
    assert any(changed) == (not pauses)


def test_a_smaller_queue_is_slower(monkeypatch):
    monkeypatch.setattr(stream_crossing, "DEPTH", 8)
    assert cycles_at_full_rate((10, 10)) > 1.2 * len(BEATS)


def after_a_reset(clocks, both=True):
    """What comes of three beats behind a reset (of the target alone unless ``both``) with others left in the queue."""
    bench, seen = Bench(), []
    pause = 8e-9 * max(clocks)

    async def check(ctx):
        await send(bench, BEATS[:5])(ctx)
        await ctx.delay(pause)
        ctx.set(bench.source_reset, both)
        ctx.set(bench.target_reset, 1)
        await ctx.delay(pause)
        ctx.set(bench.source_reset, 0)
        ctx.set(bench.target_reset, 0)
        await ctx.delay(pause)
        await send(bench, BEATS[10:13])(ctx)
        port = bench.crossing.o
        ctx.set(port.ready, 1)
        for _ in range(100):
            _, _, valid, beat = await ctx.tick("target").sample(port.valid, port.payload)
            seen.extend([beat] if valid else [])

    simulate(bench, clocks, check)
    return seen


@pytest.mark.parametrize("clocks", CLOCKS)
def test_a_reset_empties_it(clocks):
    assert after_a_reset(clocks) == BEATS[10:13]


def test_a_reset_of_one_end_does_not():
    assert after_a_reset((10, 5), both=False) != BEATS[10:13]
