"""A part of a model as a model: it holds what its nodes need, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.onnxspec import resolve_with_graph, validate
from hwflow.onnxspec.graphs.subgraph import SubModel, cut

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def value(name: str, shape: list[int | str] | None, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def part(model: onnx.ModelProto, given: list[str], outputs: list[str], **dimensions: int) -> SubModel:
    resolved, flat = resolve_with_graph(model, dimensions, None)
    found = cut(flat, resolved, frozenset(given), outputs, "part")
    # onnx's inference knows no operator that reads a sparse initializer
    onnx.checker.check_model(found.proto, full_check=not found.proto.graph.sparse_initializer)
    assert [f for f in validate(found.proto, None) if f.severity == "error"] == []
    return found


def chain(**more: object) -> onnx.ModelProto:
    """x -> a -> b -> c and b -> d; y is another input, u an initializer that nobody reads."""
    nodes = [
        helper.make_node("Add", ["x", "one"], ["a"], "a"),
        helper.make_node("Mul", ["a", "y"], ["b"], "b"),
        helper.make_node("Sub", ["b", "two"], ["c"], "c"),
        helper.make_node("Neg", ["b"], ["d"], "d"),
    ]
    graph = helper.make_graph(
        nodes, "chain", [value("x", ["N", "W"]), value("y", ["N", "W"])], [value("c", ["N", "W"]), value("d", None)],
        [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("one", 1), ("two", 2), ("u", 3))],
        value_info=[value("a", ["N", "W"]), value("b", ["N", "W"])],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9, domain="org.example", **more
    )


def names(items: object) -> list[str]:
    return [item.name for item in items]


def sizes(info: onnx.ValueInfoProto) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim]


def test_only_what_is_needed() -> None:
    found = part(chain(model_version=7), ["x", "y"], ["b"], W=5)
    graph = found.proto.graph
    assert (found.inputs, found.outputs) == (("x", "y"), ("b",))
    assert (graph.name, names(graph.node), names(graph.initializer)) == ("part", ["a", "b"], ["one"])
    assert (names(graph.input), names(graph.output), names(graph.value_info)) == (["x", "y"], ["b"], ["a"])
    for info in (*graph.input, *graph.output, *graph.value_info):
        assert sizes(info) == ["N", 5]  # frames stay open, what was bound is a number
    assert (found.proto.ir_version, found.proto.domain, found.proto.model_version) == (9, "org.example", 7)
    assert found.proto.producer_name == "hwflow"


def test_from_the_middle() -> None:
    found = part(chain(), ["b", "x", "y"], ["d", "c"], W=5)
    assert (found.inputs, found.outputs) == (("b",), ("d", "c"))
    assert names(found.proto.graph.node) == ["c", "d"]  # the model's order
    assert names(found.proto.graph.initializer) == ["two"]


def test_what_is_given_is_computed_where_it_is_asked_for() -> None:
    found = part(chain(), ["a", "b", "y"], ["b", "c"], W=5)
    assert (found.inputs, names(found.proto.graph.node)) == (("y", "a"), ["b", "c"])


def test_an_output_that_is_an_input() -> None:
    found = part(chain(), ["x", "y"], ["y", "a"], W=5)
    assert (found.inputs, found.outputs, names(found.proto.graph.node)) == (("x", "y"), ("y", "a"), ["a"])


def test_something_missing() -> None:
    resolved, flat = resolve_with_graph(chain(), {"W": 5}, None)
    with pytest.raises(ValueError, match=r"^'y' must be given, constant, or computed by a node$"):
        cut(flat, resolved, frozenset(["x"]), ["c"], "part")


def test_constants_of_every_kind_come_along() -> None:
    """An initializer that is a graph input, a sparse one, a Constant, a Loop over constants that reads around it."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["sum", "step"], ["next"]),
            helper.make_node("Identity", ["going"], ["again"]),
        ],
        "body",
        [value("i", [], INT64), value("going", [], TensorProto.BOOL), value("sum", [])],
        [value("again", [], TensorProto.BOOL), value("next", [])],
    )
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("thin", FLOAT, [1], [7.0]), helper.make_tensor("at", INT64, [1], [2]), [4]
    )
    graph = helper.make_graph(
        [
            helper.make_node("Loop", ["count", "go", "zero"], ["total"], "loop", body=body),
            helper.make_node("Constant", [], ["k"], "k", value_float=0.5),
            helper.make_node("Add", ["x", "total"], ["a"], "a"),
            helper.make_node("Mul", ["a", "k"], ["b"], "b"),
            helper.make_node("Add", ["b", "thin"], ["c"], "c"),
            helper.make_node("Sub", ["c", "default"], ["y"], "y"),
        ],
        "constants", [value("x", ["N", 4]), value("default", [])], [value("y", ["N", 4])],
        [
            numpy_helper.from_array(np.array(3), "count"), numpy_helper.from_array(np.array(True), "go"),
            numpy_helper.from_array(np.float32(0), "zero"),
            numpy_helper.from_array(np.float32(2), "step"), numpy_helper.from_array(np.float32(9), "default"),
        ],
        sparse_initializer=[sparse],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    found = part(model, ["x", "c"], ["c", "y"])
    assert found.inputs == ("x",)
    whole = part(model, ["x"], ["y"])
    assert names(whole.proto.graph.node) == ["loop", "k", "a", "b", "c", "y"]
    assert set(names(whole.proto.graph.initializer)) == {"count", "go", "zero", "step", "default"}
    assert [s.values.name for s in whole.proto.graph.sparse_initializer] == ["thin"]
    first, last = part(model, ["x"], ["b"]), part(model, ["c"], ["y"])
    assert names(last.proto.graph.initializer) == ["default"] and names(last.proto.graph.input) == ["c"]
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    (b,) = onnx.reference.ReferenceEvaluator(first.proto).run(None, {"x": x})
    np.testing.assert_array_equal(b, (x + 6) / 2)  # 3 turns of 2
    (y,) = onnx.reference.ReferenceEvaluator(last.proto).run(None, {"c": x})
    np.testing.assert_array_equal(y, x - 9)


def test_an_output_that_is_constant() -> None:
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"], "y")], "g", [value("x", ["N", 2])],
        [value("y", ["N", 2]), value("c", [2])], [numpy_helper.from_array(np.array([1, 2], np.float32), "c")],
    )
    found = part(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), ["x"], ["y", "c"])
    assert names(found.proto.graph.initializer) == ["c"] and sizes(found.proto.graph.output[1]) == [2]


def test_frames_without_a_name(tmp_path: Path) -> None:
    model = chain()
    for info in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dimension in info.type.tensor_type.shape.dim[:1]:
            dimension.ClearField("dim_param")
    found = part(model, ["x", "y"], ["b"], W=5)
    for info in (*found.proto.graph.input, *found.proto.graph.output):
        first = info.type.tensor_type.shape.dim[0]
        assert not first.HasField("dim_value") and not first.dim_param
