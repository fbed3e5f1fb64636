"""The emitted hardware computes what the model says whose weights it was loaded with, from the next frame on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.api import made_from
from hwflow.api.options.synth_options import synth_options
from hwflow.api.patching.differences import differences
from hwflow.api.patching.patched_output import held_in
from hwflow.cli import main
from hwflow.host.boundary_models import port_inputs
from hwflow.loaded_model import load
from hwflow.sim.manifest import load_design
from hwflow.sim.vectors import Vectors
from hwflow.sim.verilator_run import Load, run_verilator
from hwflow.toolchain.verilator import VERILATOR
from hwflow.verify.golden_vectors import golden_vectors
from tests.loading.networks import CHANNELS, SIDE, network

FRAMES = 3  # with each model's weights


@pytest.fixture(scope="module")
def outs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of a loadable design, and what its hardware would be with another model."""
    folder = tmp_path_factory.mktemp("loadable")
    network(folder, 0, name="one.onnx")
    other = network(folder, 1, 0.0191, 2.5, name="other.onnx")
    args = ["--board", "ulx3s_12f", "--fps", "100000", "--until", "verilog", "--loadable", "all"]
    assert main(["synth", str(folder / "one.onnx"), *args, "-o", str(folder / "one")]) == 0
    record = made_from.read(folder / "one")
    assert record is not None
    asked = synth_options(record["request"]["asked"]["given"], "verilog")
    asked.compile(other, print, known=held_in(folder / "one")).write(folder / "other")
    assert differences(folder / "one", folder / "other") == []
    return {name: folder / name for name in ("one", "other")}


def vectors(out: Path, seed: int) -> Vectors:
    frames = np.random.default_rng(seed).normal(0, 40, (FRAMES, CHANNELS, SIDE, SIDE)).astype(np.float32)
    model = load(out / "model.onnx")
    return golden_vectors(model, out, port_inputs(model, {"x": frames}))


def run(outs: dict[str, Path], frames: Vectors, loads: list[Load], stall: float):
    found = VERILATOR.find()
    return run_verilator(
        outs["one"], frames, command=found.command, environment=found.environment, stall=stall, seed=3, loads=loads
    )


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_loads_between_frames(outs: dict[str, Path], stall: float) -> None:
    """Old frames have old results, new ones new ones; what is damaged or cut is told, and nothing computed by it."""
    ports = load_design(outs["one"]).load
    assert ports is not None and len(ports.memories) == 4
    new, old = ports.packet(outs["other"]), ports.packet(outs["one"])
    damaged = bytearray(new)
    damaged[1 + 2] ^= 4  # in the first table
    cut = new[: 1 + len(ports.memories[0].image(outs["other"])) + 3]
    ok = ports.answer()
    loads = [
        Load(FRAMES, bytes([2]), ports.answer(changed=False)),
        Load(FRAMES, bytes([7, 1, 2]), ports.answer(changed=False)),
        Load(FRAMES, bytes(damaged), ports.answer([0])),
        Load(FRAMES, bytes([2]), ports.answer([0])),
        Load(FRAMES, cut, ports.answer([1, 2, 3])),
        Load(FRAMES, new + b"\0", ports.answer(refuses=True)),
        Load(FRAMES, new, ok),
        Load(2 * FRAMES, new, ok),
        Load(2 * FRAMES, old, ok),
        Load(3 * FRAMES, new, ok),
    ]
    frames = vectors(outs["one"], 0)
    for seed, name in enumerate(("other", "one", "other"), 1):
        frames = frames.then(vectors(outs[name], seed))
    result = run(outs, frames, loads, stall)
    assert result.complaints() == []
    assert len(result.loads) == len(loads)
    if stall == 0:  # a byte a cycle, but for three cycles a table and what the frames before take
        begin, end = result.loads[8]
        assert len(new) < end - begin < len(new) + 40


def test_without_the_load_results_differ(outs: dict[str, Path]) -> None:
    result = run(outs, vectors(outs["other"], 1), [], 0.0)
    assert result.mismatches > 0
