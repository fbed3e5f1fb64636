"""A scheduled graph in simulation: values are the golden model's, beats leave in the cycles that are predicted."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hwflow.ir.graph import Graph, IntArray
from hwflow.schedule.schedule import Schedule
from hwflow.sim.icarus_run import run_icarus
from hwflow.sim.manifest import load_design
from hwflow.sim.vectors import Vectors
from hwflow.toolchain.icarus import ICARUS
from hwflow.verify import golden
from tests.onnx_node_tests.top_simulation import SimulatedTop
from tests.schedule.graphs import emit

FRAMES = 4


def check_simulated(quantized: Graph, scheduled: Schedule, *, seed: int = 1, gap: float = 0.0) -> None:
    """In Amaranth's simulator: every beat of every output. With a ``gap`` (the share of cycles in which sources and
    sinks pause) values alone."""
    inputs = frames_for(quantized, seed)
    top = SimulatedTop(scheduled.plan)
    found = top.run(inputs, gap=gap, stall=gap, seed=seed)
    for name, expected in golden.evaluate(quantized, inputs).items():
        np.testing.assert_array_equal(found[name], expected, name)
    if not gap:
        for port, cycles in zip(scheduled.graph.outputs, scheduled.run.outputs, strict=True):
            assert top.cycles[port.name] == cycles[:FRAMES].ravel().tolist(), port.name


def check_emitted(quantized: Graph, scheduled: Schedule, folder: Path, *, seed: int = 1) -> None:
    """The Verilog in Icarus, which takes ten times as long: every frame, and the figures of the whole."""
    inputs = frames_for(quantized, seed)
    design = load_design(emit(scheduled, folder / "out"))
    vectors = Vectors.of(design, inputs, golden.evaluate(quantized, inputs))
    found = ICARUS.find()

    result = run_icarus(design, vectors, command=found.command, environment=found.environment)

    assert result.ok, result.complaints()
    run = scheduled.run
    for stream, cycles in zip(design.outputs, run.outputs, strict=True):
        assert result.streams[stream.port].first == tuple(cycles[:FRAMES, 0].tolist()), stream.port
        assert result.streams[stream.port].last == tuple(cycles[:FRAMES, -1].tolist()), stream.port
    assert result.latency == scheduled.latency
    assert result.initiation_interval == run.last_output[FRAMES - 1] - run.last_output[FRAMES - 2]


def frames_for(quantized: Graph, seed: int) -> dict[str, IntArray]:
    """Random frames of each input."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for port in quantized.inputs:
        element = port.value.typed.element
        inputs[port.name] = rng.integers(element.min, element.max + 1, (FRAMES, *port.shape))
    return inputs
