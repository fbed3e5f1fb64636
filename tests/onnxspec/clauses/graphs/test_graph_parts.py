"""Clauses about a graph's parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, TypeProto, helper, numpy_helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import FLOAT, model, node, value
from tests.onnxspec.clauses.model_parts import (
    ONCE,
    ONES,
    added,
    branch,
    conditional,
    definitions,
    graph,
    relu,
    step,
    training,
)
from tests.onnxspec.clauses.twins import Twin, check

pytestmark = pytest.mark.usefixtures("measured")


def changed(proto: onnx.ModelProto, change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    """A copy of ``proto`` that ``change`` was done to."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    change(copy)
    return copy


def untyped(name: str) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=name)


def typed(name: str, kind: TypeProto) -> onnx.ValueInfoProto:
    return helper.make_value_info(name, kind)


def identity(kind: TypeProto) -> onnx.ModelProto:
    """Input x and output y, both of that type."""
    return model([node("Identity", ["x"], ["y"])], [typed("x", kind)], [typed("y", kind)])


def tensor_type(elem_type: int = FLOAT, shape: Sequence[int | str | None] | None = (1, 4)) -> TypeProto:
    return helper.make_tensor_type_proto(elem_type, shape)


def sequence_type(elem_type: int) -> TypeProto:
    return helper.make_sequence_type_proto(tensor_type(elem_type, None))


def optional_type(elem_type: int) -> TypeProto:
    return helper.make_optional_type_proto(sequence_type(elem_type))


def map_type(key_type: int) -> TypeProto:
    """The value type is in order."""
    return helper.make_map_type_proto(key_type, tensor_type())


def sparse(name: str) -> onnx.SparseTensorProto:
    values = numpy_helper.from_array(np.ones(1, np.float32), name)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.zeros(1, np.int64)), [4])


def annotated(
    *entries: tuple[str, str], tensor: str = "x", ir_version: int = 10, again: Sequence[tuple[str, str]] = ()
) -> onnx.ModelProto:
    """QuantizeLinear of x with scale s and zero point z; the annotation is of ``tensor``."""
    proto = model(
        [node("QuantizeLinear", ["x", "s", "z"], ["y"])],
        outputs=[value("y", [1, 4], TensorProto.INT8)],
        constants={"s": np.float32(0.5), "z": np.int8(0)},
        opsets={"": 10} if ir_version == 4 else None,
        ir_version=ir_version,
    )
    for every in (entries, again):
        if every:
            annotation = proto.graph.quantization_annotation.add(tensor_name=tensor)
            for key, name in every:
                annotation.quant_parameter_tensor_names.add(key=key, value=name)
    return proto


ANNOTATED = annotated(("SCALE_TENSOR", "s"), ("ZERO_POINT_TENSOR", "z"))

NAMED = "[GRA-22]\n  remedy: give the graph a name"
TYPED = "[GRA-18]\n  remedy: give it a type"
SHAPED = "[GRA-19]\n  remedy: give it a shape, with the dimensions left open that are not known"
NAMELESS = "\n  remedy: give it a name"
ENTRIES = "[GRA-15]\n  remedy: remove the entries"


ONE = numpy_helper.from_array(np.float32([1]), "one")


def calling(inputs: Sequence[str], second: str) -> onnx.ModelProto:
    """A model with a function in which a second node makes the value ``second``."""
    body = [node("Relu", ["a"], ["b"], name="m"), node("Neg", ["a"], [second], name="n")]
    opsets = [helper.make_opsetid("", 21)]
    function = helper.make_function("org.local", "F", list(inputs), ["b"], body, opsets)
    return model([node("Relu", ["x"], ["y"])], functions=[function])


def in_a_function(clause: str) -> list[Twin]:
    return [
        Twin(
            clause,
            name="in a function",
            bad=calling(["a"], "b"),
            good=calling(["a"], "c"),
            findings=[
                "error: node 'n' (Neg) in function 'org.local.F': value 'b' must be defined once, but node 'm' (Relu) "
                f"in function 'org.local.F' defines it too [{clause}]\n  remedy: rename one of them"
            ],
        )
    ]


def described(*names: str) -> onnx.ModelProto:
    """x -> a -> y, with value_info for the names."""
    nodes = [node("Add", ["x", "w"], ["a"]), node("Relu", ["a"], ["y"])]
    return model(nodes, constants={"w": ONES}, value_info=[value(n, [4] if n == "w" else [1, 4]) for n in names])


def twice(clause: str, severity: str, more: str = "") -> str:
    return (
        f"{severity}: value 'a': names in value_info must be distinct, but 'a' is there more than once{more} "
        f"[{clause}]\n  remedy: remove one of the entries"
    )


def entries(one: onnx.ValueInfoProto, other: onnx.ValueInfoProto) -> onnx.ModelProto:
    return model([node("Neg", ["x"], ["a"]), node("Relu", ["a"], ["y"])], value_info=[one, other])


ENTRY = value("a", [1, 4])
CONTRADICT = ", with types that contradict each other"
ENTRY_PAIRS: list[tuple[str, onnx.ValueInfoProto, str, str]] = [
    ("equal", ENTRY, "warning", ""),
    ("one knows no shape", value("a", None), "warning", ""),
    ("one knows no dimension", value("a", ["N", None]), "warning", ""),
    ("one knows no element type", value("a", [1, 4], TensorProto.UNDEFINED), "warning", ""),
    ("one knows nothing", untyped("a"), "warning", ""),
    ("element types", value("a", [1, 4], TensorProto.INT32), "error", CONTRADICT),
    ("dimensions", value("a", [1, 5]), "error", CONTRADICT),
    ("ranks", value("a", [1, 4, 1]), "error", CONTRADICT),
    ("kinds of type", typed("a", sequence_type(FLOAT)), "error", CONTRADICT),
]


def repeated_initializers(clause: str) -> list[Twin]:
    """What NAM-04 and PRO-05 say alike."""
    text = f"initializer names must be distinct, but 'w' names more than one [{clause}]{ONCE}"
    dense = helper.make_tensor("v", FLOAT, [4], [1.0] * 4)
    again = helper.make_tensor("w", FLOAT, [4], [1.0] * 4)
    return [
        Twin(
            clause,
            name="two initializers",
            bad=changed(added(), lambda m: m.graph.initializer.append(again)),
            good=changed(added(), lambda m: m.graph.initializer.append(dense)),
            findings=[f"error: initializer 'w': {text}"],
        ),
        Twin(
            clause,
            name="dense and sparse",
            bad=added(sparse_initializer=[sparse("w")]),
            good=added(sparse_initializer=[sparse("v")]),
            findings=[f"error: sparse initializer 'w': {text}"],
        ),
        Twin(
            clause,
            name="two initializers of a subgraph",
            bad=conditional(branch(initializer=[again, again])),
            good=conditional(branch(initializer=[again, dense])),
            findings=[f"error: initializer 'w' in 'then_branch' of node 'choose' (If): {text}"],
        ),
    ]


def repeated_entries(clause: str) -> list[Twin]:
    """What NAM-04 and PRO-06 say alike."""
    twins = [
        Twin(
            clause,
            name=f"value_info, {name}",
            bad=entries(ENTRY, other),
            good=model([node("Neg", ["x"], ["a"]), node("Relu", ["a"], ["y"])], value_info=[ENTRY]),
            findings=[twice(clause, severity, more)],
        )
        for name, other, severity, more in ENTRY_PAIRS
    ]
    inner = value("t", [1, 4])
    twins.append(
        Twin(
            clause,
            name="value_info of a subgraph",
            bad=conditional(branch(value_info=[inner, inner])),
            good=conditional(branch(value_info=[inner])),
            findings=[
                "warning: value 't' in 'then_branch' of node 'choose' (If): names in value_info must be distinct, but "
                f"'t' is there more than once [{clause}]\n  remedy: remove one of the entries"
            ],
        )
    )
    return twins


TWINS = [
    Twin(
        "GRA-22",
        bad=changed(model([relu()]), lambda m: m.graph.ClearField("name")),
        good=model([relu()]),
        findings=[f"error: graph: every graph must have a name, but this one has none {NAMED}"],
    ),
    Twin(
        "GRA-22",
        name="subgraph",
        bad=conditional(graph([node("Relu", ["x"], ["t"])], "", [], [value("t", [1, 4])])),
        good=conditional(branch()),
        findings=[
            "error: graph in 'then_branch' of node 'choose' (If): every graph must have a name, but this one has none "
            + NAMED
        ],
    ),
    Twin(
        "GRA-22",
        name="training graph",
        bad=training(step(name="")),
        good=training(step(), onnx.GraphProto()),  # an empty graph is how none is written
        findings=[
            "error: graph in algorithm graph of training_info[0]: every graph must have a name, but this one has none "
            + NAMED
        ],
    ),
    Twin(
        "GRA-17",
        bad=model([relu()], [value("x", [1, 4]), value("", [1])], [value("y", [1, 4]), value("", [1])]),
        good=model([relu()], [value("x", [1, 4]), value("u", [1])], [value("y", [1, 4]), value("x", [1, 4])]),
        findings=[
            f"error: input 1: input 1 of the graph must have a name, but it has none [GRA-17]{NAMELESS}",
            f"error: output 1: output 1 of the graph must have a name, but it has none [GRA-17]{NAMELESS}",
        ],
    ),
    Twin(
        "GRA-17",
        name="training graph",
        bad=training(step(output="")),
        good=training(step()),
        findings=[
            "error: output 0 in algorithm graph of training_info[0]: output 0 of the graph must have a name, but it "
            f"has none [GRA-17]{NAMELESS}"
        ],
    ),
    Twin(
        "GRA-20",
        bad=conditional(graph([node("Relu", ["x"], ["t"])], "then", [], [value("", [1, 4])])),
        good=conditional(branch()),
        findings=[
            "error: output 0 in 'then_branch' of node 'choose' (If): output 0 of the graph must have a name, but it "
            f"has none [GRA-20]{NAMELESS}"
        ],
    ),
    Twin(
        "GRA-18",
        name="no type",
        bad=model([relu()], [untyped("x")], [untyped("y")]),
        good=model([relu()]),
        findings=[
            f"error: input 'x': input 'x' must have a type, but it has none {TYPED}",
            f"error: output 'y': output 'y' must have a type, but it has none {TYPED}",
        ],
    ),
    Twin(
        "GRA-18",
        name="undefined element type",
        bad=model([relu()], outputs=[value("y", [1, 4], TensorProto.UNDEFINED)]),
        good=model([relu()]),
        findings=[f"error: output 'y': output 'y' must have a type, but its elem_type is UNDEFINED {TYPED}"],
    ),
    Twin(
        "GRA-18",
        name="sequence",
        bad=identity(sequence_type(TensorProto.UNDEFINED)),
        good=identity(sequence_type(FLOAT)),
        findings=[
            f"error: {place}: {place} must have a type, but for what it holds its elem_type is UNDEFINED {TYPED}"
            for place in ("input 'x'", "output 'y'")
        ],
    ),
    Twin(
        "GRA-18",
        name="optional",
        bad=identity(optional_type(TensorProto.UNDEFINED)),
        good=identity(optional_type(FLOAT)),
        findings=[
            f"error: {place}: {place} must have a type, but for what it holds its elem_type is UNDEFINED {TYPED}"
            for place in ("input 'x'", "output 'y'")
        ],
    ),
    Twin(
        "GRA-18",
        name="map",
        bad=model([relu()], [value("x", [1, 4]), typed("m", map_type(TensorProto.UNDEFINED))]),
        good=model([relu()], [value("x", [1, 4]), typed("m", map_type(TensorProto.INT64))]),
        findings=[
            "error: input 'm': input 'm' must have a type, but for what it holds the key_type of its map is UNDEFINED "
            + TYPED
        ],
    ),
    Twin(
        "GRA-18",
        name="a subgraph may leave types open",
        bad=model([relu()], outputs=[untyped("y")]),
        good=conditional(graph([node("Relu", ["x"], ["t"])], "then", [], [untyped("t")])),
        findings=[f"error: output 'y': output 'y' must have a type, but it has none {TYPED}"],
    ),
    Twin(
        "GRA-19",
        bad=model([relu()], [value("x", None)], [value("y", None)]),
        good=model([relu()], [value("x", ["N", None])], [value("y", [None, None])]),
        findings=[
            f"error: {place}: {place} must have a shape (at least its rank), but it has none {SHAPED}"
            for place in ("input 'x'", "output 'y'")
        ],
    ),
    Twin(
        "GRA-19",
        name="initializer as input",
        bad=changed(added(inputs=["x", "w"]), lambda m: m.graph.input[1].type.tensor_type.ClearField("shape")),
        good=added(inputs=["x", "w"]),
        findings=[f"error: input 'w': input 'w' must have a shape (at least its rank), but it has none {SHAPED}"],
    ),
    Twin(
        "GRA-19",
        name="sequences have no shape",
        bad=identity(tensor_type(shape=None)),
        good=identity(sequence_type(FLOAT)),
        findings=[
            f"error: {place}: {place} must have a shape (at least its rank), but it has none {SHAPED}"
            for place in ("input 'x'", "output 'y'")
        ],
    ),
    Twin(
        "GRA-19",
        name="a scalar has one",
        bad=identity(tensor_type(shape=None)),
        good=identity(tensor_type(shape=())),
        findings=[
            f"error: {place}: {place} must have a shape (at least its rank), but it has none {SHAPED}"
            for place in ("input 'x'", "output 'y'")
        ],
    ),
    Twin(
        "GRA-11",
        name="IR version 3",
        bad=added(ir_version=3),
        good=added(ir_version=3, inputs=["x", "w"]),
        findings=[
            "error: graph 'graph': in IR version 3 every initializer must be a graph input too, but 'w' is not "
            "[GRA-11]\n  remedy: list the initializers as inputs, or export the model with IR version 4 or higher"
        ],
    ),
    Twin(
        "GRA-11",
        name="from IR version 4 on",
        bad=changed(
            added(ir_version=3), lambda m: m.graph.initializer.append(numpy_helper.from_array(np.ones(2), "v"))
        ),
        good=added(ir_version=4),
        findings=[
            "error: graph 'graph': in IR version 3 every initializer must be a graph input too, but 'w', 'v' are not "
            "[GRA-11]\n  remedy: list the initializers as inputs, or export the model with IR version 4 or higher"
        ],
    ),
    Twin(
        "PRO-05",
        name="no name",
        bad=changed(added(), lambda m: m.graph.initializer.add(data_type=FLOAT, float_data=[1.0])),
        good=changed(added(), lambda m: m.graph.initializer.add(data_type=FLOAT, float_data=[1.0], name="v")),
        findings=[f"error: initializer 1: an initializer must have a name, but this one has none [PRO-05]{NAMELESS}"],
    ),
    Twin(
        "PRO-05",
        name="sparse without a name",
        bad=added(sparse_initializer=[sparse("")]),
        good=added(sparse_initializer=[sparse("v")]),
        findings=[
            f"error: sparse initializer 1: an initializer must have a name, but this one has none [PRO-05]{NAMELESS}"
        ],
    ),
    *repeated_initializers("PRO-05"),
    *definitions("GRA-23"),
    *definitions("NAM-04"),
    *repeated_initializers("NAM-04"),
    *repeated_entries("NAM-04"),
    Twin(
        "NAM-04",
        name="an output listed twice",
        bad=model([relu()], outputs=[value("y", [1, 4]), value("y", [1, 4])]),
        good=model([relu(), node("Identity", ["y"], ["z"])], outputs=[value("y", [1, 4]), value("z", [1, 4])]),
        findings=[
            "warning: output 'y': outputs should have distinct names, but 'y' is listed more than once [NAM-04]\n"
            "  remedy: list it once, or add an Identity node that gives the second a value of its own"
        ],
    ),
    Twin(
        "GRA-15",
        name="no value",
        bad=described("a", "gone", "lost"),
        good=described("a", "w"),
        findings=[
            "warning: graph 'graph': value_info must name values of the graph, but 'gone', 'lost' are none " + ENTRIES
        ],
    ),
    Twin(
        "GRA-15",
        name="input",
        bad=described("x", "a"),
        good=described("a"),
        findings=[f"warning: graph 'graph': value_info must name values that are not inputs, but 'x' is one {ENTRIES}"],
    ),
    Twin(
        "GRA-15",
        name="output",
        bad=described("a", "y"),
        good=described("a"),
        findings=[
            f"warning: graph 'graph': value_info must name values that are not outputs, but 'y' is one {ENTRIES}"
        ],
    ),
    Twin(
        "GRA-15",
        name="subgraph",
        bad=conditional(branch(value_info=[value("gone", [1])])),
        good=conditional(branch(value_info=[value("x", [1, 4])])),  # what the subgraph reads
        findings=[
            "warning: graph 'then' in 'then_branch' of node 'choose' (If): value_info must name values of the graph, "
            f"but 'gone' is none {ENTRIES}"
        ],
    ),
    Twin(
        "GRA-15",
        name="another shape than the node's",
        bad=model([node("Relu", ["x"], ["a"], name="r"), node("Neg", ["a"], ["y"])], value_info=[value("a", [1, 5])]),
        good=model([node("Relu", ["x"], ["a"], name="r"), node("Neg", ["a"], ["y"])], value_info=[value("a", [1, 4])]),
        findings=[
            "error: value 'a': the size of axis 1 must be 4, which node 'r' (Relu) gives it, not 5 [GRA-15]\n"
            "  remedy: correct the size that is wrong, or give different sizes different variables"
        ],
    ),
    Twin(
        "GRA-23",
        name="a node and an input",
        bad=model([node("Relu", ["x"], ["y"]), node("Neg", ["y"], ["x"], name="n")]),
        good=model([node("Relu", ["x"], ["y"]), node("Neg", ["y"], ["z"], name="n")]),
        findings=[
            "error: node 'n' (Neg): value 'x' must be defined once, but the graph's input defines it too [GRA-23]\n"
            "  remedy: rename one of them"
        ],
    ),
    *in_a_function("GRA-23"),
    *in_a_function("NAM-04"),
    Twin(
        "NAM-04",
        name="inputs of a function",
        bad=calling(["a", "a"], "c"),
        good=calling(["a", "a_2"], "c"),
        findings=[
            "error: function 'org.local.F': inputs must have distinct names, but 'a' is there more than once [NAM-04]\n"
            "  remedy: rename one of them"
        ],
    ),
    Twin(
        "GRA-11",
        name="in a subgraph",
        bad=conditional(branch(initializer=[ONE]), ir_version=3),
        good=conditional(branch(initializer=[ONE]), ir_version=4),
        findings=[
            "error: graph 'then' in 'then_branch' of node 'choose' (If): in IR version 3 every initializer of a "
            "subgraph must be one of its inputs too, but 'one' is not [GRA-11]\n  remedy: list the initializers as "
            "inputs, after the others, or export the model with IR version 4 or higher"
        ],
    ),
    *repeated_entries("PRO-06"),
    Twin(
        "PRO-23",
        name="tensor",
        bad=annotated(("SCALE_TENSOR", "s"), tensor="gone"),
        good=ANNOTATED,
        findings=[
            "error: quantization annotation of 'gone': tensor_name must name a value of the graph, but 'gone' is none "
            "[PRO-23]\n  remedy: remove the annotation"
        ],
    ),
    Twin(
        "PRO-23",
        name="key",
        bad=annotated(("SCALE_TENSOR", "s"), ("ZERO_POINT", "z")),
        good=ANNOTATED,
        findings=[
            "error: quantization annotation of 'x': the key must be 'SCALE_TENSOR' or 'ZERO_POINT_TENSOR', not "
            "'ZERO_POINT' [PRO-23]\n  remedy: remove the entry, or correct its key"
        ],
    ),
    Twin(
        "PRO-23",
        name="scale",
        bad=annotated(("SCALE_TENSOR", "gone"), ("ZERO_POINT_TENSOR", "z")),
        good=ANNOTATED,
        findings=[
            "error: quantization annotation of 'x': 'SCALE_TENSOR' must name a value of the graph, but 'gone' is none "
            "[PRO-23]\n  remedy: add the tensor 'gone', or remove the annotation"
        ],
    ),
    Twin(
        "PRO-23",
        name="two scales",
        bad=annotated(("SCALE_TENSOR", "s"), again=[("SCALE_TENSOR", "s")]),
        good=annotated(("SCALE_TENSOR", "s"), again=[("ZERO_POINT_TENSOR", "z")]),
        findings=[
            "error: quantization annotation of 'x': the tensor must have one SCALE_TENSOR, but it has more [PRO-23]\n"
            "  remedy: remove one of the entries"
        ],
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def test_annotations_of_qonnx_do_no_harm() -> None:
    proto = annotated(("finn_datatype", "INT4"))
    (finding,) = (f for f in validate(proto) if f.rule == "PRO-23")
    assert str(finding) == (
        "warning: quantization annotation of 'x': the key must be 'SCALE_TENSOR' or 'ZERO_POINT_TENSOR', not one of "
        "QONNX's [PRO-23]\n  remedy: remove the annotation; hwflow does not read it"
    )
    mixed = annotated(("finn_datatype", "INT4"), ("SCALE_TENSOR", "s"))
    assert [f.rule for f in validate(mixed) if f.rule == "PRO-23"] == []


def test_annotations_came_with_ir_version_5() -> None:
    proto = annotated(("SCALE", "gone"), tensor="gone", ir_version=4)
    assert [f.rule for f in validate(proto) if f.rule == "PRO-23"] == []


def test_a_model_without_ir_version_is_not_of_version_3() -> None:
    proto = changed(added(), lambda m: m.ClearField("ir_version"))
    assert [f.rule for f in validate(proto) if f.rule == "GRA-11"] == []
