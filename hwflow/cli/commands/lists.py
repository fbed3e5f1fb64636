"""The commands that print lists: `boards`, `ops`, `doctor`; and `--version`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hwflow.cli.tables import Table
from hwflow.cli.terminal import print_json, say
from hwflow.errors import ToolError


def run_boards(arguments: argparse.Namespace) -> int:
    """List the boards."""
    from hwflow.boards import all_boards
    from hwflow.codegen.board.carriers.offered import offered

    if arguments.format == "json":
        print_json({"boards": [_board(board) for board in all_boards()]})
        return 0
    grid = Table(
        "board", "what", "family", "LUT", "FF", "DSP", "BRAM", "MHz", "toolchain", "host", below=("what", "host")
    )
    for b in all_boards():
        p = b.part
        grid.add_row(
            b.name, b.title, p.family, p.lut, p.ff, p.dsp, p.bram, f"{b.clock_mhz:g}",
            f"{'vendor' if b.tools.vendor else 'open'}: {b.toolchain}", "; ".join(offered(b).values()),
        )
    grid.print()
    return 0


def _board(board: Any) -> dict[str, Any]:
    from hwflow.codegen.board.carriers.offered import offered

    part = board.part
    return {
        "name": board.name, "title": board.title, "family": part.family, "device": part.device,
        **{name: getattr(part, name) for name in ("lut", "ff", "dsp", "bram")},
        "memory_bytes": board.memory_bytes,
        "clock_mhz": board.clock_mhz, "toolchain": board.toolchain, "vendor": bool(board.tools.vendor),
        "host": board.transport, "carriers": offered(board),
        "baud": None if board.uart is None else board.uart.chip.baud,
    }


def run_ops(arguments: argparse.Namespace) -> int:
    """List the operators."""
    from hwflow.api.operator_list import TITLES, markdown, operators

    if arguments.format == "markdown":
        say(*markdown())
    elif arguments.format == "json":
        print_json({"operators": [asdict(operator) for operator in operators()]})
    else:
        grid = Table(*TITLES, below=TITLES[-2:])
        for operator in operators():
            grid.add_row(*operator.cells())
        grid.print()
    return 0


def run_doctor(arguments: argparse.Namespace) -> int:
    """Check the external tools."""
    from hwflow.toolchain.doctor import doctor, table

    statuses = doctor()
    if arguments.format == "json":
        print_json({"tools": [asdict(status) for status in statuses]})
    else:
        say(*table(statuses).splitlines())
    return 0 if all(s.good or s.optional for s in statuses) else ToolError.exit_code


class Version(argparse.Action):
    """``--version``: print the versions of hwflow and of its dependencies, one per line."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *arguments: Any) -> None:
        from hwflow.versions import all_versions

        for name, version in all_versions().items():
            say(f"{name} {version or 'not found'}")
        parser.exit()
