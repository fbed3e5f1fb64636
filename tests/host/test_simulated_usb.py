"""Frames through boards behind USB in Verilator: the host's code, a full-speed USB host at D+ and D-, LUNA's device,
the link and the design, on a good line and on a bad one, with resets."""

from __future__ import annotations

import pytest

from tests.host.simulated_dense import check, check_a_good_line, emit, host, simulated_board

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
    """48 MHz and a quarter of it come from one PLL and logic on the one board, from a PLL of its own on the other."""
    return emit(tmp_path_factory.mktemp("dense"), board=request.param)


@pytest.fixture(scope="module")
def simulated(design):
    return simulated_board(design)


on_one_board = pytest.mark.parametrize("design", ["tinyfpga_bx"], indirect=True)


def test_a_good_line(design, simulated):
    check_a_good_line(design, simulated)
    told = (design.out / "testbench" / "build" / "board" / "run.log").read_text()
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
    told = (design.out / "testbench" / "build" / "board" / "run.log").read_text()
    assert told.count("USB device:") > 1


@on_one_board
def test_the_board_is_reset(design, simulated):
    with simulated() as peer, host(design, peer) as board:
        for first in range(0, 120, 40):
            peer.reset()
            check(design, board, slice(first, first + 40))
        assert 2 <= board.statistics()["sessions"] <= 4
        assert peer.counters()["resets"] == 3
