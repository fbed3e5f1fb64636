"""Gowin: from an emitted directory to a bitstream, and what is in that."""

from __future__ import annotations

import pytest

from boards import find_board
from hwflow.codegen.board.board_files import write_board
from hwflow.toolchain.build import build
from tests.codegen.plus_one import emit

IDENTIFICATION = 0x1100481B  # of a GW1N-9C


def test_a_bitstream_comes_out(tmp_path):
    board = find_board("tang_nano_9k")
    out = emit(tmp_path / "out")
    write_board(out, board)
    result = build(out)
    assert result.bitstream == out / "board" / "top.fs"
    commands = [line for line in result.bitstream.read_text().splitlines() if not line.startswith("//")]
    assert set("".join(commands)) == {"0", "1"}  # as text
    # command 06: the identification code in the last 32 bits (Gowin TN653, configuration)
    (code,) = {int(line[-32:], 2) for line in commands if len(line) == 64 and int(line[:8], 2) == 0x06}
    assert code == IDENTIFICATION
    assert result.timing_met is True and result.fmax_mhz > board.clock_mhz
    assert [clock.constraint_mhz for clock in result.clocks] == [pytest.approx(board.clock_mhz, rel=0.01)]
    # by hand: 8 data + valid + last + error + 2 of the beat counter
    assert result.design_resources["ff"] == 13
    assert result.design_resources["dsp"] == result.design_resources["bram"] == 0
    assert result.resources["lut"] > result.design_resources["lut"] > 8
    part = {"lut": board.part.lut, "ff": board.part.ff, "dsp": board.part.dsp, "bram": board.part.bram}
    assert result.available == part
    assert all(result.resources[key] <= part[key] for key in part)
