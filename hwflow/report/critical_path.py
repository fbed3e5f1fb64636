"""The path that limits the clock after place and route, by core, from nextpnr's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def critical_path(report: Mapping[str, Any], target_mhz: float, design: str, instances: Sequence[str]) -> list[Any]:
    """Return the slowest path between two registers of the clock that was to reach ``target_mhz``: a row for each part
    of it within a core, with its ``core`` (a number in ``instances``; None: outside of them, ``where``), nanoseconds of
    ``logic`` and of ``wires``, and ``steps``; [] where there is none.

    ``report``: nextpnr's; ``design``: the instance's name; ``instances``: cores' hierarchical names in it.
    """
    clocks: Mapping[str, Any] = report.get("fmax", {})
    if not clocks:
        return []
    own = min(clocks, key=lambda name: (abs(clocks[name]["constraint"] - target_mhz), clocks[name]["achieved"]))
    paths = (found["path"] for found in report.get("critical_paths", ()) if found["from"] == found["to"]
             and found["to"].split()[-1] == own)  # fmt: skip
    numbers = {name: number for number, name in enumerate(instances)}
    numbers |= {name.partition(".")[0]: number for name, number in numbers.items() if "." in name}
    rows: list[dict[str, Any]] = []
    for step in next(paths, ()):
        core, where = _place(step["to"]["cell"], design, numbers)
        if not rows or (rows[-1]["core"], rows[-1]["where"]) != (core, where):
            rows.append({"core": core, "where": where, "logic": 0.0, "wires": 0.0, "steps": 0, "cells": []})
        row = rows[-1]
        row["wires" if step["type"] == "routing" else "logic"] += step["delay"]
        if step["type"] != "routing":
            row["steps"] += 1
            row["cells"].append(step["to"]["cell"])
    return rows


def _place(cell: str, design: str, numbers: Mapping[str, int]) -> tuple[int | None, str]:
    inside = cell.removeprefix(f"{design}.")
    first, _, rest = inside.partition(".")
    if inside != cell and rest:
        number = numbers.get(f"{first}.{rest.partition('.')[0]}", numbers.get(first))
        if number is not None:
            return number, ""
    return None, first if rest else design if inside != cell else "board"
