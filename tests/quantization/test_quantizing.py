"""``quantize``: what the models that come out are made of, how good they are, that hwflow takes them."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import hwflow
from hwflow.cli import main
from hwflow.errors import ToolError
from tests.quantization.networks import Network, thirds, thirds_data

SHARED = Path(__file__).resolve().parents[3] / "shared" / "models"


@pytest.fixture
def model(tmp_path) -> Path:
    return thirds(tmp_path / "thirds.onnx")


@pytest.fixture
def data(tmp_path) -> Path:
    return thirds_data(tmp_path / "data.npz")


def initializers(model: onnx.ModelProto) -> dict[str, TensorProto]:
    return {i.name: i for i in model.graph.initializer}


def operators(model: onnx.ModelProto) -> list[str]:
    return [n.op_type for n in model.graph.node]


def test_accuracy_and_ratio(model, data, tmp_path):
    done = hwflow.quantize(model, data, tmp_path / "q.onnx")
    (quality,) = done.qualities
    assert (quality.name, quality.accuracy, quality.float_accuracy) == ("y", 1.0, 1.0)
    # The coarsest step is 16 * 3 / 255 of the hidden values, 0.2 of y's first element: noise of 0.2^2 / 12 in one of
    # three elements whose mean square is above 1 gives about 30 dB; the other steps are finer.
    assert quality.snr_db is not None and 28 < quality.snr_db < 45
    assert (done.findings, done.compiles, done.evaluated) == ((), True, done.calibrated)
    assert done.calibrated.frames == 60
    assert hwflow.compare(tmp_path / "q.onnx", inputs=data).unexplained == 0


def test_weights_have_a_scale_a_channel(model, data, tmp_path):
    hwflow.quantize(model, data, tmp_path / "q.onnx")
    found = initializers(onnx.load(tmp_path / "q.onnx"))
    scales, weights = (numpy_helper.to_array(found[name]) for name in ("w1_scale", "w1_quantized"))
    # Symmetric: the greatest weight of a channel, 1, 4 and 16, is 127 steps.
    np.testing.assert_allclose(scales, np.array([1, 4, 16]) / 127, rtol=1e-6)
    assert weights.dtype == np.int8 and weights.tolist() == np.kron(np.eye(3), [[127], [127]]).tolist()
    assert numpy_helper.to_array(found["w1_zero_point"]).tolist() == [0, 0, 0]
    assert found["c1_quantized"].data_type == TensorProto.INT32


def test_four_bits(model, data, tmp_path):
    done = hwflow.quantize(model, data, tmp_path / "q.onnx", bits=4)
    proto = onnx.load(tmp_path / "q.onnx")
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 21)]
    found = initializers(proto)
    assert {found[name].data_type for name in ("w1_quantized", "w2_quantized")} == {TensorProto.INT4}
    assert numpy_helper.to_array(found["w1_quantized"]).astype(int).tolist() == np.kron(np.eye(3), [[7], [7]]).tolist()
    assert found["x_zero_point"].data_type == TensorProto.UINT8
    # Weights of one magnitude only are as exact with 4 bits.
    assert done.qualities[0].accuracy == 1.0
    assert done.compiles and hwflow.compare(tmp_path / "q.onnx", inputs=data).unexplained == 0


@pytest.mark.parametrize("activations", ["uint8", "uint16"])
def test_sixteen_bits(model, data, tmp_path, activations):
    done = hwflow.quantize(model, data, tmp_path / "q.onnx", bits=16, activations=activations)
    found = initializers(onnx.load(tmp_path / "q.onnx"))
    assert {found[name].data_type for name in ("w1_quantized", "w2_quantized")} == {TensorProto.INT16}
    assert numpy_helper.to_array(found["w1_quantized"]).tolist() == np.kron(np.eye(3), [[32767], [32767]]).tolist()
    assert found["x_zero_point"].data_type == TensorProto.DataType.Value(activations.upper())
    assert done.compiles and hwflow.compare(tmp_path / "q.onnx", inputs=data).unexplained == 0


def test_sixteen_bits_keep_what_eight_lose(tmp_path):
    """Weights of 1 and 1/300 in one column: of 127 steps, the small ones keep none."""
    network = Network(["N", 4])
    weights = network.constant([[1.0]] + 3 * [[1 / 300]])
    network.save(tmp_path / "m.onnx", network.node("MatMul", "x", weights), ["N", 1])
    x = np.random.default_rng(0).normal(size=(40, 4)) * [0.001, 1, 1, 1]
    np.savez(tmp_path / "x.npz", x=x.astype(np.float32))
    ratios = [
        hwflow.quantize(
            tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx", bits=bits, activations="uint16"
        ).qualities[0].snr_db for bits in (8, 16)
    ]
    assert ratios[0] < 10 and ratios[1] > 40


@pytest.mark.parametrize("activations", ["uint8", "int8", "uint16", "int16"])
def test_types_of_activations(model, data, tmp_path, activations):
    done = hwflow.quantize(model, data, tmp_path / "q.onnx", activations=activations)
    proto = onnx.load(tmp_path / "q.onnx")
    kind = TensorProto.DataType.Value(activations.upper())
    zeros = {n.input[2] for n in proto.graph.node if n.op_type == "QuantizeLinear"}
    assert zeros == {"x_zero_point", "v1_zero_point", "y_zero_point"}
    assert {initializers(proto)[name].data_type for name in zeros} == {kind}
    scales = [float(numpy_helper.to_array(initializers(proto)[f"{name}_scale"])) for name in ("x", "v1", "y")]
    assert all(math.frexp(scale)[0] == 0.5 for scale in scales) == activations.endswith("16")
    assert {(n.domain, n.op_type) for n in proto.graph.node} == {
        ("", op) for op in ("QuantizeLinear", "DequantizeLinear", "Gemm", "Relu")
    }
    assert done.compiles and hwflow.compare(tmp_path / "q.onnx", inputs=data).unexplained == 0


def test_the_same_arguments_give_the_same_file(model, data, tmp_path):
    for name in ("a.onnx", "b.onnx"):
        hwflow.quantize(model, data, tmp_path / name)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["a.onnx", "b.onnx", "data.npz", "thirds.onnx"]


def test_held_out_frames_and_fewer_of_calibration(model, data, tmp_path):
    with np.load(data) as arrays:
        np.savez(tmp_path / "other.npz", x=arrays["x"][:6] / 2, label=np.array([0, 1, 2, 1, 2, 0]))
    done = hwflow.quantize(model, data, tmp_path / "q.onnx", inputs=tmp_path / "other.npz", frames=30)
    assert (done.calibrated.frames, done.evaluated.frames) == (30, 6)
    # The winners are 0, 1, 2, 0, 1, 2.
    assert (done.qualities[0].accuracy, done.qualities[0].float_accuracy) == (0.5, 0.5)


def test_equal_outputs_have_no_noise(tmp_path):
    network = Network(["N", 2])
    y = network.node("Gemm", "x", network.constant([[127.0, 0.0], [0.0, 127.0]]), network.constant([0.0, 0.0]))
    network.save(tmp_path / "m.onnx", y, ["N", 2])
    # Steps of 1 for x, 1 for the weights, 127 for y: every frame is exact.
    np.savez(tmp_path / "x.npz", input=np.array([[0.0, 255.0], [3.0, 4.0]], np.float32))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    assert (done.qualities[0].snr_db, done.qualities[0].accuracy) == (math.inf, None)
    assert done.table()["outputs"] == [{"name": "y", "snr_db": None, "float_accuracy": None, "accuracy": None}]
    assert list(done.lines())[2] == "output 'y': equal to the float model"


def test_an_old_model(tmp_path):
    """Operator set 8, initializers among the inputs, a bias of two axes behind MatMul, batch normalization."""
    rng = np.random.default_rng(0)
    network = Network([1, 1, 4, 4], opset=8, ir_version=3)
    w, scale, shift = (network.constant(v) for v in (rng.normal(size=(2, 1, 3, 3)), [2.0, 0.5], [0.5, -0.25]))
    mean, variance = network.constant([0.1, 0.2]), network.constant([1.0, 4.0])
    x = network.node("Conv", "x", w, kernel_shape=[3, 3])
    x = network.node("BatchNormalization", x, scale, shift, mean, variance)
    x = network.node("Reshape", network.node("Relu", x), network.constant([1, 8], np.int64))
    x = network.node("MatMul", x, network.constant(rng.normal(size=(8, 3))))
    y = network.node("Add", x, network.constant(rng.normal(size=(1, 3))))
    network.save(tmp_path / "m.onnx", y, [1, 3])
    np.savez(tmp_path / "x.npz", x=rng.random((40, 1, 4, 4), np.float32))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    result = onnx.load(tmp_path / "q.onnx")
    assert [i.name for i in result.graph.input] == ["x"]
    assert [(o.domain, o.version) for o in result.opset_import] == [("", 21)]
    assert sorted(set(operators(result))) == [
        "Add", "Conv", "DequantizeLinear", "MatMul", "QuantizeLinear", "Relu", "Reshape"
    ]
    assert done.qualities[0].snr_db is not None and done.qualities[0].snr_db > 25
    assert done.compiles and hwflow.compare(tmp_path / "q.onnx", inputs=tmp_path / "x.npz").unexplained == 0


@pytest.mark.parametrize("addend", [0.75, [1.5, -2.0, 0.5], [[1.5, -2.0, 0.5]], [[0.75]]])
def test_factors_of_gemm(tmp_path, addend):
    """onnxruntime's quantizer loses beta, and takes the first axis of an addend for the channels."""
    rng = np.random.default_rng(0)
    network = Network(["N", 4])
    operands = network.constant(rng.normal(size=(4, 3))), network.constant(addend)
    y = network.node("Gemm", "x", *operands, alpha=0.5, beta=3.0)
    network.save(tmp_path / "m.onnx", y, ["N", 3])
    np.savez(tmp_path / "x.npz", x=rng.normal(size=(20, 4)))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    # Outputs of some units in 256 steps: about 40 dB; without the addend's factor below 10 dB.
    assert done.qualities[0].snr_db is not None and done.qualities[0].snr_db > 35
    assert done.compiles and hwflow.compare(tmp_path / "q.onnx", inputs=tmp_path / "x.npz").unexplained == 0


@pytest.mark.parametrize("bits", [8, 4])
def test_functions_and_branches_of_the_model(tmp_path, bits):
    rng = np.random.default_rng(0)
    network = Network(["N", 4])
    x = network.node("MatMul", "x", network.constant(rng.normal(size=(4, 3)), name="w"))
    branches = [
        onnx.helper.make_graph(
            [onnx.helper.make_node("MatMul", [x, "w2"], [name])], name, [],
            [onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3])],
        )
        for name in ("first", "second")
    ]
    network.constant(rng.normal(size=(3, 3)), name="w2")
    y = network.node("If", network.constant(True, np.bool_), then_branch=branches[0], else_branch=branches[1])
    proto = network.model(y, ["N", 3])
    proto.graph.node[1].output[0] = "t"
    proto.graph.node.append(onnx.helper.make_node("F", ["t"], ["y"], "call", domain="org.example"))
    body, version = [onnx.helper.make_node("Relu", ["a"], ["b"])], onnx.helper.make_opsetid("", 13)
    proto.functions.append(onnx.helper.make_function("org.example", "F", ["a"], ["b"], body, [version]))
    proto.opset_import.append(onnx.helper.make_opsetid("org.example", 1))
    onnx.save(proto, tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", x=rng.normal(size=(20, 4)))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx", bits=bits)
    result = onnx.load(tmp_path / "q.onnx")
    assert {o.domain for o in result.opset_import} == {""}
    assert set(operators(result)) == {"QuantizeLinear", "DequantizeLinear", "MatMul", "Relu"}
    assert done.compiles and hwflow.compare(tmp_path / "q.onnx", inputs=tmp_path / "x.npz").unexplained == 0


def test_nothing_stands_between_an_operator_and_the_affine_functions_behind_it(tmp_path):
    rng = np.random.default_rng(0)
    network = Network(["N", 2, 4, 4])
    x = network.node("Conv", "x", network.constant(rng.normal(size=(2, 2, 1, 1))))
    x = network.node("BatchNormalization", network.node("Relu", x), *(network.constant([0.5, 1.5]) for _ in range(4)))
    x = network.node("Conv", x, network.constant(rng.normal(size=(2, 2, 1, 1))))
    x = network.node("Conv", network.node("Sigmoid", x), network.constant(rng.normal(size=(2, 2, 1, 1))))
    network.save(tmp_path / "m.onnx", x, ["N", 2, 4, 4])
    np.savez(tmp_path / "x.npz", x=rng.normal(size=(8, 2, 4, 4)).astype(np.float32))
    hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    path = operators(onnx.load(tmp_path / "q.onnx"))
    pair = ["QuantizeLinear", "DequantizeLinear"]
    while path[0] == "DequantizeLinear":  # of weights
        del path[0]
    assert path == [
        *pair, "Conv", "Relu", "BatchNormalization", *pair, "Conv", *pair, "Sigmoid", *pair, "Conv", *pair
    ]  # fmt: skip


def test_what_is_left_to_the_host_gets_no_quantizer(tmp_path):
    network = Network(["N", 2])
    y = network.node("Softmax", network.node("MatMul", "x", network.constant([[1.0, 2.0], [3.0, 4.0]])), axis=1)
    network.save(tmp_path / "m.onnx", y, ["N", 2])
    np.savez(tmp_path / "x.npz", x=np.eye(2, dtype=np.float32))
    hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    assert operators(onnx.load(tmp_path / "q.onnx"))[-3:] == ["QuantizeLinear", "DequantizeLinear", "Softmax"]


def without_layers(lines):
    """What is said but for where the error comes from, the subject of test_layer_errors.py."""
    return [line for line in lines if not line.startswith("most of the noise") and " % " not in line[:12]]


def test_what_cannot_be_compiled_is_noted(tmp_path, capsys):
    network = Network(["N", 2])
    w = network.constant([[1.0, 2.0], [3.0, 4.0]])
    y = network.node("MatMul", network.node("RandomUniformLike", network.node("MatMul", "x", w)), w)
    network.save(tmp_path / "m.onnx", y, ["N", 2])
    np.savez(tmp_path / "x.npz", x=np.eye(2, dtype=np.float32))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    assert not done.compiles and not done.table()["compiles"]
    assert without_layers(done.lines())[3:] == [
        "note: node 'randomuniformlike1' (RandomUniformLike): operator must be one that hwflow supports, not "
        "RandomUniformLike: it draws random numbers [supported-operator]",
        "  remedy: export the model for inference, or feed them as an input",
        "hwflow cannot compile it, for the reasons above",
    ]


def test_the_command_line(model, data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["quantize", "thirds.onnx", "--calibration", "data.npz", "-o", "q.onnx"]) == 0
    printed = capsys.readouterr()
    lines = without_layers(printed.out.splitlines())
    assert lines[:2] == [
        "q.onnx: 8-bit weights, per-channel scales, uint8 activations",
        "calibrated on 60 frames of data.npz, compared with the float model on 60 frames of data.npz",
    ]
    assert lines[2].startswith("output 'y': SNR ")
    assert lines[2].endswith(" dB against the float model, accuracy 100.00 % (float model: 100.00 %)")
    assert lines[3:] == [
        "left to the host: 'x_QuantizeLinear' (QuantizeLinear), 'y_DequantizeLinear' (DequantizeLinear); none of the "
        "27 multiply-accumulates of a frame",
        "hwflow can compile it: see 'hwflow synth'",
    ]
    assert printed.err.splitlines() == [
        "reading the model", "running the float model on 60 frames of data.npz", "quantizing",
        "checking the quantized model", "comparing with the float model on 60 frames of data.npz",
    ]  # fmt: skip
    assert main(["quantize", "thirds.onnx", "--calibration", "data.npz", "-o", "q.onnx", "--format", "json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert table.pop("outputs")[0].keys() == {"name", "snr_db", "float_accuracy", "accuracy"}
    nodes = [("x_QuantizeLinear", "QuantizeLinear"), ("y_DequantizeLinear", "DequantizeLinear")]
    assert table.pop("host") == {
        "macs": 0, "share": 0.0, "nodes": [{"name": name, "op": op, "macs": 0} for name, op in nodes]
    }
    assert [layer.pop("name") for layer in table["layers"]] == ["x", "v1", "y", "w1", "w2"]
    assert table.pop("layers")[1].keys() == {"node", "type", "weights", "snr_db", "noise_share"}
    assert table == {
        "output": "q.onnx", "bits": 8, "activations": "uint8", "calibration_frames": 60, "frames": 60,
        "compiles": True, "findings": [], "target_snr_db": None,
        "target_accuracy": None, "quantized": ["x", "v1", "y"],
        "quantized_to_16_bits": [],
    }


def test_without_onnxruntime(model, data, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    monkeypatch.chdir(tmp_path)
    assert main(["quantize", "thirds.onnx", "--calibration", "data.npz", "-o", "q.onnx"]) == ToolError.exit_code == 3
    assert capsys.readouterr().err == (
        "error: package 'onnxruntime': must be installed with its quantizer, but: import of onnxruntime.quantization "
        "halted; None in sys.modules [tool-present]\n  remedy: pip install 'hwflow[quantize]'\n"
    )
    assert not (tmp_path / "q.onnx").exists()


@pytest.mark.parametrize(
    ("name", "size"),
    [("ort_mnist_float/mnist", [1, 1, 28, 28]), ("micro_kws_m_fp32/micro_kws_m_static_fp32", [1, 1960])],
)
def test_models_of_others(tmp_path, name, size):
    path = SHARED / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", input=rng.random((8, *size[1:]), np.float32) * 32)
    done = hwflow.quantize(path, tmp_path / "x.npz", tmp_path / "q.onnx")
    assert done.qualities[0].snr_db is not None and done.qualities[0].snr_db > 20
    assert [str(f) for f in done.findings if f.severity != "warning"] == [] and done.compiles
    assert hwflow.compare(tmp_path / "q.onnx", inputs=tmp_path / "x.npz").unexplained == 0
