"""What ``quantize`` refuses, by full text; whatever stood at the output stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import hwflow
from hwflow.errors import HwflowError, ModelRefused, UsageError
from tests.quantization.networks import Network, thirds, thirds_data


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    thirds(Path("m.onnx"))
    thirds_data(Path("x.npz"), 6)
    return tmp_path


def refused(kind: type[HwflowError], *texts: str, model: str = "m.onnx", output: str = "q.onnx", **options) -> None:
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    with pytest.raises(kind) as error:
        hwflow.quantize(model, options.pop("calibration", "x.npz"), output, **options)
    assert [str(f) for f in error.value.findings] == list(texts)
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_arguments():
    refused(
        UsageError,
        "error: option --bits: must be one of 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, auto, not 17 "
        "[quantize-option]\n  remedy: choose one of these",
        bits=17,
    )
    refused(
        UsageError,
        "error: option --activations: must be one of "
        + ", ".join(["auto", *(f"{sign}int{bits}" for sign in ("u", "") for bits in range(2, 17))])
        + ", not float16 [quantize-option]\n  remedy: choose one of these",
        activations="float16",
    )
    refused(
        UsageError,
        "error: option --target-snr: must be given with --bits auto or --activations auto, not with 8 and int8 "
        "[quantize-option]\n"
        "  remedy: leave one of them out",
        activations="int8", target_snr=20,
    )
    refused(
        UsageError,
        "error: option --target-snr: must be more than 0 and less than 100 dB, not 140 [quantize-option]\n"
        "  remedy: choose what 16 bits can keep",
        activations="auto", target_snr=140,
    )


def test_outputs():
    Path("there").mkdir()
    refused(
        UsageError,
        "error: output 'there': must be a file, but it is a folder [output-file]\n  remedy: choose another path",
        output="there",
    )
    refused(
        UsageError,
        f"error: output 'nowhere/q.onnx': must be a file, but there is no folder '{Path().absolute() / 'nowhere'}' "
        "[output-file]\n  remedy: choose another path",
        output="nowhere/q.onnx",
    )
    refused(
        UsageError,
        "error: output 'm.onnx': must be another file than the model, not the model itself [output-file]\n"
        "  remedy: choose another path",
        output="./m.onnx",
    )


def test_data():
    np.savez("bad.npz", y=np.zeros((2, 6)))
    np.savez("shape.npz", x=np.zeros((2, 5), np.float32))
    refused(
        UsageError,
        "error: inputs 'bad.npz': must hold an array 'x', not only 'y' [inputs-file]\n"
        "  remedy: name arrays by model input",
        calibration="bad.npz",
    )
    refused(
        UsageError,
        "error: inputs 'shape.npz': 'x' must have shape [frames, 6], not [2, 5] [inputs-file]\n  remedy: reshape it",
        inputs="shape.npz",
    )
    refused(
        UsageError,
        "error: inputs 'm.onnx': must be a readable .npz file, but: it is not an .npz file [inputs-file]\n"
        "  remedy: write it with numpy.savez",
        calibration="m.onnx",
    )


def test_what_is_no_model():
    refused(
        ModelRefused,
        "error: file 'x.npz': the model file must hold an ONNX model, but it is not a protobuf message [model-file]\n"
        "  remedy: give the path of an .onnx file (binary protobuf); export the model again if the file is damaged",
        model="x.npz",
    )


def test_a_quantized_model():
    hwflow.quantize("m.onnx", "x.npz", "once.onnx")
    with pytest.raises(ModelRefused) as error:
        hwflow.quantize("once.onnx", "x.npz", "twice.onnx")
    # 4 constants of 2 layers, 3 activations with both quantizers
    assert len(error.value.findings) == 4 + 3 * 2
    assert str(error.value.findings[4]) == (
        "error: node 'x_QuantizeLinear' (QuantizeLinear): the model must be a float model, without quantizers, not "
        "quantized already [float-model]\n"
        "  remedy: give the float model that it was made of, or compile it as it is"
    )
    assert not Path("twice.onnx").exists()


def test_inputs_that_do_not_fit():
    network = Network([], kind=TensorProto.DOUBLE)
    network.save(Path("b.onnx"), network.node("Cast", "x", to=TensorProto.FLOAT), [])
    refused(
        ModelRefused,
        "error: input 'x': elements must be of type float32, bool or integers, not float64 [input-type]\n"
        "  remedy: convert the model to float32",
        "error: input 'x': the first axis must be frames, of size 1 or a variable; the shape must not be [] "
        "[frames-first]\n  remedy: export the model for one frame",
        model="b.onnx",
    )


def test_a_model_without_a_frame_axis():
    network = Network([4, 6])
    network.save(Path("b.onnx"), network.node("MatMul", "x", network.constant(np.eye(6))), [4, 6])
    refused(
        ModelRefused,
        "error: input 'x': the first axis must be frames, of size 1 or a variable; the shape must not be [4, 6] "
        "[frames-first]\n  remedy: export the model for one frame",
        model="b.onnx",
    )


def test_results_that_are_not_finite():
    network = Network(["N", 6])
    y = network.node("MatMul", network.node("Sqrt", "x"), network.constant(np.eye(6)))
    network.save(Path("b.onnx"), y, ["N", 6])
    np.savez("mixed.npz", x=np.array([[1.0] * 6, [-1.0] * 6, [4.0] * 6]))
    message = (
        "error: output 'y': the float model's results must be finite, not infinite or NaN as for 1 of 3 frames of "
        "mixed.npz, first frame 1 [finite-results]\n  remedy: leave such frames out"
    )
    refused(UsageError, message, model="b.onnx", calibration="mixed.npz")
    refused(UsageError, message, model="b.onnx", inputs="mixed.npz")


def test_values_inside_that_are_not_finite():
    """The result is: the reciprocal of infinity is 0."""
    network = Network(["N", 6])
    product = network.node("MatMul", "x", network.constant(np.eye(6)))
    grown = network.node("Exp", network.node("Exp", network.node("Exp", product)))
    sums = network.node("MatMul", grown, network.constant(np.ones((6, 6))))
    network.save(Path("b.onnx"), network.node("Reciprocal", sums), ["N", 6])
    np.savez("large.npz", x=np.array([[1.0] * 6, [5.0] * 6]))
    with pytest.raises(ModelRefused) as raised:
        hwflow.quantize("b.onnx", "large.npz", "q.onnx")
    found = [finding for finding in raised.value.findings if finding.rule == "finite-values"]
    assert found == list(raised.value.findings) and found
    assert all("must be finite for all calibration data, not from" in finding.message for finding in found)
    assert not Path("q.onnx").exists()


def test_nothing_to_quantize():
    network = Network(["N", 6])
    network.save(Path("b.onnx"), network.node("Sin", "x"), ["N", 6])
    refused(
        ModelRefused,
        "error: model 'net': at least one operator must be one that is quantized, not none [quantizable-operator]\n"
        "  remedy: there is nothing to quantize",
        model="b.onnx",
    )


def test_what_onnxruntime_cannot_run():
    """An operator set newer than those that it knows."""
    network = Network(["N", 6], opset=onnx.defs.onnx_opset_version(), ir_version=13)
    network.save(Path("b.onnx"), network.node("MatMul", "x", network.constant(np.eye(6))), ["N", 6])
    with pytest.raises(ModelRefused) as error:
        hwflow.quantize("b.onnx", "x.npz", "q.onnx")
    text = str(error.value)
    assert text.startswith("error: model 'net': the model must run in onnxruntime, but it says: [ONNXRuntimeError] : ")
    assert text.endswith("[onnxruntime]\n  remedy: see what the reason names") and "\n" not in text[:-60]
    assert not Path("q.onnx").exists()
