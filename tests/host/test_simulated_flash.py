"""A board whose flash has the weights: they are compared in each session, and a host says where they are others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hwflow
from hwflow.boards.board import Board
from tests.host.simulated_dense import Design, check, emit, host, simulated_board


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Design:
    folder: Path = tmp_path_factory.mktemp("flash")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Board, "memory_timing", Board.flash_timing)
        return emit(folder, board="icebreaker", clock_mhz=24, memory="all", budget={"lut": "100%", "ff": "100%"})


def test_it_is_compared_in_each_session(design: Design) -> None:
    """Nothing is loaded but a CRC-32; also after a reset of the board, where the flash is set up already."""
    with simulated_board(design)(faults=0.001) as peer:
        for session in range(2):
            with host(design, peer) as board:
                check(design, board, slice(20 * session, 20 * session + 20))
        with host(design, peer) as board:
            assert len(board.design.preamble) == 4
            board.reset()
            check(design, board, slice(20))
            peer.reset()
            check(design, board, slice(20, 40))


def test_other_weights_are_refused(design: Design) -> None:
    """A single bit of the last page's end, where no weights are."""
    manifest = json.loads((design.out / "manifest.json").read_text())["memory"]
    image = design.out / manifest["image"]
    before = image.read_text()
    try:
        image.write_text(f"{before[:-2]}{'1' if before[-2] == '0' else '0'}\n")
        with simulated_board(design)() as peer:
            image.write_text(before)  # which the host reads
            with pytest.raises(hwflow.HostError) as raised:
                host(design, peer)
    finally:
        image.write_text(before)
    (finding,) = raised.value.findings
    assert finding.rule == "flash-image"
    assert "must have the design's weights in its flash, not others" in finding.message
    assert f"in '{design.out}': iceprog -o 1048576 board/flash.bin or openFPGALoader" in finding.remedy
