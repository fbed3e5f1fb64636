"""The clock's critical path by core, from nextpnr's report as it writes it."""

from __future__ import annotations

from typing import Any

import pytest

from hwflow.report.critical_path import critical_path

INSTANCES = ["conv", "a_to_b.a", "a_to_b.b"]


def step(kind: str, delay: float, cell: str) -> dict[str, Any]:
    return {"type": kind, "delay": delay, "from": {"cell": "x", "port": "Q"}, "to": {"cell": cell, "port": "D"}}


REPORT = {
    "fmax": {"$glbnet$clk": {"achieved": 140.0, "constraint": 125.0}, "usb": {"achieved": 50.0, "constraint": 48.0}},
    "critical_paths": [
        {"from": "<async>", "to": "posedge $glbnet$clk", "path": [step("logic", 9.0, "core.conv.q")]},
        {"from": "posedge usb", "to": "posedge usb", "path": [step("logic", 8.0, "carrier.q")]},
        {"from": "posedge $glbnet$clk", "to": "posedge $glbnet$clk", "path": [
            step("clk-to-q", 0.5, "core.conv.q_TRELLIS_FF_Q"), step("routing", 1.0, "core.conv.x_LUT4_Z"),
            step("logic", 0.25, "core.conv.x_LUT4_Z"), step("routing", 2.0, "core.a_to_b.b.y_LUT4_Z"),
            step("logic", 0.25, "core.a_to_b.b.y_LUT4_Z"), step("routing", 0.5, "core.a_to_b.queue.full_LUT4_Z"),
            step("setup", 0.125, "core.a_to_b.queue.full_LUT4_Z"), step("routing", 0.5, "core.m_axis_tdata_FF"),
            step("routing", 0.25, "shell.link.ready"), step("setup", 0.0, "top_FF"),
        ]},
    ],
}  # fmt: skip


def test_the_path_of_the_design_s_clock_by_core() -> None:
    """Wires count for where they lead; the queue of a chain is its last core's."""
    found = critical_path(REPORT, 125, "core", INSTANCES)
    rows = [(row["core"], row["where"], row["logic"], row["wires"], row["steps"]) for row in found]
    assert rows == [
        (0, "", 0.75, 1.0, 2), (2, "", 0.375, 2.5, 2), (None, "core", 0.0, 0.5, 0), (None, "shell", 0.0, 0.25, 0),
        (None, "board", 0.0, 0.0, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("report", [{}, {"fmax": {}}, {"fmax": REPORT["fmax"], "critical_paths": []}])
def test_no_path(report: dict[str, Any]) -> None:
    assert critical_path(report, 125, "core", INSTANCES) == []
