"""The committed digits example: form of its model, form of its inputs, accuracy by the ONNX reference evaluator."""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "digits"
LAYERS = {"conv1": "image", "conv2": "relu1", "dense": "relu2"}
"""Every layer with weights, and the activation whose quantization its input has."""


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return onnx.load(FOLDER / "model.onnx")


@pytest.fixture(scope="module")
def constants(model: onnx.ModelProto) -> dict[str, NDArray[np.generic]]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


@pytest.fixture(scope="module")
def inputs() -> dict[str, NDArray[np.generic]]:
    with np.load(FOLDER / "inputs.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def logits(model: onnx.ModelProto, inputs: dict[str, NDArray[np.generic]]) -> NDArray[np.float32]:
    (result,) = ReferenceEvaluator(model).run(None, {"image": inputs["input"]})
    return np.asarray(result)


def dimensions(value: onnx.ValueInfoProto) -> list[int | str]:
    return [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]


def test_model_is_valid_and_identified(model: onnx.ModelProto) -> None:
    onnx.checker.check_model(model, full_check=True)
    assert model.producer_name == "hwflow-examples"
    assert model.graph.name == "digits"
    assert model.ir_version == 8
    (opset,) = model.opset_import
    assert opset.domain == ""
    assert 13 <= opset.version <= 19


def test_interface(model: onnx.ModelProto) -> None:
    (image,), (logits_value,) = model.graph.input, model.graph.output
    assert (image.name, dimensions(image)) == ("image", ["N", 1, 8, 8])
    assert (logits_value.name, dimensions(logits_value)) == ("logits", ["N", 10])
    for value in (image, logits_value):
        assert value.type.tensor_type.elem_type == TensorProto.FLOAT


def test_operators(model: onnx.ModelProto) -> None:
    assert Counter(node.op_type for node in model.graph.node) == {
        "QuantizeLinear": 7,  # image, relu1, pool1, relu2, pool2, flatten, dense
        "DequantizeLinear": 13,  # the same, and weight and bias of three layers
        "Conv": 2,
        "Relu": 2,
        "MaxPool": 2,
        "Flatten": 1,
        "Gemm": 1,
    }


def test_every_node_and_value_is_named(model: onnx.ModelProto) -> None:
    names = [node.name for node in model.graph.node]
    assert all(names)
    assert len(set(names)) == len(names)
    assert {"conv1", "relu1", "pool1", "conv2", "relu2", "pool2", "flatten", "dense"} <= set(names)


@pytest.mark.parametrize("layer", LAYERS)
def test_weights_are_int8_per_channel_and_symmetric(
    model: onnx.ModelProto, constants: dict[str, NDArray[np.generic]], layer: str
) -> None:
    weight, scale = constants[f"{layer}_weight_quantized"], constants[f"{layer}_weight_scale"]
    assert weight.dtype == np.int8
    assert scale.shape == (weight.shape[0],)
    assert len(np.unique(scale)) > 1
    assert not constants[f"{layer}_weight_zero_point"].any()
    magnitude = np.abs(weight.astype(np.int32)).reshape(weight.shape[0], -1)
    np.testing.assert_array_equal(magnitude.max(axis=1), 127)  # every channel uses its whole range, -128 excluded
    (node,) = [node for node in model.graph.node if node.output[0] == f"{layer}_weight"]
    assert node.op_type == "DequantizeLinear"
    assert [attribute.i for attribute in node.attribute if attribute.name == "axis"] == [0]


@pytest.mark.parametrize(("layer", "source"), LAYERS.items())
def test_biases_are_in_steps_of_the_accumulator(
    constants: dict[str, NDArray[np.generic]], layer: str, source: str
) -> None:
    bias = constants[f"{layer}_bias_quantized"]
    assert bias.dtype == np.int32
    assert bias.shape == constants[f"{layer}_weight_scale"].shape
    assert not constants[f"{layer}_bias_zero_point"].any()
    expected = constants[f"{source}_scale"] * constants[f"{layer}_weight_scale"]
    np.testing.assert_array_equal(constants[f"{layer}_bias_scale"], expected)


def test_activations_are_uint8_and_asymmetric(
    model: onnx.ModelProto, constants: dict[str, NDArray[np.generic]]
) -> None:
    zero_points = {}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            zero_point = constants[node.input[2]]
            assert zero_point.dtype == np.uint8
            assert zero_point.shape == ()
            zero_points[node.input[0]] = int(zero_point)
            scale = float(constants[node.input[1]])
            assert scale > 0
            assert not np.log2(scale).is_integer()
    assert zero_points["image"] > 0
    assert zero_points["dense"] > 0


def test_pooling_and_flattening_keep_the_parameters(model: onnx.ModelProto) -> None:
    parameters = {node.input[0]: node.input[1:] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    assert parameters["pool1"] == parameters["relu1"]
    assert parameters["pool2"] == parameters["relu2"]
    assert parameters["flatten"] == parameters["relu2"]


def test_inputs(inputs: dict[str, NDArray[np.generic]]) -> None:
    assert set(inputs) == {"input", "label"}
    assert inputs["input"].dtype == np.float32
    assert inputs["input"].shape == (360, 1, 8, 8)
    assert inputs["label"].dtype == np.int64
    assert inputs["label"].shape == (360,)
    assert set(inputs["label"].tolist()) == set(range(10))
    assert inputs["input"].min() < 0 < inputs["input"].max()


def test_accuracy(logits: NDArray[np.float32], inputs: dict[str, NDArray[np.generic]]) -> None:
    assert logits.shape == (360, 10)
    assert np.mean(logits.argmax(axis=1) == inputs["label"]) >= 0.97


def test_logits_are_codes(logits: NDArray[np.float32], constants: dict[str, NDArray[np.generic]]) -> None:
    scale, zero_point = float(constants["logits_scale"]), int(constants["logits_zero_point"])
    codes = np.rint(logits / scale) + zero_point
    assert codes.min() >= 0 and codes.max() <= 255
    np.testing.assert_allclose(logits, (codes - zero_point) * scale, rtol=1e-6)
