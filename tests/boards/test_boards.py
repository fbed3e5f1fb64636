"""The boards' data, and the top each of them gets."""

from __future__ import annotations

import json

import pytest

from boards import UnknownBoard, all_boards, find_board
from hwflow.codegen.board_top import FramePort, frame_ports, plan_clock, write_board
from hwflow.errors import UsageError
from tests.boards.plus_one import emit, stream

NAMES = ["icebreaker", "ulx3s_12f", "ulx3s_25f", "ulx3s_45f", "ulx3s_85f"]


def test_the_list_of_boards():
    assert [b.name for b in all_boards()] == NAMES


def test_an_unknown_board_is_refused_with_the_list():
    with pytest.raises(UnknownBoard) as error:
        find_board("ulx4s")
    assert str(error.value) == (
        "board must be one of icebreaker, ulx3s_12f, ulx3s_25f, ulx3s_45f, ulx3s_85f, not 'ulx4s'"
    )


@pytest.mark.parametrize("name", NAMES)
def test_board_agrees_with_its_platform(name):
    board = find_board(name)
    platform = board.platform()
    assert platform.device == board.part.device
    assert platform.lookup(board.clock.resource, board.clock.number).clock.frequency == board.clock.hz
    assert board.part.bram * board.part.bram_bits > 0 and board.part.source and "{bitstream}" in board.program


@pytest.mark.parametrize("name", NAMES)
def test_every_board_elaborates_its_top(name, tmp_path):
    board = find_board(name)
    out = emit(tmp_path / "out")
    description = write_board(out, board)
    assert json.loads((out / "board" / "board.json").read_text()) == description
    constraints = (out / description["constraints"]).read_text()
    for pin in description["pins"].values():
        assert pin in constraints
    rtlil = (out / description["rtlil"]).read_text()
    assert "cell \\hwflow_top \\hwflow_top" in rtlil
    assert str(tmp_path) not in rtlil and "attribute \\src" not in rtlil
    assert description["clock"]["design_mhz"] == board.clock_mhz  # both defaults are reachable exactly
    assert description["simulation"]["startup_cycles"] == board.clock_mhz * 16 + 16  # 16 us and some
    assert description["uart"] == {"baud": 1_000_000, "divisor": int(board.clock_mhz)}
    assert description["host"] == {
        "input_bytes": 4, "output_bytes": 4, "frames_in_flight": 4, "receive_bytes": 16, "idle_seconds": 0.1,
    }


def test_another_clock():
    ulx3s, icebreaker = find_board("ulx3s_85f"), find_board("icebreaker")
    assert float(plan_clock(ulx3s, 70).frequency_hz) == 70e6  # 700 MHz / 10
    assert plan_clock(ulx3s, 25).pll is None and plan_clock(icebreaker, 12).pll is None
    assert float(plan_clock(icebreaker, 20).frequency_hz) == 19.875e6
    with pytest.raises(UsageError) as error:
        plan_clock(ulx3s, 401)
    assert str(error.value) == (
        "error: board 'ulx3s_85f': target frequency of an ECP5 PLL must be 3.125 to 400 MHz, not 401 MHz "
        "[clock-reachable]\n"
        "  remedy: choose another clock, such as 125 MHz"
    )


@pytest.mark.parametrize("name", ["icebreaker", "ulx3s_85f"])
def test_the_oscillator_itself_can_be_the_clock(name, tmp_path):
    board = find_board(name)
    out = emit(tmp_path / "out")
    description = write_board(out, board, board.clock.hz / 1e6)
    assert description["clock"]["design_mhz"] == board.clock.hz / 1e6
    rtlil = (out / description["rtlil"]).read_text()
    assert "SB_PLL40" not in rtlil and "EHXPLLL" not in rtlil


def test_a_baud_rate_out_of_reach_is_refused(tmp_path):
    with pytest.raises(UsageError) as error:
        write_board(emit(tmp_path / "out"), find_board("ulx3s_85f"), 3.125)
    assert str(error.value) == (
        "error: board 'ulx3s_85f': baud rate must be at most a 4th of the clock (3125000 Hz), not 1000000 "
        "[baud-reachable]\n"
        "  remedy: choose another clock for the design"
    )


def test_one_stream_each_way():
    source = stream("x", "s_axis", lanes=3, element_bytes=2)
    manifest = {"model": "two", "inputs": [source], "outputs": [stream("y", "m_axis")]}
    assert frame_ports(manifest) == (FramePort(6, 4), FramePort(1, 4))
    manifest["outputs"] = [stream("y", "m0_axis"), stream("z", "m1_axis")]
    with pytest.raises(UsageError) as error:
        frame_ports(manifest)
    assert str(error.value) == (
        "error: model 'two': a design on a board must have one input and one output, not 2 outputs (y, z) "
        "[one-stream]\n"
        "  remedy: use '--until verilog' and connect the design's streams yourself"
    )
