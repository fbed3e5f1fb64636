"""Clauses about names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from onnx import helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.model_parts import branch, conditional, graph
from tests.onnxspec.clauses.twins import Twin, check

SYNTAX = "names must be C identifiers (a letter or underscore, then letters, digits and underscores), but"
ASKED = "[NAM-01]\n  remedy: rename them if another tool asks for it"
ALL_BUT_ONE = "\n  remedy: rename all but one of them"
GATHERED = "[NAM-02]\n  remedy: see the findings that it counts"


def chain(*names: str, **more: object) -> onnx.ModelProto:
    """A chain of Relus of these names from x to y."""
    values = ["x", *(f"v{k}" for k in range(1, len(names))), "y"]
    return model([node("Relu", [values[k]], [values[k + 1]], name=name) for k, name in enumerate(names)], **more)


def through(middle: str) -> onnx.ModelProto:
    return model([node("Relu", ["x"], [middle], name="n"), node("Neg", [middle], ["y"])])


def attributes(*names: str) -> onnx.ModelProto:
    """A LeakyRelu with float attributes of these names."""
    proto = model([node("LeakyRelu", ["x"], ["y"], name="n")])
    proto.graph.node[0].attribute.extend(helper.make_attribute(name, 0.5) for name in names)
    return proto


def titled(title: str) -> onnx.ModelProto:
    proto = chain("n")
    proto.graph.name = title
    return proto


def foreign(attribute: str) -> onnx.ModelProto:
    own = node("Own", ["x"], ["y"], domain="com.microsoft", **{attribute: 1})
    return model([own], opsets={"com.microsoft": 1, "": 21})


def operator(op_type: str) -> onnx.ModelProto:
    return model([node(op_type, ["x"], ["y"], domain="com.microsoft")], opsets={"com.microsoft": 1, "": 21})


def functions(*names: tuple[str, str], ir_version: int = 10) -> onnx.ModelProto:
    """A model with local functions of these names and overloads, that calls none."""
    made = []
    for name, overload in names:
        opsets = [helper.make_opsetid("", 21)]
        function = helper.make_function("org.example", name, ["a"], ["b"], [node("Relu", ["a"], ["b"])], opsets)
        function.overload = overload
        made.append(function)
    return chain("n", functions=made, ir_version=ir_version)


def parameters(*names: str) -> onnx.ModelProto:
    """A model with a local function that has attributes of these names."""
    proto = functions(("A", ""))
    proto.functions[0].attribute.extend(names)
    return proto


def branches(first: str, second: str) -> onnx.ModelProto:
    """An If whose branches have these names; the graph around is called 'graph'."""
    then = branch()
    then.name = first
    proto = conditional(then)
    (other,) = [a.g for a in proto.graph.node[0].attribute if a.name == "else_branch"]
    other.name = second
    return proto


def form(name: str, bad: onnx.ModelProto, good: onnx.ModelProto, found: str, where: str = "graph 'graph'") -> Twin:
    return Twin("NAM-01", name=name, bad=bad, good=good, findings=[f"warning: {where}: {SYNTAX} {found} {ASKED}"])


def gathered(name: str, bad: onnx.ModelProto, good: onnx.ModelProto, *findings: str) -> Twin:
    return Twin("NAM-02", name=name, bad=bad, good=good, findings=[f"{text} {GATHERED}" for text in findings])


def unique(severity: str, where: str, parts: str) -> str:
    return f"{severity}: {where}: each name must be unique in its namespace, but findings of {parts} say otherwise"


SAME_NODES = chain("a", "a", "b")
SAME_ATTRIBUTES = attributes("alpha", "alpha")

TWINS = [
    form("a node", chain("/conv/Conv", "b"), chain("conv_Conv", "b"), "1 node name is not: '/conv/Conv'"),
    form("values", through("1"), through("_1"), "1 value name is not: '1'"),
    form("not ASCII", through("été"), through("ete"), "1 value name is not: 'été'"),
    form("a space", through("a b"), through("a_b"), "1 value name is not: 'a b'"),
    form("a line feed", through("a\n"), through("a"), "1 value name is not: 'a\\n'"),
    form("an attribute", foreign("my-flag"), foreign("my_flag"), "1 attribute name is not: 'my-flag'"),
    form("an operator", operator("my-op"), operator("my_op"), "1 operator name is not: 'my-op'"),
    Twin(
        "NAM-01",
        name="a dimension variable",
        bad=model([node("Relu", ["x"], ["y"])], [value("x", ["N-1"])], [value("y", ["N-1"])]),
        good=model([node("Relu", ["x"], ["y"])], [value("x", ["N_1"])], [value("y", ["N_1"])]),
        findings=[
            "warning: graph 'graph': dimension variables must be C identifiers, but 'N-1' is not [NAM-01]\n"
            "  remedy: rename the dimension variables"
        ],
    ),
    form("the graph", titled("torch-jit"), titled("torch_jit"), "1 graph name is not: 'torch-jit'",
         "graph 'torch-jit'"),
    form(
        "many",
        chain("1", "2", "3", "4", "5", "6", "ok", ""),
        chain("_1", "_2", "_3", "_4", "_5", "_6", "ok", ""),
        "6 node names are not: '1', '2', '3', '4', '5' and 1 more",
    ),
    form(
        "in a subgraph",
        conditional(branch("a:0")),
        conditional(branch("a_0")),
        "1 value name is not: 'a:0'",
        "graph 'then' in 'then_branch' of node 'choose' (If)",
    ),
    form(
        "a function",
        functions(("A-B", "")),
        functions(("A_B", "")),
        "1 function name is not: 'A-B'",
        "function 'org.example.A-B'",
    ),
    Twin(
        "NAM-03",
        bad=SAME_ATTRIBUTES,
        good=attributes("alpha"),
        findings=[
            "error: node 'n' (LeakyRelu): attribute names must be distinct, but 'alpha' is there more than once "
            "[NAM-03]\n  remedy: remove all but one of them"
        ],
    ),
    Twin(
        "NAM-05",
        bad=chain("a", "b", "a", "a", "b"),
        good=chain("a", "b", "A", "", ""),
        findings=[
            "warning: node 'a_2' (Relu): node names must be distinct in a graph, but 'a' names 3 nodes; they are "
            f"called 'a', 'a_2', 'a_3' here [NAM-05]{ALL_BUT_ONE}",
            "warning: node 'b_2' (Relu): node names must be distinct in a graph, but 'b' names 2 nodes; they are "
            f"called 'b', 'b_2' here [NAM-05]{ALL_BUT_ONE}",
        ],
    ),
    Twin(
        "NAM-05",
        name="each graph for itself",
        bad=conditional(graph([node("Relu", ["x"], ["u"], name="a"), node("Neg", ["u"], ["t"], name="a")], "then", [],
                              [value("t", [1, 4])])),
        good=conditional(graph([node("Relu", ["x"], ["u"], name="a"), node("Neg", ["u"], ["t"], name="choose")],
                               "then", [], [value("t", [1, 4])])),
        findings=[
            "warning: node 'a_2' (Neg) in 'then_branch' of node 'choose' (If): node names must be distinct in a graph, "
            f"but 'a' names 2 nodes; they are called 'a', 'a_2' here [NAM-05]{ALL_BUT_ONE}"
        ],
    ),
    Twin(
        "NAM-06",
        bad=branches("body", "body"),
        good=branches("body", "Body"),
        findings=[
            "warning: graph 'body' in 'then_branch' of node 'choose' (If): graph names must be distinct in a model, "
            f"but 'body' names 2 graphs [NAM-06]{ALL_BUT_ONE}"
        ],
    ),
    Twin(
        "NAM-06",
        name="the main graph's",
        bad=branches("graph", "other"),
        good=branches("then", "other"),
        findings=[
            "warning: graph 'graph' in 'then_branch' of node 'choose' (If): graph names must be distinct in a model, "
            f"but 'graph' names 2 graphs [NAM-06]{ALL_BUT_ONE}"
        ],
    ),
    Twin(
        "NAM-07",
        bad=functions(("A", "x"), ("B", ""), ("A", "x")),
        good=functions(("A", "x"), ("B", ""), ("A", "y")),
        findings=[
            "error: function 'org.example.A:x': functions must differ in domain, name or overload, but there is "
            "'org.example.A:x' twice [NAM-07]\n  remedy: rename one of them"
        ],
    ),
    gathered(
        "nodes", SAME_NODES, chain("a", "c", "b"), unique("warning", "graph 'graph'", "NAM-05 (1)")
    ),
    gathered("attributes", SAME_ATTRIBUTES, attributes("alpha"), unique("error", "graph 'graph'", "NAM-03 (1)")),
    gathered(
        "graphs",
        branches("body", "body"),
        branches("body", "other"),
        unique("warning", "graph 'body' in 'then_branch' of node 'choose' (If)", "NAM-06 (1)"),
    ),
    gathered(
        "functions",
        functions(("A", ""), ("A", "")),
        functions(("A", ""), ("B", "")),
        unique("error", "function 'org.example.A'", "NAM-07 (1)"),
    ),
    gathered(
        "a function's attributes",
        parameters("alpha", "alpha"),
        parameters("alpha", "beta"),
        unique("error", "function 'org.example.A'", "NAM-03 (1)"),
    ),
    gathered(
        "values",
        model([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])]),
        model([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["u"])]),
        unique("error", "graph 'graph'", "NAM-04 (1)"),
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def test_all_namespaces_of_all_graphs_are_gathered() -> None:
    then = graph(
        [node("Relu", ["x"], ["t"], name="a"), node("Neg", ["x"], ["u"], name="a")], "graph", [], [value("t", [1, 4])]
    )
    proto = conditional(then)
    proto.graph.node.extend(
        [node("Neg", ["x"], ["z"], name="choose"), *SAME_ATTRIBUTES.graph.node]
    )
    proto.graph.node[2].output[0] = "p"
    assert [str(f) for f in validate(proto) if f.rule == "NAM-02"] == [
        unique("error", "graph 'graph'", "NAM-03 (1), NAM-05 (1)") + f" {GATHERED}",
        unique("warning", "graph 'graph' in 'then_branch' of node 'choose' (If)", "NAM-05 (1), NAM-06 (1)")
        + f" {GATHERED}",
    ]


def names(findings: Sequence[object]) -> list[str]:
    return [str(f) for f in findings if "[NAM-0" in str(f)]


def test_names_without_end_are_cut() -> None:
    (text,) = names(validate(through("-" * 10_000), pedantic=True))
    assert len(text) < 500
    assert "(10000 characters)" in text
