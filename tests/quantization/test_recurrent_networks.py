"""Float models with recurrent layers, as torch exports them (batch first outside, time first inside), quantized."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hwflow
from hwflow.api.compiler import compile
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.ir.node_attributes import LoopAttributes
from hwflow.loaded_model import load
from hwflow.passes.roll_loops import roll_loops
from hwflow.verify import golden
from tests.onnx_node_tests.top_simulation import SimulatedTop

INPUTS, HIDDEN, CLASSES = 3, 4, 3
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def classifier(folder: Path, op: str, steps: int, first: str | int = "N", **attributes: Any) -> dict[str, Any]:
    """Write m.onnx, a classifier of sequences by the last state, and x.npz, slowly changing signals; return these."""
    rng, gates = np.random.default_rng(0), GATES[op]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    constants = {
        "w": rng.normal(size=(directions, gates * HIDDEN, INPUTS)) * 0.5,
        "r": rng.normal(size=(directions, gates * HIDDEN, HIDDEN)) * 0.3,
        "b": rng.normal(size=(directions, 2 * gates * HIDDEN)) * 0.1,
        "v": rng.normal(size=(directions * HIDDEN, CLASSES)), "o": rng.normal(size=CLASSES),
    }
    tensors = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in constants.items()]
    tensors.append(numpy_helper.from_array(np.array([0, directions * HIDDEN]), "shape"))
    nodes = [
        helper.make_node("Transpose", ["x"], ["time_first"], perm=[1, 0, 2]),
        helper.make_node(op, ["time_first", "w", "r", "b"], ["", "h"], hidden_size=HIDDEN, name="rec", **attributes),
        helper.make_node("Transpose", ["h"], ["states"], perm=[1, 0, 2]),
        helper.make_node("Reshape", ["states", "shape"], ["last"]),
        helper.make_node("Gemm", ["last", "v", "o"], ["y"]),
    ]
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [first, *shape])
        for name, shape in (("x", [steps, INPUTS]), ("y", [CLASSES]))
    ]
    graph = helper.make_graph(nodes, "classifier", infos[:1], infos[1:], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    x = np.cumsum(rng.normal(size=(24, steps, INPUTS)), axis=1).astype(np.float32) * 0.5
    np.savez(folder / "x.npz", x=x)
    return {"x": x}


@pytest.mark.parametrize(
    ("op", "attributes", "first"),
    [
        ("LSTM", {}, "N"), ("LSTM", {"direction": "bidirectional"}, 1), ("GRU", {"linear_before_reset": 1}, "N"),
        ("RNN", {"direction": "reverse"}, "N"),
    ],
)
def test_a_classifier_of_sequences(
    op: str, attributes: dict[str, Any], first: str | int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Close to the float model, computed by onnxruntime's own operator; exact against the reference evaluator."""
    monkeypatch.chdir(tmp_path)
    classifier(tmp_path, op, 6, first, **attributes)
    done = hwflow.quantize("m.onnx", "x.npz", "q.onnx")
    assert done.compiles and done.host is not None and not done.host.linear
    assert done.qualities[0].snr_db is not None and done.qualities[0].snr_db > 25
    compared = hwflow.compare("q.onnx", inputs="x.npz", frames=4)
    assert compared.unexplained == 0
    scales: dict[str, set[float]] = {}  # of each value of the steps
    for tensor in onnx.load("q.onnx").graph.initializer:
        if "/round_" in tensor.name and tensor.name.endswith("_scale"):
            scales.setdefault(re.sub(r"/round_\d+/", "/", tensor.name), set()).add(float(numpy_helper.to_array(tensor)))
    assert scales and all(len(each) == 1 for each in scales.values())


@pytest.mark.parametrize("activations", ["uint8", "uint16"])
@pytest.mark.parametrize(("op", "attributes"), [
    ("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1}), ("RNN", {"direction": "reverse"}),
])
def test_the_first_step_is_a_round(op: str, attributes: dict[str, Any], activations: str, tmp_path: Path) -> None:
    """Products of a state of zeros are constants: they have the quantizers of other steps."""
    classifier(tmp_path, op, 6, **attributes)
    hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx", activations=activations)
    graph = roll_loops(load(tmp_path / "q.onnx").quantized)
    assert [n.attributes.rounds for n in graph.nodes if isinstance(n.attributes, LoopAttributes)] == [6]


def test_constants_of_a_first_step_are_not_clipped(tmp_path: Path) -> None:
    """A bias beyond what the other steps' sums with it reach."""
    classifier(tmp_path, "GRU", 6, linear_before_reset=1)
    model = onnx.load(tmp_path / "m.onnx")
    (bias,) = (tensor for tensor in model.graph.initializer if tensor.name == "b")
    values = numpy_helper.to_array(bias).copy()
    values[0, -HIDDEN:] = [9, -9, 9, -9]  # of the new gate, behind the reset gate
    (recurrent,) = (tensor for tensor in model.graph.initializer if tensor.name == "r")
    rows = numpy_helper.to_array(recurrent).copy()
    rows[0, -HIDDEN:] = -np.sign(values[0, -HIDDEN:, None]) * np.eye(HIDDEN)
    bias.CopyFrom(numpy_helper.from_array(values, "b"))
    recurrent.CopyFrom(numpy_helper.from_array(rows, "r"))
    onnx.save(model, tmp_path / "m.onnx")
    hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    written = onnx.load(tmp_path / "q.onnx").graph.initializer
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in written}
    found = [name.removesuffix("_quantized") for name in tensors if "round_0" in name and name.endswith("_quantized")]
    shown = [
        (tensors[f"{n}_quantized"].astype(float) - tensors[f"{n}_zero_point"]) * tensors[f"{n}_scale"] for n in found
    ]
    assert any(np.allclose(reals.reshape(-1), [9, -9, 9, -9], atol=0.1) for reals in shown)


def test_a_classifier_of_sequences_in_hardware(tmp_path: Path) -> None:
    """Frames first outside, though not inside."""
    arrays = classifier(tmp_path, "LSTM", 2)
    hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    model = load(tmp_path / "q.onnx")
    integers = port_inputs(model, {name: array[:3] for name, array in arrays.items()})
    found = SimulatedTop(compile(model, "ulx3s_85f", fps=1).schedule.plan).run(integers)
    for name, array in golden.evaluate(model.quantized, integers).items():
        np.testing.assert_array_equal(found[name], array)
    assert {n: a.shape for n, a in model_outputs(model, found, {}).items()} == {"y": (3, CLASSES)}
