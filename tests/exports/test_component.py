"""A design as an Amaranth component, in Amaranth's simulator beside other logic."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

import hwflow
from hdl_lib.external.spram import SinglePortRam
from hdl_lib.streams.skid_buffer import SkidBuffer
from hwflow.codegen.memory_image import memory_of
from hwflow.cores.external.weight_memory import image_of
from hwflow.verify import golden
from tests.exports.cores import FPS
from tests.flow.networks import dense_network

MEMORY = {"board": "icebreaker", "memory": "all", "budget": {"lut": "100%", "ff": "100%"}}


@pytest.mark.parametrize("options", [*({"board": "ulx3s_85f", "fps": fps} for fps in FPS.values()), MEMORY])
def test_it_computes_in_a_design(options, tmp_path):
    """Behind a register stage in the same domain, with pauses on both sides, and after a reset of one cycle in the
    middle of a frame; also beside a memory, which is loaded after each reset."""
    design = hwflow.compile(dense_network(tmp_path / "model.onnx", (7, 5, 5)), **options)
    core = hwflow.component(design)
    (source,), (sink,) = core.inputs, core.outputs
    domain = ClockDomain("sync")
    reset = domain.rst
    m = Module()
    m.domains.sync = domain
    m.submodules.core = core
    m.submodules.stage = stage = SkidBuffer(core.s_axis.payload.shape())
    wiring.connect(m, stage.o, core.s_axis)
    frames = np.random.default_rng(3).integers(0, 256, (3, 7))
    graph = design.model.quantized
    expected = golden.evaluate(graph, {graph.inputs[0].name: frames.reshape(3, *graph.inputs[0].shape)})
    rows = expected[graph.outputs[0].name].reshape(3, 5)
    rng = np.random.default_rng(4)
    found: list[int] = []
    errors: list[int] = []

    def beats(frame):
        for at in range(0, 7, source.lanes):
            yield [*map(int, frame[at : at + source.lanes])], at + source.lanes >= 7

    async def feed(context):
        async def send(data, last):
            context.set(stage.i.valid, 1)
            for lane, value in enumerate(data):
                context.set(stage.i.payload.data[lane], value)
            context.set(stage.i.payload.last, last)
            await context.tick().until(stage.i.ready)
            context.set(stage.i.valid, 0)

        await send(*next(beats(frames[0])))  # of a frame that the reset ends
        context.set(reset, 1)
        await context.tick()
        context.set(reset, 0)
        for frame in frames:
            for data, last in beats(frame):
                await send(data, last)
                for _ in range(int(rng.integers(0, 3))):
                    await context.tick()

    async def drain(context):
        while len(found) < 15:
            context.set(core.m_axis.ready, int(rng.integers(0, 2)))
            _, _, ready, valid, payload = await context.tick().sample(
                core.m_axis.ready, core.m_axis.valid, core.m_axis.payload
            )
            if ready and valid:
                lanes = min(sink.lanes, 5 - len(found) % 5)
                found.extend(payload.data[lane] for lane in range(lanes))
                assert payload.last == (len(found) % 5 == 0)
        errors.append(context.get(core.error))

    words: list[int] = []
    if "memory" in options:
        ram = m.submodules.ram = SinglePortRam(16, 65_536)
        m.d.comb += [
            ram.en.eq(core.mem__en), ram.we.eq(core.mem__we), ram.a.eq(core.mem__a), ram.dq_i.eq(core.mem__dq_o),
            core.mem__dq_i.eq(ram.dq_o),
        ]
        image = image_of(memory_of(design.schedule.graph)).astype("<u2")
        crc = zlib.crc32(image.tobytes())
        words += [*map(int, image), crc & 0xFFFF, crc >> 16]

    async def load(context):
        place = 0
        async for _, resets, takes, gives in context.tick().sample(core.mem__load_ready, core.mem__load_valid):
            place = 0 if resets else place + (takes & gives)
            context.set(core.mem__load_valid, int(place < len(words) and rng.integers(0, 4) > 0))
            context.set(core.mem__load, words[place % len(words)])

    simulator = Simulator(m)
    if words:
        simulator.add_testbench(load, background=True)
    simulator.add_clock(1e-6)
    simulator.add_testbench(feed)
    simulator.add_testbench(drain)
    simulator.run_until(2e-2 if words else 2e-3)
    assert found == rows.reshape(-1).tolist()
    assert errors == [0]
