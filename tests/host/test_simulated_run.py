"""Frames through a board's top in Verilator: the host's code, the link and the design together, on a good line and on a
bad one, with resets and hosts that come and go."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hwflow.cli import main
from hwflow.host.runtime.host_errors import HostError
from sim.sim_errors import SimulatorFailed
from tests.host.simulated_dense import check, check_a_good_line, emit, host, simulated_board

BOARDS = {"serial": {"board": "icebreaker"}, "udp": {"board": "colorlight_i5", "ethernet": "192.168.1.50"}}
FAULTS = {"serial": ["--faults", "0.01"], "udp": ["--faults", "0.2", "--frames", "2000"]}  # of bytes, of datagrams


@pytest.fixture(scope="module", params=BOARDS)
def carrier(request):
    if request.param == "udp":
        pytest.importorskip("liteeth")
    return request.param


@pytest.fixture(scope="module")
def design(carrier, tmp_path_factory):
    made = emit(tmp_path_factory.mktemp("dense"), **BOARDS[carrier])
    np.savez(made.out.parent / "frames.npz", **made.inputs)
    return made


@pytest.fixture(scope="module")
def simulated(design):
    return simulated_board(design)


def test_a_good_line(design, simulated):
    check_a_good_line(design, simulated)


def test_a_bad_line(design, carrier, capsys):
    """By the command line: none wrong, none lost."""
    frames = str(design.out.parent / "frames.npz")
    arguments = ["--simulated", *FAULTS[carrier], "--seed", "1", "--input", frames]
    assert main(["run", str(design.out), *arguments, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["frames"], told["mismatches"]) == (2000 if carrier == "udp" else 120, 0)
    assert told["resent"] > 0 and told["statistics"]["damaged"] > 0


def test_the_board_is_reset_and_hosts_come_and_go(design, simulated):
    check_resets(design, simulated)


def test_a_core_with_a_clock_of_its_own(tmp_path):
    design = emit(tmp_path, board="ulx3s_85f", clock_mhz=200)
    clock = json.loads((design.out / "board" / "board.json").read_text())["clock"]
    assert (clock["design_mhz"], clock["link_mhz"]) == (200, 100)
    check_resets(design, simulated_board(design))


def check_resets(design, simulated):
    with simulated(faults=0.002) as peer:
        for session in range(3):
            with host(design, peer) as board:  # what the host before left under way is of another session
                check(design, board, slice(20 * session, 20 * session + 20))
                left = board.coder.encode(board.coder.integers({"x": design.inputs["x"][:30]}))
                board.link.send(left.data.cast("B"))
            peer.reset()
        with host(design, peer) as board:
            for first in range(0, 120, 40):
                peer.reset()
                check(design, board, slice(first, first + 40))
            assert 2 <= board.statistics()["sessions"] <= 4
        assert peer.counters()["resets"] == 6


def test_two_hosts_at_once(design, carrier, simulated):
    """A serial port has one; over Ethernet the second one takes the board, and the first one says so."""
    with simulated() as peer, host(design, peer) as first:
        check(design, first, slice(20))
        if carrier == "serial":
            with pytest.raises(HostError, match="must be used by one program at a time"), host(design, peer):
                pass
            check(design, first, slice(20))
        else:
            with host(design, peer) as second:
                check(design, second, slice(20))
                with pytest.raises(HostError, match="must have one host at a time, not be taken over by another one"):
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
