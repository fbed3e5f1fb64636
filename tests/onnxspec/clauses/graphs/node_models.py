"""Models whose nodes break one clause, or nearly do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.model_parts import conditional, graph

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64
IN_THEN = " in 'then_branch' of node 'choose' (If)"


def weight(name: str = "w") -> TensorProto:
    return numpy_helper.from_array(np.ones(4, np.float32), name)


def loop(
    inputs: Sequence[str], initializers: Sequence[str] = (), ir_version: int = 3, made: str = "out", read: str = "v"
) -> onnx.ModelProto:
    """y = x after M rounds; the body has inputs i and go, then ``inputs``, and makes ``made`` = ``read`` + w."""
    body = graph(
        [node("Add", [read, "w"], [made], name="add"), node("Identity", ["go"], ["again"])],
        "body",
        [value("i", [], INT64), value("go", [], BOOL), *(value(n, [4] if n == "w" else [1, 4]) for n in inputs)],
        [value("again", [], BOOL), value(made, [1, 4])],
        initializer=[weight(n) for n in initializers],
    )
    constants = {"w": weight()} if "w" not in [*inputs, *initializers] else {}
    given = [value("M", [], INT64), value("c", [], BOOL), value("x", [1, 4])]
    return model(
        [node("Loop", ["M", "c", "x"], ["y"], name="loop", body=body)],
        [*given, *(value(n, [4]) for n in constants)] if ir_version == 3 else given,
        constants=constants,
        opsets={"": 8} if ir_version == 3 else None,
        ir_version=ir_version,
    )


def shadowing(name: str, *before: onnx.NodeProto, after: Sequence[onnx.NodeProto] = ()) -> onnx.ModelProto:
    """A branch that makes ``name``, in a graph with more nodes before and after the If."""
    proto = conditional(
        graph([node("Relu", ["x"], [name], name="r")], "then", [], [value(name, [1, 4])]), constants={"w": weight()}
    )
    choose = proto.graph.node[0]
    del proto.graph.node[:]
    proto.graph.node.extend([*before, choose, *after])
    return proto


def function(*nodes: onnx.NodeProto) -> onnx.FunctionProto:
    return helper.make_function("local", "Twice", ["a"], ["b"], nodes, [helper.make_opsetid("", 21)])


def called(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    return model(
        [node("Twice", ["x"], ["y"], domain="local")], opsets={"": 21, "local": 1}, functions=[function(*nodes)]
    )


def chain(*links: tuple[str, str, str]) -> onnx.ModelProto:
    """Nodes (name, input, output) that add x to their input; the output is y."""
    return model([node("Add", ["x", read], [made], name=name) for name, read, made in links])
