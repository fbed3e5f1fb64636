"""Every element type of ONNX at every place of a small quantized model: compiled, or refused with the type's name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from hwflow.api.checking import check
from hwflow.onnxspec.reading import element_types
from hwflow.onnxspec.reading.element_types import ElementType

INT8, FLOAT = TensorProto.INT8, TensorProto.FLOAT
INTEGERS = {f"{sign}int{bits}" for bits in (2, 4, 8, 16, 32) for sign in ("", "u")}
node = helper.make_node


def value(name: str, code: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, code, ["N", 4])


def constant(name: str, code: int, dims: Sequence[int] = (), number: float = 1) -> TensorProto:
    one = "1" if code == TensorProto.STRING else number
    return helper.make_tensor(name, code, dims, [one] * prod(dims))


SCALE, ZERO, AGAIN = constant("s", FLOAT, number=0.5), constant("z", INT8), constant("t", FLOAT, number=2)
RELU = [
    node("Relu", ["d"], ["r"]),
    node("QuantizeLinear", ["r", "t", "z"], ["q2"]),
    node("DequantizeLinear", ["q2", "t", "z"], ["y"]),
]


def model(
    nodes: Sequence[onnx.NodeProto], kind: int, output: int, constants: Sequence[TensorProto] = ()
) -> onnx.ModelProto:
    """Input x of type ``kind``, output y; the operator set and the IR version that have all types."""
    graph = helper.make_graph(
        nodes, "graph", [value("x", kind)], [value("y", output)], [SCALE, ZERO, AGAIN, *constants], doc_string="Test."
    )
    imports = [helper.make_opsetid("", 27)]
    return helper.make_model(graph, opset_imports=imports, ir_version=14, domain="org.example")


def as_input(code: int) -> onnx.ModelProto:
    return model([node("Identity", ["x"], ["y"])], code, code)


def cast_before(code: int) -> onnx.ModelProto:
    nodes = [
        node("Cast", ["x"], ["c"], to=FLOAT),
        node("QuantizeLinear", ["c", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
    ]
    return model([*nodes, *RELU], code, FLOAT)


def cast_behind(code: int) -> onnx.ModelProto:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        *RELU[:2],
        node("DequantizeLinear", ["q2", "t", "z"], ["e"]),
        node("Cast", ["e"], ["y"], to=code),
    ]
    return model(nodes, FLOAT, code)


def quantized_to(code: int) -> onnx.ModelProto:
    nodes = [node("QuantizeLinear", ["x", "s", "k"], ["q"]), node("DequantizeLinear", ["q", "s", "k"], ["d"])]
    return model([*nodes, *RELU], FLOAT, FLOAT, [constant("k", code)])


def dequantized_from(code: int) -> onnx.ModelProto:
    return model([node("DequantizeLinear", ["x", "s"], ["d"]), *RELU], code, FLOAT)


def weights(code: int) -> onnx.ModelProto:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["a"]),
        node("DequantizeLinear", ["w", "s"], ["b"]),
        node("MatMul", ["a", "b"], ["d"]),
    ]
    return model([*nodes, *RELU], FLOAT, FLOAT, [constant("w", code, (4, 4))])


def folded(code: int) -> onnx.ModelProto:
    """A constant of the type, which becomes a bias when what computes it is folded."""
    nodes = [
        node("Constant", [], ["k"], value=constant("k", code, (4,))),
        node("Identity", ["k"], ["i"]),
        node("Cast", ["i"], ["c"], to=FLOAT),
        node("DequantizeLinear", ["x", "s", "z"], ["a"]),
        node("Add", ["a", "c"], ["d"]),
    ]
    return model([*nodes, *RELU], INT8, FLOAT)


def whole(code: int) -> onnx.ModelProto:
    """A graph whose real numbers are of the type."""
    proto = quantized_to(INT8)
    proto.graph.input[0].type.tensor_type.elem_type = code
    proto.graph.output[0].type.tensor_type.elem_type = code
    for index in (0, 2):  # the scales
        proto.graph.initializer[index].CopyFrom(constant(proto.graph.initializer[index].name, code))
    return proto


PLACES = {
    make.__name__: make
    for make in (as_input, cast_before, cast_behind, quantized_to, dequantized_from, weights, folded, whole)
}
UNSIGNED_16 = {"uint2", "int2", "uint4", "int4", "uint8", "int8", "uint16", "int16"}
# All that Cast takes.
CAST = {e.name for e in element_types.ALL} - {"complex64", "complex128", "float6e2m3", "float6e3m2"}
# Types that hardware, or the host before it, takes.
ORDINARY = INTEGERS | {"bool", "float16", "bfloat16", "float32", "float64"}
COMPILED: dict[str, set[str]] = {
    "as_input": set(),  # leaves nothing to compute
    "cast_before": ORDINARY | {"int64", "uint64", "string"},
    "cast_behind": CAST,  # the host's
    "quantized_to": UNSIGNED_16,
    "dequantized_from": UNSIGNED_16 | {"int32"},
    "weights": UNSIGNED_16 | {"int32"},
    "folded": CAST,
    "whole": {"float32", "float16", "bfloat16"},
}


def names_of(element: ElementType) -> set[str]:
    """How a message may call the type: hwflow's name or onnx's own."""
    onnx_names = {"float32": "float", "float64": "double"}
    return {element.name, f"tensor({onnx_names.get(element.name, element.name)})"}


@pytest.mark.parametrize("element", element_types.ALL, ids=lambda element: element.name)
@pytest.mark.parametrize("place", PLACES)
def test_compiled_or_refused_by_name(place: str, element: ElementType, tmp_path: Path) -> None:
    make: Callable[[int], onnx.ModelProto] = PLACES[place]
    path = tmp_path / "model.onnx"
    onnx.save(make(element.code), path)
    reasons = [str(f) for f in check(path) if f.severity != "warning"]
    assert (reasons == []) == (element.name in COMPILED[place])
    if reasons and element.name not in ORDINARY | {"int64"}:
        assert any(name in " ".join(reasons) for name in names_of(element))
