"""The tables of an output folder that its page shows, and the page beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hwflow.display import show_path
from hwflow.errors import Finding, UsageError
from hwflow.report.critical_path import critical_path
from hwflow.report.page import page
from hwflow.report.shortfalls import shortfalls
from hwflow.toolchain.json_file import write_json

PAGE, DATAFLOW = "report.html", "dataflow.json"
SIMULATION, COMPARISON = "simulation.json", "comparison.json"
"""What ``sim`` and ``compare`` found, of a design that is still the one in the folder."""

_DESIGN = "design"  # the digest of what a result is of
_UNUSED = ("fifos", "memories")  # of report.json: dataflow.json has what the page shows of them
_PLACE_ROUTE = "board/place_route.json"


def written(out: Path) -> Path:
    """Write the page of an output folder again, and return its path. Raises as :func:`tables`."""
    write_text(out / PAGE, page_of(out))
    return out / PAGE


def page_of(out: Path) -> str:
    """Return the page of an output folder. Raises as :func:`tables`."""
    return page(tables(out))


def write_text(path: Path, text: str) -> None:
    """Write a temporary file, then rename it."""
    beside = path.with_name(f"{path.name}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def refreshed(out: Path, name: str, table: Mapping[str, Any]) -> None:
    """Note what ``name``, a file, says of a design, and write its page again; not in a folder that is read only."""
    manifest = _read(out / "manifest.json") or {}
    with suppress(OSError):
        write_json(out / name, dict(table) | {_DESIGN: _design(manifest)}, indent=None)
        written(out)


def tables(out: Path) -> dict[str, Any]:
    """Return what the page of an output folder shows. Raises :class:`UsageError` unless it is one."""
    report, manifest = _read(out / "report.json"), _read(out / "manifest.json")
    if report is None or manifest is None:
        raise UsageError.of(
            "output-folder", f"folder {show_path(out)}",
            "must be an output folder of 'hwflow synth', but report.json and manifest.json are not there, or damaged",
            "run 'hwflow synth' first",
        )
    said = (_read(out / "made_from.json") or {}).get("said") or {}
    board = _read(out / "board" / "board.json") or {}
    routed = _read(out / _PLACE_ROUTE) if report["clock"]["fmax_mhz"] is not None else None
    instances = [layer.get("instance", "") for layer in report["layers"]]
    flow = _read(out / DATAFLOW)
    findings = [*(flow or {}).get("findings", ()), *said.get("findings", ()), *_tables(shortfalls(report))]
    simulation, comparison = (
        found if (found := _read(out / name)) and found.get(_DESIGN) == _design(manifest) else None
        for name in (SIMULATION, COMPARISON)
    )
    for found in (simulation, comparison):
        findings += (found or {}).get("findings", ())
    return {
        "report": {key: value for key, value in report.items() if key not in _UNUSED},
        "styles": {fifo["name"]: fifo["style"] for fifo in report["fifos"]},
        "board": {"title": board.get("title", report["board"])},
        "dataflow": flow,
        "host": said.get("host", ""),
        "findings": findings,
        "simulation": _without_inputs(simulation),
        "comparison": _without_inputs(comparison),
        "path": None if routed is None else critical_path(
            routed, report["clock"]["target_mhz"], board.get("design_top", manifest["top"]), instances
        ),
    }  # fmt: skip


def _design(manifest: Mapping[str, Any]) -> str:
    digests = manifest.get("sha256")
    sources = manifest.get("sources") or [""]
    return str(digests.get(sources[0], "")) if isinstance(digests, dict) else ""


def _without_inputs(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a result without the file of its frames: a page goes to others."""
    return None if found is None else {key: value for key, value in found.items() if key not in ("inputs", _DESIGN)}


def _tables(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    return [finding.table() for finding in findings]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return table if isinstance(table, dict) else None
