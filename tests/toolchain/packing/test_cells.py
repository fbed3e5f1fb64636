"""Resources of cores by the names of cells: synthesis' own count by hierarchy is in tests/flow/test_digits.py."""

from __future__ import annotations

from typing import Any

import pytest

from hwflow.codegen.report import add_synthesis
from hwflow.toolchain.packing.cells import cells_by_path, with_kinds_of
from hwflow.toolchain.yosys import resources_of

NAMES = {
    "core.conv.addr_LUT4_Z": "LUT4", "core.conv.row_0.sum_CCU2C_S0": "CCU2C", "core.conv.row_0.x": "LUT4",
    "core.a_to_b.a.mem.0": "DP16KD", "core.a_to_b.b.q_TRELLIS_FF_Q": "TRELLIS_FF",
    "core.a_to_b.queue.full_TRELLIS_FF_Q": "TRELLIS_FF", "core.m_axis_tdata_TRELLIS_FF_Q": "TRELLIS_FF",
    "shell.link.full_TRELLIS_FF_Q": "TRELLIS_FF", "core.gone.x_LUT4_Z": "LUT4",
}  # fmt: skip


def design() -> dict[str, Any]:
    cells = {
        name: {"type": kind, "connections": {}, "port_directions": {}, "parameters": {}, "attributes": {}}
        for name, kind in NAMES.items()
    }
    modules = {"LUT4": {"cells": {}}, "top": {"attributes": {"top": "1"}, "cells": cells, "ports": {}, "netnames": {}}}
    return {"modules": modules}


def of_cores(table: dict[str, Any]) -> list[tuple[int | float | None, ...]]:
    return [tuple(row["synthesized"] for row in layer["resources"].values()) for layer in table["layers"]]


def table() -> dict[str, Any]:
    rows = {name: {"predicted": 0, "synthesized": None} for name in ("lut", "ff", "dsp", "bram")}
    return {
        "clock": {}, "seconds": {}, "resources": {name: {"synthesized": None, "glue": None} for name in rows},
        "layers": [
            {"instance": place, "resources": {name: dict(row) for name, row in rows.items()}}
            for place in ("conv", "a_to_b.a", "a_to_b.b")
        ],
    }  # fmt: skip


def test_each_cell_is_one_of_its_core() -> None:
    """A chain's own cells, its queue, are its last core's; the rest of the design is glue. Half a block stays half."""
    counted = cells_by_path(design())
    assert counted["core.conv.row_0"] == {"CCU2C": 1, "LUT4": 1}
    inside = {
        path.removeprefix("core."): resources_of("ecp5", cells)
        for path, cells in counted.items() if path.startswith("core.")
    }  # fmt: skip
    inside["conv.half"] = {"lut": 0, "ff": 0, "dsp": 0.5, "bram": 0}
    found = table()
    used = {"lut": 5, "ff": 3, "dsp": 1, "bram": 1}
    add_synthesis(found, fmax_mhz=None, clock_mhz=None, resources=used, cells=inside, seconds={})
    assert of_cores(found) == [(4, 0, 0.5, 0), (0, 0, 0, 1), (0, 2, 0, 0)]
    assert {name: row["glue"] for name, row in found["resources"].items()} == {"lut": 1, "ff": 1, "dsp": 0.5, "bram": 0}


@pytest.mark.parametrize("cells", [{}, {"$1": {"lut": 3, "ff": 3, "dsp": 0, "bram": 0}}])
def test_cells_without_names_are_nobodys(cells: dict[str, dict[str, float]]) -> None:
    """Of a vendor's tool, and where yosys had to hide names."""
    found = table()
    used = {"lut": 3, "ff": 3, "dsp": 0, "bram": 0}
    add_synthesis(found, fmax_mhz=None, clock_mhz=None, resources=used, cells=cells, seconds={})
    assert of_cores(found) == [(None,) * 4] * 3
    assert {row["glue"] for row in found["resources"].values()} == {None}


def test_merged_blocks_are_counted_once() -> None:
    before = {"core.a": {"SB_MAC16": 2, "SB_LUT4": 1}, "core.b": {"SB_MAC16": 1}}
    after = {"core.a": {"SB_MAC16": 1}, "core.b": {"SB_MAC16": 1}, "core.c": {"SB_LUT4": 4}}
    merged = with_kinds_of(after, before, ("SB_MAC16",))
    assert merged == {"core.a": {"SB_MAC16": 1, "SB_LUT4": 1}, "core.b": {"SB_MAC16": 1}, "core.c": {}}


def test_names_are_cut_after_three_parts() -> None:
    counted = cells_by_path(design())
    assert set(counted) == {
        "core.conv.addr_LUT4_Z", "core.conv.row_0", "core.a_to_b.a", "core.a_to_b.b", "core.a_to_b.queue",
        "core.m_axis_tdata_TRELLIS_FF_Q", "shell.link.full_TRELLIS_FF_Q", "core.gone.x_LUT4_Z",
    }  # fmt: skip
