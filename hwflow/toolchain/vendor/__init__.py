"""Projects for vendors' tools: scripts in ``OUT/board/`` that one command runs, here or where the tool is installed.

The scripts are files of this package, the same for every design; ``settings.tcl`` holds the differences. Paths are
relative to the folder, so that it can be moved.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwflow.display import show_path
from hwflow.errors import ToolError
from hwflow.toolchain.build_result import BuildResult
from hwflow.toolchain.tool import Tool, on_path, run

VIVADO = Tool(
    name="vivado",
    purpose="bitstreams for AMD 7 series",
    minimum=(2019, 2),
    install="install AMD Vivado (the free edition does) and put it on PATH",
    version_arguments=("-version",),
    version_pattern=r"[Vv]ivado v(\d+(?:\.\d+)+)",
    candidates=(on_path("vivado"),),
)

QUARTUS = Tool(
    name="quartus_sh",
    purpose="bitstreams for Intel Cyclone V",
    minimum=(18, 0),
    install="install Intel Quartus Prime (the Lite edition does) and put it on PATH",
    version_arguments=("--version",),
    version_pattern=r"Version (\d+(?:\.\d+)+)",
    candidates=(on_path("quartus_sh"),),
)


@dataclass(frozen=True)
class Project:
    """The tool, its arguments, its outputs in ``board/``, and the files that go there, by name."""

    tool: Tool
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    files: Mapping[str, str]


_VIVADO = ("-mode", "batch", "-nojournal", "-log", "vivado.log", "-source", "build.tcl")
_COMMON = {"settings_use.tcl": "settings_use.tcl"}
_VIVADO_COMMON = {**_COMMON, "vivado_report.tcl": "vivado_report.tcl"}
PINS = Project(VIVADO, _VIVADO, ("top.bit",), {**_VIVADO_COMMON, "build.tcl": "vivado_pins.tcl"})
OVERLAY = Project(
    VIVADO, _VIVADO, ("hwflow.bit", "hwflow.hwh"),
    {
        **_VIVADO_COMMON, "build.tcl": "vivado_overlay.tcl", "package_ip.tcl": "vivado_package_ip.tcl",
    },
)
CYCLONE = Project(QUARTUS, ("-t", "build.tcl"), ("top.sof",), {**_COMMON, "build.tcl": "quartus.tcl"})

REPORT = "report.json"  # what the scripts say of the implemented design
_HERE = Path(__file__).parent


TOOLS = {"vivado": VIVADO, "quartus": QUARTUS}


def is_here(toolchain: str) -> bool:
    """Tell whether the vendor's tool that ``toolchain`` needs, if any, is installed and new enough."""
    if toolchain not in TOOLS:
        return True
    try:
        TOOLS[toolchain].find()
    except ToolError:
        return False
    return True


def project_of(board: Mapping[str, Any]) -> Project:
    """Return the project for the contents of ``board.json``."""
    if "zynq" in board:
        return OVERLAY
    return CYCLONE if board["toolchain"] == "quartus" else PINS


def write_project(out: Path, board: Mapping[str, Any]) -> None:
    """Write the scripts to ``out/board``; ``build.sh`` runs them. ``board``: the contents of ``board.json``."""
    folder = out / "board"
    project = project_of(board)
    for name, file in project.files.items():
        (folder / name).write_text((_HERE / file).read_text())
    (folder / "settings.tcl").write_text(_settings(board))
    if project is CYCLONE:
        _complete_quartus(folder, board)
    bitstream = f"board/{project.outputs[0]}"
    variable = project.tool.name.upper()
    lines = [
        "#!/bin/sh",
        f"# {board['title']}: from design.v to {bitstream}. Load it with:",
        f"#   {board['program'].format(bitstream=bitstream)}",
        f"# The variable names another program: {variable}=/path/to/{project.tool.name}.",
        "set -e",
        'cd "$(dirname "$0")"',
        f'"${{{variable}:={project.tool.name}}}" {" ".join(project.arguments)}',
        "",
    ]
    (folder / "build.sh").write_text("\n".join(lines))
    (folder / "build.sh").chmod(0o755)


def _settings(board: Mapping[str, Any]) -> str:
    """Return ``settings.tcl``; its values are hwflow's own and need no Tcl escapes."""
    values = {
        "part": board["part"]["device"],
        "top": board["top"],
        "mhz": f"{board['clock']['design_mhz']:.6f}",
        "design_sources": " ".join(board["sources"]),
        "weights": " ".join(board["weights"]),
    }
    if "zynq" in board:
        values |= {
            "board_part": board["zynq"]["board_part"],
            "crystal_mhz": f"{board['zynq']['crystal_mhz']:g}",
            "input_beat": board["host"]["input_beat"],
            "output_beat": board["host"]["output_beat"],
        }
    rows = [f"set {name} {{{value}}}\n" for name, value in values.items()]
    return f"# {board['title']}: settings of this folder's scripts.\n" + "".join(rows)


def _complete_quartus(folder: Path, board: Mapping[str, Any]) -> None:
    """Drop the file assignments of the platform's own script, and add the PLL's clocks."""
    pins, clocks = (folder / f"{board['top']}.{ending}" for ending in ("qsf", "sdc"))
    kept = [line for line in pins.read_text().splitlines() if line.startswith("set_") and "VERILOG_FILE" not in line]
    pins.write_text("\n".join(kept) + "\n")
    given = [line for line in clocks.read_text().splitlines() if line.startswith("create_clock")]
    clocks.write_text("\n".join([*given, "derive_pll_clocks", "derive_clock_uncertainty"]) + "\n")


def build(out: Path, board: Mapping[str, Any], progress: Callable[[str], None]) -> BuildResult:
    """Run ``build.tcl`` with the vendor's tool.

    Raises :class:`ToolError` when it is missing or fails, with the end of its log.
    """
    project = project_of(board)
    found = project.tool.find()
    folder = out / "board"
    progress(f"bitstream: {project.tool.name} {found.version_text}")
    (folder / REPORT).unlink(missing_ok=True)
    start = time.monotonic()
    run(
        found, list(project.arguments), folder, folder / "build.log", step=f"bitstream ({project.tool.name})",
        remedy="read the log; if the design does not fit, ask for fewer frames per second (--fps)",
        outputs=project.outputs,
    )
    seconds = time.monotonic() - start
    said = _read_report(folder / REPORT)
    mhz = float(board["clock"]["design_mhz"])
    slack = said.get("slack_ns")
    fmax = None if slack is None else 1000 / (1000 / mhz - slack)
    return BuildResult(
        design_clock_mhz=mhz,
        clocks=(),
        fmax_mhz=fmax,
        timing_met=None if slack is None else slack >= 0,
        resources={},
        design_resources={name: int(said.get(name) or 0) for name in ("lut", "ff", "dsp", "bram") if name in said},
        available={},
        seconds={"place_route": seconds},
        netlist=None,
        bitstream=folder / project.outputs[0],
    )


def _read_report(path: Path) -> dict[str, float | None]:
    if not path.exists():  # Quartus' script writes none
        return {}
    try:
        said: dict[str, float | None] = json.loads(path.read_text())
    except ValueError:
        raise ToolError.of(
            "tool-output", f"report {show_path(path)}", "must be JSON",
            "read the log; report this as a defect of hwflow"
        ) from None
    return said
