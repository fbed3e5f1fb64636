"""Clauses about the order of nodes: cycles, and what is read before it is made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hwflow.onnxspec import validate
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.graphs.node_models import (
    IN_THEN,
    called,
    chain,
    shadowing,
)
from tests.onnxspec.clauses.model_parts import conditional, graph
from tests.onnxspec.clauses.twins import Twin, check

CYCLE = "[GRA-03]\n  remedy: break the cycle: no node may read, directly or through others, its own results"
SORT = "[NOD-35]\n  remedy: sort the nodes so that each one follows those it reads from"


TWINS = [
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
            "error: node 'late' (Add): nodes must be in topological order, but 'a' is computed later, by node 'early' "
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
            "  remedy: break the cycle: no node may read, directly or through others, its own results"
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
            f"error: node 'n' (Neg){IN_THEN}: nodes must be in topological order, but 'a' is computed later, by node "
            f"'r' (Relu){IN_THEN} {SORT}"
        ],
    ),
    Twin(
        "NOD-35",
        name="what a subgraph reads",
        bad=shadowing("t", node("Neg", ["late"], ["z"], name="n"), after=[node("Abs", ["x"], ["late"], name="abs")]),
        good=shadowing("t", node("Abs", ["x"], ["late"], name="abs"), after=[node("Neg", ["late"], ["z"], name="n")]),
        findings=[
            "error: node 'n' (Neg): nodes must be in topological order, but 'late' is computed later, by node "
            f"'abs' (Abs) {SORT}"
        ],
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def test_a_subgraph_reads_what_is_computed_later() -> None:
    inner = graph([node("Relu", ["late"], ["t"])], "then", [], [value("t", [1, 4])])
    proto = conditional(inner)
    proto.graph.node.append(node("Abs", ["x"], ["late"], name="abs"))
    assert [str(f) for f in validate(proto) if f.rule in ("NOD-05", "NOD-35")] == [
        "error: node 'choose' (If): nodes must be in topological order, but 'late' is computed later, by node "
        f"'abs' (Abs) {SORT}"
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
