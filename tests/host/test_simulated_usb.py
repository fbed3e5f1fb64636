"""Frames through boards behind USB in Verilator: the host's code, a full-speed USB host at D+ and D-, LUNA's device,
the link and the design, on a good line and on a bad one, with resets."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import hwflow
from hwflow.api.compiler import compile
from hwflow.toolchain.verilator import VERILATOR
from hwflow.verify import golden
from sim.simulated_board import SimulatedBoard
from tests.flow.networks import dense_network

pytest.importorskip("luna")

# By hand from USB 2.0, 9.6, and CDC 1.2, 5.2.3: a device of 64-byte packets, 1209:0001, two strings (the one is the
# graph's name), one configuration; its interfaces are one function; one endpoint for notifications, one each way for
# data.
DESCRIPTORS = {
    "device": "12 01 0002 00 00 00 40 0912 0100 0000 01 02 00 01",
    "configuration": (
        "09 02 4700 02 01 00 80 fa  08 0b 00 02 02 02 01 00"
        "09 04 00 00 01 02 02 01 00  05 24 00 1001  05 24 06 00 01  05 24 01 00 01  07 05 83 03 4000 0b"
        "09 04 01 00 02 0a 00 00 00  07 05 84 02 4000 ff  07 05 04 02 4000 ff"
    ),
    "languages": "04 03 0904",
    "manufacturer": "0e 03" + "hwflow".encode("utf-16-le").hex(),
    "product": "18 03" + "small dense".encode("utf-16-le").hex(),
}


@pytest.fixture(scope="module", params=["tinyfpga_bx", "orangecrab_25f"])
def design(request, tmp_path_factory):
    """(output folder, {"x": frames}, the quantized graph): 12 bytes a frame in and 4 out. 48 MHz and a quarter of it
    come from one PLL and logic on the one board, from a PLL of its own on the other."""
    folder = tmp_path_factory.mktemp("dense")
    made = compile(dense_network(folder / "model.onnx"), request.param)
    made.write(folder / "out")
    frames = np.random.default_rng(7).uniform(-4, 4, (120, 12)).astype(np.float32)
    return folder / "out", {"x": frames}, made.model.quantized


@pytest.fixture(scope="module")
def simulated(design):
    """simulated(**options): the board; it is built once."""
    found = VERILATOR.find()
    return partial(SimulatedBoard, design[0], command=found.command, environment=found.environment, seed=5)


on_one_board = pytest.mark.parametrize("design", ["tinyfpga_bx"], indirect=True)


def host(design, peer):
    return hwflow.connect(design[0], peer.port, patience=60, clock=peer.seconds)


def check(design, board, frames):
    """Let the board work on some of the frames, and compare its answers with the golden model's."""
    _, inputs, graph = design
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
    told = (design[0] / "testbench" / "build" / "board" / "run.log").read_text()
    found = {line[4:].partition(":")[0]: bytes.fromhex(line.partition(":")[2]) for line in told.splitlines()}
    assert found == {name: bytes.fromhex(text) for name, text in DESCRIPTORS.items()}


@on_one_board
def test_lost_and_damaged_usb_packets(design, simulated):
    """Tokens, data and handshakes are lost, damaged, repeated and late: USB itself sends them again."""
    with simulated(faults=0.05) as peer, host(design, peer) as board:
        check(design, board, slice(None))
        assert board.statistics()["error"] == 0
        counted = peer.counters()
        assert min(counted[name] for name in ("lost", "added", "flipped", "delayed", "duplicated")) > 0


@on_one_board
def test_a_line_so_bad_that_the_host_resets_the_device(design, simulated):
    """Three errors in a row halt an endpoint, and what was under way is lost: the link sends it again."""
    with simulated(faults=0.3) as peer, host(design, peer) as board:
        for _ in range(30):
            check(design, board, slice(30))
            if board.statistics()["resent"] > 0:
                break
        assert board.statistics()["resent"] > 0
    told = (design[0] / "testbench" / "build" / "board" / "run.log").read_text()
    assert told.count("USB device:") > 1


@on_one_board
def test_the_board_is_reset(design, simulated):
    with simulated() as peer, host(design, peer) as board:
        for first in range(0, 120, 40):
            peer.reset()
            check(design, board, slice(first, first + 40))
        assert 2 <= board.statistics()["sessions"] <= 4
        assert peer.counters()["resets"] == 3
