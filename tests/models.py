"""Quantized models for the tests, built node by node; scales, zero points and integers are chosen, never calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

from hwflow.loaded_model import Model, load

Array = npt.NDArray[Any]


def kind_of(name: str) -> int:
    """The ONNX element type called ``name``: "float", "uint8", "int4", ..."""
    return int(TensorProto.DataType.Value(name.upper()))


class Builder:
    """Adds nodes and returns the names of their results. Every float model value is float32."""

    def __init__(self, opset: int = 13, ir_version: int = 8) -> None:
        self.opset, self.ir_version = opset, ir_version
        self.versions: dict[str, int] = {}  # of domains besides ai.onnx, by default 1
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[str] = []
        self.declared: dict[str, onnx.ValueInfoProto] = {}

    def declare(self, name: str, shape: Sequence[int | str], kind: str = "float") -> str:
        """Say the type of a value that shape inference cannot tell: of an operator that is not ONNX's own."""
        self.declared[name] = helper.make_tensor_value_info(name, kind_of(kind), shape)
        return name

    def input(self, name: str, shape: Sequence[int | str], kind: str = "float") -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind_of(kind), shape))
        return name

    def constant(self, values: npt.ArrayLike, kind: str = "float", name: str | None = None) -> str:
        name = name or f"c{len(self.constants)}"
        array = np.asarray(values).astype(helper.tensor_dtype_to_np_dtype(kind_of(kind)))
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(
        self, op: str, *inputs: str, name: str | None = None, outputs: Sequence[str] = (), **attributes: Any
    ) -> str:
        """One node; returns its first result, called ``name`` (which is the node's name too)."""
        name = name or f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name, *outputs], name=name, **attributes))
        return name

    def quantize(
        self, x: str, scale: npt.ArrayLike, zero_point: npt.ArrayLike | None = 0, kind: str = "uint8", **more: Any
    ) -> str:
        """QuantizeLinear; no zero point input for None."""
        return self._linear("QuantizeLinear", x, scale, zero_point, kind, **more)

    def dequantize(
        self, x: str, scale: npt.ArrayLike, zero_point: npt.ArrayLike | None = 0, kind: str = "uint8", **more: Any
    ) -> str:
        """DequantizeLinear; no zero point input for None."""
        return self._linear("DequantizeLinear", x, scale, zero_point, kind, **more)

    def _linear(
        self, op: str, x: str, scale: npt.ArrayLike, zero_point: npt.ArrayLike | None, kind: str, **more: Any
    ) -> str:
        inputs = [x, self.constant(scale)]
        if zero_point is not None:
            inputs.append(self.constant(zero_point, kind))
        return self.node(op, *inputs, **more)

    def requantize(
        self, x: str, scale: npt.ArrayLike, zero_point: npt.ArrayLike = 0, kind: str = "uint8", **more: Any
    ) -> str:
        """QuantizeLinear and DequantizeLinear with the same parameters."""
        return self.dequantize(self.quantize(x, scale, zero_point, kind, **more), scale, zero_point, kind, **more)

    def weights(
        self, integers: npt.ArrayLike, scale: npt.ArrayLike = 1.0, zero_point: npt.ArrayLike | None = None,
        kind: str = "int8", **more: Any,
    ) -> str:
        """Constant integers behind a DequantizeLinear."""
        return self.dequantize(self.constant(integers, kind), scale, zero_point, kind, **more)

    def output(self, *names: str) -> None:
        self.outputs.extend(names)

    def build(self) -> onnx.ModelProto:
        """The model; types of its outputs by shape inference."""
        outputs = [onnx.ValueInfoProto(name=n) for n in self.outputs]
        between = [info for name, info in self.declared.items() if name not in self.outputs]
        graph = helper.make_graph(
            self.nodes, "model", self.inputs, outputs, self.constants, doc_string="Made by a test.", value_info=between
        )
        foreign = sorted({node.domain for node in self.nodes if node.domain})
        versions = {"": self.opset, **{domain: self.versions.get(domain, 1) for domain in foreign}}
        opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=self.ir_version, domain="org.example")
        known = {v.name: v for v in self.inputs}
        known |= {t.name: helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in self.constants}
        known |= self.declared
        inferred = shape_inference.infer_shapes(model).graph.output
        for value, found in zip(model.graph.output, inferred, strict=True):
            value.CopyFrom(known.get(value.name, found))
        return model

    def save(self, folder: Path, name: str = "model.onnx") -> Path:
        path = folder / name
        onnx.save(self.build(), path)
        return path

    def load(self, folder: Path) -> Model:
        return load(self.save(folder))
