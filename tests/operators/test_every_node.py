"""Whatever a node leaves out and whatever rank its operands have: findings or a graph, never an exception."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_node_model_tests

from hwflow.api.checking import check
from hwflow.api.compiler import compile
from hwflow.errors import Finding
from hwflow.onnxspec.graphs.schemas import find_schema
from hwflow.onnxspec.shapes.dialects import MICROSOFT_DOMAIN
from hwflow.operators.onnx_operators import HANDLERS
from tests.models import Builder
from tests.operators.own_cases import declared

OPTIONAL = onnx.defs.OpSchema.FormalParameterOption.Optional


def findings(model: onnx.ModelProto, folder: Path) -> list[Finding]:
    """Those that are no warnings."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    return [finding for finding in check(path) if finding.severity != "warning"]


def rejected(found: Sequence[Finding]) -> bool:
    return any(finding.severity == "error" for finding in found)


def may_leave_out(schema: onnx.defs.OpSchema) -> bool:
    """Whether an output in front of others is optional."""
    return any(output.option == OPTIONAL for output in schema.outputs[:-1])


@cache
def with_outputs_left_out() -> dict[str, onnx.ModelProto]:
    """Node tests of ONNX's suite, one per operator, with no optional outputs of their node but the last."""
    found: dict[str, onnx.ModelProto] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite computes infinities and the like
        cases = load_node_model_tests()
    for case in cases:
        (node, *others) = case.model.graph.node
        schema = find_schema(node.op_type, case.model.opset_import[0].version, node.domain)
        if others or schema is None or not may_leave_out(schema) or node.op_type in found:
            continue
        left = [
            name for name, output in zip(node.output[:-1], schema.outputs, strict=False) if output.option == OPTIONAL
        ]
        if any(left):
            found[node.op_type] = model = onnx.ModelProto()
            model.CopyFrom(case.model)
            model.opset_import[0].version, model.ir_version = 21, 10
            for place, name in enumerate(node.output):
                if name in left:
                    model.graph.node[0].output[place] = ""
            kept = [info for info in model.graph.output if info.name not in left]
            del model.graph.output[:]
            model.graph.output.extend(kept)
    return found


def _between_quantizers(model: onnx.ModelProto, *, behind: bool) -> onnx.ModelProto:
    """A quantizer and its inverse behind each float input, and (``behind``) before each float output."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    graph.initializer.append(numpy_helper.from_array(np.float32(0.5), "q_scale"))
    graph.initializer.append(numpy_helper.from_array(np.int8(1), "q_zero"))
    (node,) = graph.node
    del graph.node[:]
    for info in graph.input:
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            graph.node.extend(_pair(info.name, f"{info.name}_real"))
            for place, name in enumerate(node.input):
                if name == info.name:
                    node.input[place] = f"{info.name}_real"
    graph.node.append(node)
    for output in graph.output:
        if behind and output.type.tensor_type.elem_type == TensorProto.FLOAT:
            graph.node.extend(_pair(output.name, f"{output.name}_real"))
            output.name = f"{output.name}_real"
    return result


def _pair(name: str, result: str) -> Iterator[onnx.NodeProto]:
    parameters = ["q_scale", "q_zero"]
    yield helper.make_node("QuantizeLinear", [name, *parameters], [f"{name}_q"])
    yield helper.make_node("DequantizeLinear", [f"{name}_q", *parameters], [result])


def test_every_operator_with_optional_outputs(tmp_path: Path) -> None:
    """Of floats alone, at the model's end, and between quantizers."""
    known = {schema.name for schema in onnx.defs.get_all_schemas() if may_leave_out(schema)}
    assert {"GRU", "LSTM", "RNN"} <= set(with_outputs_left_out()) <= known
    for model in with_outputs_left_out().values():
        findings(model, tmp_path)
        findings(_between_quantizers(model, behind=False), tmp_path)
        findings(_between_quantizers(model, behind=True), tmp_path)


def test_the_host_makes_a_second_output(tmp_path: Path) -> None:
    """GRU's last state, without the states before it, quantized: what hardware reads is the host's second output."""
    rng = np.random.default_rng(1)
    weights = [
        numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
        for name, shape in (("w", (1, 6, 4)), ("r", (1, 6, 2)))
    ]
    parameters = [numpy_helper.from_array(np.float32(0.01), "s"), numpy_helper.from_array(np.int8(0), "z")]
    nodes = [
        helper.make_node("GRU", ["x", "w", "r"], ["", "h"], hidden_size=2),
        helper.make_node("QuantizeLinear", ["h", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Relu", ["d"], ["r2"]),
        helper.make_node("QuantizeLinear", ["r2", "s", "z"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "model", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [1, 1, 2])], [*weights, *parameters],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    design = compile(path, "ulx3s_85f", fps=1)
    assert [port.value.origin for port in design.model.quantized.inputs] == ["q"]


def test_a_handled_operator_has_its_first_output() -> None:
    """So that handlers may speak of it; ``OnnxNode.result`` is for code that sees other nodes too."""
    for domain, name in HANDLERS:
        schema = None if domain else find_schema(name, 21, "")
        if schema is not None:
            assert schema.outputs[0].option != OPTIONAL, name


SHAPES: tuple[tuple[int | str, ...], ...] = (
    (), (0,), (1,), (3,), ("N",), (1, 0), (0, 4), (1, 4), (2, 4), ("N", 4), (1, 2, 4), (2, 2, 4), ("N", 4, 4),
    (1, 4, 2, 4), (2, 4, 4, 4), ("N", 4, 0, 4), ("N", 4, 4, 4),
)  # fmt: skip
"""Of the operands: ranks 0 to 4, leading axes of no, one, two or any number of frames, axes of length 0."""

KINDS = ("stream", "float", "int8", "int32", "stream")
LOGICAL = {"And", "Not", "Or", "Xor"}
LATE = {"BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Gelu", "HardSwish", "Mish", "QuantizeLinear"}
"""Operators that later operator sets have."""
POOLS = {"AveragePool", "LpPool", "MaxPool", "NhwcMaxPool", "QLinearAveragePool"}
FLOATS = {"float", "stream"}


def second_operand(name: str, size: int, rank: int) -> list[tuple[Any, str]]:
    """Constants behind the first operand, whose last axis has ``size`` elements, and their types."""
    match name:
        case "Conv" | "ConvInteger" | "ConvTranspose":
            return [(np.ones((4, 4, *(2,) * max(1, rank - 2))), "like")]
        case "Gemm" | "MatMul" | "MatMulInteger":
            return [(np.ones((size, 3)), "like")]
        case "Reshape":
            return [([0, -1], "int64")]
        case "Expand":
            return [([1] * rank or [2], "int64")]
        case "Tile":
            return [([1] * rank, "int64")]
        case "Slice":
            return [([0], "int64"), ([1], "int64"), ([-1], "int64")]
        case "Pad":
            return [([0, 1] * rank, "int64")]
        case "Gather":
            return [([0, 0], "int64")]
        case "Unsqueeze" | "Squeeze" | "TopK":
            return [([1 if name == "TopK" else 0], "int64")]
        case "Upsample":
            return [([1.0] * max(0, rank - 1) + [2.0], "float")]
        case "Resize":
            return [([], "float"), ([1.0] * max(0, rank - 1) + [2.0], "float")]
        case "BatchNormalization":
            return [(np.ones(4), "float")] * 4
        case "Pow" | "PRelu":
            return [(2, "like")]
        case "Quant" | "IntQuant":
            return [(0.5, "float"), (0.0, "float"), (4.0, "float")]
        case "BipolarQuant":
            return [(0.5, "float")]
        case "Trunc":
            return [(0.5, "float"), (0.0, "float"), (8.0, "float"), (4.0, "float")]
        case "MultiThreshold":
            return [(np.arange(3)[None], "float")]
        case "FloatQuant":
            return [(1.0, "float"), (4.0, "float"), (3.0, "float"), (7.0, "float"), (240.0, "float")]
        case "QuantizeLinear" | "DequantizeLinear":
            return [(0.5, "float"), (1, "int8")]
    return []


def attributes_of(name: str, rank: int) -> dict[str, Any]:
    match name:
        case "Cast":
            return {"to": TensorProto.INT32}
        case "Concat" | "QLinearConcat":
            return {"axis": -1}
        case "DepthToSpace" | "SpaceToDepth":
            return {"blocksize": 2}
        case "BitShift":
            return {"direction": "LEFT"}
        case "QLinearReduceMean":
            return {"axes": [-1], "keepdims": 1}
        case "QGemm":
            return {"transB": 0}
    return {"kernel_shape": [2] * max(1, rank - 2)} if name in POOLS else {}


OWN = {name: (constants, attributes) for name, constants, attributes in declared("NODES")}

TWICE = {
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Concat", "Div", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Sub", "Sum", "Xor",
}  # fmt: skip


def parameters(b: Builder, *, real: bool = True) -> list[str]:
    return [b.constant(0.5), b.constant(1, "int8")] if real else []


def operands(b: Builder, name: str, x: str, kind: str, size: int, rank: int) -> list[str]:
    """Inputs of a node of type ``name`` that reads ``x``."""
    match name:
        case "QLinearConv":
            weights = b.constant(np.ones((4, 4, *(2,) * max(1, rank - 2))), "int8")
            return [x, *parameters(b), weights, *parameters(b), *parameters(b)]
        case "QLinearMatMul" | "QGemm":
            last = parameters(b) if name == "QLinearMatMul" else ["", *parameters(b)]
            return [x, *parameters(b), b.constant(np.ones((size, 3)), "int8"), *parameters(b), *last]
        case "QLinearAdd" | "QLinearMul":
            return [x, *parameters(b), x, *parameters(b), *parameters(b)]
        case "QLinearConcat":
            return [*parameters(b), x, *parameters(b), x, *parameters(b)]
        case "QLinearWhere":
            return [b.node("Greater", x, x), x, *parameters(b), x, *parameters(b), *parameters(b)]
        case "Where":
            return [b.node("Equal", x, x), x, x]
    if name.startswith("QLinear"):
        return [x, *parameters(b), *parameters(b)]
    like = "float" if kind in FLOATS else kind
    constants = OWN[name][0](size, rank) if name in OWN else second_operand(name, size, rank)
    more = [b.constant(array, like if type_ == "like" else type_) for array, type_ in constants]
    return [x, x] if name in TWICE else [x, *more]


@cache
def first_versions() -> dict[tuple[str, str], int]:
    """The first operator set that has an operator, by domain and name."""
    found: dict[tuple[str, str], int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = schema.domain, schema.name
        found[key] = min(schema.since_version, found.get(key, schema.since_version))
    return found


@pytest.mark.parametrize("operator", sorted(HANDLERS), ids=lambda o: f"{o[0] or 'onnx'}-{o[1]}")
def test_any_rank(operator: tuple[str, str], tmp_path: Path) -> None:
    domain, name = operator
    fit = 0
    kinds = ("float", "bool", "int8") if name in LOGICAL else ("uint8",) if name == "BitShift" else KINDS
    for number, shape in enumerate(SHAPES):
        kind, opset = kinds[number % len(kinds)], (21, 13, 11)[number % 3]
        if name.startswith(("Q", "Dequantize")) and domain in ("", MICROSOFT_DOMAIN) and name != "QuantizeLinear":
            kind = "int8"
        opset = 9 if name == "Upsample" else max(21 if name in LATE else opset, first_versions().get(operator, 1))
        b = Builder(opset, 14 if opset > 25 else 10)
        x = b.input("x", shape, "float" if kind in FLOATS else kind)
        if kind == "stream":
            x = b.requantize(x, 0.5, 1, "int8")
        size = shape[-1] if shape else 1
        assert isinstance(size, int | str)
        rank = len(shape)
        inputs = operands(b, name, x, kind, size if isinstance(size, int) else 1, rank)
        more = {"TopK": ["second"], "Split": ["second"], "DynamicQuantizeLinear": ["scale", "zero"]}.get(name, [])
        attributes = OWN[name][1](rank) if name in OWN else attributes_of(name, rank)
        if domain:
            attributes["domain"] = domain
            b.versions[domain] = first_versions().get(operator, 1)
            b.declare("result", shape, "int8" if domain == MICROSOFT_DOMAIN else "float")
        b.output(b.node(name, *inputs, name="result", outputs=more, **attributes), *more)
        found = findings(b.build(), tmp_path)
        fit += not rejected(found)
    assert fit, "no node of this type passed onnx's own rules"
