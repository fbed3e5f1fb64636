"""A whole design, its AXI4-Streams included, in Amaranth's simulator: no Verilog, no build, so hundreds can be run."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
from amaranth.sim import Simulator

from hwflow.codegen.top import StreamPort, Top
from hwflow.cores.operator import Built
from hwflow.ir.graph import IntArray
from hwflow.schedule.plan import Plan
from tests.cores.harness import with_words

_TIMEOUT = 100_000  # cycles


def simulate_top(
    plan: Plan, inputs: Mapping[str, IntArray], *, gap: float = 0.0, stall: float = 0.0, seed: int = 0
) -> dict[str, IntArray]:
    """Outputs by port name, [frames, *shape], of a plan for ``inputs`` alike.

    ``gap``, ``stall``: the share of cycles in which a source offers nothing (before it has offered a beat, not while
    one waits), in which a sink takes nothing.
    """
    rng = random.Random(seed)
    top = Top(plan)
    for core in top.cores.values():
        with_words(Built(core.body, [], [], core.files))
    frames = len(next(iter(inputs.values())))
    signals = {signal.name: signal for signal in top.ports}
    found: dict[str, list[int]] = {stream.port.name: [] for stream in top.outputs}
    finished = 0

    def source_of(stream: StreamPort):
        beats = _words(stream, inputs[stream.port.name])

        async def source(ctx):
            for place, word in enumerate(beats):
                while rng.random() < gap:
                    ctx.set(signals[f"{stream.prefix}_tvalid"], 0)
                    await ctx.tick()
                ctx.set(signals[f"{stream.prefix}_tvalid"], 1)
                ctx.set(signals[f"{stream.prefix}_tdata"], word)
                ctx.set(signals[f"{stream.prefix}_tlast"], place % stream.beats == stream.beats - 1)
                await ctx.tick().until(signals[f"{stream.prefix}_tready"])
            ctx.set(signals[f"{stream.prefix}_tvalid"], 0)

        return source

    def sink_of(stream: StreamPort):
        beats = found[stream.port.name]
        names = ("tvalid", "tready", "tdata", "tlast")
        watched = [signals[f"{stream.prefix}_{name}"] for name in names]

        async def sink(ctx):
            nonlocal finished
            cycles = 0
            while len(beats) < frames * stream.beats:
                ctx.set(signals[f"{stream.prefix}_tready"], rng.random() >= stall)
                *_, valid, ready, word, last = await ctx.tick().sample(*watched)
                if valid and ready:
                    beats.append(word)
                    assert last == (len(beats) % stream.beats == 0), f"tlast of beat {len(beats) - 1}"
                cycles += 1
                assert cycles < _TIMEOUT, f"{stream.prefix}: {len(beats)} beats of {frames * stream.beats}"
            finished += 1

        return sink

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    for stream in top.inputs:
        simulator.add_testbench(source_of(stream), background=True)
    for stream in top.outputs:
        simulator.add_testbench(sink_of(stream))
    simulator.run()
    assert finished == len(top.outputs)
    return {stream.port.name: _values(stream, found[stream.port.name]) for stream in top.outputs}


def _words(stream: StreamPort, values: IntArray) -> list[int]:
    """What tdata carries: lane 0 in the least significant bits, elements in whole bytes; surplus lanes 0."""
    channels = stream.view[1]
    elements = values.reshape(len(values), -1)[:, stream.port.order].reshape(-1, channels)
    blocks = -(-channels // stream.lanes)
    padded = np.zeros((len(elements), blocks * stream.lanes), dtype=np.int64)
    padded[:, :channels] = elements
    bits = 8 * stream.element_bytes
    return [
        sum((value & ((1 << bits) - 1)) << bits * lane for lane, value in enumerate(beat))
        for beat in padded.reshape(-1, stream.lanes).tolist()
    ]


def _values(stream: StreamPort, words: list[int]) -> IntArray:
    """The inverse: [frames, *shape]."""
    channels = stream.view[1]
    bits, signed = 8 * stream.element_bytes, stream.type.element.signed
    top = 1 << stream.type.element.bits - 1
    mask = (1 << stream.type.element.bits) - 1

    def number(word: int, lane: int) -> int:
        value = word >> bits * lane & mask
        return value - (mask + 1) if signed and value >= top else value

    beats = np.array([[number(word, lane) for lane in range(stream.lanes)] for word in words], dtype=np.int64)
    blocks = -(-channels // stream.lanes)
    elements = beats.reshape(-1, blocks * stream.lanes)[:, :channels].reshape(-1, len(stream.port.order))
    result = np.empty_like(elements)
    result[:, stream.port.order] = elements
    return result.reshape(len(elements), *stream.port.shape)
