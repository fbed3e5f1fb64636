"""What an output folder was made from, so that nothing is made twice: ``made_from.json``.

``request`` is all that decides the output: digests of the model and of its frames, options, versions, the digest of
hwflow's own files. ``files`` are the digests of what was written up to the Verilog, ``built`` is the last step reached
after it, ``said`` what is printed besides the report.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwflow.api.model_digests import model_digests
from hwflow.errors import HwflowError, Severity
from hwflow.sim.digests import digest, digests
from hwflow.toolchain.json_file import write_json
from hwflow.toolchain.up_to_date import intact
from hwflow.versions import board_versions

if TYPE_CHECKING:
    from hwflow.api.scheduled import ScheduledModel
    from hwflow.boards import Board

FILE = "made_from.json"
STEPS = ("verilog", "netlist", "bitstream")

_PACKAGES = ("hwflow", "hdl_lib", "hwflow.sim", "hwflow.boards")
_CODE = {".py", ".v", ".tcl", ".cpp", ".h", ".vlt", ".wat", ".js", ".css", ".html"}

Record = dict[str, Any]


def request_of(model: Path, of_model: Mapping[str, Any], asked: Mapping[str, Any], board: Board) -> Record:
    """Return what decides the output of a model's file; ``of_model``: its
    :func:`hwflow.api.model_digests.model_digests`; ``asked``: the options, as JSON can hold them."""
    return {
        "model": {"file": model.name, **of_model}, "inputs_sha256": digest(model.parent / "inputs.npz"),
        "asked": dict(asked), "versions": board_versions(board), "hwflow_sha256": code_digest(),
    }


def unchanged(out: Path, model: Path, asked: Mapping[str, Any], board: Board) -> Record | None:
    """Return the record of ``out`` if making it again would give the same up to the Verilog, else None."""
    record = read(out)
    if record is None:
        return None
    try:
        same: bool = record["request"] == request_of(model, model_digests(model), asked, board)
        whole = {"host", "findings", "beyond"} <= record["said"].keys()
        return record if same and whole and digests(out, record["files"]) == record["files"] else None
    except (HwflowError, OSError, KeyError, TypeError, AttributeError):  # a wrong model is told of where it is read
        return None


def reaches(out: Path, record: Record, until: str) -> bool:
    """Tell whether ``out`` was built up to ``until`` and is unchanged since."""
    built = record.get("built")
    return built in STEPS and STEPS.index(built) >= STEPS.index(until) and (until == "verilog" or intact(out))


def leads_to(out: Path, record: Record, until: str | None) -> bool:
    """Tell whether ``until`` (None: the last step) can be built from what is in ``out``."""
    return until == "verilog" or (not record["said"]["beyond"] and (out / "board" / "board.json").is_file())


def begin(folder: Path, request: Record, said: Record) -> None:
    """Write the record of a folder with everything up to the Verilog."""
    names = (str(file.relative_to(folder)) for file in sorted(folder.rglob("*")) if file.is_file())
    _write(folder, {"request": request, "built": "verilog", "said": said}, names)


def reached(out: Path, until: str) -> None:
    """Note in the record, if there is one, that ``until`` is reached, with the digests of the files as they are now."""
    record = read(out)
    if record is not None:
        _write(out, record | {"built": until}, record["files"])


def said(design: ScheduledModel) -> Record:
    """Return what ``synth`` prints of a design besides the report's figures."""
    beyond = (
        replace(f, message=f"{f.message}: only Verilog is made", severity=Severity.WARNING) for f in design.beyond
    )
    findings = (*beyond, *design.model.host_work.findings(design.model.resolved))
    return {
        "host": design.model.host_work.line(), "findings": [finding.table() for finding in findings],
        "beyond": bool(design.beyond),
    }


def _write(folder: Path, record: Record, names: Iterable[str]) -> None:
    record["files"] = digests(folder, names)
    write_json(folder / FILE, record)


def read(out: Path) -> Record | None:
    """Return the record of ``out``, None if there is none."""
    try:
        record = json.loads((out / FILE).read_text())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("files"), dict) else None


@cache
def code_digest() -> str:
    """Return the digest of hwflow's own files, which change in development while the version stays."""
    hashed = hashlib.sha256()
    for package in _PACKAGES:
        for folder in import_module(package).__path__:
            for file in sorted(Path(folder).rglob("*")):
                if file.suffix in _CODE and file.is_file():
                    hashed.update(f"{file.relative_to(folder)}\0{digest(file)}\0".encode())
    return hashed.hexdigest()
