"""Frames through a board's top in Verilator: the host's code, the link and the design together, on a good line and on a
bad one, with resets and hosts that come and go."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

import hwflow
from hwflow.api.compiler import compile
from hwflow.cli import main
from hwflow.host.runtime.host_errors import HostError
from hwflow.toolchain.verilator import VERILATOR
from hwflow.verify import golden
from sim.errors import SimulatorFailed
from sim.simulated_board import SimulatedBoard
from tests.flow.networks import dense_network

BOARDS = {"serial": {"board": "icebreaker"}, "udp": {"board": "colorlight_i5", "ethernet": "192.168.1.50"}}
FAULTS = {"serial": ["--faults", "0.01"], "udp": ["--faults", "0.2", "--frames", "2000"]}  # of bytes, of datagrams


@pytest.fixture(scope="module", params=BOARDS)
def design(request, tmp_path_factory):
    """(output folder, {"x": frames}, the integers of "y", carrier): a network of 12 bytes a frame in and 4 out."""
    if request.param == "udp":
        pytest.importorskip("liteeth")
    folder = tmp_path_factory.mktemp("dense")
    made = compile(dense_network(folder / "model.onnx"), **BOARDS[request.param])
    made.write(folder / "out")
    frames = np.random.default_rng(7).uniform(-4, 4, (120, 12)).astype(np.float32)
    np.savez(folder / "frames.npz", x=frames)
    return folder / "out", {"x": frames}, made.model.quantized, request.param


@pytest.fixture(scope="module")
def simulated(design):
    """simulated(**options): the board; it is built once."""
    found = VERILATOR.find()
    return partial(SimulatedBoard, design[0], command=found.command, environment=found.environment, seed=5)


def host(design, peer):
    return hwflow.connect(design[0], peer.port, patience=60, clock=peer.seconds)


def check(design, board, frames):
    """Let the board work on some of the frames, and compare its answers with the golden model's."""
    _, inputs, graph, _ = design
    done = board.exchange({"x": inputs["x"][frames]})
    due = golden.evaluate(graph, {name: array.astype(np.int64) for name, array in done.sent.items()})
    assert set(done.received) == set(due)
    for name, array in done.received.items():
        np.testing.assert_array_equal(array, due[name].reshape(array.shape))


def test_a_good_line(design, simulated):
    with simulated() as peer, host(design, peer) as board:
        check(design, board, slice(None))
        counted = board.statistics()
        assert peer.counters()["framing"] == 0
    assert (counted["frames_in"], counted["frames_out"], counted["error"]) == (120, 120, 0)
    assert (counted["resent"], counted["damaged"], counted["damaged_answers"], counted["sessions"]) == (0, 0, 0, 1)


def test_a_bad_line(design, capsys):
    """By the command line: none wrong, none lost."""
    out, *_, carrier = design
    arguments = ["--simulated", *FAULTS[carrier], "--seed", "1", "--input", str(out.parent / "frames.npz")]
    assert main(["run", str(out), *arguments, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["frames"], told["mismatches"]) == (2000 if carrier == "udp" else 120, 0)
    assert told["resent"] > 0 and told["statistics"]["damaged"] > 0


def test_the_board_is_reset_and_hosts_come_and_go(design, simulated):
    with simulated(faults=0.002) as peer:
        for session in range(3):
            with host(design, peer) as board:  # what the host before left under way is of another session
                check(design, board, slice(20 * session, 20 * session + 20))
                left = board.coder.encode(board.coder.integers({"x": design[1]["x"][:30]}))
                board.link.send(left.data.cast("B"))
            peer.reset()
        with host(design, peer) as board:
            for first in range(0, 120, 40):
                peer.reset()
                check(design, board, slice(first, first + 40))
            assert 2 <= board.statistics()["sessions"] <= 4
        assert peer.counters()["resets"] == 6


def test_two_hosts_at_once(design, simulated):
    """A serial port has one; over Ethernet the second one takes the board, and the first one says so."""
    with simulated() as peer, host(design, peer) as first:
        check(design, first, slice(20))
        if design[3] == "serial":
            with pytest.raises(HostError, match="must be used by one program at a time"), host(design, peer):
                pass
            check(design, first, slice(20))
        else:
            with host(design, peer) as second:
                check(design, second, slice(20))
                with pytest.raises(HostError, match="must have one host at a time, not be taken by another one"):
                    check(design, first, slice(20))
                check(design, second, slice(20))


def test_the_simulation_ends(design, simulated):
    """Whoever waits for an answer does not wait for ever."""
    with pytest.raises(SimulatorFailed), simulated() as peer, host(design, peer) as board:
        check(design, board, slice(20))
        peer._program.kill()
        peer._program.wait()
        with pytest.raises((SimulatorFailed, HostError)):
            check(design, board, slice(20))
