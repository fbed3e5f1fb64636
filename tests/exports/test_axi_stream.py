"""An exported core between AXI4-Stream ends that others made, cocotbext-axi: they pack frames and null bytes."""

from __future__ import annotations

import json

import pytest

import hwflow
from hwflow.sim.manifest import load_design
from hwflow.sim.testbench import VECTORS
from hwflow.sim.vectors import load_vectors, pack
from hwflow.toolchain.icarus import ICARUS
from sim.cocotb_run import CocotbJob, run_job


def frames_of(stream, vectors) -> list[list[int]]:
    """The bytes that carry elements, of each frame."""
    size = stream.element_bytes
    return [
        [
            int(byte) for beat, data in enumerate(frame)
            for byte in data[: stream.real_lanes(beat) * size]
        ]
        for frame in pack(stream, vectors[stream.port])
    ]


@pytest.mark.parametrize(
    ("name", "reset", "pauses"),
    [("narrow", "aresetn", 0.0), ("narrow", "rst", 0.4), ("wide", "rst", 0.0), ("wide", "aresetn", 0.4)],
)
def test_frames_pass(name, reset, pauses, outs, tmp_path):
    """Before and after a reset of one cycle in the middle of a frame; a frame that lacks an element is an error."""
    done = hwflow.export(outs[name], "verilog", tmp_path / name, reset=reset)
    design, vectors = load_design(outs[name]), load_vectors(outs[name] / VECTORS)
    given, expected = (frames_of(stream, vectors) for stream in (design.inputs[0], design.outputs[0]))
    settings = {
        "reset": reset, "clock": "aclk" if reset == "aresetn" else "clk", "low": reset == "aresetn",
        "frames": given, "pauses": pauses, "result": str(tmp_path / "result.json"),
    }
    sources = [done.folder / file for file in (done.folder / f"{name}.f").read_text().split()]
    job = CocotbJob(
        "icarus", ICARUS.find().command, sources, name, "tests.exports.axi_bench", done.folder, tmp_path, settings
    )
    run_job(job, tmp_path / "result.json")
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["before"] == expected and found["after"] == expected and found["seen"] == expected
    assert found["quiet"] == ["00"]  # neither gives nor takes after the edge in reset
    assert (found["error"], found["short"]) == ("0", "1")
