"""Loops over constants are computed, where their cost is known; all others are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hwflow.onnxspec import resolve
from tests.onnxspec.build import model, node, refused, value

pytestmark = pytest.mark.usefixtures("measured")

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
F32 = np.float32
ADD = node("Add", ["a", "step"], ["b"])
SQUARE = node("Mul", ["b", "b"], ["s"])


def loop(
    body: Sequence[onnx.NodeProto], steps: int = 3, inputs: Sequence[str] = ("n", "", "start"), **constants: Any
) -> onnx.ModelProto:
    """A Loop with state a -> b and scanned output s; y is x and the last state."""
    graph = helper.make_graph(
        [node("Identity", ["go"], ["on"]), *body],
        "body",
        [value("i", [], INT64), value("go", [], BOOL), value("a", None)],
        [value("on", [], BOOL), value("b", None), value("s", None)],
    )
    return model(
        [node("Loop", inputs, ["last", "all"], name="loop", body=graph), node("Add", ["x", "last"], ["y"])],
        outputs=[value("y", [1, 4]), value("all", ["k", 4])],
        constants={"n": np.int64(steps), "start": np.zeros(4, F32), "step": np.arange(4, dtype=F32), **constants},
    )


def test_a_loop_over_constants() -> None:
    # a is 0, 1, 2, 3 times [0, 1, 2, 3]; what is scanned are the squares
    resolved = resolve(loop([ADD, SQUARE]), {})
    assert [n.op_type for n in resolved.nodes] == ["Add"]
    assert resolved.constants["last"].tolist() == [0, 3, 6, 9]
    assert resolved.constants["all"].tolist() == [[0, 1, 4, 9], [0, 4, 16, 36], [0, 9, 36, 81]]
    assert (resolved.values["all"].shape, resolved.values["all"].dtype) == ((3, 4), "float32")


def test_a_loop_that_ends_by_itself() -> None:
    # it goes on while a[3] is below 6: 3, 6
    below = [
        node("Gather", ["b", "three"], ["one"]),
        node("Less", ["one", "six"], ["on"]),
        ADD,
        node("Unsqueeze", ["b", "zero"], ["s"]),
    ]
    more = {"three": np.int64(3), "six": F32(6), "zero": np.array([0]), "yes": np.bool_(True)}
    proto = loop(below[2:], inputs=["n", "yes", "start"], steps=1000, **more)
    body = proto.graph.node[0].attribute[0].g
    del body.node[0]  # what passes the condition on
    body.node.extend(below[:2])
    proto.graph.output[1].CopyFrom(value("all", ["k", 1, 4]))
    resolved = resolve(proto, {})
    assert resolved.constants["last"].tolist() == [0, 2, 4, 6]
    assert resolved.constants["all"].tolist() == [[[0, 1, 2, 3]], [[0, 2, 4, 6]]]


def test_a_scan_over_constants() -> None:
    graph = helper.make_graph(
        [node("Add", ["a", "e"], ["b"]), node("Identity", ["b"], ["s"])],
        "body", [value("a", []), value("e", [])], [value("b", []), value("s", [])],
    )
    proto = model(
        [
            node("Scan", ["zero", "w"], ["total", "sums"], name="scan", body=graph, num_scan_inputs=1),
            node("Add", ["x", "sums"], ["y"]),
        ],
        constants={"zero": F32(0), "w": np.array([1, 2, 3, 4], F32)},
    )
    resolved = resolve(proto, {})
    assert [n.op_type for n in resolved.nodes] == ["Add"]
    assert resolved.constants["sums"].tolist() == [1, 3, 6, 10]


REFUSED = (
    "error: node 'loop' (Loop): a node must not carry a graph (control flow has no place in a streaming design), "
    "but this one does [subgraphs]\n  remedy: export the model with the branch or loop unrolled"
)


@pytest.mark.parametrize(
    "proto",
    [
        pytest.param(loop([ADD, SQUARE], 1 << 62), id="too many steps"),
        pytest.param(loop([ADD, SQUARE], inputs=["", "yes", "start"], yes=np.bool_(True)), id="no end"),
        pytest.param(loop([node("Concat", ["a", "a"], ["b"], axis=0), SQUARE], 60), id="a state that grows"),
        pytest.param(loop([node("Add", ["a", "x"], ["b"]), SQUARE]), id="an input inside"),
        pytest.param(loop([ADD, SQUARE], inputs=["n", "", "x"]), id="an input as state"),
        pytest.param(loop([node("Expand", ["a", "huge"], ["b"]), SQUARE], huge=np.array([1 << 40, 4])), id="huge"),
    ],
)
def test_other_loops_are_refused(proto: onnx.ModelProto) -> None:
    assert refused(lambda: resolve(proto, {})) == [REFUSED]
