"""Frames through a board's top in Verilator: the host's code, the link and the design together, on a good line and on a
bad one, with resets and hosts that come and go."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hwflow
from hwflow.api.compiler import compile
from hwflow.cli import main
from hwflow.toolchain.verilator import VERILATOR
from hwflow.verify import golden
from sim.simulated_board import SimulatedBoard
from tests.flow.networks import dense_network


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    """(output folder, {"x": frames}, the integers of "y"): a network of 12 bytes a frame in and 4 out."""
    folder = tmp_path_factory.mktemp("dense")
    made = compile(dense_network(folder / "model.onnx"), "icebreaker")
    made.write(folder / "out")
    frames = np.random.default_rng(7).uniform(-4, 4, (120, 12)).astype(np.float32)
    np.savez(folder / "frames.npz", x=frames)
    return folder / "out", {"x": frames}, made.model.quantized


@pytest.fixture(scope="module")
def simulated(design):
    """simulated(faults): the board; it is built once."""
    found = VERILATOR.find()

    def board(**options):
        return SimulatedBoard(design[0], command=found.command, environment=found.environment, seed=5, **options)

    return board


def exchanged(design, peer, frames):
    """What the board makes of some of the frames in a session of its own, checked; and packets sent again."""
    out, inputs, graph = design
    with hwflow.connect(out, peer.port, patience=60, clock=peer.seconds) as board:
        done = board.exchange({"x": inputs["x"][frames]})
        due = golden.evaluate(graph, {name: array.astype(np.int64) for name, array in done.sent.items()})
        for name, array in done.received.items():
            np.testing.assert_array_equal(array, due[name].reshape(array.shape))
        return board.statistics()


def test_a_good_line(design, simulated):
    with simulated() as peer:
        counted = exchanged(design, peer, slice(None))
    assert (counted["frames_in"], counted["frames_out"], counted["error"]) == (120, 120, 0)
    assert (counted["resent"], counted["damaged"], counted["damaged_answers"]) == (0, 0, 0)


def test_every_hundredth_byte_damaged(design, capsys):
    """By the command line; 0 wrong, 0 lost."""
    out = design[0]
    arguments = ["--simulated", "--faults", "0.01", "--seed", "1", "--input", str(out.parent / "frames.npz")]
    assert main(["run", str(out), *arguments, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["frames"], told["mismatches"]) == (120, 0)
    assert told["resent"] > 0 and told["statistics"]["damaged"] > 0


def test_the_board_is_reset_and_hosts_come_and_go(design, simulated):
    out, inputs, _ = design
    with simulated(faults=0.002) as peer:
        for session in range(3):
            # what the host before left under way is of another session
            exchanged(design, peer, slice(20 * session, 20 * session + 20))
            with hwflow.connect(out, peer.port, patience=60, clock=peer.seconds) as killed:
                sent = killed.coder.encode(killed.coder.integers({"x": inputs["x"][:30]}))
                killed.link.send(sent.data.cast("B"))
            peer.reset()
        with hwflow.connect(out, peer.port, patience=60, clock=peer.seconds) as board:
            for first in range(0, 120, 40):
                peer.reset()
                got = board.run({"x": inputs["x"][first : first + 40]})["y"]
                assert got.shape == (40, 4)
            assert 1 <= board.statistics()["sessions"] <= 4
        assert peer.counters()["resets"] == 6
