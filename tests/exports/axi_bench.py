"""The cocotb side of test_axi_stream.py: cocotbext-axi at both ends of an exported core.

Reads the JSON file named by HWFLOW_BENCH: "reset" and "clock" (names), "low" (the reset is active low), "frames"
(bytes of each), "pauses" (share of cycles, on both sides), and "result", the file to write: {"before": [bytes of each
frame that came out before the reset], "after": [those after it], "seen": [those by a monitor], "quiet": tvalid and
tready at the edge after a reset of one cycle, "error": the error output at the end, "short": the error output after a
frame that lacks an element}.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamMonitor, AxiStreamSink, AxiStreamSource


@cocotb.test
async def frames_pass(dut: Any) -> None:
    """All frames, a reset of one cycle in the middle of one, all frames again, and one that is too short."""
    job = json.loads(Path(os.environ["HWFLOW_BENCH"]).read_text())
    clock, reset = getattr(dut, job["clock"]), getattr(dut, job["reset"])
    Clock(clock, 10, unit="ns").start()
    into, out = AxiStreamBus.from_prefix(dut, "s_axis"), AxiStreamBus.from_prefix(dut, "m_axis")
    settings = {"reset": reset, "reset_active_level": not job["low"]}
    source, sink = AxiStreamSource(into, clock, **settings), AxiStreamSink(out, clock, **settings)
    monitor = AxiStreamMonitor(out, clock, **settings)
    rng = random.Random(1)
    if job["pauses"]:
        source.set_pause_generator(iter(lambda: rng.random() < job["pauses"], None))
        sink.set_pause_generator(iter(lambda: rng.random() < job["pauses"], None))

    async def in_reset(cycles: int) -> list[str]:
        """Levels of tvalid and tready at the edges after the first one in reset, and the first one after it."""
        reset.value = not job["low"]
        levels = []
        await RisingEdge(clock)
        for cycle in range(cycles):
            if cycle == cycles - 1:
                reset.value = job["low"]
            await RisingEdge(clock)
            levels.append(f"{dut.m_axis_tvalid.value}{dut.s_axis_tready.value}")
        return levels

    async def passed() -> list[list[int]]:
        for frame in job["frames"]:
            await source.send(AxiStreamFrame(bytes(frame)))
        return [list((await with_timeout(sink.recv(), 200, "us")).tdata) for _ in job["frames"]]

    reset.value = job["low"]
    await in_reset(3)
    before = await passed()
    await source.send(AxiStreamFrame(bytes(job["frames"][0])))
    await ClockCycles(clock, 2)
    quiet = await in_reset(1)
    source.clear()
    sink.clear()
    monitor.clear()
    after = await passed()
    seen = [list(monitor.recv_nowait().tdata) for _ in range(monitor.count())]
    error = str(dut.error.value)
    await source.send(AxiStreamFrame(bytes(job["frames"][0][:-1])))
    await source.wait()
    await ClockCycles(clock, 20)
    Path(job["result"]).write_text(
        json.dumps(
            {"before": before, "after": after, "seen": seen, "quiet": quiet, "error": error,
             "short": str(dut.error.value)}
        )
    )
