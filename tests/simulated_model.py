"""A compiled model in Amaranth's simulator, as ``hwflow sim`` has its Verilog in others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hwflow.api.compiler import Design
from hwflow.host.boundary_models import port_inputs
from hwflow.host.inputs import choose_inputs
from hwflow.ir.graph import IntArray
from hwflow.verify import golden
from tests.onnx_node_tests.top_simulation import SimulatedTop


def check_simulated(
    design: Design, *, frames: int | None = 3, stalls: Sequence[float] = (0.5,), path: Path | None = None
) -> dict[str, IntArray]:
    """Values are the golden model's, which are returned; without stalls (and gaps) every beat comes in its predicted
    cycle. ``path``: the model's, with inputs beside it; by default ``frames`` random frames."""
    arrays = choose_inputs(design.model, path, None, frames, np.random.default_rng(5)).arrays
    inputs = port_inputs(design.model, arrays)
    expected = golden.evaluate(design.model.quantized, inputs)
    top, run = SimulatedTop(design.schedule.plan), design.schedule.run
    for stall in stalls:
        found = top.run(inputs, gap=stall, stall=stall, seed=5, before=run.before)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values, f"{name}, stall {stall}")
        for port, cycles in zip(design.schedule.graph.outputs, run.outputs, strict=True):
            beats = top.cycles[port.name][: cycles.size]
            assert stall or not run.exact or beats == cycles.ravel()[: len(beats)].tolist(), port.name
    return expected
