"""Models with subgraphs and training graphs, and what several clauses about definitions say alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.twins import Twin

ONES = np.ones(4, np.float32)
BOOL = TensorProto.BOOL
ONCE = "\n  remedy: rename one of them"
SECOND = "value 'y' must be defined once, but node 'first' (Relu) defines it too"


def relu(name: str = "") -> onnx.NodeProto:
    return node("Relu", ["x"], ["y"], name=name)


def graph(
    nodes: Sequence[onnx.NodeProto],
    name: str,
    inputs: Sequence[onnx.ValueInfoProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (),
    **more: Any,
) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, inputs, outputs, **more)


def conditional(then_branch: onnx.GraphProto, **more: Any) -> onnx.ModelProto:
    """y = If(c) with the given branch and one that is in order; x is there too."""
    other = graph([node("Neg", ["x"], ["e"])], "other", [], [value("e", [1, 4])])
    return model(
        [node("If", ["c"], ["y"], name="choose", then_branch=then_branch, else_branch=other)],
        [value("x", [1, 4]), value("c", [], BOOL)],
        **more,
    )


def branch(output: str = "t", **more: Any) -> onnx.GraphProto:
    return graph([node("Relu", ["x"], [output])], "then", [], [value(output, [1, 4])], **more)


def training(algorithm: onnx.GraphProto, initialization: onnx.GraphProto | None = None) -> onnx.ModelProto:
    """A model with one training method; the graphs are taken as they are."""
    proto = model([relu()])
    info = proto.training_info.add()
    info.algorithm.CopyFrom(algorithm)
    if initialization is not None:
        info.initialization.CopyFrom(initialization)
    return proto


def step(output: str = "z", name: str = "step") -> onnx.GraphProto:
    return graph([node("Neg", ["y"], ["z"])], name, [], [value(output, [1, 4])])


def added(*, ir_version: int = 10, inputs: Sequence[str] = ("x",), **more: Any) -> onnx.ModelProto:
    """y = x + w with initializer w."""
    shapes = {"x": [1, 4], "w": [4], "v": [4]}
    return model(
        [node("Add", ["x", "w"], ["y"])],
        [value(name, shapes[name]) for name in inputs],
        constants={"w": ONES},
        opsets={3: {"": 8}, 4: {"": 9}}.get(ir_version),
        ir_version=ir_version,
        **more,
    )


def definitions(clause: str) -> list[Twin]:
    """What NAM-04, NOD-11 and, for outputs of nodes, GRA-23 say alike."""
    good = model([relu("first"), node("Neg", ["x"], ["u"], name="second")])
    twins = [
        Twin(
            clause,
            name="two nodes",
            bad=model([relu("first"), node("Neg", ["x"], ["y"], name="second")]),
            good=good,
            findings=[f"error: node 'second' (Neg): {SECOND} [{clause}]{ONCE}"],
        ),
        Twin(
            clause,
            name="one node",
            bad=model(
                [node("Split", ["x"], ["y", "y"], name="s", axis=1, num_outputs=2)], outputs=[value("y", [1, 2])]
            ),
            good=model(
                [node("Split", ["x"], ["y", "u"], name="s", axis=1, num_outputs=2)], outputs=[value("y", [1, 2])]
            ),
            findings=[
                "error: node 's' (Split): value 'y' must be defined once, but another output of this node defines it "
                f"too [{clause}]{ONCE}"
            ],
        ),
        Twin(
            clause,
            name="in a subgraph",
            bad=conditional(
                graph([node("Relu", ["x"], ["t"], name="a"), node("Neg", ["x"], ["t"])], "g", [], [value("t", [1, 4])])
            ),
            good=conditional(
                graph([node("Relu", ["x"], ["t"], name="a"), node("Neg", ["x"], ["u"])], "g", [], [value("t", [1, 4])])
            ),
            findings=[
                "error: node 'Neg_t' (Neg) in 'then_branch' of node 'choose' (If): value 't' must be defined once, but "
                f"node 'a' (Relu) in 'then_branch' of node 'choose' (If) defines it too [{clause}]{ONCE}"
            ],
        ),
        Twin(
            clause,
            name="omitted outputs are no names",
            bad=model([relu("first"), node("Neg", ["x"], ["y"], name="second")]),
            good=model(
                [
                    relu(),
                    node("Dropout", ["x"], ["a", ""]),
                    node("MaxPool", ["p"], ["b", ""], kernel_shape=[1]),
                ],
                [value("x", [1, 4]), value("p", [1, 1, 4])],
            ),
            findings=[f"error: node 'second' (Neg): {SECOND} [{clause}]{ONCE}"],
        ),
    ]
    if clause == "GRA-23":
        return twins
    return [
        *twins,
        Twin(
            clause,
            name="two inputs",
            bad=model([relu()], [value("x", [1, 4]), value("x", [1, 4])]),
            good=model([relu()], [value("x", [1, 4]), value("u", [1, 4])]),
            findings=[
                f"error: input 'x': value 'x' must be defined once, but two inputs have that name [{clause}]{ONCE}"
            ],
        ),
        Twin(
            clause,
            name="input and node",
            bad=model([relu(), node("Neg", ["y"], ["x"], name="n")]),
            good=model([relu(), node("Neg", ["y"], ["u"], name="n")]),
            findings=[
                "error: node 'n' (Neg): value 'x' must be defined once, but the graph's input defines it too "
                f"[{clause}]{ONCE}"
            ],
        ),
        Twin(
            clause,
            name="initializer and node",
            bad=model([relu(), node("Neg", ["y"], ["w"], name="n")], constants={"w": ONES}),
            good=model([relu(), node("Neg", ["y"], ["u"], name="n")], constants={"w": ONES}),
            findings=[
                "error: node 'n' (Neg): value 'w' must be defined once, but an initializer defines it too "
                f"[{clause}]{ONCE}"
            ],
        ),
        Twin(
            clause,
            name="an initializer may be an input",
            bad=added(inputs=["x", "w", "w"]),
            good=added(inputs=["x", "w"]),
            findings=[
                f"error: input 'w': value 'w' must be defined once, but two inputs have that name [{clause}]{ONCE}"
            ],
        ),
        Twin(
            clause,
            name="the algorithm graph continues the main graph",
            bad=training(graph([node("Neg", ["x"], ["y"], name="n")], "step", [], [value("y", [1, 4])])),
            good=training(graph([node("Neg", ["x"], ["z"], name="n")], "step", [], [value("z", [1, 4])])),
            findings=[
                "error: node 'n' (Neg) in algorithm graph of training_info[0]: value 'y' must be defined once, but the "
                f"main graph defines it too [{clause}]{ONCE}"
            ],
        ),
    ]
