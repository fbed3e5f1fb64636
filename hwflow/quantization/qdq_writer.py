"""Write quantizers into a model: QuantizeLinear and DequantizeLinear with integers of 2 to 16 bits.

A kind that no ONNX type has (5 bits) stands in the next wider type, behind a Clip to the reals of its integers: the
quantizer then gives no others, and hardware has as many bits as there are integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from hwflow.onnxspec.graphs.operator_names import CLIP, DEQUANTIZE_LINEAR, QUANTIZE_LINEAR
from hwflow.quantization.integer_kinds import Grid, IntegerKind, grid_of
from hwflow.quantization.node_weights import weights_of
from hwflow.quantization.weight_scales import weight_scales

Floats = npt.NDArray[np.float64]

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)  # other constants that are moved hold integers, or texts
_MOST_BIAS = float(np.iinfo(np.int32).max)
_BIAS_MARGIN = 1.0001  # float32 scales are rounded


@dataclass(frozen=True)
class Scheme:
    """What is quantized, and how: ``activations`` by name (constants that are moved like activations among them, on the
    range of their elements), ``weights`` of linear operators by name. ``sources``: as
    :class:`~hwflow.quantization.placement.Placement` has them, for biases; so are ``round_constants``, which are
    quantized where their sources are."""

    activations: Mapping[str, Grid]
    weights: Mapping[str, IntegerKind] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    round_constants: Mapping[str, str] = field(default_factory=dict)


def with_quantizers(model: onnx.ModelProto, scheme: Scheme) -> onnx.ModelProto:
    """Return a copy of ``model``, whose nodes stand in order, with quantizers."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _Writer(copy.graph, scheme).write()
    return copy


def written_weights(model: onnx.ModelProto, names: Iterable[str]) -> dict[str, Floats]:
    """Return the reals that the integers of quantized weights in ``model`` stand for."""
    written = {i.name: i for i in model.graph.initializer}
    axes = {
        node.input[0]: attribute.i
        for node in model.graph.node for attribute in node.attribute if attribute.name == "axis" and node.input
    }
    found = {}
    for name in names:
        integers = numpy_helper.to_array(written[f"{name}_quantized"]).astype(np.float64)
        scales = numpy_helper.to_array(written[f"{name}_scale"]).astype(np.float64)
        if scales.ndim:
            scales = scales.reshape([-1 if axis == axes[f"{name}_quantized"] else 1 for axis in range(integers.ndim)])
        found[name] = integers * scales
    return found


def result_of(name: str) -> str:
    """Return the name of a quantized value's reals."""
    return f"{name}_DequantizeLinear_Output"


@dataclass
class _Weights:
    """How a tensor of weights is read: its channels' axis, None where all have one scale; the least scales that the
    biases of its readers need."""

    axis: int | None
    least: Floats


class _Writer:
    def __init__(self, graph: onnx.GraphProto, scheme: Scheme) -> None:
        self._graph, self._scheme = graph, scheme
        self._constants = {i.name: i for i in graph.initializer}
        self._scales: dict[str, Floats] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._of_constants: list[onnx.NodeProto] = []
        self._biases: set[str] = set()

    def write(self) -> None:
        graph, scheme = self._graph, self._scheme
        nodes, outputs = [*graph.node], {o.name for o in graph.output}
        renamed: dict[str, str] = {}
        for name, how in self._weights(nodes).items():
            self._write_weights(name, how)
        for name, grid in scheme.activations.items():
            if name in self._constants and self._constants[name].data_type in _FLOATS:
                renamed[name] = self._write_constant(name, self._own_grid(name, grid.kind))
        for name, source in scheme.round_constants.items():
            if source in scheme.activations and name not in renamed and name not in self._scales:
                renamed[name] = self._write_constant(name, scheme.activations[source])
        for info in graph.input:
            if info.name in scheme.activations and info.name not in self._constants:
                renamed[info.name] = self._write_activation(info.name, info.name, result_of(info.name))
        for node in nodes:
            self._quantize_operands(node)
            for index, name in enumerate(node.input):
                node.input[index] = renamed.get(name, name)
            self._nodes.append(node)
            for index, name in enumerate(node.output):
                if not name or name not in scheme.activations:
                    continue
                if name in outputs:
                    node.output[index] = f"{name}_QuantizeLinear_Input"
                    self._write_activation(name, node.output[index], name)
                else:
                    renamed[name] = self._write_activation(name, name, result_of(name))
        del graph.node[:]
        graph.node.extend((*self._of_constants, *self._nodes))

    def _weights(self, nodes: list[onnx.NodeProto]) -> dict[str, _Weights]:
        found: dict[str, _Weights] = {}
        for node in nodes:
            weights = weights_of(node, self._constants)
            if weights is None or node.input[weights.index] not in self._scheme.weights:
                continue
            name = node.input[weights.index]
            channels = 1 if weights.axis is None else self._constants[name].dims[weights.axis]
            how = found.setdefault(name, _Weights(weights.axis, np.zeros(channels)))
            bias = self._bias(node)
            if bias is not None:
                grid = self._scheme.activations[self._scheme.sources[node.input[1 - weights.index]]]
                values = numpy_helper.to_array(self._constants[bias]).astype(np.float64)
                how.least = np.maximum(how.least, _BIAS_MARGIN * np.abs(values) / _MOST_BIAS / grid.scale)
        return found

    def _bias(self, node: onnx.NodeProto) -> str | None:
        """Return the constant bias of a linear operator that has an element for each scale of its weights."""
        weights = weights_of(node, self._constants)
        if weights is None or weights.axis is None or len(node.input) < 3 or node.input[2] not in self._constants:
            return None
        source = self._scheme.sources.get(node.input[1 - weights.index])
        channels = [self._constants[node.input[weights.index]].dims[weights.axis]]
        known = source in self._scheme.activations and [*self._constants[node.input[2]].dims] == channels
        return node.input[2] if known else None

    def _quantize_operands(self, node: onnx.NodeProto) -> None:
        """Let a linear operator read the quantized weights and bias."""
        weights = weights_of(node, self._constants)
        if weights is None or node.input[weights.index] not in self._scales:
            return
        name, bias = node.input[weights.index], self._bias(node)
        if bias is not None:
            grid = self._scheme.activations[self._scheme.sources[node.input[1 - weights.index]]]
            node.input[2] = self._write_bias(bias, node, grid.scale * self._scales[name])
        node.input[weights.index] = result_of(name)

    def _write_weights(self, name: str, how: _Weights) -> None:
        """Write weights as integers with a scale for each channel."""
        kind = self._scheme.weights[name]
        values = numpy_helper.to_array(self._constants[name]).astype(np.float64)
        by_channel = values if how.axis is None else np.moveaxis(values, how.axis, 0)
        channels = len(how.least)
        by_channel = by_channel.reshape(channels, values.size // channels)
        scales = np.maximum(weight_scales(by_channel, kind), how.least).astype(np.float32).astype(np.float64)
        shape = [1] * values.ndim
        if how.axis is not None:
            shape[how.axis] = len(scales)
        integers = np.clip(np.rint(values / scales.reshape(shape)), -kind.most, kind.most)
        self._scales[name] = scales
        self._write_integers(name, kind.tensor(integers, f"{name}_quantized"), scales, kind, how.axis)

    def _own_grid(self, name: str, kind: IntegerKind) -> Grid:
        """Return the grid on the range of a constant's elements."""
        values = numpy_helper.to_array(self._constants[name])
        return grid_of((float(values.min()), float(values.max())) if values.size else (0.0, 0.0), kind)

    def _write_constant(self, name: str, grid: Grid) -> str:
        values, kind = numpy_helper.to_array(self._constants[name]).astype(np.float64), grid.kind
        integers = np.clip(np.rint(values / grid.scale) + grid.zero, kind.least, kind.most)
        tensor = kind.tensor(integers, f"{name}_quantized")
        return self._write_integers(name, tensor, np.array([grid.scale]), kind, None, grid.zero)

    def _write_bias(self, name: str, reader: onnx.NodeProto, scales: Floats) -> str:
        values = numpy_helper.to_array(self._constants[name]).astype(np.float64)
        kept = scales.astype(np.float32)
        integers = np.clip(np.rint(values / kept), -_MOST_BIAS, _MOST_BIAS).astype(np.int32)
        stem = name if name not in self._biases else f"{name}_of_{reader.name}"
        self._biases.add(name)
        result = result_of(stem)
        names = [f"{stem}_quantized", f"{stem}_quantized_scale", f"{stem}_quantized_zero_point"]
        tensors = integers, kept, np.zeros(len(kept), np.int32)
        self._graph.initializer.extend(numpy_helper.from_array(t, n) for t, n in zip(tensors, names, strict=True))
        node = helper.make_node(DEQUANTIZE_LINEAR, names, [result], f"{stem}_DequantizeLinear", axis=0)
        self._of_constants.append(node)
        return result

    def _write_integers(
        self, name: str, integers: onnx.TensorProto, scales: Floats, kind: IntegerKind, axis: int | None, zero: int = 0
    ) -> str:
        """Write a constant's integers and their DequantizeLinear; return its result."""
        zeros = np.full(() if axis is None else len(scales), zero)
        stored = scales.astype(np.float32).reshape(zeros.shape)
        names = [integers.name, f"{name}_scale", f"{name}_zero_point"]
        self._graph.initializer.extend(
            (integers, numpy_helper.from_array(stored, names[1]), kind.tensor(zeros, names[2]))
        )
        result = result_of(name)
        node = helper.make_node(DEQUANTIZE_LINEAR, names, [result], f"{name}_DequantizeLinear")
        if axis is not None:
            node.attribute.append(helper.make_attribute("axis", axis))
        self._of_constants.append(node)
        return result

    def _write_activation(self, name: str, source: str, result: str) -> str:
        """Write the quantizer of the value ``name``, from ``source`` to ``result``."""
        grid = self._scheme.activations[name]
        scale, zero = f"{name}_scale", f"{name}_zero_point"
        self._graph.initializer.append(numpy_helper.from_array(np.array(grid.scale, np.float32), scale))
        self._graph.initializer.append(grid.kind.tensor(np.array(grid.zero), zero))
        self._nodes += self._clipped(name, source, grid)
        read = self._nodes[-1].output[0] if grid.kind != grid.kind.held_in else source
        integers = f"{name}_QuantizeLinear_Output"
        self._nodes += (
            helper.make_node(QUANTIZE_LINEAR, [read, scale, zero], [integers], f"{name}_QuantizeLinear"),
            helper.make_node(DEQUANTIZE_LINEAR, [integers, scale, zero], [result], f"{name}_DequantizeLinear"),
        )
        return result

    def _clipped(self, name: str, source: str, grid: Grid) -> Iterator[onnx.NodeProto]:
        if grid.kind == grid.kind.held_in:
            return
        limits = [f"{name}_least", f"{name}_most"]
        self._graph.initializer.extend(
            numpy_helper.from_array(np.array(limit, np.float32), text)
            for limit, text in zip(grid.limits, limits, strict=True)
        )
        yield helper.make_node(CLIP, [source, *limits], [f"{name}_clipped"], f"{name}_Clip")
