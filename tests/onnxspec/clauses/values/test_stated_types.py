"""Clauses about types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.onnxspec.build import FLOAT, model, node, value
from tests.onnxspec.clauses.twins import Twin, check, findings_of

pytestmark = pytest.mark.usefixtures("measured")

INT64 = TensorProto.INT64
RELU = node("Relu", ["x"], ["y"], name="relu")
FIT = "\n  remedy: correct the node or the types of what it reads"
AGAIN = "\n  remedy: export the model again"
NEWER = "\n  remedy: export the model with a newer IR version"


def tensor(kind: int = FLOAT, shape: Sequence[int | str | None] | None = None) -> onnx.TypeProto:
    return helper.make_tensor_type_proto(kind, shape)


def sequence(kind: onnx.TypeProto) -> onnx.TypeProto:
    return helper.make_sequence_type_proto(kind)


def optional(kind: onnx.TypeProto) -> onnx.TypeProto:
    return helper.make_optional_type_proto(kind)


def mapping(key: int, kind: onnx.TypeProto) -> onnx.TypeProto:
    return helper.make_map_type_proto(key, kind)


def bare(field: str) -> onnx.TypeProto:
    """A sequence or optional that does not say of what, a map without keys and values."""
    proto = onnx.TypeProto()
    getattr(proto, field).SetInParent()
    return proto


def opaque() -> onnx.TypeProto:
    return bare("opaque_type")


def with_input(kind: onnx.TypeProto, ir_version: int = 10) -> onnx.ModelProto:
    """A second input, which a node of another domain reads."""
    return model(
        [RELU, node("Look", ["t"], ["u"], name="look", domain="org.example")],
        [value("x", [1, 4]), helper.make_value_info("t", kind)],
        opsets={"": 21 if ir_version >= 10 else 9, "org.example": 1},
        ir_version=ir_version,
    )


def with_value(kind: int, ir_version: int) -> onnx.ModelProto:
    size = 4 if kind == TensorProto.BFLOAT16 else 1
    tensor = TensorProto(name="w", data_type=kind, dims=[2], raw_data=bytes(size))
    return model([RELU], constants={"w": tensor}, ir_version=ir_version)


def branch(*nodes: onnx.NodeProto) -> onnx.GraphProto:
    return helper.make_graph(nodes, "branch", [], [onnx.ValueInfoProto(name=nodes[-1].output[0])], doc_string="One.")


def chosen(inner: str) -> onnx.ModelProto:
    """An If, in whose branches ``inner`` reads x."""
    branches = [branch(node(inner, ["x"], [name], name=f"inner_{name}")) for name in ("a", "b")]
    choose = node("If", ["c"], ["y"], name="choose", then_branch=branches[0], else_branch=branches[1])
    return model([choose], [value("x", [1, 4]), value("c", [], TensorProto.BOOL)])


def joined(kind: int, operator: str = "SequenceConstruct") -> onnx.ModelProto:
    """A sequence of float tensors and one of ``kind``."""
    if operator == "SequenceConstruct":
        nodes = [node(operator, ["x", "t"], ["s"], name="join")]
    else:
        nodes = [node("SequenceConstruct", ["x"], ["r"], name="first"), node(operator, ["r", "t"], ["s"], name="join")]
    at = node("SequenceAt", ["s", "zero"], ["y"], name="at")
    return model([*nodes, at], [value("x", [1, 4]), value("t", [1, 4], kind)], constants={"zero": np.int64(0)})


def said(kind: onnx.TypeProto, operator: str = "Relu") -> onnx.ModelProto:
    """What the model says of the value in the middle."""
    info = helper.make_value_info("m", kind)
    return model([node(operator, ["x"], ["m"], name="first"), node("Relu", ["m"], ["y"])], value_info=[info])


def called(operator: str) -> onnx.ModelProto:
    body = helper.make_function(
        "org.example", "F", ["a"], ["b"], [node(operator, ["a"], ["b"], name="inside")], [helper.make_opsetid("", 21)]
    )
    call = node("F", ["x"], ["y"], name="call", domain="org.example")
    return model([call], opsets={"": 21, "org.example": 1}, functions=[body])


def dialect(kind: int) -> onnx.ModelProto:
    """The type of what an operator of another domain makes is what the model says."""
    nodes = [node("Quant", ["x"], ["q"], name="q", domain="org.example"), node("Relu", ["q"], ["y"], name="relu")]
    return model(nodes, opsets={"": 21, "org.example": 1}, value_info=[value("q", [1, 4], kind)])


TWINS = [
    Twin(
        "PRO-16",
        bad=with_input(tensor(0, [1])),
        good=with_input(tensor(1, [1])),
        findings=[
            "error: input 't': the element type of the tensors must be a known one, not UNDEFINED (0) [PRO-16]" + AGAIN
        ],
    ),
    Twin(
        "PRO-16",
        bad=with_input(sequence(tensor(99))),
        good=with_input(sequence(tensor(1))),
        findings=[
            "error: input 't': the element type of the tensors in the sequence must be a known one, not unknown (99) "
            "[PRO-16]" + AGAIN
        ],
        name="in-sequence",
    ),
    Twin(
        "PRO-16",
        bad=with_input(optional(bare("sequence_type"))),
        good=with_input(optional(sequence(tensor()))),
        findings=[
            "error: input 't': the sequence in the optional must state its element type, but it does not [PRO-16]"
            + AGAIN
        ],
        name="bare-sequence",
    ),
    Twin(
        "PRO-17",
        bad=with_input(mapping(FLOAT, tensor())),
        good=with_input(mapping(TensorProto.STRING, tensor())),
        findings=["error: input 't': the keys of the map must be integers or strings, not float32 [PRO-17]" + AGAIN],
    ),
    Twin(
        "PRO-17",
        bad=with_input(sequence(mapping(TensorProto.BOOL, tensor()))),
        good=with_input(sequence(mapping(TensorProto.UINT8, tensor()))),
        findings=[
            "error: input 't': the keys of the map in the sequence must be integers or strings, not bool [PRO-17]"
            + AGAIN
        ],
        name="in-sequence",
    ),
    Twin(
        "PRO-17",
        bad=with_input(onnx.TypeProto(map_type=onnx.TypeProto.Map(key_type=INT64))),
        good=with_input(mapping(INT64, tensor())),
        findings=["error: input 't': the map must state its value type, but it does not [PRO-17]" + AGAIN],
        name="no-value",
    ),
    Twin(
        "PRO-19",
        bad=with_input(bare("optional_type")),
        good=with_input(optional(tensor())),
        findings=["error: input 't': the optional must state its element type, but it does not [PRO-19]" + AGAIN],
    ),
    Twin(
        "PRO-19",
        bad=with_input(optional(optional(tensor()))),
        good=with_input(optional(sequence(tensor()))),
        findings=[
            "error: input 't': the optional must hold a tensor, a sparse tensor, a sequence or a map, not another "
            "optional [PRO-19]" + AGAIN
        ],
        name="nested",
    ),
    Twin(
        "PRO-19",
        bad=with_input(optional(opaque())),
        good=with_input(optional(mapping(INT64, tensor()))),
        findings=[
            "error: input 't': the optional must hold a tensor, a sparse tensor, a sequence or a map, not an opaque "
            "type [PRO-19]" + AGAIN
        ],
        name="opaque",
    ),
    Twin(
        "TYP-15",
        bad=with_input(sequence(tensor()), 5),
        good=with_input(sequence(tensor()), 6),
        findings=[
            "warning: input 't': sequence types need IR version 6 or later, but the model has 5 [TYP-15]" + NEWER
        ],
    ),
    Twin(
        "TYP-15",
        bad=with_input(optional(tensor()), 7),
        good=with_input(optional(tensor()), 8),
        findings=[
            "warning: input 't': optional types need IR version 8 or later, but the model has 7 [TYP-15]" + NEWER
        ],
        name="optional",
    ),
    Twin(
        "TYP-16",
        bad=with_input(tensor(TensorProto.UINT4, [1]), 9),
        good=with_input(tensor(TensorProto.UINT8, [1]), 9),
        findings=[
            "warning: input 't': element type uint4 needs IR version 10 or later, but the model has 9 [TYP-16]" + NEWER
        ],
    ),
    Twin(
        "TYP-16",
        bad=with_value(TensorProto.INT2, 12),
        good=with_value(TensorProto.BFLOAT16, 12),
        findings=[
            "warning: initializer 'w': element type int2 needs IR version 13 or later, but the model has 12 [TYP-16]"
            + NEWER
        ],
        name="tensor",
    ),
    Twin(
        "TYP-11",
        bad=joined(INT64),
        good=joined(FLOAT),
        findings=[
            "error: node 'join' (SequenceConstruct): input 1 ('t') must be float32 as input 0 ('x') is, not int64 "
            "[TYP-11]" + FIT
        ],
    ),
    Twin(
        "TYP-11",
        bad=joined(INT64, "SequenceInsert"),
        good=joined(FLOAT, "SequenceInsert"),
        findings=[
            "error: node 'join' (SequenceInsert): input 1 ('t') must be float32 as the elements of input 0 ('r') are, "
            "not int64 [TYP-11]" + FIT
        ],
        name="insert",
    ),
    Twin(
        "NOD-32",
        bad=joined(INT64),
        good=joined(FLOAT),
        findings=[
            "error: node 'join' (SequenceConstruct): input 1 ('t') must be float32 as input 0 ('x') is, not int64 "
            "[NOD-32]" + FIT
        ],
        name="sequence",
    ),
    Twin(
        "NOD-32",
        bad=model([node("Not", ["x"], ["m"], name="not"), node("Cast", ["m"], ["y"], to=FLOAT)]),
        good=model([node("Neg", ["x"], ["m"], name="neg"), node("Cast", ["m"], ["y"], to=FLOAT)]),
        findings=["error: node 'not' (Not): input 0 ('x') must be bool, not float32 [NOD-32]" + FIT],
    ),
    Twin(  # both at once, and the nodes behind them not
        "NOD-32",
        bad=model(
            [
                node("Add", ["x", "n"], ["m"], name="add"),
                node("And", ["x", "x"], ["k"], name="and"),
                node("Relu", ["m"], ["y"], name="relu"),
            ],
            [value("x", [1, 4]), value("n", [1, 4], INT64)],
        ),
        good=model(
            [
                node("Add", ["x", "n"], ["m"], name="add"),
                node("Mul", ["x", "x"], ["k"], name="and"),
                node("Relu", ["m"], ["y"], name="relu"),
            ],
            [value("x", [1, 4]), value("n", [1, 4])],
        ),
        findings=[
            "error: node 'add' (Add): input 1 ('n') must be float32 as input 0 ('x') is, not int64 [NOD-32]" + FIT,
            "error: node 'and' (And): input 0 ('x') must be bool, not float32 [NOD-32]" + FIT,
        ],
        name="two",
    ),
    Twin(
        "NOD-32",
        bad=chosen("Not"),
        good=chosen("Neg"),
        findings=[
            f"error: node 'inner_{name}' (Not) in '{branch}' of node 'choose' (If): input 0 ('x') must be bool, not "
            "float32 [NOD-32]" + FIT
            for name, branch in (("b", "else_branch"), ("a", "then_branch"))
        ],
        name="subgraph",
    ),
    Twin(
        "NOD-32",
        bad=said(tensor(INT64, [1, 4])),
        good=said(tensor(FLOAT, [1, 4])),
        findings=[
            "error: value 'm': the type must be float32, which node 'first' (Relu) gives it, not int64 [NOD-32]" + FIT
        ],
        name="value-info",
    ),
    Twin(
        "NOD-32",
        bad=model([RELU], outputs=[helper.make_value_info("y", sequence(tensor()))]),
        good=model([RELU], outputs=[helper.make_value_info("y", tensor(FLOAT, [1, 4]))]),
        findings=[
            "error: output 'y': the type must be float32, which node 'relu' (Relu) gives it, not sequence of float32 "
            "[NOD-32]" + FIT
        ],
        name="output",
    ),
    Twin(
        "NOD-32",
        bad=model(
            [node("Add", ["x", "w"], ["y"], name="add")],
            [value("x", [1, 4]), value("w", [4], INT64)],
            constants={"w": np.zeros(4, np.float32)},
        ),
        good=model(
            [node("Add", ["x", "w"], ["y"], name="add")],
            [value("x", [1, 4]), value("w", [4])],
            constants={"w": np.zeros(4, np.float32)},
        ),
        findings=["error: input 'w': the type must be float32, which its initializer has, not int64 [NOD-32]" + FIT],
        name="initializer",
    ),
    Twin(
        "NOD-32",
        bad=called("Not"),
        good=called("Neg"),
        findings=[
            "error: node 'call' (F): the node must fit what it reads, but onnx.shape_inference says: (op_type:F, node "
            "name: call): (op_type:Not, node name: inside): X typestr: T, has unsupported type: tensor(float) [NOD-32]"
            + FIT
        ],
        name="function",
    ),
    Twin(
        "NOD-32",
        bad=dialect(TensorProto.BOOL),
        good=dialect(FLOAT),
        findings=[
            "error: node 'relu' (Relu): input 0 ('q') must be one of bfloat16, float16, float32, float64, int16, int32 "
            "or 2 more, not bool [NOD-32]" + FIT
        ],
        name="dialect",
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def test_types_may_nest_deeply(tmp_path: Path) -> None:
    kind = tensor()
    for _ in range(40):
        kind = sequence(kind)
    assert [f for f in findings_of(with_input(kind), tmp_path / "deep") if f.severity == "error"] == []


@pytest.mark.parametrize("folder", [None, "beside"])
def test_a_shape_stored_beside_the_model(tmp_path: Path, folder: str | None) -> None:
    """A Reshape whose shape is external: read where it is needed, checked against what follows."""

    def source(place: Path) -> onnx.ModelProto:
        (place / "shape.bin").write_bytes(np.int64([2, 2]).tobytes())
        shape = TensorProto(name="shape", data_type=INT64, dims=[2], data_location=TensorProto.EXTERNAL)
        for key, text in (("location", "shape.bin"), ("offset", "0"), ("length", "16")):
            shape.external_data.add(key=key, value=text)
        outputs = [value("y", [2, 2] if folder is None else [2, 3])]
        return model([node("Reshape", ["x", "shape"], ["y"], name="r")], outputs=outputs, constants={"shape": shape})

    found = [str(f) for f in findings_of(source, tmp_path / "m") if f.severity == "error"]
    expected = "error: output 'y': the size of axis 1 must be 2, which node 'r' (Reshape) gives it, not 3 [SHP-10]"
    assert [text.partition("\n")[0] for text in found] == ([] if folder is None else [expected])
