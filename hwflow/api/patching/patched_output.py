"""Give an output folder another model of the same hardware: new tables, and all that follows from the model."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwflow.api import made_from
from hwflow.api.output import write_folder
from hwflow.api.output_folder import Output
from hwflow.api.patching.differences import differences
from hwflow.codegen.board.board_files import write_board
from hwflow.display import show, show_path
from hwflow.errors import ModelRefused, UsageError
from hwflow.host.inputs import INPUTS
from hwflow.passes.hold_layers import HeldLayer
from hwflow.sim import digests
from hwflow.toolchain import build as toolchain_build
from hwflow.toolchain.json_file import write_json
from hwflow.toolchain.patching.bitstream import RULE, patch_bitstream
from hwflow.toolchain.patching.block_files import FILES

if TYPE_CHECKING:
    from hwflow.api.compiler import Design

Progress = Callable[[str], None]

_BEFORE = "build it first with 'hwflow synth'"


def options_of(out: Path) -> dict[str, Any]:
    """Return what ``synth`` was asked for when it made ``out``, its bitstream included, as
    :mod:`hwflow.api.made_from` has it. Raises :class:`UsageError` if ``out`` is no such folder, or was changed since.
    """
    record = made_from.read(out)
    if record is None:
        raise UsageError.of(
            "output-folder", f"output {show_path(out)}", "must be an output folder of synth, not something else",
            _BEFORE,
        )
    family = json.loads((out / "board" / "board.json").read_text())["part"]["family"]
    if family not in FILES:
        raise UsageError.of(
            "patched-family", f"output {show_path(out)}",
            f"its part must be of the family {' or '.join(FILES)} to be patched, not of {show(family)}",
            "build the new model with 'hwflow synth'",
        )
    if not made_from.reaches(out, record, "bitstream"):
        raise UsageError.of(
            "output-folder", f"output {show_path(out)}", "must hold its bitstream as it was built, not without it or "
            "changed since", _BEFORE,
        )
    if "load" in json.loads((out / "manifest.json").read_text()):
        raise UsageError.of(
            "loadable", f"output {show_path(out)}", "must not be loadable to be patched: its tables are written",
            "load the new weights: 'hwflow run --weights'",
        )
    asked: dict[str, Any] = record["request"]["asked"]
    return asked


def held_in(out: Path) -> dict[str, HeldLayer] | None:
    """Return what the hardware in ``out`` holds for other weights, by layer; None if it was not made for others."""
    held = json.loads((out / "manifest.json").read_text()).get("held")
    return None if held is None else {name: HeldLayer.of_table(table) for name, table in held.items()}


def patch(
    output: Output, asked: Mapping[str, Any], compile: Callable[[Progress], Design], progress: Progress
) -> dict[str, Any]:
    """Make ``output``, which has a bitstream, that of the model that ``compile`` compiles with the options ``asked``;
    return report.json's contents. The netlist, its placement and its routes stay; Verilog's memory files, vectors,
    manifest, host models, report and bitstream are the new model's. The folder is replaced when all of it is there.

    Raises :class:`ModelRefused` (rule "same-hardware") with what in the hardware would have to change; the folder is
    as it was then.
    """
    begin = time.perf_counter()
    before = output.path
    was = json.loads((before / "report.json").read_text())
    design = compile(progress)
    with output.replaced() as folder:
        table = written_like(before, design, folder, progress, asked)
        findings = differences(before, folder)
        if not findings:
            progress("patching the bitstream")
            findings = patch_bitstream(before, folder)
        if findings:
            raise ModelRefused(findings)
        _complete(table, was, folder, time.perf_counter() - begin)
        made_from.reached(folder, "bitstream")
    return table


def written_like(
    before: Path, design: Design, folder: Path, progress: Progress, asked: Mapping[str, Any]
) -> dict[str, Any]:
    """Write ``design`` up to the Verilog to the new ``folder`` as ``synth`` has written ``before`` in the end: smaller,
    or for another clock, if it was settled for; with the same frames. Return report.json's contents."""
    larger = json.loads((before / "report.json").read_text())["larger_design"]
    if larger is not None:
        design = design.smaller() or design
    table = write_folder(design, folder, larger, progress, None, asked)
    for name in INPUTS:
        if (before / name).is_file() and not (folder / name).exists():
            shutil.copyfile(before / name, folder / name)
    clock = json.loads((before / "board" / "board.json").read_text())["clock"]["design_mhz"]
    if clock != json.loads((folder / "board" / "board.json").read_text())["clock"]["design_mhz"]:
        write_board(folder, design.board, clock, design.request.link)
        toolchain_build.write_top_verilog(folder)
    return table


def _complete(table: dict[str, Any], was: Mapping[str, Any], folder: Path, seconds: float) -> None:
    """Write to report and manifest what is true of the old build and of the new one, which took so many seconds."""
    for key in ("clock", "resources", "link", "bitstream"):
        table[key] = was[key]
    table["timing"] |= {"frames_per_second": was["timing"]["frames_per_second"]}
    table["seconds"] = was["seconds"] | {"patch": seconds}
    table["reused"] = ["synthesis", "place_route"]
    board = json.loads((folder / "board" / "board.json").read_text())
    table["link"] |= {"identity": board["link"]["identity"]} if "identity" in table["link"] else {}
    manifest = json.loads((folder / "manifest.json").read_text())
    bitstream = {"file": table["bitstream"], digests.KEY: digests.digest(folder / table["bitstream"])}
    write_json(folder / "manifest.json", manifest | {"bitstream": bitstream}, indent=None)
    write_json(folder / "report.json", table)


__all__ = ["RULE", "options_of", "patch"]
