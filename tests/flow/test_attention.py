"""The products of an attention block, with heads, zero points and both signs: in the predicted cycles, with gaps and
stalls, and layer by layer; multipliers busy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import hwflow
from hwflow.verify.comparison import compare
from tests.models import Builder

LENGTH, HEADS, SIZE = 8, 2, 4


def attention() -> Builder:
    """Queries, keys and values are inputs, with heads side by side, as dense layers make them."""
    b, width = Builder(21, 10), HEADS * SIZE

    def heads(name: str, zero: int, kind: str) -> str:
        x = b.requantize(b.input(name, ["N", LENGTH, width]), 0.5, zero, kind)
        split = b.node("Reshape", x, b.constant([0, LENGTH, HEADS, SIZE], "int64"))
        return b.node("Transpose", split, perm=[0, 2, 1, 3])

    queries, keys, values = heads("q", 5, "int8"), heads("k", 130, "uint8"), heads("v", -4, "int8")
    scores = b.node("MatMul", queries, b.node("Transpose", keys, perm=[0, 1, 3, 2]), name="scores")
    scores = b.requantize(b.node("Relu", scores), 16.0, 0, "uint8")
    mixed = b.node("Transpose", b.node("MatMul", scores, values, name="mixed"), perm=[0, 2, 1, 3])
    merged = b.node("Reshape", mixed, b.constant([0, LENGTH, width], "int64"))
    b.output(b.requantize(merged, 512.0, 7, "int8"))
    return b


def test_attention(tmp_path: Path) -> None:
    path = attention().save(tmp_path)
    assert compare(path, frames=8).unexplained == 0
    design = hwflow.compile(path, "ulx3s_85f", budget={"dsp": 16})
    planned, out = design.schedule, tmp_path / "out"
    assert [node.op for node in planned.plan.cores if "arranged" in node.name] == []
    design.write(out)
    for stall in (0.0, 0.4):
        simulation = hwflow.simulate(out, frames=4, stall=stall, seed=5, layers=True)
        assert simulation.findings == (), stall
        assert simulation.outputs is not None
        assert all(len(np.unique(values)) > 1 for values in simulation.outputs.values())  # not just saturated
        if not stall:
            measured = simulation.result.initiation_interval, simulation.result.latency
            assert measured == (planned.initiation_interval, planned.latency)
    products = [layer for layer in json.loads((out / "report.json").read_text())["layers"] if layer["multipliers"]]
    assert [layer["macs"] for layer in products] == [HEADS * LENGTH * LENGTH * SIZE] * 2
    for layer in products:
        assert layer["macs"] / (planned.initiation_interval * layer["multipliers"]) > 0.9
