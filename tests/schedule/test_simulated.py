"""Whole random graphs, scheduled, emitted and simulated: values equal the golden model's, every frame of every output
comes in the cycles the schedule predicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow import golden
from hwflow.boards import find_board
from hwflow.ir.graph import Graph
from hwflow.ops.registry import hardware
from hwflow.schedule.folding import Budget
from hwflow.schedule.schedule import Schedule, schedule
from hwflow.sim.icarus_run import run_icarus
from hwflow.sim.manifest import load_design
from hwflow.sim.vectors import Vectors
from hwflow.toolchain.icarus import ICARUS
from tests.schedule.graphs import dataflow, emit, meeting_graph, random_graph, skewed_graph

PART = find_board("ulx3s_85f").part
FRAMES = 4


@pytest.mark.parametrize(
    ("seed", "slower"),
    [(0, 1), (1, 1), (2, 3), (3, 10), (4, 1), (5, 2), (7, 1), (9, 4)],
    ids=lambda v: str(v),
)
def test_simulated_cycles_are_the_predicted_ones(seed: int, slower: int, tmp_path: Path) -> None:
    """``slower``: the target interval, in units of the least one the part allows."""
    check(random_graph(seed), seed, slower, 12, tmp_path)


@pytest.mark.parametrize(
    ("seed", "slower"), [(0, 1), (1, 1), (2, 1), (3, 1), (4, 3), (5, 4), (7, 5)], ids=lambda v: str(v)
)
def test_where_streams_part_and_meet_again(seed: int, slower: int, tmp_path: Path) -> None:
    """Nothing stands still, nothing costs interval, and every cycle is the predicted one."""
    scheduled = check(meeting_graph(seed), seed, slower, 3, tmp_path)
    slowest = max(hardware(n.op).cycles(n, n.attributes["folding"]) for n in scheduled.graph.nodes)
    assert scheduled.initiation_interval == slowest


def test_a_queue_in_block_ram_between_two_cores(tmp_path: Path) -> None:
    scheduled = check(skewed_graph(), 0, 1, 2, tmp_path)
    assert "fifo" in [n.op for n in scheduled.graph.nodes]


def check(quantized: Graph, seed: int, slower: int, share: int, folder: Path) -> Schedule:
    """Simulate the graph, scheduled for one ``share``th of the part."""
    budget = Budget(PART.lut // share, PART.ff // share, PART.dsp // share, PART.bram // share)
    interval = None
    if slower > 1:
        interval = slower * schedule(dataflow(quantized), PART, budget).initiation_interval
    scheduled = schedule(dataflow(quantized), PART, budget, interval)
    run = scheduled.run
    design = load_design(emit(scheduled, folder / "out"))
    (port,) = quantized.inputs
    element = port.value.typed.element
    inputs = {port.name: np.random.default_rng(seed).integers(element.min, element.max + 1, (FRAMES, *port.shape))}
    vectors = Vectors.of(design, inputs, golden.evaluate(quantized, inputs))
    found = ICARUS.find()

    result = run_icarus(design, vectors, command=found.command, environment=found.environment)

    assert result.ok, result.complaints()
    streams = dict(zip((s.port for s in design.outputs), run.outputs, strict=True))
    for name, cycles in streams.items():
        assert result.streams[name].first == tuple(cycles[:FRAMES, 0].tolist()), name
        assert result.streams[name].last == tuple(cycles[:FRAMES, -1].tolist()), name
    assert result.latency == scheduled.latency
    assert result.initiation_interval == run.last_output[FRAMES - 1] - run.last_output[FRAMES - 2]
    return scheduled
