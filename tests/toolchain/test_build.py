"""From an emitted directory to a bitstream, and the board's top in simulation, pin to pin."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from boards import find_board
from hwflow.codegen.board.board_files import write_board
from hwflow.codegen.board.carriers import LinkOptions
from hwflow.errors import ToolError, UsageError
from hwflow.toolchain import build as build_module
from hwflow.toolchain.build import FLOWS, PACKED, PLACED_BLOCKS, build, write_top_verilog
from hwflow.toolchain.nextpnr import STRATEGIES, arguments
from tests.board_line import exchange
from tests.codegen.plus_one import emit

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The design on an iCEBreaker, with the progress lines and the result."""
    out = emit(tmp_path_factory.mktemp("build") / "out")
    write_board(out, find_board("icebreaker"))
    lines: list[str] = []
    return out, lines, build(out, progress=lines.append)


def test_a_bitstream_comes_out(built):
    out, lines, result = built
    assert result.bitstream is not None and result.bitstream.read_bytes()[:2] == b"\xff\x00"  # IceStorm's comment block
    steps = [line.split()[0] for line in lines]  # place and route may take several attempts
    assert list(dict.fromkeys(steps)) == ["synthesis:", "registers:", "place_route:", "pack:"]
    assert list(result.seconds) == ["synthesis", "registers", "place_route", "pack"]
    assert {p.name for p in (out / "board").iterdir()} >= {
        "synthesis.log", "registers.log", "place_route.log", "pack.log", "build.sh",
        "top.v", "top.json", "packed.json", "top.il", "top.pcf", "board.json",
    }


def test_the_report_is_read(built):
    _, _, result = built
    assert result.design_clock_mhz == 42.0
    assert [round(clock.constraint_mhz, 1) for clock in result.clocks] == [42.0]
    assert result.timing_met is True and result.fmax_mhz is not None and result.fmax_mhz > 42
    assert result.available == {"lut": 5280, "dsp": 8, "bram": 30}
    # by hand: 8 data + valid + last + error + 2 of the beat counter
    assert result.design_resources["ff"] == 13
    assert result.design_resources["dsp"] == result.design_resources["bram"] == 0
    assert result.resources["bram"] == 7  # 1024 bytes each way, 512 of the framing, identity, counters
    assert result.resources["lut"] > result.design_resources["lut"] > 8
    assert result.resources["ff"] > result.design_resources["ff"]


@pytest.fixture
def again(built, tmp_path):
    """again(yosys, variables): runs build.sh with a fake yosys (a shell program); returns the tools' calls in order.

    What is in the folder comes back afterwards.
    """
    out, _, _ = built
    kept = {p: p.read_bytes() for p in (out / "board").rglob("*") if p.is_file()}

    def run(yosys: str, **variables: str) -> list[str]:
        tools = {}
        for variable, program in (("YOSYS", yosys), ("NEXTPNR_ICE40", ""), ("ICEPACK", "")):
            fake = tmp_path / variable
            fake.write_text(f'#!/bin/sh\necho {variable} $(pwd) "$@" >>{tmp_path}/calls\n{program}\n')
            fake.chmod(0o755)
            tools[variable] = str(fake)
        environment = {"PATH": "/usr/bin:/bin", **tools, **variables}
        subprocess.run(["sh", str(out / "board" / "build.sh")], env=environment, check=True)
        return (tmp_path / "calls").read_text().splitlines()

    yield run
    for path, data in kept.items():
        path.write_bytes(data)


def test_the_folder_can_be_built_again_by_its_script(built, again):
    out, _, _ = built
    script = (out / "board" / "build.sh").read_text()
    assert str(out) not in script and '"${NEXTPNR_ICE40:=nextpnr-ice40}" --up5k' in script
    calls = again("echo {} >board/top.json")
    assert [call.split()[:2] for call in calls] == [[v, str(out)] for v in ("YOSYS", "NEXTPNR_ICE40", "ICEPACK")]


def test_the_script_packs_the_netlist_where_hwflow_is_and_goes_on_where_it_is_not(built, again):
    """A copy of the netlist is placed there; the same file where hwflow packs it."""
    out, _, _ = built
    kept = (out / "board" / "packed.json").read_bytes()
    (out / "board" / "mapped.json").write_bytes((out / "board" / "top.json").read_bytes())
    yosys = "cp board/mapped.json board/top.json"
    again(yosys, PYTHON="/bin/false")
    assert (out / "board" / "packed.json").read_bytes() == (out / "board" / "top.json").read_bytes()
    again(yosys, PYTHON=sys.executable, PYTHONPATH=str(ROOT))
    assert (out / "board" / "packed.json").read_bytes() == kept
    assert (out / "board" / "registers.log").read_text().startswith("0 flip-flops absorbed")


@pytest.mark.parametrize("status", [0, 134])
def test_the_script_tries_again_when_yosys_dies(again, status):
    calls = again(f'case "$*" in *renamed*) echo {{}} >board/top.json;; *) exit {status};; esac')
    assert [call.split()[0] for call in calls] == ["YOSYS", "YOSYS", "NEXTPNR_ICE40", "ICEPACK"]
    assert [call.split()[2:] for call in calls[:2]] == [["-s", f"board/synthesis{s}.ys"] for s in ("", "_renamed")]


@pytest.mark.parametrize("language", ["2005", "2012"])  # the latter starts processes in another order
def test_the_boards_top_answers_on_its_pins_icebreaker(built, language):
    out, _, _ = built
    assert exchange(out, b"\x00\x7f\xff\x41" b"abcd", language=language) == b"\x01\x80\x00\x42" b"bcde"


def test_the_boards_top_answers_on_its_pins_ulx3s(tmp_path):
    out = emit(tmp_path / "out")
    write_board(out, find_board("ulx3s_85f"))
    assert write_top_verilog(out) == out / "board" / "top.v"
    assert exchange(out, b"\x00\x7f\xff\x41") == b"\x01\x80\x00\x42"


@pytest.mark.parametrize(
    ("board", "mhz"),
    # with and without a PLL, one of each family that was not simulated above, and a serial port on pins
    [
        ("tang_nano_9k", 27), ("tang_primer_20k", 54), ("arty_a7_35", 100), ("basys3", 80), ("de10_nano", 100),
        ("de10_nano", 50), ("tinyfpga_bx", 32),
    ],
)
def test_the_boards_top_answers_on_its_pins(tmp_path, board, mhz):
    out = emit(tmp_path / "out")
    write_board(out, find_board(board), mhz, LinkOptions(4_000_000))
    write_top_verilog(out)
    assert exchange(out, b"\x00\x7f\xff\x41") == b"\x01\x80\x00\x42"


def enables(out):
    """How many flip-flops each enable has, in the netlist of a board."""
    cells = json.loads((out / "board" / "top.json").read_text())["modules"]["top"]["cells"].values()
    return Counter(cell["connections"]["E"][0] for cell in cells if "E" in cell["connections"])


def test_on_a_crowded_part_hardly_an_enable_is_of_fewer_than_nine(built, tmp_path):
    """The link's flip-flops, whose tiles have one enable each."""
    out = emit(tmp_path / "out")
    manifest = json.loads((out / "manifest.json").read_text())
    for cells, crowded in ((3168, False), (3169, True)):  # by hand: 0.6 of 5,280
        (out / "manifest.json").write_text(json.dumps(manifest | {"cells": cells}))
        assert write_board(out, find_board("icebreaker"))["crowded"] is crowded
    build(out, until="netlist")
    few = [sum(count < 9 for count in enables(folder).values()) for folder in (built[0], out)]
    assert few[1] * 4 < few[0]  # later steps take some flip-flops away


def test_a_broken_design_shows_the_end_of_the_log(tmp_path):
    out = emit(tmp_path / "out")
    write_board(out, find_board("icebreaker"))
    (out / "design.v").write_text("module hwflow_top (input wire clk;\nendmodule\n")
    with pytest.raises(ToolError) as error:
        build(out, until="netlist")
    text = str(error.value)
    log = f"{out}/board/synthesis.log"
    assert text.startswith(f"error: synthesis (yosys): exit status must be 0, not 1 (log: {log}) [tool-run]\n    ")
    assert "design.v:1: ERROR: syntax error" in text
    assert text.endswith("\n  remedy: read the log; report this as a defect of hwflow if the design is to blame")


def test_a_folder_without_a_board_is_refused(tmp_path):
    with pytest.raises(UsageError) as error:
        build(tmp_path)
    assert str(error.value) == (
        f"error: folder '{tmp_path}': the folder must hold board/board.json, not be made without a board "
        "[board-files]\n"
        "  remedy: run 'hwflow synth' with '--board'"
    )


def test_missed_timing_is_reported_and_still_gives_a_bitstream(tmp_path, monkeypatch):
    monkeypatch.setitem(STRATEGIES, "ice40", STRATEGIES["ice40"][:1])  # the others miss it, too
    out = emit(tmp_path / "out")
    write_board(out, find_board("icebreaker"), 120)
    result = build(out)
    assert result.timing_met is False and result.fmax_mhz is not None and result.fmax_mhz < 120
    assert result.bitstream is not None and result.bitstream.stat().st_size > 10_000


def test_an_unknown_part_is_refused():
    part = {"family": "ecp5", "device": "LFE9", "package": "CABGA381", "speed_grade": "6"}
    with pytest.raises(ToolError) as error:
        arguments(part, netlist="n", constraints="c", placed="p", report="r", mhz=100, strategy=STRATEGIES["ecp5"][0])
    assert str(error.value) == (
        "error: part 'LFE9': device must be one of LFE5U-12F, LFE5U-25F, LFE5U-45F, LFE5U-85F, LFE5UM-25F, LFE5UM-45F, "
        "LFE5UM-85F, LFE5UM5G-25F, LFE5UM5G-45F, LFE5UM5G-85F, iCE40LP1K, iCE40LP4K, iCE40LP8K, iCE40HX1K, iCE40HX4K, "
        "iCE40HX8K, iCE40UP5K, not LFE9 [part-known]\n  remedy: correct the board's file"
    )


def test_the_script_gives_blocks_their_places_where_they_take_them(tmp_path):
    out = emit(tmp_path / "out")
    board = write_board(out, find_board("ulx3s_85f"))
    for netlist in (PLACED_BLOCKS, PACKED):
        command = arguments(
            board["part"], netlist=netlist, constraints="c", placed="p", report="r", mhz=100,
            strategy=STRATEGIES["ecp5"][0],
        )
        build_module._write_scripts(out, board, FLOWS["ecp5"], command, [])
        script = (out / "board" / "build.sh").read_text()
        places = 'hwflow.toolchain.packing --places LFE5U-85F board/packed.json board/packed_places.json'
        assert (places in script) == (netlist == PLACED_BLOCKS) and f"--json {netlist}" in script
