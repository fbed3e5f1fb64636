"""Packets to datagrams and back, between clocks of any ratio."""

from __future__ import annotations

import random

import pytest
from amaranth.sim import Simulator

from hdl_lib.links.datagrams import DatagramReceiver, DatagramSender

RNG = random.Random(4)
PACKETS = [RNG.randbytes(size) for size in (1, 2, 3, 4, 5, 8, 15, 16, 17, 63, 64, *[1] * 40, *[15] * 9, 200, 1)]
CLOCKS = [(8, 16), (8, 8), (20, 17), (30, 16)]  # periods of `sync` and `ethernet`, in ns


def run(dut, *processes, clocks):
    sync, ethernet = clocks
    simulator = Simulator(dut)
    simulator.add_clock(sync * 1e-9)
    simulator.add_clock(ethernet * 1e-9, phase=3e-9, domain="ethernet")
    for process in processes[:-1]:
        simulator.add_testbench(process, background=True)
    simulator.add_testbench(processes[-1])
    simulator.run()


def words_of(packet, error=0):
    parts = [packet[at : at + 4] for at in range(0, len(packet), 4)]
    return [
        {"data": int.from_bytes(part, "little"), "last": k == len(parts) - 1, "bytes": len(part) - 1, "error": error}
        for k, part in enumerate(parts)
    ]


@pytest.mark.parametrize("clocks", CLOCKS)
@pytest.mark.parametrize("gap, stall", [(0, 0), (0.5, 0.5)])
def test_packets_become_datagrams(clocks, gap, stall):
    dut, rng = DatagramSender(64), random.Random(1)

    async def send(ctx):
        for packet in PACKETS:
            for k, byte in enumerate(packet):
                while rng.random() < gap:
                    await ctx.tick()
                ctx.set(dut.i.payload, {"data": byte, "last": k == len(packet) - 1})
                ctx.set(dut.i.valid, 1)
                await ctx.tick().until(dut.i.ready)
                ctx.set(dut.i.valid, 0)

    async def receive(ctx):
        for packet in PACKETS:
            for word in words_of(packet):
                while rng.random() < stall:
                    await ctx.tick("ethernet")
                ctx.set(dut.o.ready, 1)
                got, length = await ctx.tick("ethernet").sample(dut.o.payload, dut.length).until(dut.o.valid)
                ctx.set(dut.o.ready, 0)
                size = word["bytes"] + 1 if word["last"] else 4
                assert got.data & (1 << 8 * size) - 1 == word["data"]
                assert (got.last, got.error, length) == (word["last"], 0, len(packet))
                assert not word["last"] or got.bytes == word["bytes"]

    run(dut, send, receive, clocks=clocks)


@pytest.mark.parametrize("clocks", CLOCKS)
@pytest.mark.parametrize("gap, stall", [(0, 0), (0.5, 0.5)])
def test_datagrams_become_packets(clocks, gap, stall):
    dut, rng = DatagramReceiver(512), random.Random(2)

    async def send(ctx):
        for k, packet in enumerate(PACKETS):
            for word in words_of(packet, error=k % 2):
                while rng.random() < gap:
                    await ctx.tick("ethernet")
                ctx.set(dut.i.payload, word)
                ctx.set(dut.i.valid, 1)
                await ctx.tick("ethernet")
                ctx.set(dut.i.valid, 0)

    async def receive(ctx):
        for k, packet in enumerate(PACKETS):
            for n, byte in enumerate(packet):
                while rng.random() < stall:
                    await ctx.tick()
                ctx.set(dut.o.ready, 1)
                (got,) = await ctx.tick().sample(dut.o.payload).until(dut.o.valid)
                ctx.set(dut.o.ready, 0)
                last = n == len(packet) - 1
                assert (got.data, got.last) == (byte, last)
                assert not last or got.damaged == k % 2

    run(dut, send, receive, clocks=clocks)


def test_words_without_room_are_lost_and_later_ones_are_not():
    dut = DatagramReceiver(16)

    async def test(ctx):
        for word in words_of(bytes(100)) + words_of(bytes(20)):
            ctx.set(dut.i.payload, word)
            ctx.set(dut.i.valid, 1)
            await ctx.tick("ethernet")
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, 1)
        taken = 0
        for _ in range(300):
            *_, valid = await ctx.tick().sample(dut.o.valid)
            taken += valid
        assert 64 <= taken < 80  # the FIFO's words; no packet's end among them
        ctx.set(dut.i.payload, {"data": 7, "last": 1, "bytes": 0, "error": 0})
        ctx.set(dut.i.valid, 1)
        await ctx.tick("ethernet")
        ctx.set(dut.i.valid, 0)
        (got,) = await ctx.tick().sample(dut.o.payload).until(dut.o.valid)
        assert (got.data, got.last) == (7, 1)

    run(dut, test, clocks=(8, 16))
