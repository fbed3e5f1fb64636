"""Bytes to and from a USB device's clock, and the ends of transfers."""

from __future__ import annotations

import random

import pytest
from amaranth.sim import Simulator

from hdl_lib.links.usb_bytes import BytesFromUsb, BytesToUsb

CLOCKS = [(20, 80), (83, 80), (100, 30)]  # periods of `sync` and `usb`, in ns
PATIENCE = 12
DATA = random.Random(5).randbytes(120)


def run(dut, *processes, clocks):
    sync, usb = clocks
    simulator = Simulator(dut)
    simulator.add_clock(sync * 1e-9)
    simulator.add_clock(usb * 1e-9, phase=3e-9, domain="usb")
    for process in processes[:-1]:
        simulator.add_testbench(process, background=True)
    simulator.add_testbench(processes[-1])
    simulator.run()


def sender(dut, domain, data, pause):
    async def send(ctx):
        for k, byte in enumerate(data):
            for _ in range(pause(k)):
                await ctx.tick(domain)
            ctx.set(dut.i.payload, byte)
            ctx.set(dut.i.valid, 1)
            await ctx.tick(domain).until(dut.i.ready)
            ctx.set(dut.i.valid, 0)

    return send


@pytest.mark.parametrize("clocks", CLOCKS)
@pytest.mark.parametrize("gap, stall", [(0, 0), (0.5, 0.5)])
def test_bytes_from_usb(clocks, gap, stall):
    dut, rng = BytesFromUsb(), random.Random(1)

    async def receive(ctx):
        for byte in DATA:
            while rng.random() < stall:
                await ctx.tick()
            ctx.set(dut.o.ready, 1)
            (got,) = await ctx.tick().sample(dut.o.payload).until(dut.o.valid)
            ctx.set(dut.o.ready, 0)
            assert got == byte

    run(dut, sender(dut, "usb", DATA, lambda k: rng.random() < gap), receive, clocks=clocks)


@pytest.mark.parametrize("clocks", CLOCKS)
@pytest.mark.parametrize("stall", [0, 0.5])
def test_a_transfer_ends_where_bytes_pause(clocks, stall):
    """Behind every 40th byte comes a pause that is longer than the device's patience, else one that is shorter."""
    dut, rng = BytesToUsb(PATIENCE), random.Random(2)
    sync, usb = clocks
    long, short = 3 * (PATIENCE + 8) * usb // sync, PATIENCE * usb // sync // 2

    def pause(k):
        return 0 if not k else long if k % 40 == 0 else rng.choice([0, 0, 0, short])

    async def receive(ctx):
        for k, byte in enumerate(DATA):
            while rng.random() < stall:
                await ctx.tick("usb")
            ctx.set(dut.o.ready, 1)
            (got,) = await ctx.tick("usb").sample(dut.o.payload).until(dut.o.valid)
            ctx.set(dut.o.ready, 0)
            assert (got.data, got.last) == (byte, k % 40 == 39)

    run(dut, sender(dut, "sync", DATA, pause), receive, clocks=clocks)


def test_a_byte_each_cycle_of_the_slower_clock():
    dut = BytesToUsb(PATIENCE)

    async def receive(ctx):
        ctx.set(dut.o.ready, 1)
        await ctx.tick("usb").until(dut.o.valid)
        for _ in range(len(DATA) - 2):
            assert ctx.get(dut.o.valid)
            await ctx.tick("usb")
        assert ctx.get(dut.o.valid) == 0  # the last one waits for another
        waited = 0
        while not ctx.get(dut.o.valid):
            await ctx.tick("usb")
            waited += 1
        assert waited == PATIENCE and ctx.get(dut.o.payload.last)

    run(dut, sender(dut, "sync", DATA, lambda k: 0), receive, clocks=(20, 80))


@pytest.mark.parametrize("patience", [0, 1.5])
def test_patience_must_be_some(patience):
    with pytest.raises(ValueError, match="patience must be an integer of 1 or more"):
        BytesToUsb(patience)
