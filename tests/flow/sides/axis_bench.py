"""The cocotb side of test_axis.py: frames as given, tlast where told, and what comes out.

Reads the JSON file named by HWFLOW_BENCH: "scenarios", a list of {"beats": [[tdata, tlast], ...], "expected": number of
output beats, "bad": index of the first beat whose tlast is wrong, "gap", "stall"}, and "result", the file to write: a
list of {"beats": [[tdata, tlast], ...], "error_before", "error_after"}. The error output is looked at while the beat
before the bad one is taken, and at the end.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from sim.cocotb_axis import AxisSink, AxisSource, Pins, step


class ErrorPin:
    """The error output in each cycle."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.levels: list[str] = []

    def drive(self) -> None:
        pass

    def sample(self, cycle: int) -> None:
        self.levels.append(str(self.handle.value))


@cocotb.test
async def scenarios_run(dut: Any) -> None:
    """Each scenario after a reset of its own."""
    job = json.loads(Path(os.environ["HWFLOW_BENCH"]).read_text())
    Clock(dut.clk, 10, unit="ns").start()
    results = []
    for seed, scenario in enumerate(job["scenarios"]):
        taken: list[tuple[int, bool]] = []
        source = AxisSource(Pins(dut, "s_axis"), map(tuple, scenario["beats"]), scenario["gap"], seed)
        sink = AxisSink(
            Pins(dut, "m_axis"), lambda bits, last, _, t=taken: t.append((int(bits, 2), last)), scenario["stall"], seed
        )
        error = ErrorPin(dut.error)
        dut.rst.value = 1
        for _ in range(4):
            await FallingEdge(dut.clk)
        dut.rst.value = 0
        quiet = 0

        def going(cycle: int, source=source, taken=taken, scenario=scenario) -> bool:
            nonlocal quiet
            quiet = quiet + 1 if source.done and len(taken) >= scenario["expected"] else 0
            return quiet < 3000 and cycle < 60_000  # a surplus frame would be out within the latency

        await step(dut.clk, [source, sink, error], going)
        await FallingEdge(dut.clk)
        before = error.levels[: source.cycles[scenario["bad"]] + 1]
        results.append({"beats": taken, "error_before": "1" in before, "error_after": error.levels[-1] == "1"})
    Path(job["result"]).write_text(json.dumps(results))
