"""The command `program`."""

from __future__ import annotations

import argparse
from pathlib import Path

from hwflow.cli.terminal import Steps, print_json, say
from hwflow.display import show_path


def run_program(arguments: argparse.Namespace) -> int:
    """Load a bitstream."""
    from hwflow.toolchain.loading.load_bitstream import program

    with Steps() as progress:
        loaded = program(Path(arguments.out), progress)
    if arguments.format == "json":
        print_json({"bitstream": loaded.bitstream, "board": loaded.board, "commands": list(loaded.commands),
                    "log": str(loaded.log), "findings": []})  # fmt: skip
    else:
        say(*(f"done: {command}" for command in loaded.commands), f"now: hwflow run {show_path(arguments.out)}")
    return 0
