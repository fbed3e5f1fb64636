"""All external tools that hwflow can call, a line each."""

from __future__ import annotations

import importlib

from hwflow.toolchain.tool import Tool

# module below hwflow.toolchain, name of the Tool in it
TOOLS = (
    ("yosys", "YOSYS"),
    ("verilator", "VERILATOR"),
    ("icarus", "ICARUS"),
    ("icarus", "VVP"),
    ("system", "MAKE"),
    ("system", "CXX"),
    ("system", "PERL"),
    ("nextpnr", "NEXTPNR_ECP5"),
    ("pack", "ECPPACK"),
    ("pack", "ECPUNPACK"),
    ("nextpnr", "NEXTPNR_ICE40"),
    ("pack", "ICEPACK"),
    ("pack", "ICEUNPACK"),
    ("nextpnr", "NEXTPNR_GOWIN"),
    ("pack", "GOWIN_PACK"),
    ("loading.loaders", "OPENFPGALOADER"),
    ("loading.loaders", "ICEPROG"),
    ("loading.loaders", "ICESPROG"),
    ("loading.loaders", "TINYPROG"),
    ("loading.loaders", "DFU_SUFFIX"),
    ("loading.loaders", "DFU_UTIL"),
    ("loading.loaders", "ECPDAP"),
    ("loading.loaders", "QUARTUS_PGM"),
)


def all_tools() -> tuple[Tool, ...]:
    """Return the tools, in the order ``hwflow doctor`` shows them, without running any."""
    tools = []
    for module, name in TOOLS:
        tool = getattr(importlib.import_module(f"hwflow.toolchain.{module}"), name)
        assert isinstance(tool, Tool)
        tools.append(tool)
    return tuple(tools)
