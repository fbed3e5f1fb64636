"""Weights over the link of a simulated board: `board.load`, sessions before and after it, and what goes wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hwflow
from hwflow.cli import main
from hwflow.errors import ModelRefused
from hwflow.host.boundary_models import port_inputs
from hwflow.host.runtime.host_design import read_design
from hwflow.host.runtime.host_errors import HostError
from hwflow.loaded_model import load
from hwflow.sim.simulated_board import SimulatedBoard
from hwflow.toolchain.verilator import VERILATOR
from hwflow.verify import golden
from tests.loading.networks import CHANNELS, SIDE, network

FRAMES = np.random.default_rng(5).normal(0, 40, (6, CHANNELS, SIDE, SIDE)).astype(np.float32)


def expected(model: Path) -> np.ndarray:
    """The integers that the golden model gives."""
    known = load(model)
    (values,) = golden.evaluate(known.quantized, port_inputs(known, {"x": FRAMES})).values()
    return values


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("board")
    network(made, 0, name="one.onnx")
    network(made, 1, 0.0191, 2.5, name="other.onnx")
    network(made, 1, 0.5, name="coarse.onnx")
    args = ["--board", "ulx3s_12f", "--fps", "100000", "--until", "verilog", "--loadable", "all"]
    assert main(["synth", str(made / "one.onnx"), *args, "-o", str(made / "out")]) == 0
    return made


def test_loads(folder: Path) -> None:
    found = VERILATOR.find()
    one, other = expected(folder / "one.onnx"), expected(folder / "other.onnx")
    assert (one != other).any()

    def check(board, values) -> None:
        (received,) = board.exchange({"x": FRAMES}).received.values()
        np.testing.assert_array_equal(received, values)

    with SimulatedBoard(
        folder / "out", command=found.command, environment=found.environment, faults=0.001, seed=1
    ) as peer:

        def connect():
            return hwflow.connect(folder / "out", peer.port, patience=60, clock=peer.seconds)

        with connect() as board:
            check(board, one)
            board.load(folder / "other.onnx")
            check(board, other)
            with pytest.raises(ModelRefused):
                board.load(folder / "coarse.onnx")
            check(board, other)
            board.reset()
            check(board, other)
            peer.reset()  # its session begins with the same load
            check(board, other)
            packet = bytearray(board.design.load_packet(folder / "out"))
            packet[-1] ^= 1  # in the CRC of the last table
            with pytest.raises(HostError, match=r"these have not: 'quantizelinear\d+_parameters' \(of"):
                board._load(bytes(packet))
            board.load(folder / "out")
            check(board, one)
            board.load(folder / "other.onnx")
        with connect() as board:  # it holds other weights than the bitstream: they are replaced
            check(board, one)


def test_fixed_weights(folder: Path, tmp_path: Path) -> None:
    assert main(["synth", str(folder / "one.onnx"), "--board", "ulx3s_12f", "-o", str(tmp_path / "out"), "--until",
                 "verilog"]) == 0
    assert read_design(tmp_path / "out").memories == ()
    with pytest.raises(hwflow.HwflowError, match="must be given for a design whose weights can be loaded"):
        hwflow.run(tmp_path / "out", simulated=True, weights=folder / "other.onnx")
