"""Bytes to beats and back: values, the mark on the last beat, cycles by the stated law, reset in mid-frame."""

from __future__ import annotations

import random

import pytest
from amaranth import ResetInserter, Signal
from amaranth.sim import Simulator

from hdl_lib.links.byte_adapter import BeatsToBytes, BytesToBeats
from tests.hdl_lib.bench import STALLS, drive

SHAPES = [(1, 1), (1, 4), (2, 3), (3, 2), (4, 1)]


def beats_of(data: list[int], n: int, beats: int) -> list[int]:
    """Beats as integers: first byte lowest, the mark above the data."""
    out = []
    for k in range(len(data) // n):
        word = int.from_bytes(bytes(data[k * n:(k + 1) * n]), "little")
        out.append(word | (k % beats == beats - 1) << (8 * n))
    return out


@pytest.mark.parametrize("gap, stall", STALLS)
@pytest.mark.parametrize("n, beats", SHAPES)
def test_bytes_to_beats(n, beats, gap, stall):
    data = list(random.Random(n).randbytes(3 * n * beats))
    trace = drive(BytesToBeats(n, beats), data, 3 * beats, gap=gap, stall=stall)
    assert trace.beats == beats_of(data, n, beats)
    if not gap and not stall:  # a byte a cycle, each beat in the cycle behind its last byte
        assert trace.in_cycles == list(range(len(data)))
        assert trace.out_cycles == [(k + 1) * n for k in range(3 * beats)]


@pytest.mark.parametrize("gap, stall", STALLS)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_beats_to_bytes(n, gap, stall):
    data = list(random.Random(n).randbytes(5 * n))
    trace = drive(BeatsToBytes(n), beats_of(data, n, 5), 5 * n, gap=gap, stall=stall)
    assert trace.beats == data
    if not gap and not stall:
        assert trace.in_cycles == [k * n for k in range(5)]
        assert trace.out_cycles == list(range(1, 5 * n + 1))


def test_reset_in_mid_frame_starts_a_new_frame():
    reset = Signal()
    dut = BytesToBeats(2, 2)
    beats = []

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        todo = [1, 2, 3, "reset", 4, 5, 6, 7]  # a beat and a half are lost to the frame
        while todo or ctx.get(dut.o.valid):
            item = todo[0] if todo else None
            ctx.set(reset, item == "reset")
            ctx.set(dut.i.valid, isinstance(item, int))
            if isinstance(item, int):
                ctx.set(dut.i.payload, item)
            _, _, ready, valid, word, last = await ctx.tick().sample(
                dut.i.ready, dut.o.valid, dut.o.payload.data, dut.o.payload.last
            )
            if item == "reset" or (item is not None and ready):
                todo.pop(0)
            if valid:
                beats.append((word, last))

    simulator = Simulator(ResetInserter(reset)(dut))
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert beats == [(0x0201, 0), (0x0504, 0), (0x0706, 1)]


def test_parameters_are_checked():
    with pytest.raises(ValueError) as error:
        BytesToBeats(0, 1)
    assert str(error.value) == "bytes_per_beat must be an integer of 1 or more, not 0"
    with pytest.raises(ValueError) as error:
        BytesToBeats(1, 0)
    assert str(error.value) == "beats must be an integer of 1 or more, not 0"
