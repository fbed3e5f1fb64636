"""Icarus Verilog: the compiler `iverilog` and the simulator `vvp`."""

from __future__ import annotations

from hwflow.toolchain.tool import Tool, on_path

_INSTALL = "install Icarus Verilog 11 or newer (Debian, Ubuntu: apt install iverilog)"

ICARUS = Tool(
    name="iverilog",
    purpose="event-driven simulation (`hwflow sim --simulator icarus`, the emitted test bench)",
    minimum=(11, 0),  # the oldest cocotb 2 is tested with
    install=_INSTALL,
    version_arguments=("-V",),
    version_pattern=r"Icarus Verilog version (\d+(?:\.\d+)+)",
    candidates=(on_path("iverilog"),),
)

VVP = Tool(
    name="vvp",
    purpose="runs what iverilog compiled",
    minimum=(11, 0),
    install=_INSTALL,
    version_arguments=("-V",),
    version_pattern=r"Icarus Verilog runtime version (\d+(?:\.\d+)+)",
    candidates=(on_path("vvp"),),
)
