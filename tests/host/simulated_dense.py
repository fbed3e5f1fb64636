"""A small network on a simulated board, the host's code at its port, and the comparison with the golden model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import hwflow
from hwflow.api.compiler import compile
from hwflow.ir.graph import Graph
from hwflow.toolchain.verilator import VERILATOR
from hwflow.verify import golden
from sim.simulated_board import SimulatedBoard
from tests.flow.networks import dense_network


class Design(NamedTuple):
    """An output folder, 120 frames for it, {"x": (120, 12)}, and the quantized graph."""

    out: Path
    inputs: dict[str, np.ndarray]
    graph: Graph


def emit(folder, **options) -> Design:
    """Write a network of 12 bytes a frame in and 4 out; ``options``: of ``compile``."""
    made = compile(dense_network(folder / "model.onnx"), **options)
    made.write(folder / "out")
    frames = np.random.default_rng(7).uniform(-4, 4, (120, 12)).astype(np.float32)
    return Design(folder / "out", {"x": frames}, made.model.quantized)


def simulated_board(design: Design):
    """Return simulated(**options): the board, built at its first start."""
    found = VERILATOR.find()
    return partial(SimulatedBoard, design.out, command=found.command, environment=found.environment, seed=5)


def host(design: Design, peer: SimulatedBoard):
    return hwflow.connect(design.out, peer.port, patience=60, clock=peer.seconds)


def check(design: Design, board, frames: slice) -> None:
    """Let the board work on some of the frames, and compare its answers with the golden model's."""
    done = board.exchange({"x": design.inputs["x"][frames]})
    due = golden.evaluate(design.graph, {name: array.astype(np.int64) for name, array in done.sent.items()})
    assert set(done.received) == set(due)
    for name, array in done.received.items():
        np.testing.assert_array_equal(array, due[name].reshape(array.shape))


def check_a_good_line(design: Design, simulated) -> None:
    """All frames pass, and nothing is sent twice."""
    with simulated() as peer, host(design, peer) as board:
        check(design, board, slice(None))
        counted = board.statistics()
        assert peer.counters()["framing"] == 0
    assert (counted["frames_in"], counted["frames_out"], counted["error"]) == (120, 120, 0)
    assert (counted["resent"], counted["damaged"], counted["damaged_answers"], counted["sessions"]) == (0, 0, 0, 1)
