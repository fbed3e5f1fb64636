"""Depthwise convolutions whose counts hear of a window's end a cycle later do the same in every cycle."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import signed
from amaranth.sim import Simulator

from hdl_lib.memories.rom import Table
from hdl_lib.windows import depthwise
from hdl_lib.windows.depthwise import SETTLED, Depthwise, round_words
from hdl_lib.windows.pixel_steps import PixelSteps
from hdl_lib.windows.window_geometry import WindowGeometry

CYCLES = 400
NEVER = 1 << 30


def trace(monkeypatch, settled, geometry, channels, gaps, stalls):
    """Return of every cycle the handshakes and the beat that leaves, where the buffer has no pixel to spare."""
    monkeypatch.setattr(depthwise, "SETTLED", settled)
    words = round_words(geometry, channels, False, 4)
    pixels = PixelSteps(geometry).minimum
    core = Depthwise(
        signed(8), signed(4), signed(16), geometry, channels, 1, weights=Table.of_words([5] * words, 4),
        padded_shape=signed(8), pixels=pixels, multiplier="lut", depth=3,
    )
    seen, at = [], random.Random(1)

    async def bench(ctx):
        taken = True
        for _ in range(CYCLES):
            if taken or not ctx.get(core.i.valid):
                ctx.set(core.i.valid, at.random() >= gaps)
                ctx.set(core.i.payload, [at.randint(-128, 127)])
            ctx.set(core.o.ready, at.random() >= stalls)
            taken = ctx.get(core.i.valid & core.i.ready)
            leaves = ctx.get(core.o.valid & core.o.ready)
            seen.append((taken, leaves, ctx.get(core.o.payload[0]) if leaves else None))
            await ctx.tick()

    simulator = Simulator(core)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert any(leaves for _, leaves, _ in seen)
    return seen


@pytest.mark.parametrize(("gaps", "stalls"), [(0.0, 0.0), (0.4, 0.0), (0.0, 0.5), (0.3, 0.3)])
@pytest.mark.parametrize(("kernel", "stride", "channels"), [
    ((1, 3), (1, 2), 1), ((3, 1), (2, 1), 1), ((1, 1), (2, 3), 3), ((2, 2), (1, 2), 1), ((1, 3), (3, 2), 2),
])  # fmt: skip
def test_nothing_changes_outside(monkeypatch, kernel, stride, channels, gaps, stalls):
    """Rows and columns that are padded, or skipped, so that what is needed and released changes."""
    geometry = WindowGeometry(4, 7, kernel, stride, (0, 1, 1, 1), (1, 1))
    assert kernel[0] * kernel[1] * channels >= SETTLED
    now, before = (trace(monkeypatch, s, geometry, channels, gaps, stalls) for s in (SETTLED, NEVER))
    assert now == before


def test_with_windows_of_fewer_steps_it_would_be_too_late(monkeypatch):
    """The broken twin."""
    geometry = WindowGeometry(3, 9, (1, 2), (1, 2), (0, 0, 1, 0), (1, 2))
    now, late, before = (trace(monkeypatch, s, geometry, 1, 0.0, 0.0) for s in (SETTLED, 2, NEVER))
    assert now == before != late
