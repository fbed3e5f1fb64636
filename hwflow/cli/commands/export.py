"""The command `export`."""

from __future__ import annotations

import argparse

from hwflow.cli.terminal import print_json, say
from hwflow.display import show_path


def run_export(arguments: argparse.Namespace) -> int:
    """Write the core for another tool."""
    from hwflow.exports.exporting import export

    done = export(arguments.out, arguments.to, arguments.output, reset=arguments.reset)
    if arguments.format == "json":
        table = {"target": done.target, "output": str(done.folder), "top": done.top, "files": list(done.files)}
        print_json({**table, "findings": []})
    else:
        say(f"{done.top} for {done.target}: {show_path(done.folder)}", *(f"  {file}" for file in done.files))
        say(f"how to use it: {show_path(done.folder / 'README.md')}")
    return 0
