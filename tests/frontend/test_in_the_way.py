"""What a float model's findings say besides that it must be quantized, and what is said where shapes cannot be told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from hwflow.api.checking import check
from hwflow.errors import Finding, ModelRefused
from hwflow.loaded_model import load
from tests.models import Builder

RANDOM = "operator must be one that hwflow supports, not RandomNormalLike: it draws random numbers"


def found(b: Builder, folder: Path) -> list[tuple[str, str]]:
    return [(f.where, f.message) for f in refused(b, folder)[1:]]


def refused(b: Builder, folder: Path) -> list[Finding]:
    findings = [f for f in check(b.save(folder)) if f.severity != "warning"]
    assert all(f.severity == "unsupported" for f in findings)
    return findings


def dense(b: Builder, x: str, name: str) -> str:
    return b.node("MatMul", x, b.constant(np.ones((4, 4))), name=name)


def attention(blocks: int) -> Builder:
    """Random numbers like a product of streams, times a third, between dense layers; normalized before each block."""
    b = Builder(21, 10)
    x = b.node("Sin", b.input("x", ["N", 3, 4]), name="features")  # before the first dense layer: the host's
    x = dense(b, x, "embedded")
    for k in range(blocks):
        n = b.node("LayerNormalization", x, b.constant(np.ones(4)), name=f"norm{k}")
        q, key, v = (dense(b, n, f"{name}{k}") for name in "qkv")
        scores = b.node("MatMul", q, b.node("Transpose", key, perm=[0, 2, 1]), name=f"scores{k}")
        mixed = b.node("MatMul", b.node("RandomNormalLike", scores, name=f"random{k}"), v, name=f"mixed{k}")
        x = b.node("Add", x, dense(b, mixed, f"out{k}"))
    b.output(b.node("Softmax", dense(b, x, "head"), name="last"))  # behind the last one: the host's
    return b


def test_each_operator_once_with_its_places(tmp_path: Path) -> None:
    assert found(attention(3), tmp_path) == [
        ("node 'random0' (RandomNormalLike) and 2 more", RANDOM),
    ]


def test_the_same_where_the_model_is_resolved(tmp_path: Path) -> None:
    b = attention(2)
    early = refused(b, tmp_path)
    with pytest.raises(ModelRefused) as late:
        _ = load(tmp_path / "model.onnx").quantized
    assert [(f.rule, f.where, f.message) for f in late.value.findings] == [(f.rule, f.where, f.message) for f in early]


def test_nothing_is_in_the_way_of_what_can_be_compiled(tmp_path: Path) -> None:
    """Constants, shapes, and what the host does at both ends."""
    b = Builder(21, 10)
    x = b.input("x", ["N", 2, 4, 4])
    y = b.node("Conv", b.node("Sin", x), b.node("Sin", b.constant(np.ones((2, 2, 1, 1)))))
    shape = b.node("Concat", b.node("Shape", y, start=0, end=1), b.constant([32], "int64"), axis=0)
    y = b.node("Gemm", b.node("Reshape", b.node("Mish", y), shape), b.constant(np.ones((32, 3))))
    b.output(b.node("TopK", b.node("Softmax", y), b.constant([1], "int64"), outputs=["best"]))
    assert found(b, tmp_path) == []


@pytest.mark.parametrize("declared", [1, 3])
def test_trees_begin_hardware(declared: int, tmp_path: Path) -> None:
    tree = {
        "nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3,
        "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0],
        "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0], "n_targets": 1,
    }  # fmt: skip
    b = Builder(21, 10)
    y = b.node("TreeEnsembleRegressor", b.input("x", ["N", 3]), name="tree", domain="ai.onnx.ml", **tree)
    b.output(b.declare(y, ["N", declared]))
    if declared == 1:
        assert found(b, tmp_path) == []
    else:  # another thing is wrong: trees are not
        assert [f.rule for f in refused(b, tmp_path)] == ["shapes"]


def test_an_operator_of_machine_learning_is_named(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.node(
        "LinearRegressor", b.requantize(b.input("x", ["N", 3]), 0.5, 0, "int8"), name="odds", domain="ai.onnx.ml",
        coefficients=[0.5] * 9, targets=3, post_transform="SOFTMAX_ZERO",
    )  # fmt: skip
    y = b.node("MatMul", x, b.weights(np.ones((3, 2), int)), name="fc")
    b.output(b.declare(b.quantize(y, 0.5), ["N", 2], "uint8"))
    findings = refused(b, tmp_path)
    assert {finding.where.partition(" in the definition of ")[2] for finding in findings} == {
        "node 'odds' (LinearRegressor)",
    }
    assert {finding.rule for finding in findings} == {"quantized-operand", "exact-levels"}


def test_what_is_left_in_float_is_said_in_words(tmp_path: Path) -> None:
    """PROBIT is an operation on two functions of the score."""
    b = Builder(21, 10)
    x = b.node(
        "LinearRegressor", b.requantize(b.input("x", ["N", 3]), 0.5, 0, "int8"), domain="ai.onnx.ml",
        coefficients=[0.5] * 9, targets=3, post_transform="PROBIT",
    )  # fmt: skip
    b.output(b.declare(b.quantize(b.node("MatMul", x, b.weights(np.ones((3, 2), int))), 0.5), ["N", 2], "uint8"))
    (finding,) = refused(b, tmp_path)
    assert "must be quantized after functions of the same number, not left in float" in finding.message


def test_shapes_that_cannot_be_told_hide_no_operator(tmp_path: Path) -> None:
    """The second one is named though the result of the first has no shape."""
    b = Builder(21, 10)
    x = b.node("Conv", b.requantize(b.input("x", ["N", 2, 4, "width"]), 0.5), b.weights(np.ones((2, 2, 1, 1), int)))
    y = b.node("Bernoulli", b.requantize(x, 0.5), name="drawn")
    z = b.node("Conv", b.requantize(y, 0.5), b.weights(np.ones((2, 2, 1, 1), int)))
    b.output(b.quantize(z, 0.5))
    assert [(f.rule, f.where) for f in refused(b, tmp_path)] == [
        ("dimensions", "input 'x'"), ("supported-operator", "node 'drawn' (Bernoulli)")
    ]  # fmt: skip


@pytest.mark.parametrize("decided", [False, True])
def test_a_branch_that_holds_what_hardware_is_made_for(decided: bool, tmp_path: Path) -> None:
    """It reads its stream from outside; both branches are compiled if the condition is not known."""
    b = Builder(21, 10)
    x = b.input("x", ["N", 4])
    weights = b.constant(np.ones((4, 4)))
    info = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])
    branches = {
        name: helper.make_graph([helper.make_node("MatMul", [x, weights], ["y"], name=name)], name, [], [info])
        for name in ("then_branch", "else_branch")
    }
    condition = b.constant(True, "bool") if decided else b.input("c", [], "bool")
    y = b.node("If", condition, name="choice", **branches)
    b.output(b.declare(b.node("MatMul", y, weights), ["N", 4]))
    assert [where for where, _ in found(b, tmp_path)] == []


def by_shape(b: Builder, x: str) -> str:
    """Whether frames have four elements."""
    return b.node("Equal", b.node("Shape", x, start=1, end=2), b.constant([4], "int64"))


def by_input(b: Builder, x: str) -> str:
    return b.input("rate", [], "bool")


@pytest.mark.parametrize("condition", [by_shape, by_input])
def test_what_stands_in_the_branches_is_named(condition: Callable[[Builder, str], str], tmp_path: Path) -> None:
    """Between dense layers, that is: behind the last one it is the host's."""
    b = Builder(21, 10)
    x = b.input("x", ["N", 4])
    weights = b.constant(np.ones((4, 4)))
    branches = {
        f"{way}_branch": helper.make_graph(
            [
                helper.make_node("MatMul", [x, weights], ["a"]),
                helper.make_node(op, ["a"], ["b"], name=way),
                helper.make_node("MatMul", ["b", weights], ["c"]),
                helper.make_node("RandomNormalLike", ["c"], ["y"]),
            ],
            way, [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
        )
        for way, op in (("then", "RandomNormalLike"), ("else", "Bernoulli"))
    }  # fmt: skip
    b.output(b.declare(b.node("If", condition(b, x), name="choice", **branches), ["N", 4]))
    inside = ["node 'else' (Bernoulli) in 'else_branch'", "node 'then' (RandomNormalLike) in 'then_branch'"]
    expected = [f"{place} of node 'choice' (If)" for place in inside]
    assert sorted(where for where, _ in found(b, tmp_path)) == sorted(expected)


def test_what_stands_in_graphs_of_graphs(tmp_path: Path) -> None:
    """A loop's graph, in a branch, between dense layers of the model."""
    b = Builder(21, 10)
    x = dense(b, b.input("x", ["N", 4]), "first")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in ("before", "after")]
    body = helper.make_graph(
        [
            helper.make_node("RandomNormalLike", ["before"], ["after"], name="inner"),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body", [helper.make_tensor_value_info("k", TensorProto.INT64, []),
                 helper.make_tensor_value_info("go", TensorProto.BOOL, []), info[0]],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), info[1]],
    )  # fmt: skip
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])
    count = b.constant(3, "int64")
    branches = {
        "then_branch": helper.make_graph(
            [helper.make_node("Loop", [count, "", x], ["y"], name="loop", body=body)], "then", [], [y]
        ),
        "else_branch": helper.make_graph([helper.make_node("Relu", [x], ["y"])], "else", [], [y]),
    }
    b.output(dense(b, b.declare(b.node("If", b.input("c", [], "bool"), name="choice", **branches), ["N", 4]), "last"))
    assert sorted(where for where, _ in found(b, tmp_path)) == [
        "node 'inner' (RandomNormalLike) in 'body' of node 'loop' (Loop) in 'then_branch' of node 'choice' (If)",
    ]
