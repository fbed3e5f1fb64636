"""The cells of a flattened netlist by their hierarchical names.

Yosys names a cell after a signal that it drives or reads, and a signal has the names of the instances around it. So a
cell at the border of two cores is one of the core whose signal names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from hwflow.toolchain.packing.netlist import top_module

DEPTH = 3  # parts of a name: the design, a core or a chain of cores, a core in a chain


def cells_by_path(design: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Count the cells of the top module of ``design`` (yosys' JSON) by the first parts of their names, at most
    :data:`DEPTH`, and by kind."""
    counts: dict[str, Counter[str]] = {}
    for name, cell in top_module(design)["cells"].items():
        path = ".".join(name.split(".", DEPTH)[:DEPTH])
        counts.setdefault(path, Counter())[cell["type"]] += 1
    return {path: dict(kinds) for path, kinds in counts.items()}


def with_kinds_of(
    other: Mapping[str, Mapping[str, int]], cells: Mapping[str, Mapping[str, int]], kinds: Collection[str]
) -> dict[str, dict[str, int]]:
    """Return ``cells`` with these ``kinds`` as ``other`` counts them."""
    kept = {path: {k: n for k, n in counts.items() if k not in kinds} for path, counts in cells.items()}
    for path, counts in other.items():
        kept.setdefault(path, {}).update({k: n for k, n in counts.items() if k in kinds})
    return kept
