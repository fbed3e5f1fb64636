"""Remove roundings from a QDQ model: quantizers between a linear operator and the affine functions after it.

A quantizer puts QuantizeLinear and DequantizeLinear (a pair) after every operator that it knows. Between a Conv and the
BatchNormalization or Relu after it a pair only costs accuracy and hardware: affine function and clip are one exact step
function of the Conv's accumulator. Before other functions (Sigmoid, HardSwish) the pair stays: of 256 values such a
function is a small table, of an accumulator's many values it is not.
"""

from __future__ import annotations

from collections import defaultdict

import onnx

from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, facts_of
from hwflow.onnxspec.graphs.operator_names import DEQUANTIZE_LINEAR, QUANTIZE_LINEAR
from hwflow.quantization.quantizer_weights import is_linear


def join_affine_functions(model: onnx.ModelProto) -> int:
    """Remove every pair between the result of an operator that accumulates (or an affine function of one) and an affine
    function whose own result is quantized; return how many.

    ``model`` is changed in place, unless it has graph attributes, which may read any value. No Relu or Clip may have
    been replaced by the saturation of a quantizer.
    """
    if any(a.type == onnx.AttributeProto.GRAPH for node in model.graph.node for a in node.attribute):
        return 0
    removed = 0
    while (found := _pair(model.graph)) is not None:
        quantize, dequantize = found
        for node in model.graph.node:
            for i, name in enumerate(node.input):
                if name == dequantize.output[0]:
                    node.input[i] = quantize.input[0]
        model.graph.node.remove(quantize)
        model.graph.node.remove(dequantize)
        removed += 1
    return removed


def _accumulates(node: onnx.NodeProto) -> bool:
    """Whether results are wide integers before they are quantized."""
    return is_linear(node) or facts_of(STANDARD_DOMAIN, node.op_type).accumulates


def _pair(graph: onnx.GraphProto) -> tuple[onnx.NodeProto, onnx.NodeProto] | None:
    producers = {name: node for node in graph.node for name in node.output if name}
    readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            readers[name].append(node)
    kept = {o.name for o in graph.output}
    constants = {i.name for i in graph.initializer}

    def only_reader(name: str) -> onnx.NodeProto | None:
        return readers[name][0] if len(readers[name]) == 1 and name not in kept else None

    def affine(node: onnx.NodeProto | None) -> onnx.NodeProto | None:
        """Return the node if it is an affine function or a clip of one value."""
        if node is None or not facts_of(STANDARD_DOMAIN, node.op_type).affine:
            return None
        return node if sum(1 for name in node.input if name and name not in constants) == 1 else None

    for quantize in graph.node:
        if quantize.op_type != QUANTIZE_LINEAR or only_reader(quantize.input[0]) is None:
            continue
        source = producers.get(quantize.input[0])
        if source is None or not (_accumulates(source) or affine(source)):
            continue
        dequantize = only_reader(quantize.output[0])
        if dequantize is None or dequantize.op_type != DEQUANTIZE_LINEAR:
            continue
        reader = only_reader(dequantize.output[0])
        if affine(reader) is None:
            continue
        while (function := affine(reader)) is not None:
            reader = only_reader(function.output[0])
        if reader is not None and reader.op_type == QUANTIZE_LINEAR:
            return quantize, dequantize
    return None
