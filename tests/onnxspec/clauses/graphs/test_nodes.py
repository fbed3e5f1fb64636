"""Clauses about nodes: their outputs, and the inputs of the graphs that they carry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.graphs.node_models import IN_THEN, called, loop, weight
from tests.onnxspec.clauses.model_parts import ONCE, branch, conditional, graph, relu
from tests.onnxspec.clauses.twins import Twin, check

pytestmark = pytest.mark.usefixtures("measured")

LAST = "\n  remedy: list the inputs that are initializers last"
LIST = (
    "[NOD-20]\n  remedy: list the initializers as inputs, after the others, or export the model with IR version 4 or "
    "higher"
)
IN_BODY = " in 'body' of node 'loop' (Loop)"


def after(passed: str, index: int) -> str:
    return (
        f"initializers must be listed after the {passed} that the node passes to the subgraph, but 'w' is input {index}"
    )


def custom(*nodes: onnx.NodeProto, functions: Sequence[onnx.FunctionProto] = ()) -> onnx.ModelProto:
    """y = Relu(x) beside nodes of operators that only quantized dialects know."""
    return model([relu(), *nodes], opsets={"": 21, "com.microsoft": 1}, functions=functions)


def of_dialect(inputs: Sequence[str], outputs: Sequence[str], name: str = "n") -> onnx.NodeProto:
    return node("Probe", inputs, outputs, name=name, domain="com.microsoft")


def carrier(body: onnx.GraphProto, **more: Any) -> onnx.ModelProto:
    """A node of an operator that nothing is known about, with a subgraph."""
    return model(
        [node("Custom", ["x"], ["y"], name="own", domain="com.microsoft", body=body)],
        opsets={"": 8, "com.microsoft": 1},
        **more,
    )


def scan(inputs: Sequence[str], version: int = 8) -> onnx.ModelProto:
    """The body has ``inputs``, of which w is an initializer, and adds."""
    body = graph(
        [node("Add", ["v", "w"], ["out"])],
        "body",
        [value(n, [4]) for n in inputs],
        [value("out", [4])],
        initializer=[weight()],
    )
    return model(
        [node("Scan", ["", "x"] if version == 8 else ["x"], ["y"], name="scan", body=body, num_scan_inputs=1)],
        [value("x", [1, 3, 4] if version == 8 else [3, 4])],
        [value("y", [1, 3, 4] if version == 8 else [3, 4])],
        opsets={"": version},
        ir_version=3,
    )


def last_inputs(clause: str) -> list[Twin]:
    """What NOD-19 and NOD-20 say alike."""
    return [
        Twin(
            clause,
            name="Loop",
            bad=loop(["w", "v"], ["w"]),
            good=loop(["v", "w"], ["w"]),
            findings=[f"error: input 'w'{IN_BODY}: {after('3 values', 2)} [{clause}]{LAST}"],
        ),
        Twin(
            clause,
            name="Scan",
            bad=scan(["w", "v"]),
            good=scan(["v", "w"]),
            findings=[f"error: input 'w' in 'body' of node 'scan' (Scan): {after('1 value', 0)} [{clause}]{LAST}"],
        ),
        Twin(
            clause,
            name="Scan without sequence lengths",
            bad=scan(["w", "v"], version=9),
            good=scan(["v", "w"], version=9),
            findings=[f"error: input 'w' in 'body' of node 'scan' (Scan): {after('1 value', 0)} [{clause}]{LAST}"],
        ),
    ]


TWINS = [
    Twin(
        "GRA-06",
        bad=custom(of_dialect(["y"], [])),
        good=custom(of_dialect(["y"], ["z"])),
        findings=[
            "error: node 'n' (Probe): a node must have at least one output, but this one has none [GRA-06]\n"
            "  remedy: name the node's outputs, or remove the node"
        ],
    ),
    Twin(
        "GRA-06",
        name="neither inputs nor outputs",
        bad=custom(of_dialect([], [])),
        good=custom(of_dialect([], ["z"])),
        findings=[
            "error: node 'n' (Probe): a node must have at least one output, but this one has neither inputs nor "
            "outputs [GRA-06]\n  remedy: name the node's outputs, or remove the node"
        ],
    ),
    Twin(
        "GRA-06",
        name="all outputs left out",
        bad=custom(of_dialect(["y"], ["", ""])),
        good=custom(of_dialect(["y"], ["", "z"])),
        findings=[
            "warning: node 'n' (Probe): a node must have at least one output, but all outputs of this one are left "
            "out [GRA-06]\n  remedy: name the node's outputs, or remove the node"
        ],
    ),
    Twin(
        "GRA-06",
        name="in a function",
        bad=called(node("Add", ["a", "a"], ["b"]), node("Neg", ["b"], [], name="n")),
        good=called(node("Add", ["a", "a"], ["b"]), node("Neg", ["b"], ["u"], name="n")),
        findings=[
            "error: node 'n' (Neg) in function 'local.Twice': a node must have at least one output, but this one has "
            "none [GRA-06]\n  remedy: name the node's outputs, or remove the node"
        ],
    ),
    Twin(
        "NOD-17",
        bad=loop(["v"], ["v", "w"], ir_version=10),
        good=loop(["v"], ["w"], ir_version=10),
        findings=[
            f"error: input 'v'{IN_BODY}: a name must not be both input and initializer of a subgraph, but 'v' is "
            "[NOD-17]\n  remedy: remove the initializer, or the input if the operator does not pass it"
        ],
    ),
    Twin(
        "NOD-17",
        name="unknown operator",
        bad=carrier(graph([], "body", [value("w", [4])], [value("w", [4])], initializer=[weight()]), ir_version=4),
        good=carrier(graph([], "body", [value("v", [4])], [value("w", [4])], initializer=[weight()]), ir_version=4),
        findings=[
            "error: input 'w' in 'body' of node 'own' (Custom): a name must not be both input and initializer of a "
            "subgraph, but 'w' is [NOD-17]\n"
            "  remedy: remove the initializer, or the input if the operator does not pass it"
        ],
    ),
    Twin(
        "NOD-17",
        name="demanded in IR version 3",
        bad=loop(["v", "w"], ["w"], ir_version=10),
        good=loop(["v", "w"], ["w"], ir_version=3),
        findings=[
            f"error: input 'w'{IN_BODY}: a name must not be both input and initializer of a subgraph, but 'w' is "
            "[NOD-17]\n  remedy: remove the initializer, or the input if the operator does not pass it"
        ],
    ),
    *last_inputs("NOD-19"),
    *last_inputs("NOD-20"),
    Twin(
        "NOD-20",
        name="not listed",
        bad=loop(["v"], ["w"]),
        good=loop(["v", "w"], ["w"]),
        findings=[
            f"error: graph 'body'{IN_BODY}: in IR version 3 every initializer of a subgraph must be one of its inputs "
            f"too, but 'w' is not {LIST}"
        ],
    ),
    Twin(
        "NOD-20",
        name="unknown operator",
        bad=carrier(
            graph([], "body", [value("w", [4]), value("v", [4])], [value("v", [4])], initializer=[weight()]),
            ir_version=3,
        ),
        good=carrier(
            graph([], "body", [value("v", [4]), value("w", [4])], [value("v", [4])], initializer=[weight()]),
            ir_version=3,
        ),
        findings=[
            "error: input 'w' in 'body' of node 'own' (Custom): initializers must be listed after the subgraph's "
            f"actual inputs, but 'w' is input 0, and 'v', which is none, input 1 [NOD-20]{LAST}"
        ],
    ),
    Twin(
        "NOD-28",
        name="input",
        bad=loop(["x"], ["w"], ir_version=10, read="x"),
        good=loop(["v"], ["w"], ir_version=10),
        findings=[
            f"warning: input 'x'{IN_BODY}: input 'x' should have a name of its own, but an input of graph 'graph' has "
            f"that name too [NOD-28]{ONCE}"
        ],
    ),
    Twin(
        "NOD-28",
        name="initializer",
        bad=conditional(branch(initializer=[weight()]), constants={"w": weight()}),
        good=conditional(branch(initializer=[weight("v")]), constants={"w": weight()}),
        findings=[
            f"warning: initializer 'w'{IN_THEN}: initializer 'w' should have a name of its own, but an initializer of "
            f"graph 'graph' has that name too [NOD-28]{ONCE}"
        ],
    ),
    Twin(
        "NOD-28",
        name="the node's own output is made after its subgraph",
        bad=loop(["x"], ["w"], ir_version=10, read="x"),
        good=loop(["y"], ["w"], ir_version=10, read="y"),
        findings=[
            f"warning: input 'x'{IN_BODY}: input 'x' should have a name of its own, but an input of graph 'graph' has "
            f"that name too [NOD-28]{ONCE}"
        ],
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)
