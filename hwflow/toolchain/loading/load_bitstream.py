"""``hwflow program``: load a bitstream into its board."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwflow.display import show, show_path
from hwflow.errors import Finding, Mismatch, ToolError, UsageError
from hwflow.sim.digests import KEY, digest
from hwflow.toolchain.loading.loaders import LOADERS
from hwflow.toolchain.tool import Found, run

LOG = "board/program.log"


@dataclass(frozen=True)
class Loaded:
    """A bitstream that was loaded. ``commands``: what was run, in the output folder; ``log``: what it printed."""

    bitstream: str
    board: str
    commands: tuple[str, ...]
    log: Path


def program(out: Path, progress: Callable[[str], None] | None = None) -> Loaded:
    """Load the bitstream in the output folder ``out`` into its board, with the first of the board's loaders that is
    installed.

    Raises :class:`UsageError` where there is no bitstream, :class:`Mismatch` where it is not as it was written, and
    :class:`ToolError` where no loader is installed, or one fails.
    """
    say = progress or (lambda line: None)
    board, bitstream = _described(out)
    commands = [_steps(text, bitstream) for text in (board["program"], *board.get("other_programs", ()))]
    if not all(words[0] in LOADERS for steps in commands for words in steps):
        raise UsageError.of(
            "board-loader", f"board {show(board['board'])}",
            "must have a program that loads its bitstream, not instructions: "
            f"{board['program'].format(bitstream=bitstream)}", "follow these instructions",
        )
    steps = _installed(commands)
    log = out / LOG
    for found, arguments in steps:
        name = Path(arguments[0]).name
        say(f"loading {bitstream} with {name}")
        run(
            found, arguments[1:], out, log, step=f"loading the bitstream ({name})",
            remedy="check that the board is plugged in, and that you may use it (udev rules)",
        )
    return Loaded(bitstream, board["board"], tuple(shlex.join(arguments) for _, arguments in steps), log)


def _described(out: Path) -> tuple[dict[str, Any], str]:
    """Return the contents of board.json, and the bitstream's path in ``out``."""
    where = f"folder {show_path(out)}"
    try:
        manifest = json.loads((out / "manifest.json").read_text())
        entry = manifest.get("bitstream")
        board: dict[str, Any] = json.loads((out / "board" / "board.json").read_text()) if entry else {}
        files = {str(entry["file"]): entry[KEY]} if entry else {}
        if entry and (flash := manifest.get("memory", {}).get("flash")):  # weights that are written, too
            files[str(flash["file"])] = manifest[KEY][flash["file"]]
        missing = [file for file in files if not (out / file).is_file()]
        changed = [file for file, expected in files.items() if digest(out / file) != expected]
        assert not entry or isinstance(board["program"], str)
    except (OSError, ValueError, AttributeError, KeyError, TypeError, AssertionError) as error:
        damaged = "its manifest.json or board.json is damaged"
        reason = "it has no manifest.json" if isinstance(error, OSError) else damaged
        message = f"must be an output folder of 'hwflow synth', but {reason}"
        raise UsageError.of("output-folder", where, message, "run 'hwflow synth' first") from None
    if not files or missing:
        message = f"must hold {show(missing[0])}, not lack it" if files else "must hold a bitstream, not Verilog alone"
        raise UsageError.of("bitstream-present", where, message, "run 'hwflow synth' up to the bitstream")
    if changed:
        message = "must be as 'hwflow synth' wrote it, not changed since"
        where = f"file {show_path(out / changed[0])}"
        raise Mismatch(Finding("changed-file", where, message, "run 'hwflow synth' again"))
    return board, next(iter(files))


def _steps(text: str, bitstream: str) -> list[list[str]]:
    return [[word.format(bitstream=bitstream) for word in shlex.split(part)] for part in text.split("&&")]


def _installed(commands: Sequence[list[list[str]]]) -> list[tuple[Found, list[str]]]:
    """Return the steps of the first command whose programs are all installed, with these."""
    for steps in commands:
        found = [tool.find_all() for tool in (LOADERS[words[0]] for words in steps)]
        if all(found):
            return [(each[0], words) for each, words in zip(found, steps, strict=True)]
    names = dict.fromkeys(words[0] for steps in commands for words in steps)
    raise ToolError(
        Finding("tool-present", f"tool {show(name)}", "must be installed to load the bitstream, not missing",
                LOADERS[name].install)
        for name in names
    )  # fmt: skip
