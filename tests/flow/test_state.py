"""Outputs that are inputs of later frames: a design keeps them, as onnxruntime does that is given them each time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from hwflow.api.compiler import compile
from hwflow.errors import ModelRefused, UsageError
from hwflow.frontend.states.ties import CHANNELS_KEY, KEY, States
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.loaded_model import Model, load
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Array, Builder
from tests.onnx_node_tests.top_simulation import SimulatedTop

FRAMES = 7


def cell(inputs: int = 3, states: int = 4) -> Builder:
    """h' = tanh(W x + R h), quantized; y = h'."""
    rng = np.random.default_rng(inputs)
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", inputs]), 0.0625, 0, "int8")
    h = b.requantize(b.input("h", ["N", states]), 0.0078125, 0, "int8")
    w = b.weights(rng.integers(-50, 51, (states, inputs)), 0.015625, 0)
    r = b.weights(rng.integers(-50, 51, (states, states)), 0.015625, 0)
    total = b.node("Add", b.node("Gemm", x, w, transB=1), b.node("Gemm", h, r, transB=1))
    left = b.requantize(b.node("Tanh", total), 0.0078125, 0, "int8")
    b.output(b.node("Identity", left, name="h_next"), b.node("Identity", left, name="y"))
    return b


def counter() -> Builder:
    """Bytes that are added to what came before, modulo 256."""
    b = Builder(21, 10)
    total = b.node("Add", b.input("x", ["N", 3], "uint8"), b.input("h", ["N", 3], "uint8"), name="h_next")
    b.output(total, b.node("Identity", total, name="y"))
    return b


def cache() -> Builder:
    """A streaming convolution over time: the last three pixels stay, a new one comes with each frame."""
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 2, 1]), 0.0625, 0, "int8")
    line = b.requantize(b.node("Concat", b.input("h", ["N", 2, 3]), x, axis=2), 0.0625, 0, "int8")
    weights = b.weights(np.random.default_rng(1).integers(-9, 10, (3, 2, 4)), 0.125, 0)
    ends = (b.constant([place], "int64") for place in (1, 4, 2))
    b.output(b.node("Slice", line, *ends, name="h_next"))
    b.output(b.node("Identity", b.requantize(b.node("Conv", line, weights), 0.25, 0, "int8"), name="y"))
    return b


def one_by_one(proto: onnx.ModelProto, frames: Array, first: Array, channels: int = 1) -> Array:
    """What onnxruntime makes of the frames, with the state given to the next frame of the same channel."""
    options = onnxruntime.SessionOptions()  # unchanged: it moves quantizers and gives one of int8 a zero point of uint8
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    held, found = [first[np.newaxis]] * channels, []
    for number, frame in enumerate(frames):
        left, result = session.run(["h_next", "y"], {"x": frame[np.newaxis], "h": held[number % channels]})
        held[number % channels] = left
        found.append(result[0])
    return np.stack(found)


def frames_of(model: Model, seed: int = 0) -> Array:
    info = model.resolved.values["x"]
    integers = np.random.default_rng(seed).integers(0, 256, (FRAMES, *info.shape[1:]))
    return integers.astype(np.uint8) if info.dtype == "uint8" else ((integers - 128) / 16).astype(np.float32)


def agrees(model: Model, expected: Array, frames: Array, *, simulated: bool = True, fps: float | None = None) -> None:
    arrays = {"x": frames}
    ports = port_inputs(model, arrays)
    found = model_outputs(model, golden.evaluate(model.quantized, ports), arrays)
    assert list(found) == ["y"]
    np.testing.assert_array_equal(found["y"], expected)
    compared = compare(model, frames=9)
    assert compared.ok and compared.drift.differing == 0 and not compared.drift.failed
    if not simulated:
        return
    top = SimulatedTop(compile(model, "ulx3s_85f", fps=fps).schedule.plan)
    for gap, stall in ((0.0, 0.0), (0.4, 0.4)):
        made = model_outputs(model, top.run(ports, gap=gap, stall=stall), arrays)
        np.testing.assert_array_equal(made["y"], expected)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("make", [cell, counter, cache])
def test_against_onnxruntime(make, channels: int, tmp_path: Path) -> None:
    b = make()
    model = load(b.save(tmp_path), states=States(("h_next=h",), channels))
    assert model.resolved.inputs == ("x",) and model.resolved.outputs == ("y",)
    frames, shape = frames_of(model), model.resolved.values["h"].shape[1:]
    zeros = np.zeros(shape, dtype=np.uint8 if make is counter else np.float32)
    agrees(model, one_by_one(b.build(), frames, zeros, channels), frames, fps=200_000 if channels == 1 else None)


def test_what_state_is_at_first(tmp_path: Path) -> None:
    """By a file, by the input's own default, by the metadata; a reset begins with it again (see test_delay.py)."""
    b, first = cell(), np.array([[0.5, -1, 0.25, 0.0078125]], dtype=np.float32)
    np.savez(tmp_path / "first.npz", h=first)
    path = b.save(tmp_path)
    frames = frames_of(load(path, states=States(("h_next=h",))))
    expected = one_by_one(b.build(), frames, first[0])
    by_file = load(path, states=States((f"h_next=h:{tmp_path / 'first.npz'}",)))
    agrees(by_file, expected, frames)
    proto = b.build()
    proto.graph.initializer.append(onnx.numpy_helper.from_array(first, "h"))
    onnx.helper.set_model_props(proto, {KEY: "h_next=h", CHANNELS_KEY: "1"})
    onnx.save(proto, tmp_path / "default.onnx")
    agrees(load(tmp_path / "default.onnx"), expected, frames, simulated=False)
    onnx.helper.set_model_props(proto, {KEY: "h_next=h:first.npz"})
    del proto.graph.initializer[-1]
    onnx.save(proto, tmp_path / "metadata.onnx")
    agrees(load(tmp_path / "metadata.onnx"), expected, frames, simulated=False)


def test_a_channel_is_as_if_it_were_alone(tmp_path: Path) -> None:
    """The intervals of many channels are those of the slowest core; of one, those of the circuit."""
    path = cell(8, 8).save(tmp_path)
    alone = compile(load(path, states=States(("h_next=h",))), "ulx3s_85f", fps=400_000).schedule
    slowest = max(alone.plan.cycles(node) for node in alone.plan.graph.nodes)
    assert alone.initiation_interval > slowest
    many = compile(load(path, states=States(("h_next=h",), 16)), "ulx3s_85f", fps=4_000_000).schedule
    assert many.initiation_interval == max(many.plan.cycles(node) for node in many.plan.graph.nodes) < 32


def unquantized() -> Builder:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 3]), 0.0625, 0, "int8")
    total = b.node("Add", x, b.requantize(b.input("h", ["N", 3]), 0.0625, 0, "int8"), name="h_next")
    b.output(total, b.node("Identity", b.requantize(b.node("Relu", total), 0.125, 0, "uint8"), name="y"))
    return b


def growing(*, quantized: bool = True) -> Builder:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 3]), 0.0625, 0, "int8")
    total = b.node("Add", x, b.input("h", ["N", 3]), name="h_next")
    b.output(total, b.node("Identity", b.requantize("h" if quantized else total, 0.125, 0, "uint8"), name="y"))
    return b


@pytest.mark.parametrize(
    ("make", "states", "error", "message"),
    [
        (cell, ("y=h", "h_next=h"), UsageError, "each output and input once"),
        (cell, ("h_nxt=h",), UsageError, r"OUTPUT must be an output of the model \('h_next', 'y'\), not 'h_nxt'"),
        (cell, ("h_next=g",), UsageError, r"INPUT must be an input of the model \('x', 'h'\), not 'g'"),
        (cell, ("h_next",), UsageError, r"must be OUTPUT=INPUT\[:INITIAL.npz\], not 'h_next'"),
        (cell, ("h_next=h:none.npz",), UsageError, "must be readable"),
        (cell, ("h_next=x",), ModelRefused, r"one shape and type, not float32\[1, 4\] and float32\[1, 3\]"),
        (growing, ("h_next=h",), ModelRefused, "must have integers that a quantizer bounds, not some that grow"),
        (partial(growing, quantized=False), ("h_next=h",), ModelRefused, "not some that grow with each frame"),
    ],
)
def test_refused(make, states: Sequence[str], error: type[Exception], message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        _ = load(make().save(tmp_path), states=States(tuple(states))).quantized


def test_all_findings_of_a_first_state(tmp_path: Path) -> None:
    np.savez(tmp_path / "between.npz", h=np.full((1, 2, 3), 0.251, dtype=np.float32))
    with pytest.raises(ModelRefused, match=r"levels of its quantizer, integers in \[-128, 127\], not 0.25.*; 6 such"):
        _ = load(cache().save(tmp_path), states=States((f"h_next=h:{tmp_path / 'between.npz'}",))).quantized


def test_sums_are_a_state_where_a_quantizer_bounds_them(tmp_path: Path) -> None:
    """What the quantizer at the input makes is bounded, so that the sum is: it needs no quantizer of its own."""
    model = load(unquantized().save(tmp_path), states=States(("h_next=h",)))
    frames = frames_of(model)
    agrees(model, one_by_one(unquantized().build(), frames, np.zeros(3, np.float32)), frames, simulated=False)


def test_what_quantizers_read_may_lie_between_levels_at_first(tmp_path: Path) -> None:
    b, first = cell(), np.array([0.5, -1.7, 0.2512, 0.003], dtype=np.float32)
    proto = b.build()
    for node in [n for n in proto.graph.node if "h" in n.input]:
        assert node.op_type == "QuantizeLinear"
    np.savez(tmp_path / "between.npz", h=first)
    model = load(b.save(tmp_path), states=States((f"h_next=h:{tmp_path / 'between.npz'}",)))
    frames = frames_of(model)
    agrees(model, one_by_one(proto, frames, first), frames, simulated=False)
