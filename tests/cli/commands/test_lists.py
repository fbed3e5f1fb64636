"""`boards`, `ops`, `doctor`: for programs one row per line, whatever the terminal's width; for people, its width."""

from __future__ import annotations

import dataclasses
import json
import sys

import pytest

from boards import all_boards
from hwflow.api.operator_list import operators
from hwflow.cli.tables import Table
from hwflow.toolchain import catalogue
from hwflow.toolchain.icarus import ICARUS


def rows(text: str) -> list[list[str]]:
    """Cells of a table's rows."""
    return [line.split("\t") for line in text.splitlines()]


@pytest.fixture(params=["40", "200"], autouse=True)
def columns(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", request.param)
    return int(request.param)


def test_boards(hwflow):
    ran = hwflow("boards")
    assert (ran.code, ran.err) == (0, "")
    table = rows(ran.out)
    assert table[0] == [
        "board", "what", "family", "LUT", "FF", "DSP", "BRAM", "MHz", "toolchain", "host",
    ]
    assert [
        "icebreaker", "1BitSquared iCEBreaker, iCE40 UP5K", "ice40", "5280", "5280", "8", "30", "42",
        "open: icestorm", "serial, USB, 6 Mbaud",
    ] in table
    assert [
        "tinyfpga_bx", "TinyFPGA BX, iCE40 LP8K", "ice40", "7680", "7680", "0", "32", "48",
        "open: icestorm", "USB serial device; serial adapter: receive 1, transmit 2, 1 Mbaud",
    ] in table
    assert [
        "colorlight_i9", "Colorlight i9 v7.2, ECP5 LFE5U-45F", "ecp5", "43848", "43848", "72", "108", "125",
        "open: trellis", "serial, USB, 115.2 kbaud; gigabit Ethernet",
    ] in table
    assert [
        "pynq_z2", "TUL PYNQ-Z2, Zynq XC7Z020", "xilinx7", "53200", "106400", "220", "280", "100",
        "vendor: vivado", "AXI4-Stream, DMA",
    ] in table
    assert [row[0] for row in table[1:]] == [board.name for board in all_boards()]


def test_ops(hwflow):
    ran = hwflow("ops")
    assert (ran.code, ran.err) == (0, "")
    table = rows(ran.out)
    assert table[0] == ["operator", "dialects", "becomes", "limits"]
    names = [row[0] for row in table[1:]]
    assert names == sorted(set(names))
    assert {"Conv", "Gemm", "MatMul", "MaxPool", "Relu", "Flatten", "Quant", "QLinearAdd"} <= set(names)
    assert ["DequantizeLinear", "ONNX, com.microsoft", "no hardware of its own"] in [row[:3] for row in table]
    assert all(len(row) == 4 for row in table)


@pytest.mark.parametrize(
    ("verb", "names"),
    [("boards", [b.name for b in all_boards()]), ("ops", [o.name for o in operators()])],
)
@pytest.mark.parametrize("width", [80, 100])
def test_on_a_terminal(hwflow, monkeypatch, verb, names, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    ran = hwflow(verb)
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines if not line.startswith(" ")][1:] == names


def test_what_stands_below_a_row_that_is_too_wide(capsys):
    table = Table("name", "size", "what", below=("what",))
    table.add_row("a", 1234567, "one two three")
    table.add_row("longer", 5, "four")
    assert list(table.lines(32)) == [
        "name         size  what",
        "a       1,234,567  one two three",
        "longer          5  four",
    ]
    assert list(table.lines(18)) == [
        "name         size",
        "  what",
        "a       1,234,567",
        "  one two three",
        "longer          5",
        "  four",
    ]
    assert list(table.lines(10))[3:5] == ["  one two", "    three"]
    table.print()
    assert capsys.readouterr().out == "name\tsize\twhat\na\t1234567\tone two three\nlonger\t5\tfour\n"


def test_json(hwflow, monkeypatch):
    boards = json.loads(hwflow("boards", "--format", "json").out)["boards"]
    assert [board["name"] for board in boards] == [board.name for board in all_boards()]
    ulx = next(board for board in boards if board["name"] == "ulx3s_85f")
    assert (ulx["lut"], ulx["dsp"], ulx["vendor"], ulx["baud"]) == (83640, 156, False, 3_000_000)
    assert ulx["host"] == "serial, USB"
    assert {board["name"]: board["memory_bytes"] for board in boards if board["memory_bytes"]} == {
        **dict.fromkeys(("colorlight_i5", "colorlight_i9"), 8 << 20), "colorlight_5a_75b": 4 << 20,
        **dict.fromkeys(("icebreaker", "icesugar", "upduino_3"), 128 << 10),
        **{f"ulx3s_{size}f": 32 << 20 for size in (12, 25, 45, 85)},
    }
    assert ulx["carriers"] == {"serial": "serial, USB, 3 Mbaud", "usb": "USB serial device"}
    monkeypatch.setattr("hwflow.toolchain.doctor.all_tools", lambda: (ICARUS,))
    (tool,) = json.loads(hwflow("doctor", "--format", "json").out)["tools"]
    assert (tool["name"], tool["good"]) == ("iverilog", True)


@pytest.fixture
def tools(monkeypatch):
    """set(tool, ...): the catalogue that doctor sees. Each tool is a process to start: two do here."""

    def set_tools(*chosen):
        monkeypatch.setattr("hwflow.toolchain.doctor.all_tools", lambda: chosen)

    return set_tools


def test_doctor_is_content(hwflow, tools):
    tools(ICARUS)
    ran = hwflow("doctor")
    assert (ran.code, ran.err) == (0, "")
    (line,) = ran.out.splitlines()
    assert line.startswith("ok       iverilog ")


def test_doctor_says_what_is_missing(hwflow, tools):
    tools(ICARUS, dataclasses.replace(ICARUS, name="icarus2", candidates=()))
    ran = hwflow("doctor")
    assert ran.code == 3
    lines = ran.out.splitlines()
    assert lines[0].startswith("ok       iverilog ")
    assert lines[1].startswith("missing  icarus2 ")
    assert lines[2:] == [
        "         version must be 11.0 or newer, not: none was found",
        "         remedy: install Icarus Verilog 11 or newer (Debian, Ubuntu: apt install iverilog)",
    ]


def test_doctor_knows_every_tool():
    names = [tool.name for tool in catalogue.all_tools()]
    assert names == [
        "yosys",
        "verilator",
        "iverilog",
        "vvp",
        "make",
        "g++",
        "perl",
        "nextpnr-ecp5",
        "ecppack",
        "ecpunpack",
        "nextpnr-ice40",
        "icepack",
        "iceunpack",
        "nextpnr-himbaechel-gowin",
        "gowin_pack",
        "openFPGALoader",
        "iceprog",
        "icesprog",
        "tinyprog",
        "dfu-suffix",
        "dfu-util",
        "ecpdap",
        "quartus_pgm",
    ]
