"""A yosys that dies: recognised by what it leaves, tried once more under other names, the logs of both kept.

The fake ones do what was seen of yosys compiled to WebAssembly: it ends within ABC, with or without an exit status.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from boards import find_board
from hwflow.codegen.board.board_files import write_board
from hwflow.errors import ToolError
from hwflow.toolchain import yosys
from hwflow.toolchain.build import build
from hwflow.toolchain.nextpnr import NEXTPNR_ICE40
from hwflow.toolchain.pack import ICEPACK
from hwflow.toolchain.tool import Found, run
from hwflow.toolchain.yosys import YOSYS
from tests.codegen.plus_one import emit

CELLS = {"modules": {name: {"num_cells_by_type": {"SB_LUT4": 7}} for name in ("\\top", "\\hwflow_top")}}
NETLIST = {"modules": {"top": {"attributes": {"top": "1"}, "cells": {}}}}
ONLY_THE_DESIGN = r"""
module \top
  wire input 1 \clk
  wire output 2 \error
  cell \hwflow_top \design
    connect \clk \clk
    connect \error \error
  end
end
"""
DEATH = "print('2.46.5. Executing ABC9.'); print('Running ABC command'); sys.exit({status})"
DONE = f"""
for name, text in (("top.v", "v"), ("statistics.json", {json.dumps(CELLS)!r}), ("top.json", {json.dumps(NETLIST)!r})):
    open("board/" + name, "w").write(text)
"""


@pytest.fixture
def fake_yosys(tmp_path, monkeypatch):
    """fake_yosys(first, retry): sets programs (Python) for yosys' first and second run."""

    def set_programs(first: str, retry: str) -> None:
        code = f"""
import sys
if "--version" in sys.argv:
    print("Yosys 9.9"); sys.exit()
exec({retry!r} if "renamed" in sys.argv[-1] else {first!r})
"""
        tool = replace(YOSYS, candidates=(lambda: ((sys.executable, "-c", code), "PATH", {}),))
        monkeypatch.setattr(yosys, "YOSYS", tool)

    return set_programs


@pytest.fixture
def out(tmp_path):
    out = emit(tmp_path / "out")
    write_board(out, find_board("icebreaker"))
    return out


@pytest.mark.parametrize("status", [0, 134])
def test_a_death_in_abc_is_followed_by_another_try(fake_yosys, out, status):
    fake_yosys(DEATH.format(status=status), "print('better')" + DONE)
    lines: list[str] = []
    result = build(out, "netlist", lines.append)
    assert result.design_resources["lut"] == 7
    note = "synthesis: yosys crashed; retrying with other names (board/synthesis_retry.log)"
    assert lines == ["synthesis: yosys 9.9", note, "synthesis: yosys 9.9", "registers: 0 flip-flops absorbed"]
    first = "2.46.5. Executing ABC9.\nRunning ABC command\n"
    assert (out / "board" / "synthesis.log").read_text() == f"{first}\nhwflow: {note}\n"
    assert (out / "board" / "synthesis_retry.log").read_text() == "better\n"
    assert list(result.seconds) == ["synthesis", "registers"]


def test_an_older_netlist_does_not_hide_a_death(fake_yosys, out):
    (out / "board" / "top.json").write_text("of another run")
    fake_yosys(DEATH.format(status=0), DEATH.format(status=0))
    with pytest.raises(ToolError) as error:
        build(out, "netlist")
    assert str(error.value) == (
        "error: synthesis (yosys): board/top.v, board/statistics.json, board/top.json must be written, not missing "
        f"(log: {out}/board/synthesis_retry.log) [tool-output]\n    2.46.5. Executing ABC9.\n    Running ABC command\n"
        "  remedy: read the log; report this as a defect of hwflow if the design is to blame"
    )
    assert not (out / "board" / "top.json").exists()


def test_an_empty_netlist_is_none(fake_yosys, out):
    fake_yosys(DONE + "open('board/top.json', 'w')", DONE)
    assert build(out, "netlist").design_resources["lut"] == 7
    assert (out / "board" / "synthesis_retry.log").exists()


def test_a_netlist_that_is_none_is_a_finding(fake_yosys, out):
    fake_yosys(DONE + "open('board/top.json', 'w').write('no netlist')", DONE)
    with pytest.raises(ToolError, match=r"netlist '.*top.json': must be yosys' JSON of one top module"):
        build(out, "netlist")


def test_an_error_that_yosys_reports_is_final(fake_yosys, out):
    fake_yosys("print('ERROR: syntax error'); sys.exit(1)", DONE)
    with pytest.raises(ToolError, match="exit status must be 0, not 1"):
        build(out, "netlist")
    assert not (out / "board" / "synthesis_retry.log").exists()


@pytest.mark.parametrize(
    ("tool", "missing"), [(NEXTPNR_ICE40, "board/top.asc, board/place_route.json"), (ICEPACK, "board/top.bin")]
)
def test_every_step_must_leave_its_files(fake_yosys, out, monkeypatch, tool, missing):
    """Programs that do nothing and say so, from ``tool`` on."""
    fake_yosys(DONE, "")
    report = {"fmax": {}, "utilization": {}}
    place = f"open('board/top.asc', 'w').write('x'); open('board/place_route.json', 'w').write({json.dumps(report)!r})"
    programs = {NEXTPNR_ICE40.name: "" if tool is NEXTPNR_ICE40 else place, ICEPACK.name: ""}
    find = type(tool).find

    def found(self):
        program = programs.get(self.name)
        return find(self) if program is None else Found((sys.executable, "-c", program), "PATH", (9,), "9")

    monkeypatch.setattr(type(tool), "find", found)
    with pytest.raises(ToolError) as error:
        build(out)
    assert f"({tool.name}): {missing} must be written, not missing" in str(error.value)


def test_outputs_are_those_of_this_run(tmp_path):
    (tmp_path / "b").write_text("old")
    python = Found((sys.executable, "-c"), "PATH", (), "")
    options = {"cwd": tmp_path, "log": tmp_path / "log", "step": "s", "remedy": "r"}
    assert run(python, ["open('a', 'w').write('x'); print('said')"], outputs=["a"], **options) == "said\n"
    with pytest.raises(ToolError) as error:
        run(python, ["print('said')"], outputs=["a", "b"], **options)
    assert error.value.findings[0].message == f"a, b must be written, not missing (log: {tmp_path}/log)"
    assert error.value.findings[0].output == ("said",)


def test_a_full_disk_cuts_what_a_program_writes(tmp_path, monkeypatch):
    """Yosys does not look, and ends well."""
    python = Found((sys.executable, "-c"), "PATH", (), "")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=0))
    with pytest.raises(ToolError, match=r"a must be written whole, not cut: No space left on device \[tool-room\]"):
        run(python, ["open('a', 'w').write('x')"], tmp_path, tmp_path / "log", step="s", remedy="r", outputs=["a"])
    assert not (tmp_path / "a").exists()


def test_where_a_log_ends():
    trace = "".join(f"   {i}: 0x2f - <unknown>!<wasm function {i}>\n" for i in range(20))
    assert yosys.died_in_abc(f"2.1. Executing ABC9 pass.\nTraceback (most recent call last):\n{trace}")
    assert yosys.died_in_abc("ERROR: ABC: execution of command failed: return code 134.\n")
    assert not yosys.died_in_abc("2.1. Executing ABC pass.\n" + "2.2. Executing OPT pass.\n" * 40)
    assert not yosys.died_in_abc("")


def test_the_other_names_give_the_same_cells(out):
    """Yosys itself, with both scripts; the board's top is no more than the design."""
    (out / "board" / "top.il").write_text(ONLY_THE_DESIGN)
    first = build(out, "netlist")
    statistics = (out / "board" / "statistics.json").read_text()
    (out / "board" / "statistics.json").unlink()
    run(YOSYS.find(), ["-s", "board/synthesis_renamed.ys"], out, out / "log", step="s", remedy="r")
    cells = yosys.read_statistics(out / "board" / "statistics.json", "ice40", "hwflow_top")
    assert cells == first.design_resources
    assert "hwflow_top" in statistics
    assert (out / "board" / "top.json").stat().st_size > 1000
