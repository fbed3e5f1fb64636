"""The command `report`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from hwflow.api.options.synth_options import synth_options
from hwflow.cli.terminal import Steps, print_json, say
from hwflow.display import show_path
from hwflow.errors import UsageError

DEFAULTS: dict[str, Any] = {
    "board": None, "fps": None, "clock": None, "budget": None, "baud": None, "ethernet": None, "usb": False,
    "loops": "auto", "interleave": "1", "memory": "auto", "patchable": None, "loadable": None,
    "dim": [], "const": [], "input_type": [], "state": [], "channels": None,
}  # fmt: skip
"""Of the options that a design in an output folder has had."""

UNASKED: dict[str, Any] = {"name": None, "inline_weights": False, "place_route_seeds": None}
"""Options of `synth` that make no difference to the page."""


def run_report(arguments: argparse.Namespace) -> int:
    """Write the page of an output folder, or of a design that is compiled for it."""
    from hwflow.report.folder_page import PAGE, page_of

    target = Path(arguments.target)
    if target.is_dir():
        _require_none(arguments, target)
        page = page_of(target)
        file = target / PAGE
    else:
        if arguments.board is None:
            raise UsageError.of(
                "board-option", "option --board", f"must be given where {show_path(target)} is a model, not left out",
                "see 'hwflow boards'",
            )
        asked = synth_options({**UNASKED, **vars(arguments)}, "verilog")
        file = Path("build") / f"{target.stem}.html"
        with Steps() as progress, tempfile.TemporaryDirectory(prefix="hwflow-") as folder:
            out = Path(folder) / "out"
            asked.compile(target, progress).write(out, "verilog", progress)
            page = page_of(out)
    file = file if arguments.output is None else Path(arguments.output)
    write_page(file, page)
    if arguments.format == "json":
        print_json({"report": str(file), "findings": []})
    else:
        say(f"report: {file}")
    return 0


def write_page(file: Path, page: str) -> None:
    """Raise :class:`UsageError` where the file cannot be written."""
    from hwflow.report.folder_page import write_text

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, page)
    except OSError as error:
        raise UsageError.of(
            "report-file", f"file {show_path(file)}",
            f"must be a file that can be written, but the system says: {error.strerror or error}",
            "choose another file with -o",
        ) from None


def _require_none(arguments: argparse.Namespace, target: Path) -> None:
    for name, default in DEFAULTS.items():
        if getattr(arguments, name) != default:
            raise UsageError.of(
                "design-option", f"option --{name.replace('_', '-')}",
                f"must belong to a model, but {show_path(target)} is an output folder, whose design is fixed",
                "leave it out",
            )
