"""Versions of hwflow and of what a design is made with, without starting what is slow to start."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from hwflow.toolchain.build import FLOWS
from hwflow.toolchain.icarus import ICARUS
from hwflow.toolchain.verilator import VERILATOR
from hwflow.toolchain.yosys import YOSYS

if TYPE_CHECKING:
    from hwflow.boards import Board
    from hwflow.toolchain.tool import Tool

_PACKAGES = ("numpy", "onnx", "amaranth")

Versions = dict[str, str | None]
"""By name; None for what is not there."""


def all_versions() -> Versions:
    """Return the versions of hwflow, Python, the packages that designs are made with, and the open tools."""
    return _versions([YOSYS, *(flow.place_route for flow in FLOWS.values()), VERILATOR, ICARUS])


def board_versions(board: Board) -> Versions:
    """Return the same, of tools only those that make a bitstream for a board."""
    if board.tools.vendor:
        from hwflow.toolchain.vendor import TOOLS

        return _versions([YOSYS, TOOLS[board.toolchain]])
    return _versions([YOSYS, FLOWS[board.part.family].place_route])


def _versions(tools: list[Tool]) -> Versions:
    packages: Versions = {name: package_version(name) for name in _PACKAGES}
    return {
        "hwflow": package_version("hwflow"), "python": platform.python_version(), **packages,
        **{tool.name: tool.version() for tool in tools},
    }


def package_version(name: str) -> str | None:
    """Return the version of an installed package; None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
