"""Write the calibrated network as an int8 QDQ model, and evaluate such a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import torch
from network import DigitsNetwork
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from quantization import ActivationParameters, quantize_weight, weight_scale
from torch import nn

OPSET = 19
"""The reference evaluator implements QuantizeLinear and DequantizeLinear from this version on, not before."""
IR_VERSION = 8
"""Low enough for older runtimes."""


class QdqGraph:
    """Nodes and initializers of a graph in which every activation edge passes QuantizeLinear, DequantizeLinear."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def operation(self, operator: str, name: str, inputs: list[str], **attributes: Any) -> str:
        """Append a float operation; its name is also that of its output value, which is returned."""
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def activation_parameters(self, name: str, parameters: ActivationParameters) -> None:
        """Store ``<name>_scale`` (float32 scalar) and ``<name>_zero_point`` (uint8 scalar)."""
        self._store(f"{name}_scale", np.array(parameters.scale, dtype=np.float32))
        self._store(f"{name}_zero_point", np.array(parameters.zero_point, dtype=np.uint8))

    def quantized(self, value: str, parameters: str, output: str | None = None) -> str:
        """Append QuantizeLinear and DequantizeLinear behind a float value.

        Args:
            value: name of the float value.
            parameters: name under which ``activation_parameters`` has stored scale and zero point.
            output: name of the resulting float value; ``<value>_dequantized`` if not given.

        Returns:
            The name of the resulting float value.
        """
        output = output or f"{value}_dequantized"
        scale, zero_point = f"{parameters}_scale", f"{parameters}_zero_point"
        codes = f"{value}_quantized"
        self.nodes.append(
            helper.make_node("QuantizeLinear", [value, scale, zero_point], [codes], name=f"{value}_quantize")
        )
        self.nodes.append(
            helper.make_node("DequantizeLinear", [codes, scale, zero_point], [output], name=f"{value}_dequantize")
        )
        return output

    def constants(self, name: str, layer: nn.Conv2d | nn.Linear, input_scale: float) -> list[str]:
        """Store weight and bias of a layer behind DequantizeLinear nodes.

        The weight becomes int8, symmetric, per output channel (axis 0). The bias becomes int32 in steps of
        ``input_scale * weight scale`` of its channel, the unit of the integer accumulator.

        Args:
            name: of the layer; prefix of the names of its values.
            layer: its weight has output channels on axis 0.
            input_scale: scale of the activation that the layer reads.

        Returns:
            The names of the float weight and of the float bias.
        """
        assert layer.bias is not None
        scale = weight_scale(layer.weight)
        codes = quantize_weight(layer.weight.detach(), scale).numpy().astype(np.int8)
        weight_scales = scale.numpy()
        bias_scales = np.float32(input_scale) * weight_scales
        bias_codes = np.rint(layer.bias.detach().numpy() / bias_scales).astype(np.int32)
        return [
            self._dequantized_constant(f"{name}_weight", codes, weight_scales),
            self._dequantized_constant(f"{name}_bias", bias_codes, bias_scales),
        ]

    def _dequantized_constant(
        self, name: str, codes: NDArray[np.int8] | NDArray[np.int32], scales: NDArray[np.float32]
    ) -> str:
        self._store(f"{name}_quantized", codes)
        self._store(f"{name}_scale", scales)
        self._store(f"{name}_zero_point", np.zeros(len(scales), dtype=codes.dtype))
        inputs = [f"{name}_quantized", f"{name}_scale", f"{name}_zero_point"]
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [name], name=f"{name}_dequantize", axis=0))
        return name

    def _store(self, name: str, array: NDArray[np.generic]) -> None:
        self.initializers.append(numpy_helper.from_array(array, name))


def export_model(network: DigitsNetwork) -> onnx.ModelProto:
    """Return the checked QDQ model of a calibrated network.

    Input ``image``: float32 [N, 1, 8, 8], normalised. Output ``logits``: float32 [N, 10], multiples of the
    scale of the logits. Pooling and flattening only select and move codes: the pairs behind them repeat the
    parameters of the Relu before them.
    """
    graph = QdqGraph()
    for name, parameters in network.quantization.items():
        graph.activation_parameters(name, parameters)
    scales = {name: parameters.scale for name, parameters in network.quantization.items()}
    convolution: dict[str, Any] = {
        "kernel_shape": [3, 3],
        "strides": [1, 1],
        "pads": [1, 1, 1, 1],
        "dilations": [1, 1],
        "group": 1,
    }

    value = graph.quantized("image", "image")
    for index, (layer, read_scale) in enumerate(
        [(network.conv1, scales["image"]), (network.conv2, scales["relu1"])], start=1
    ):
        constants = graph.constants(f"conv{index}", layer, read_scale)
        value = graph.operation("Conv", f"conv{index}", [value, *constants], **convolution)
        value = graph.quantized(graph.operation("Relu", f"relu{index}", [value]), f"relu{index}")
        value = graph.operation("MaxPool", f"pool{index}", [value], kernel_shape=[2, 2], strides=[2, 2])
        value = graph.quantized(value, f"relu{index}")
    value = graph.quantized(graph.operation("Flatten", "flatten", [value], axis=1), "relu2")
    constants = graph.constants("dense", network.dense, scales["relu2"])
    value = graph.operation("Gemm", "dense", [value, *constants], transB=1)
    graph.quantized(value, "logits", output="logits")

    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "digits",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
            initializer=graph.initializers,
            doc_string="Reads 8x8 grey images of hand-written digits.",
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="hwflow-examples",
        domain="org.hwflow.examples",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def reference_logits(model: onnx.ModelProto, images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Evaluate the model with the ONNX reference evaluator, [frames, 1, 8, 8] to [frames, 10], both float32."""
    (logits,) = ReferenceEvaluator(model).run(None, {"image": images})
    return np.asarray(logits, dtype=np.float32)


def float_logits(network: DigitsNetwork, images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Evaluate the torch network as it is, float or fake-quantized: [frames, 1, 8, 8] to [frames, 10]."""
    with torch.no_grad():
        return np.asarray(network(torch.from_numpy(images)).numpy(), dtype=np.float32)
