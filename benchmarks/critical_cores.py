"""Which cores a placed and routed design's critical path passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def critical_cores(path: Path, clock: str, design: str) -> tuple[str, ...]:
    """Return the cores of ``design`` (the instance's name) on the critical path of a clock net, in their order, from
    ``--report``'s JSON; what lies outside of the design by its own first names."""
    report: dict[str, Any] = json.loads(path.read_text())
    edges = (found for found in report["critical_paths"] if found["from"] == found["to"])
    steps = next((found["path"] for found in edges if found["to"].split()[-1] == clock), ())
    cells = [steps[0]["from"]["cell"], *(step["to"]["cell"] for step in steps)] if steps else []
    names = [cell.removeprefix(f"{design}.").partition(".")[0] for cell in cells if "." in cell]
    return tuple(dict.fromkeys(names))
