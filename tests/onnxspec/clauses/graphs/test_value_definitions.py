"""Clauses about the values that nodes read and make: each is made, and made once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.graphs.node_models import IN_THEN, chain, shadowing, weight
from tests.onnxspec.clauses.model_parts import ONCE, branch, conditional, definitions, graph, relu, step, training
from tests.onnxspec.clauses.twins import Twin, check

MADE = "must be a graph input, an initializer or the output of a node, but nothing computes it"


def owned(name: str, other: str) -> str:
    return (
        f"error: node 'r' (Relu){IN_THEN}: output '{name}' must have a name of its own, but {other} has that name too "
        f"[NOD-27]{ONCE}"
    )


def nested(output: str) -> onnx.ModelProto:
    """An If in a branch of an If; the inner one makes ``output``."""
    inner = graph([node("Relu", ["x"], [output], name="r")], "inner", [], [value(output, [1, 4])])
    other = graph([node("Neg", ["x"], ["e"])], "other", [], [value("e", [1, 4])])
    outer = graph(
        [node("If", ["c"], ["t"], name="second", then_branch=inner, else_branch=other)],
        "then",
        [],
        [value("t", [1, 4])],
    )
    return conditional(outer)


def two_initializers(second: str) -> onnx.ModelProto:
    proto = model([node("Add", ["x", "w"], ["y"])], constants={"w": np.ones(4, np.float32)})
    proto.graph.initializer.append(numpy_helper.from_array(np.zeros(4, np.float32), second))
    return proto


TWINS = [
    Twin(
        "NOD-05",
        bad=model([node("Add", ["x", "lost"], ["a"], name="add"), node("Mul", ["a", "gone"], ["y"])]),
        good=model(
            [node("Add", ["x", "lost"], ["a"], name="add"), node("Mul", ["a", "gone"], ["y"])],
            [value("x", [1, 4]), value("lost", [1, 4])],
            constants={"gone": weight("gone")},
        ),
        findings=[
            f"error: node 'add' (Add): input 'lost' {MADE} [NOD-05]\n"
            "  remedy: add the node that computes 'lost', or read another value",
            f"error: node 'Mul_y' (Mul): input 'gone' {MADE} [NOD-05]\n"
            "  remedy: add the node that computes 'gone', or read another value",
        ],
    ),
    Twin(
        "NOD-05",
        name="an input left out",
        bad=model([node("Clip", ["x", "lost", "w"], ["y"], name="clip")], constants={"w": np.float32(1)}),
        good=model([node("Clip", ["x", "", "w"], ["y"], name="clip")], constants={"w": np.float32(1)}),
        findings=[
            f"error: node 'clip' (Clip): input 'lost' {MADE} [NOD-05]\n"
            "  remedy: add the node that computes 'lost', or read another value"
        ],
    ),
    Twin(
        "NOD-05",
        name="subgraph",
        bad=conditional(graph([node("Relu", ["lost"], ["t"], name="r")], "then", [], [value("t", [1, 4])])),
        good=conditional(graph([node("Relu", ["x"], ["t"], name="r")], "then", [], [value("t", [1, 4])])),
        findings=[
            f"error: node 'r' (Relu){IN_THEN}: input 'lost' {MADE} [NOD-05]\n"
            "  remedy: add the node that computes 'lost', or read another value"
        ],
    ),
    Twin(
        "NOD-05",
        name="no value of the other branch",
        bad=conditional(graph([node("Relu", ["e"], ["t"], name="r")], "then", [], [value("t", [1, 4])])),
        good=conditional(branch()),
        findings=[
            f"error: node 'r' (Relu){IN_THEN}: input 'e' {MADE} [NOD-05]\n"
            "  remedy: add the node that computes 'e', or read another value"
        ],
    ),
    Twin(
        "NOD-05",
        name="the algorithm graph sees the main graph, the initialization graph does not",
        bad=training(step(), graph([node("Neg", ["y"], ["k"], name="n")], "init", [], [value("k", [1, 4])])),
        good=training(
            step(), graph([node("Neg", ["w"], ["k"])], "init", [], [value("k", [4])], initializer=[weight()])
        ),
        findings=[
            f"error: node 'n' (Neg) in initialization graph of training_info[0]: input 'y' {MADE} [NOD-05]\n"
            "  remedy: add the node that computes 'y', or read another value"
        ],
    ),
    *definitions("NOD-11"),
    Twin(
        "NOD-11",
        name="two initializers",
        bad=two_initializers("w"),
        good=two_initializers("v"),
        findings=[
            "error: initializer 'w': initializer names must be distinct, but 'w' names more than one [NOD-11]\n"
            "  remedy: rename one of them"
        ],
    ),
    Twin(
        "NOD-12",
        bad=model([relu()], outputs=[value("y", [1, 4]), value("lost", [1, 4])]),
        good=model([relu()], outputs=[value("y", [1, 4]), value("x", [1, 4])]),
        findings=[
            "error: output 'lost': output 'lost' must be the output of a node, an input or an initializer, but nothing "
            "computes it [NOD-12]\n  remedy: add the node that computes 'lost', or remove the output"
        ],
    ),
    Twin(
        "NOD-12",
        name="outer value",
        bad=conditional(graph([node("Relu", ["x"], ["t"])], "then", [], [value("x", [1, 4])])),
        good=conditional(graph([node("Identity", ["x"], ["t"])], "then", [], [value("t", [1, 4])])),
        findings=[
            f"error: output 'x'{IN_THEN}: output 'x' must be the output of a node, an input or an initializer, but it "
            "is a value of a graph around this one [NOD-12]\n"
            "  remedy: add an Identity node to the subgraph that copies the output from 'x'"
        ],
    ),
    Twin(
        "NOD-12",
        name="initializer of the subgraph",
        bad=conditional(graph([], "then", [], [value("t", [1, 4])])),
        good=conditional(
            graph([], "then", [], [value("t", [1, 4])], initializer=[helper.make_tensor("t", 1, [1, 4], [1.0] * 4)])
        ),
        findings=[
            f"error: output 't'{IN_THEN}: output 't' must be the output of a node, an input or an initializer, but "
            "nothing computes it [NOD-12]\n  remedy: add the node that computes 't', or remove the output"
        ],
    ),
    Twin(
        "NOD-12",
        name="the algorithm graph",
        bad=training(step(output="lost")),
        good=training(step(output="y")),  # a value of the main graph, which it continues
        findings=[
            "error: output 'lost' in algorithm graph of training_info[0]: output 'lost' must be the output of a node, "
            "an input or an initializer, but nothing computes it [NOD-12]\n"
            "  remedy: add the node that computes 'lost', or remove the output"
        ],
    ),
    Twin(
        "NOD-27",
        name="input",
        bad=shadowing("x"),
        good=shadowing("t"),
        findings=[owned("x", "an input of graph 'graph'")],
    ),
    Twin(
        "NOD-27",
        name="initializer",
        bad=shadowing("w"),
        good=shadowing("t"),
        findings=[owned("w", "an initializer of graph 'graph'")],
    ),
    Twin(
        "NOD-27",
        name="node before",
        bad=shadowing("a", node("Abs", ["x"], ["a"], name="abs")),
        good=shadowing("a", after=[node("Abs", ["x"], ["a"], name="abs")]),  # which the branch cannot see
        findings=[owned("a", "an output of node 'abs' (Abs)")],
    ),
    Twin(
        "NOD-27",
        name="the node's own output is made after its branches",
        bad=shadowing("c"),
        good=shadowing("y"),
        findings=[owned("c", "an input of graph 'graph'")],
    ),
    Twin(
        "NOD-27",
        name="two levels",
        bad=nested("x"),
        good=nested("e"),  # as in a branch of the outer If beside it
        findings=[
            f"error: node 'r' (Relu) in 'then_branch' of node 'second' (If){IN_THEN}: output 'x' must have a name of "
            f"its own, but an input of graph 'graph' has that name too [NOD-27]{ONCE}"
        ],
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def test_ten_thousand_dangling_names() -> None:
    proto = chain(*((f"n{i}", f"b{i}", f"a{i}") for i in range(10_000)))
    assert len([f for f in validate(proto) if f.rule == "NOD-05"]) == 10_000
