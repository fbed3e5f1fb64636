"""`boards`, `ops`, `doctor`: a row a line, whatever the terminal's width."""

from __future__ import annotations

import dataclasses

import pytest

from boards import all_boards
from hwflow.toolchain import catalogue
from hwflow.toolchain.icarus import ICARUS


def rows(text: str) -> list[list[str]]:
    """Cells of a table's rows."""
    cells = [line.replace("┃", "│").split("│")[1:-1] for line in text.splitlines()]
    return [[c.strip() for c in row] for row in cells if row]


@pytest.fixture(params=["40", "200"], autouse=True)
def columns(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", request.param)


def test_boards(hwflow):
    ran = hwflow("boards")
    assert (ran.code, ran.err) == (0, "")
    table = rows(ran.out)
    assert table[0] == [
        "board", "what", "family", "LUT", "FF", "DSP", "BRAM", "clock MHz", "toolchain", "host",
    ]
    assert [
        "icebreaker", "1BitSquared iCEBreaker, iCE40 UP5K", "ice40", "5,280", "5,280", "8", "30", "42",
        "open: icestorm", "serial, USB",
    ] in table
    assert [
        "tinyfpga_bx", "TinyFPGA BX, iCE40 LP8K", "ice40", "7,680", "7,680", "0", "32", "48",
        "open: icestorm", "serial adapter: receive 1, transmit 2",
    ] in table
    assert [
        "pynq_z2", "TUL PYNQ-Z2, Zynq XC7Z020", "xilinx7", "53,200", "106,400", "220", "280", "100",
        "vendor: vivado", "AXI4-Stream, DMA",
    ] in table
    assert [row[0] for row in table[1:]] == [board.name for board in all_boards()]


def test_ops(hwflow):
    ran = hwflow("ops")
    assert (ran.code, ran.err) == (0, "")
    table = rows(ran.out)
    assert table[0] == ["operator", "dialects", "becomes", "devices", "limits"]
    names = [row[0] for row in table[1:]]
    assert names == sorted(set(names))
    assert {"Conv", "Gemm", "MatMul", "MaxPool", "Relu", "Flatten", "Quant", "QLinearAdd"} <= set(names)
    assert ["DequantizeLinear", "ONNX, com.microsoft", "no hardware of its own"] in [row[:3] for row in table]
    assert all(len(row) == 5 for row in table)


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
        "nextpnr-ice40",
        "icepack",
        "nextpnr-himbaechel-gowin",
        "gowin_pack",
    ]
