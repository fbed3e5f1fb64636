"""Coroutines see and do what they see and do in Amaranth's own simulator."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.sim import Simulator

from tests.hdl_lib.coroutines import Coroutines

PAIR = data.StructLayout({"number": 5, "last": 1})


class Adder:
    """A sum of what two coroutines set, at once and in a register, beside a structure in a register."""

    def __init__(self) -> None:
        self.module = m = Module()
        self.left, self.right, self.total, self.before = Signal(4), Signal(4), Signal(5), Signal(5)
        self.given, self.kept = Signal(PAIR), Signal(PAIR)
        m.d.comb += self.total.eq(self.left + self.right)
        m.d.sync += [self.before.eq(self.total), self.kept.eq(self.given)]


def seen(run) -> list[tuple[object, ...]]:
    """What both coroutines see, in the order in which they see it; ``run(module, processes)`` simulates."""
    core, log = Adder(), []

    async def first(ctx) -> None:
        rng = random.Random(1)
        while True:
            ctx.set(core.left, rng.getrandbits(4))
            *flags, total, before, kept = await ctx.tick().sample(core.total, core.before, core.kept)
            log.append(("first", *map(bool, flags), total, before, kept.number, kept.last))

    async def last(ctx) -> None:
        rng = random.Random(2)
        for cycle in range(50):
            ctx.set(core.right, rng.getrandbits(4))
            ctx.set(core.given, {"number": rng.getrandbits(5), "last": cycle % 3 == 0})
            log.append(("last", ctx.get(core.total), ctx.get(core.before), ctx.get(core.kept).number))
            await ctx.tick()

    run(core.module, (first, last))
    return log


def simulated(module, processes) -> None:
    simulator = Simulator(module)
    simulator.add_clock(1e-6)
    for process in processes[:-1]:
        simulator.add_testbench(process, background=True)
    simulator.add_testbench(processes[-1])
    simulator.run()


def test_as_in_amaranths_simulator() -> None:
    log = seen(lambda module, processes: Coroutines(module).run(*processes))
    assert log == seen(simulated)
    assert len(log) == 100


def test_what_fails_in_a_coroutine_is_not_lost() -> None:
    async def failing(ctx) -> None:
        await ctx.tick()
        raise AssertionError("seen")

    async def last(ctx) -> None:
        for _ in range(3):
            await ctx.tick()

    with pytest.raises(AssertionError, match="seen"):
        Coroutines(Adder().module).run(failing, last)
