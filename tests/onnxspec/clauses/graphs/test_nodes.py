"""Clauses about nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.model_parts import ONCE, branch, conditional, definitions, graph, relu, step, training
from tests.onnxspec.clauses.twins import Twin, check

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64
MADE = "must be a graph input, an initializer or the output of a node, but nothing makes it"
CYCLE = "[GRA-03]\n  remedy: break the cycle: no node may read, directly or through others, what it makes"
SORT = "[NOD-35]\n  remedy: sort the nodes so that each one follows those it reads from"
LAST = "\n  remedy: list the inputs that are initializers last"
LIST = (
    "[NOD-20]\n  remedy: list the initializers as inputs, after the others, or export the model with IR version 4 or "
    "higher"
)
IN_THEN = " in 'then_branch' of node 'choose' (If)"
IN_BODY = " in 'body' of node 'loop' (Loop)"


def weight(name: str = "w") -> TensorProto:
    return numpy_helper.from_array(np.ones(4, np.float32), name)


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


def after(passed: str, index: int) -> str:
    return (
        f"initializers must be listed after the {passed} that the node passes to the subgraph, but 'w' is input {index}"
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


def shadowing(name: str, *before: onnx.NodeProto, after: Sequence[onnx.NodeProto] = ()) -> onnx.ModelProto:
    """A branch that makes ``name``, in a graph with more nodes before and after the If."""
    proto = conditional(
        graph([node("Relu", ["x"], [name], name="r")], "then", [], [value(name, [1, 4])]), constants={"w": weight()}
    )
    choose = proto.graph.node[0]
    del proto.graph.node[:]
    proto.graph.node.extend([*before, choose, *after])
    return proto


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


def function(*nodes: onnx.NodeProto) -> onnx.FunctionProto:
    return helper.make_function("local", "Twice", ["a"], ["b"], nodes, [helper.make_opsetid("", 21)])


def called(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    return model(
        [node("Twice", ["x"], ["y"], domain="local")], opsets={"": 21, "local": 1}, functions=[function(*nodes)]
    )


def chain(*links: tuple[str, str, str]) -> onnx.ModelProto:
    """Nodes (name, input, output) that add x to their input; the output is y."""
    return model([node("Add", ["x", read], [made], name=name) for name, read, made in links])


def two_initializers(second: str) -> onnx.ModelProto:
    proto = model([node("Add", ["x", "w"], ["y"])], constants={"w": np.ones(4, np.float32)})
    proto.graph.initializer.append(numpy_helper.from_array(np.zeros(4, np.float32), second))
    return proto


TWINS = [
    Twin(
        "GRA-06",
        bad=custom(of_dialect(["y"], [])),
        good=custom(of_dialect(["y"], ["z"])),
        findings=[
            "error: node 'n' (Probe): a node must have at least one output, but this one has none [GRA-06]\n"
            "  remedy: name what the node makes, or remove the node"
        ],
    ),
    Twin(
        "GRA-06",
        name="neither inputs nor outputs",
        bad=custom(of_dialect([], [])),
        good=custom(of_dialect([], ["z"])),
        findings=[
            "error: node 'n' (Probe): a node must have at least one output, but this one has neither inputs nor "
            "outputs [GRA-06]\n  remedy: name what the node makes, or remove the node"
        ],
    ),
    Twin(
        "GRA-06",
        name="all outputs left out",
        bad=custom(of_dialect(["y"], ["", ""])),
        good=custom(of_dialect(["y"], ["", "z"])),
        findings=[
            "warning: node 'n' (Probe): a node must have at least one output, but all outputs of this one are left "
            "out [GRA-06]\n  remedy: name what the node makes, or remove the node"
        ],
    ),
    Twin(
        "GRA-06",
        name="in a function",
        bad=called(node("Add", ["a", "a"], ["b"]), node("Neg", ["b"], [], name="n")),
        good=called(node("Add", ["a", "a"], ["b"]), node("Neg", ["b"], ["u"], name="n")),
        findings=[
            "error: node 'n' (Neg) in function 'local.Twice': a node must have at least one output, but this one has "
            "none [GRA-06]\n  remedy: name what the node makes, or remove the node"
        ],
    ),
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
            "  remedy: add what makes 'lost', or read another value",
            f"error: node 'Mul_y' (Mul): input 'gone' {MADE} [NOD-05]\n"
            "  remedy: add what makes 'gone', or read another value",
        ],
    ),
    Twin(
        "NOD-05",
        name="an input left out",
        bad=model([node("Clip", ["x", "lost", "w"], ["y"], name="clip")], constants={"w": np.float32(1)}),
        good=model([node("Clip", ["x", "", "w"], ["y"], name="clip")], constants={"w": np.float32(1)}),
        findings=[
            f"error: node 'clip' (Clip): input 'lost' {MADE} [NOD-05]\n"
            "  remedy: add what makes 'lost', or read another value"
        ],
    ),
    Twin(
        "NOD-05",
        name="subgraph",
        bad=conditional(graph([node("Relu", ["lost"], ["t"], name="r")], "then", [], [value("t", [1, 4])])),
        good=conditional(graph([node("Relu", ["x"], ["t"], name="r")], "then", [], [value("t", [1, 4])])),
        findings=[
            f"error: node 'r' (Relu){IN_THEN}: input 'lost' {MADE} [NOD-05]\n"
            "  remedy: add what makes 'lost', or read another value"
        ],
    ),
    Twin(
        "NOD-05",
        name="no value of the other branch",
        bad=conditional(graph([node("Relu", ["e"], ["t"], name="r")], "then", [], [value("t", [1, 4])])),
        good=conditional(branch()),
        findings=[
            f"error: node 'r' (Relu){IN_THEN}: input 'e' {MADE} [NOD-05]\n"
            "  remedy: add what makes 'e', or read another value"
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
            "  remedy: add what makes 'y', or read another value"
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
            "makes it [NOD-12]\n  remedy: add what makes 'lost', or remove the output"
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
            "  remedy: add an Identity node to the subgraph that makes the output from 'x'"
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
            "nothing makes it [NOD-12]\n  remedy: add what makes 't', or remove the output"
        ],
    ),
    Twin(
        "NOD-12",
        name="the algorithm graph",
        bad=training(step(output="lost")),
        good=training(step(output="y")),  # a value of the main graph, which it continues
        findings=[
            "error: output 'lost' in algorithm graph of training_info[0]: output 'lost' must be the output of a node, "
            "an input or an initializer, but nothing makes it [NOD-12]\n"
            "  remedy: add what makes 'lost', or remove the output"
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
    Twin(
        "GRA-03",
        bad=model(
            [
                node("Relu", ["c"], ["y"], name="behind"),
                node("Add", ["x", "c"], ["a"], name="one"),
                node("Relu", ["a"], ["b"], name="two"),
                node("Neg", ["b"], ["c"], name="three"),
            ]
        ),
        good=model(
            [
                node("Add", ["x", "x"], ["a"], name="one"),
                node("Relu", ["a"], ["b"], name="two"),
                node("Neg", ["b"], ["c"], name="three"),
                node("Relu", ["c"], ["y"], name="behind"),
            ]
        ),
        findings=[
            "error: node 'one' (Add): the graph must have no cycle, but there is one: 'one' -> 'two' -> 'three' -> "
            f"'one' {CYCLE}"
        ],
    ),
    Twin(
        "GRA-03",
        name="a node that reads itself",
        bad=chain(("loop", "y", "y")),
        good=chain(("loop", "x", "y")),
        findings=[
            f"error: node 'loop' (Add): the graph must have no cycle, but there is one: 'loop' -> 'loop' {CYCLE}"
        ],
    ),
    Twin(
        "GRA-03",
        name="two cycles, the one behind the other",
        bad=model(
            [
                node("Add", ["a", "c"], ["b"], name="n0"),
                node("Neg", ["b"], ["c"], name="n1"),
                node("Add", ["x", "a"], ["a"], name="n2"),
                node("Add", ["c", "x"], ["y"], name="n3"),
            ]
        ),
        good=chain(("n2", "x", "a"), ("n0", "a", "b"), ("n1", "b", "c"), ("n3", "c", "y")),
        findings=[
            f"error: node 'n0' (Add): the graph must have no cycle, but there is one: 'n0' -> 'n1' -> 'n0' {CYCLE}",
            f"error: node 'n2' (Add): the graph must have no cycle, but there is one: 'n2' -> 'n2' {CYCLE}",
        ],
    ),
    Twin(
        "GRA-03",
        name="through a subgraph",
        bad=conditional(graph([node("Relu", ["y"], ["t"])], "then", [], [value("t", [1, 4])])),
        good=conditional(graph([node("Relu", ["x"], ["t"])], "then", [], [value("t", [1, 4])])),
        findings=[
            "error: node 'choose' (If): the graph must have no cycle, but there is one: 'choose' -> 'choose' " + CYCLE
        ],
    ),
    Twin(
        "GRA-03",
        name="in a subgraph",
        bad=conditional(graph([node("Add", ["x", "t"], ["t"], name="n")], "then", [], [value("t", [1, 4])])),
        good=conditional(graph([node("Add", ["x", "x"], ["t"], name="n")], "then", [], [value("t", [1, 4])])),
        findings=[
            f"error: node 'n' (Add){IN_THEN}: the graph must have no cycle, but there is one: 'n' -> 'n' {CYCLE}"
        ],
    ),
    Twin(
        "GRA-03",
        name="in a function",
        bad=called(node("Add", ["a", "b"], ["b"], name="n")),
        good=called(node("Add", ["a", "a"], ["b"], name="n")),
        findings=[
            "error: node 'n' (Add) in function 'local.Twice': the function must have no cycle, but there is one: "
            f"'n' -> 'n' {CYCLE}"
        ],
    ),
    Twin(
        "NOD-35",
        bad=chain(("late", "a", "y"), ("early", "x", "a")),
        good=chain(("early", "x", "a"), ("late", "a", "y")),
        findings=[
            "error: node 'late' (Add): nodes must be in topological order, but 'a' is made later, by node 'early' "
            f"(Add) {SORT}"
        ],
    ),
    Twin(
        "NOD-35",
        name="cycle",
        bad=chain(("a", "y", "a1"), ("b", "a1", "y")),
        good=chain(("a", "x", "a1"), ("b", "a1", "y")),
        findings=[
            "error: node 'a' (Add): the graph must have no cycle, but there is one: 'a' -> 'b' -> 'a' [NOD-35]\n"
            "  remedy: break the cycle: no node may read, directly or through others, what it makes"
        ],
    ),
    Twin(
        "NOD-35",
        name="subgraph",
        bad=conditional(
            graph(
                [node("Neg", ["a"], ["t"], name="n"), node("Relu", ["x"], ["a"], name="r")],
                "then",
                [],
                [value("t", [1, 4])],
            )
        ),
        good=conditional(
            graph(
                [node("Relu", ["x"], ["a"], name="r"), node("Neg", ["a"], ["t"], name="n")],
                "then",
                [],
                [value("t", [1, 4])],
            )
        ),
        findings=[
            f"error: node 'n' (Neg){IN_THEN}: nodes must be in topological order, but 'a' is made later, by node 'r' "
            f"(Relu){IN_THEN} {SORT}"
        ],
    ),
    Twin(
        "NOD-35",
        name="what a subgraph reads",
        bad=shadowing("t", node("Neg", ["late"], ["z"], name="n"), after=[node("Abs", ["x"], ["late"], name="abs")]),
        good=shadowing("t", node("Abs", ["x"], ["late"], name="abs"), after=[node("Neg", ["late"], ["z"], name="n")]),
        findings=[
            "error: node 'n' (Neg): nodes must be in topological order, but 'late' is made later, by node 'abs' (Abs) "
            + SORT
        ],
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def test_a_subgraph_reads_what_is_made_later() -> None:
    inner = graph([node("Relu", ["late"], ["t"])], "then", [], [value("t", [1, 4])])
    proto = conditional(inner)
    proto.graph.node.append(node("Abs", ["x"], ["late"], name="abs"))
    assert [str(f) for f in validate(proto) if f.rule in ("NOD-05", "NOD-35")] == [
        "error: node 'choose' (If): nodes must be in topological order, but 'late' is made later, by node 'abs' (Abs) "
        + SORT
    ]


def test_long_cycles_are_cut() -> None:
    proto = chain(*((f"n{i}", f"a{(i - 1) % 20}", f"a{i}") for i in range(20)))
    (finding,) = [f for f in validate(proto) if f.rule == "GRA-03"]
    assert finding.message == (
        "the graph must have no cycle, but there is one: 'n0' -> 'n1' -> 'n2' -> 'n3' -> 'n4' -> 'n5' -> ... -> "
        "'n16' -> 'n17' -> 'n18' -> 'n19' -> 'n0'"
    )


def test_ten_thousand_nodes_in_cycles() -> None:
    one = chain(*((f"n{i}", f"a{(i - 1) % 10_000}", f"a{i}") for i in range(10_000)))
    assert [f.rule for f in validate(one) if f.rule in ("GRA-03", "NOD-35")] == ["GRA-03", "NOD-35"]
    pairs = chain(*((f"n{i}", f"a{i ^ 1}", f"a{i}") for i in range(10_000)))
    found = Counter(f.rule for f in validate(pairs))
    assert (found["GRA-03"], found["NOD-35"]) == (5_000, 5_000)


def test_ten_thousand_dangling_names() -> None:
    proto = chain(*((f"n{i}", f"b{i}", f"a{i}") for i in range(10_000)))
    assert len([f for f in validate(proto) if f.rule == "NOD-05"]) == 10_000
