"""The results of a sweep as files: ``results.json``, ``results.csv`` and ``pareto.html``, each written as a whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hwflow.sweep.pareto_page import pareto_page
from hwflow.toolchain.json_file import write_json

AXES = ("board", "fps", "clock_mhz", "budget", "bits", "activations", "seed")
FIGURES = (
    "frames_per_second", "initiation_interval", "latency", "latency_us", "fmax_mhz", "timing_met", "lut", "ff", "dsp",
    "bram", "lut_share", "ff_share", "dsp_share", "bram_share", "synthesized", "snr_db", "accuracy", "float_accuracy",
)
COLUMNS = (
    *AXES, "status", *FIGURES, "reached_clock_mhz", "front", "seconds", "processor_seconds", "design", "finding",
)


def write_tables(folder: Path, results: Sequence[Mapping[str, Any]], front: Sequence[int], points: int) -> None:
    """Write the three files. ``front``: numbers of results; ``points``: how many there are, done or not."""
    table = {"points": list(results), "front": list(front), "left": points - len(results)}
    write_json(folder / "results.json", table)
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(COLUMNS)
    on_front = set(front)
    rows.writerows(csv_row(result, number in on_front) for number, result in enumerate(results))
    _write(folder / "results.csv", text.getvalue())
    _write(folder / "pareto.html", pareto_page(results, front, points))


def csv_row(result: Mapping[str, Any], on_front: bool) -> list[Any]:
    """Return the cells of :data:`COLUMNS`; what is not known is empty."""
    point, figures = result["point"], result["figures"]
    finding = result["findings"][0] if result["findings"] else None
    cells: dict[str, Any] = {
        **point, **{name: figures.get(name) for name in FIGURES}, "budget": budget_text(point["budget"]),
        "status": result["status"], "reached_clock_mhz": figures.get("clock_mhz"), "front": on_front,
        "seconds": result["seconds"], "processor_seconds": result["processor_seconds"],
        "design": result.get("design"),
        "finding": None if finding is None else f"{finding['where']}: {finding['message']}",
    }
    return [_cell(cells[name]) for name in COLUMNS]


def budget_text(budget: Mapping[str, str] | None) -> str | None:
    """Return a budget as the option has it."""
    return None if budget is None else ",".join(f"{name}={value}" for name, value in budget.items())


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else value


def _write(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8", newline="")
    beside.replace(path)
