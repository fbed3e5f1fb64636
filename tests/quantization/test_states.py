"""Float models with state: quantized on sequences, with one range for both ends of a state; they compile as written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from hwflow.api.compiler import compile
from hwflow.frontend.states.ties import STATELESS, States
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.loaded_model import load
from hwflow.quantization.quantizing import quantize
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.top_simulation import SimulatedTop

FRAMES = 60


def recurrent(folder: Path) -> Path:
    """A gated cell: c' = f * c + i * tanh(W x), h' = o * tanh(c')."""
    rng = np.random.default_rng(3)
    b = Builder(17, 8)
    x, h, c = b.input("x", ["N", 5]), b.input("h", ["N", 6]), b.input("c", ["N", 6])
    both = b.node("Concat", x, h, axis=1)
    gates = [
        b.node("Gemm", both, b.constant(rng.normal(0, 0.5, (11, 6))), b.constant(rng.normal(0, 0.2, 6)))
        for _ in range(4)
    ]
    i, f, o = (b.node("Sigmoid", gate) for gate in gates[:3])
    kept = b.node("Mul", f, c)
    cell = b.node("Add", kept, b.node("Mul", i, b.node("Tanh", gates[3])), name="c_next")
    b.output(b.node("Mul", o, b.node("Tanh", cell), name="h_next"), cell)
    b.output(b.node("Gemm", "h_next", b.constant(rng.normal(0, 1, (6, 2))), name="y"))
    return b.save(folder, "float.onnx")


@pytest.mark.parametrize("channels", [None, 2])
def test_a_gated_cell(channels: int | None, tmp_path: Path) -> None:
    path = recurrent(tmp_path)
    x = np.cumsum(np.random.default_rng(0).normal(0, 0.5, (FRAMES, 5)), axis=0).astype(np.float32) / 4
    np.savez(tmp_path / "x.npz", x=x)
    first = np.full((1, 6), 0.25, np.float32)
    np.savez(tmp_path / "first.npz", c=first)
    states = States(("h_next=h", f"c_next=c:{tmp_path / 'first.npz'}"), channels)
    made = quantize(path, tmp_path / "x.npz", tmp_path / "q.onnx", activations="auto", states=states)
    assert made.compiles and [q.name for q in made.qualities] == ["y"]
    assert made.qualities[0].snr_db is not None and made.qualities[0].snr_db > 30
    proto = onnx.load(tmp_path / "q.onnx")
    metadata = {entry.key: entry.value for entry in proto.metadata_props}
    assert metadata["hwflow.state"] == "h_next=h;c_next=c"
    assert metadata.get("hwflow.channels") == (None if channels is None else "2")
    model = load(tmp_path / "q.onnx", states=STATELESS)
    assert model.resolved.inputs == ("x",) and {tie.frames for tie in model.resolved.ties} == {channels or 1}
    assert model.resolved.ties[1].initial.tolist() == [0.25] * 6
    assert compare(model, inputs=tmp_path / "x.npz").ok
    if channels is None:
        arrays = {"x": x[:5]}
        ports = port_inputs(model, arrays)
        expected = model_outputs(model, golden.evaluate(model.quantized, ports), arrays)["y"]
        top = SimulatedTop(compile(model, "ulx3s_85f", fps=100_000).schedule.plan)
        found = model_outputs(model, top.run(ports, gap=0.2, stall=0.2), arrays)["y"]
        np.testing.assert_array_equal(found, expected)


def test_noise_that_comes_back(tmp_path: Path) -> None:
    """h' = 0.98 h + x keeps the roundings of 25 frames: 14 dB more noise than those of one frame, which 8 bits keep."""
    b = Builder(17, 8)
    x, h = b.input("x", ["N", 4]), b.input("h", ["N", 4])
    kept = b.node("Mul", h, b.constant(np.full(4, 0.98)))
    b.output(b.node("Add", kept, x, name="h_next"))
    b.output(b.node("Gemm", "h_next", b.constant(np.eye(4)), name="y"))
    path = b.save(tmp_path, "float.onnx")
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "x.npz", x=rng.choice([-8.0, 8.0], (200, 4)).astype(np.float32))
    states = States(("h_next=h",))
    done = quantize(path, tmp_path / "x.npz", tmp_path / "q.onnx", activations="auto", target_snr=38, states=states)
    assert done.qualities[0].snr_db is not None and done.qualities[0].snr_db >= 38
    narrow = quantize(path, tmp_path / "x.npz", tmp_path / "q.onnx", states=states)
    assert narrow.qualities[0].snr_db is not None and narrow.qualities[0].snr_db < 38
    assert "h_next" in done.wide
