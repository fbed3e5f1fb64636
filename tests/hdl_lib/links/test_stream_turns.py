"""Streams that take turns on a line of bytes: what comes where, that none waits for another, cycles, reset."""

from __future__ import annotations

import random

import pytest
from amaranth import Module, ResetInserter, Signal
from amaranth.sim import Simulator

from hdl_lib.links.stream_turns import BytesToStreams, StreamsToBytes
from tests.hdl_lib.bench import STALLS, drive

FRAMES = [[(2, 3), (1, 4)], [(1, 1), (3, 2), (1, 5)], [(4, 1)]]
COUNT = 3  # frames of each stream


def split(data: list[int], frames: list[tuple[int, int]]) -> list[list[int]]:
    """Each stream's beats as integers, the mark of the last one of a frame above the data."""
    streams: list[list[int]] = [[] for _ in frames]
    rest = list(data)
    while rest:
        for beats, (size, count) in zip(streams, frames, strict=True):
            for beat in range(count):
                word, rest = rest[:size], rest[size:]
                beats.append(int.from_bytes(bytes(word), "little") | (beat == count - 1) << (8 * size))
    return streams


def some(frames: list[tuple[int, int]], seed: int = 0) -> list[int]:
    return list(random.Random(seed).randbytes(COUNT * sum(size * count for size, count in frames)))


def run_split(dut: BytesToStreams, data: list[int], stall: float, gap: float, order: list[int]) -> list[list[int]]:
    """What each output gives; output ``order[0]`` is taken from only when all of the others have given a whole frame
    more than it (if ``order`` is not empty), so that streams are taken from one after the other, last ones first."""
    rng = random.Random(7)
    got: list[list[int]] = [[] for _ in dut.frames]

    async def bench(ctx):
        at = 0
        for _ in range(100 * len(data)):
            offering = at < len(data) and rng.random() >= gap
            ctx.set(dut.i.valid, offering)
            ctx.set(dut.i.payload, data[at] if offering else 0)
            for k in range(len(got)):
                done = [len(beats) // count for beats, (_, count) in zip(got, dut.frames, strict=True)]
                held = any(done[k] >= done[other] for other in order[order.index(k) + 1:]) if k in order else False
                ctx.set(getattr(dut, f"o{k}").ready, not held and rng.random() >= stall)
            outputs = [getattr(dut, f"o{k}") for k in range(len(got))]
            samples = [s for o in outputs for s in (o.valid, o.ready, o.payload.as_value())]
            _, _, ready, *shown = await ctx.tick().sample(dut.i.ready, *samples)
            at += int(offering and ready)
            for k, beats in enumerate(got):
                valid, taken, word = shown[3 * k : 3 * k + 3]
                if valid and taken:
                    beats.append(word)
            if all(len(beats) == COUNT * count for beats, (_, count) in zip(got, dut.frames, strict=True)):
                break

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return got


@pytest.mark.parametrize("gap, stall", STALLS)
@pytest.mark.parametrize("frames", FRAMES)
def test_bytes_are_dealt_out(frames, gap, stall):
    data = some(frames)
    assert run_split(BytesToStreams(frames), data, stall, gap, []) == split(data, frames)


@pytest.mark.parametrize("frames", FRAMES)
def test_no_stream_waits_for_one_before_it(frames):
    """A core that takes a frame of the last stream before it takes any of the first, gets it."""
    data = some(frames, 1)
    assert run_split(BytesToStreams(frames), data, 0.0, 0.0, list(range(len(frames)))) == split(data, frames)


@pytest.mark.parametrize("gap, stall", STALLS)
@pytest.mark.parametrize("frames", FRAMES)
def test_bytes_are_collected(frames, gap, stall):
    data = some(frames, 2)
    dut = StreamsToBytes(frames)
    streams = split(data, frames)
    more = [(getattr(dut, f"i{k}"), beats) for k, beats in enumerate(streams) if k]
    trace = drive(dut, streams[0], len(data), gap=gap, stall=stall, i=dut.i0, more=more)
    assert trace.beats == data


@pytest.mark.parametrize("frames", FRAMES)
def test_no_stream_waits_for_its_turn(frames):
    """A frame of every stream but the first is taken before the first one's begins."""
    dut, taken = StreamsToBytes(frames), []
    streams = split(some(frames, 3), frames)

    async def bench(ctx):
        for k, (_, count) in reversed(list(enumerate(frames))):
            port = getattr(dut, f"i{k}")
            for beat in streams[k][:count]:
                ctx.set(port.valid, 1)
                ctx.set(port.payload.as_value(), beat)
                for _ in range(40):
                    if (await ctx.tick().sample(port.ready))[2]:
                        taken.append((k, beat))
                        break
                ctx.set(port.valid, 0)
            if k == 1:
                assert len(taken) == sum(count for _, count in frames[1:])
                break

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_the_cycles_of_one_stream_are_those_of_its_adapter():
    """n cycles for a beat of n bytes, as :class:`hdl_lib.links.byte_adapter.BytesToBeats` says."""
    dut = BytesToStreams([(2, 3)])
    trace = drive(dut, [1, 2, 3, 4, 5, 6], 3, gap=0, stall=0, o=dut.o0)
    assert trace.in_cycles == [0, 1, 2, 3, 4, 5] and trace.out_cycles == [2, 4, 6]


def test_reset_in_mid_frame_starts_with_the_first_stream():
    reset, m = Signal(), Module()
    inner = BytesToStreams([(1, 2), (1, 1)])
    m.submodules.dut = ResetInserter(reset)(inner)
    got = []

    async def bench(ctx):
        ctx.set(inner.o0.ready, 1)
        ctx.set(inner.o1.ready, 1)
        todo = [1, 2, "reset", 4, 5, 6]  # behind two bytes it would be the second stream's turn
        for _ in range(60):
            item = todo[0] if todo else None
            ctx.set(reset, item == "reset")
            ctx.set(inner.i.valid, isinstance(item, int))
            ctx.set(inner.i.payload, item if isinstance(item, int) else 0)
            _, _, ready, v0, d0, v1, d1 = await ctx.tick().sample(
                inner.i.ready, inner.o0.valid, inner.o0.payload.data, inner.o1.valid, inner.o1.payload.data
            )
            if item == "reset":
                got.clear()
                todo.pop(0)
                continue
            if item is not None and ready:
                todo.pop(0)
            got.extend([(0, d0)] * v0 + [(1, d1)] * v1)

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert sorted(got) == [(0, 4), (0, 5), (1, 6)]


def test_parameters_are_checked():
    with pytest.raises(ValueError) as error:
        BytesToStreams([])
    assert str(error.value) == "there must be at least one stream, not none"
    with pytest.raises(ValueError) as error:
        StreamsToBytes([(1, 2), (0, 3)])
    assert str(error.value) == "bytes per beat and beats per frame must be 1 or more, not 0 and 3"
