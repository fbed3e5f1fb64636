"""A board whose memory the host loads: with every session, and again after a reset of the board."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.host.simulated_dense import Design, check, emit, host, simulated_board


@pytest.fixture(scope="module", params=[("ulx3s_85f", 80), ("ulx3s_85f", 100), ("icebreaker", 42)])
def design(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Design:
    """An SDRAM at clocks at which words are taken at the falling edge, and at the rising one; and a part's own RAM."""
    folder: Path = tmp_path_factory.mktemp("memory")
    board, clock_mhz = request.param
    return emit(folder, board=board, clock_mhz=clock_mhz, memory="all", budget={"lut": "70%", "ff": "70%"})


def test_it_is_loaded_in_each_session(design: Design) -> None:
    with simulated_board(design)(faults=0.001) as peer:
        for session in range(2):
            with host(design, peer) as board:
                check(design, board, slice(20 * session, 20 * session + 20))
        with host(design, peer) as board:
            board.reset()
            check(design, board, slice(20))
            peer.reset()
            check(design, board, slice(20, 40))
