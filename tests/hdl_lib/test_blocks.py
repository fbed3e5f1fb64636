"""The counters that several cores share."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hdl_lib.blocks import count_in_turns


@pytest.mark.parametrize(
    ("words", "rounds", "times"), [(1, 2, 1), (1, 3, 4), (3, 2, 1), (2, 3, 5), (4, 4, 2), (5, 1, 3)]
)
def test_count_in_turns(words: int, rounds: int, times: int) -> None:
    """Each round's words so many times, round after round and frame after frame, a step for each that is asked for."""
    m, advance = Module(), Signal()
    address = count_in_turns(m, "word", words, (rounds, times), advance)
    frame = [number * words + word for number in range(rounds) for _ in range(times) for word in range(words)]
    wanted, found, rng = 2 * frame, [], random.Random(1)

    async def drive(ctx: object) -> None:
        while len(found) < len(wanted):
            step = rng.random() < 0.6
            ctx.set(advance, step)
            if step:
                found.append(ctx.get(address))
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()
    assert found == wanted
