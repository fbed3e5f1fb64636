"""A training model from training to hardware: quantized weights that a training step computes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import hwflow
from hwflow.cli import main
from hwflow.onnxspec import TrainingModel
from hwflow.verify import golden
from tests.models import Builder

INPUTS, CLASSES, W_SCALE, Y_SCALE, RATE = 6, 3, 0.0625, 0.125, 0.125


def classifier_head() -> onnx.ModelProto:
    """A dense layer in QDQ whose int8 weights are state, trained by descent on float weights (also state): the slope is
    that of the quantized layer, the new weights are quantized anew (a straight-through estimator)."""
    rng = np.random.default_rng(3)
    b = Builder(opset=21, ir_version=10)
    b.input("x", ["N", INPUTS])
    d = b.requantize("x", 0.0625, 128, "uint8")
    b.constant(rng.integers(-20, 20, (INPUTS, CLASSES)), "int8", "w")
    w = b.dequantize("w", W_SCALE, 0, "int8")
    y = b.quantize(b.node("MatMul", d, w, name="dense"), Y_SCALE, 128, "uint8", name="y_q")
    b.dequantize(y, Y_SCALE, 128, "uint8", name="y")
    b.output("y")
    model = b.build()
    start = numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == "w")) * np.float32(W_SCALE)

    info = model.training_info.add()
    node = helper.make_node
    info.algorithm.CopyFrom(
        helper.make_graph(
            [
                node("Sub", ["y", "target"], ["error"], "error"),
                node("Mul", ["error", "error"], ["squares"], "square"),
                node("ReduceMean", ["squares"], ["loss"], "mean", keepdims=0),
                node("Transpose", ["x"], ["x_turned"], "turn"),
                node("MatMul", ["x_turned", "error"], ["slope"], "back"),
                node("Mul", ["slope", "rate"], ["change"], "scale"),
                node("Sub", ["w_float", "change"], ["w_float_new"], "descend"),
                node("QuantizeLinear", ["w_float_new", "w_scale", "w_zero"], ["w_new"], "round"),
            ],
            "descent",
            [helper.make_tensor_value_info("target", onnx.TensorProto.FLOAT, ["N", CLASSES])],
            [
                helper.make_tensor_value_info("loss", onnx.TensorProto.FLOAT, []),
                helper.make_tensor_value_info("w_float_new", onnx.TensorProto.FLOAT, [INPUTS, CLASSES]),
                helper.make_tensor_value_info("w_new", onnx.TensorProto.INT8, [INPUTS, CLASSES]),
            ],
            [
                numpy_helper.from_array(start, "w_float"),
                numpy_helper.from_array(np.float32(RATE / 32), "rate"),
                numpy_helper.from_array(np.float32(W_SCALE), "w_scale"),
                numpy_helper.from_array(np.int8(0), "w_zero"),
            ],
        )
    )
    info.update_binding.add(key="w_float", value="w_float_new")
    info.update_binding.add(key="w", value="w_new")
    return model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(classifier_head(), tmp_path / "head.onnx")
    return tmp_path / "head.onnx"


RNG = np.random.default_rng(4)
X = (RNG.integers(-100, 100, (32, INPUTS)) / 64).astype(np.float32)  # some of them lie between two levels
TARGET = np.eye(CLASSES, dtype=np.float32)[np.argmax(X[:, :CLASSES], axis=1)]


def quantized(x: np.ndarray, scale: float) -> np.ndarray:
    return np.clip(np.round(x / scale) + 128, 0, 255).astype(np.int64)


def outputs(model: hwflow.Model) -> np.ndarray:
    """The integers of the golden model."""
    (port,) = model.quantized.inputs
    (result,) = golden.evaluate(model.quantized, {port.name: quantized(X, 0.0625)}).values()
    return result


def expected(w: np.ndarray) -> np.ndarray:
    """The same, in exact arithmetic: all scales are powers of two."""
    return quantized((quantized(X, 0.0625) - 128) @ w.astype(np.int64) * (0.0625 * W_SCALE), Y_SCALE)


def test_a_trained_model_compiles_with_its_present_state(path: Path, tmp_path: Path) -> None:
    trained = TrainingModel(path)
    before = trained.state["w"]
    assert outputs(hwflow.load(trained)).tolist() == expected(before).tolist()
    losses = [float(trained.train_step({"x": X, "target": TARGET})["loss"]) for _ in range(20)]
    after = trained.state["w"]
    assert losses[-1] < losses[0] / 4 and before.tolist() != after.tolist()

    # the evaluator, the golden model and numpy agree on the trained layer
    assert outputs(hwflow.load(trained)).tolist() == expected(after).tolist() != expected(before).tolist()
    inferred = trained.infer({"x": X})["y"]
    assert quantized(inferred, Y_SCALE).tolist() == expected(after).tolist()

    design = hwflow.compile(trained, "ulx3s_85f")
    trained.train_step({"x": X, "target": TARGET})  # what is compiled is the state as it was then
    design.write(tmp_path / "out")
    written = onnx.load(tmp_path / "out" / "model.onnx")
    assert not written.training_info
    (w,) = (numpy_helper.to_array(t) for t in written.graph.initializer if t.name == "w")
    assert w.tolist() == after.tolist()
    assert outputs(hwflow.load(tmp_path / "out" / "model.onnx")).tolist() == expected(after).tolist()
    assert hwflow.simulate(tmp_path / "out", simulator="icarus", frames=2).ok
    assert hwflow.compare(trained, frames=4).ok


def test_a_model_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "inputs.npz", x=np.zeros((1, 99), np.float32))  # of another model: nothing of ours is here
    monkeypatch.chdir(tmp_path)
    trained = TrainingModel(classifier_head())
    model = hwflow.load(trained)
    assert model.path is None
    assert outputs(model).tolist() == expected(trained.state["w"]).tolist()
    assert hwflow.compare(model, frames=2).ok
    model.write(tmp_path / "model.onnx")
    assert onnx.load(tmp_path / "model.onnx") == trained.inference_model()


def test_the_commands_take_the_inference_graph_as_it_is_in_the_file(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["errors"] == 0
    assert main(["synth", str(path), "--board", "ulx3s_85f", "--until", "verilog", "-o", str(tmp_path / "out")]) == 0
    w = TrainingModel(path).state["w"]
    assert outputs(hwflow.load(path)).tolist() == expected(w).tolist()
    assert outputs(hwflow.load(tmp_path / "out" / "model.onnx")).tolist() == expected(w).tolist()


def test_check_says_what_is_wrong_with_the_training_information(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = classifier_head()
    model.training_info[0].update_binding[1].value = "w_now"
    onnx.save(model, tmp_path / "bad.onnx")
    assert main(["check", str(tmp_path / "bad.onnx")]) == 1
    assert "error: update_binding 'w' of training_info[0]: the value must name an output" in capsys.readouterr().out
