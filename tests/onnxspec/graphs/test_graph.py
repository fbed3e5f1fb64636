"""A model's graphs as scopes of names: order, places, what is visible, what subgraphs capture, order and cycles."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper, numpy_helper

from hwflow.onnxspec import validate
from hwflow.onnxspec.graphs.scopes import (
    FUNCTIONS,
    NODES,
    TRAINING,
    Kind,
    Layered,
    read_nodes,
    scopes,
    show,
)
from hwflow.onnxspec.graphs.topology import node_cycles, topological_order
from tests.onnxspec.build import model, node, value

BOOL = TensorProto.BOOL


def graph(name: str, *nodes: onnx.NodeProto, output: str, constants: tuple[str, ...] = ()) -> onnx.GraphProto:
    initializers = [helper.make_tensor(c, TensorProto.FLOAT, [1, 4], [1.0] * 4) for c in constants]
    return helper.make_graph(nodes, name, [], [value(output, [1, 4])], initializers)


def everything() -> onnx.ModelProto:
    """x -> pre -> If (another If in one branch) -> y, with a training method and a function that holds an If."""
    innermost = graph("innermost", node("Add", ["pre", "u"], ["i"]), output="i")
    beside = graph("beside", node("Neg", ["x"], ["j"]), output="j")
    then = graph(
        "then",
        node("Add", ["x", "k"], ["u"]),
        node("If", ["c"], ["t"], name="second", then_branch=innermost, else_branch=beside),
        output="t",
        constants=("k",),
    )
    other = graph("else", output="pre")
    body = [
        node("If", ["b"], ["r"], name="third", then_branch=graph("f", node("Neg", ["a"], ["n"]), output="n")),
    ]
    proto = model(
        [
            node("Neg", ["x"], ["pre"], name="pre"),
            node("If", ["c"], ["y"], name="first", then_branch=then, else_branch=other),
        ],
        [value("x", [1, 4]), value("c", [], BOOL)],
        functions=[helper.make_function("local", "F", ["a", "b"], ["r"], body, [helper.make_opsetid("", 21)])],
        value_info=[value("pre", [1, 4])],
    )
    info = proto.training_info.add()
    info.initialization.CopyFrom(graph("init", node("Neg", ["w"], ["w0"]), output="w0", constants=("w",)))
    info.algorithm.CopyFrom(graph("step", node("Neg", ["y"], ["z"]), output="z"))
    return proto


def test_scopes_in_order() -> None:
    # helper.make_node sorts the attributes by name: else_branch comes first.
    found = [
        (scope.kind, scope.title, scope.label, scope.position, scope.parent and scope.parent.title, scope.attribute)
        for scope in scopes(everything())
    ]
    first, second = " of node 'first' (If)", " of node 'second' (If)"
    then, third = f" in 'then_branch'{first}", " of node 'third' (If) in function 'local.F'"
    assert found == [
        (Kind.MAIN, "graph 'graph'", "", (), None, ""),
        (
            Kind.SUBGRAPH,
            f"graph 'else' in 'else_branch'{first}",
            f" in 'else_branch'{first}",
            (NODES, 1, 0),
            "graph 'graph'",
            "else_branch",
        ),
        (Kind.SUBGRAPH, f"graph 'then'{then}", then, (NODES, 1, 1), "graph 'graph'", "then_branch"),
        (
            Kind.SUBGRAPH,
            f"graph 'beside' in 'else_branch'{second}{then}",
            f" in 'else_branch'{second}{then}",
            (NODES, 1, 1, NODES, 1, 0),
            f"graph 'then'{then}",
            "else_branch",
        ),
        (
            Kind.SUBGRAPH,
            f"graph 'innermost' in 'then_branch'{second}{then}",
            f" in 'then_branch'{second}{then}",
            (NODES, 1, 1, NODES, 1, 1),
            f"graph 'then'{then}",
            "then_branch",
        ),
        (
            Kind.INITIALIZATION,
            "graph 'init' in initialization graph of training_info[0]",
            " in initialization graph of training_info[0]",
            (TRAINING, 0),
            None,
            "",
        ),
        (
            Kind.ALGORITHM,
            "graph 'step' in algorithm graph of training_info[0]",
            " in algorithm graph of training_info[0]",
            (TRAINING, 1),
            None,
            "",
        ),
        (Kind.FUNCTION, "function 'local.F'", " in function 'local.F'", (FUNCTIONS, 0), None, ""),
        (
            Kind.SUBGRAPH,
            f"graph 'f' in 'then_branch'{third}",
            f" in 'then_branch'{third}",
            (FUNCTIONS, 0, NODES, 0, 0),
            "function 'local.F'",
            "then_branch",
        ),
    ]


def test_what_is_visible() -> None:
    every = {scope.title.split("'")[1]: scope for scope in scopes(everything())}
    main = {"x", "c", "pre", "y"}
    assert every["graph"].outer == frozenset()
    assert every["graph"].visible == main
    assert every["then"].outer == main
    assert every["then"].given == main | {"k"}
    assert every["then"].visible == main | {"k", "u", "t"}
    assert every["innermost"].outer == main | {"k", "u", "t"}
    assert every["innermost"].defined == {"i"}
    assert every["else"].visible == main  # not what the branch beside it makes
    assert every["init"].outer == frozenset()
    assert every["step"].outer == main
    assert every["local.F"].outer == frozenset()
    assert every["f"].outer == {"a", "b", "r"}
    assert [every[name].in_function for name in ("graph", "then", "local.F", "f")] == [False, False, True, True]


def test_what_subgraphs_capture() -> None:
    every = {scope.title.split("'")[1]: scope for scope in scopes(everything())}
    assert every["then"].nodes[1].captured == ["pre", "u", "x"]  # c only as its own input
    assert every["graph"].nodes[1].captured == ["c", "pre", "x"]  # u is the branch's own
    assert list(every["graph"].nodes[1].reads) == ["c", "c", "pre", "x"]
    assert every["local.F"].nodes[0].captured == ["a"]
    assert all(not scope.nodes[0].captured for scope in (every["graph"], every["step"], every["init"]))


def test_graphs_in_a_list() -> None:
    every = [graph(f"g{i}", node("Neg", ["x"], [f"n{i}"]), output=f"n{i}") for i in range(2)]
    proto = model([node("Case", ["x"], ["y"], name="case", domain="my.domain", cases=every)])
    assert [(s.label, s.position) for s in list(scopes(proto))[1:]] == [
        (" in 'cases[0]' of node 'case' (Case)", (NODES, 0, 0)),
        (" in 'cases[1]' of node 'case' (Case)", (NODES, 0, 1)),
    ]


def test_findings_of_two_branches_do_not_mix() -> None:
    lost = [graph(name, node("Add", [f"{name}0", f"{name}1"], [name]), output=f"{name}2") for name in ("a", "b")]
    proto = model([node("If", ["x"], ["y"], name="choose", then_branch=lost[0], else_branch=lost[1])])
    found = [f.message.split("'")[1] for f in validate(proto) if f.rule in ("NOD-05", "NOD-12")]
    assert found == ["b0", "b1", "b2", "a0", "a1", "a2"]  # the helper sorts the attributes by name


def nested(depth: int, values: int) -> onnx.ModelProto:
    """A graph of ``values`` values, and ``depth`` graphs in it, in one another; the innermost reads what nothing
    computes and the first value."""
    innermost = graph("innermost", node("Add", ["v0", "lost"], ["o"], name="add"), output="o")
    proto = model([], outputs=[value("v0", [1, 4])])
    current = proto.graph
    current.node.extend(node("Neg", ["x"], [f"v{i}"], name=f"n{i}") for i in range(values))
    for level in range(depth):
        carrier = current.node.add(op_type="If", name=f"if{level}", input=["x"], output=[f"r{level}"])
        attribute = carrier.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
        attribute.g.name = f"g{level}"
        current = attribute.g
    current.CopyFrom(innermost)
    return proto


def test_two_thousand_graphs_in_one_another() -> None:
    found = list(scopes(nested(2_000, 2_000)))
    assert len(found) == 2_001
    assert found[0].nodes[2_000].captured == ["lost", "v0", "x"]
    assert found[-1].label == " in 'then_branch' of node 'if1999' (If), 2000 graphs deep"
    assert {"v0", "v1999", "r0", "r1998", "o", "lost"} - found[-1].visible == {"lost"}
    assert len(found[-1].outer) == 1 + 2_000 + 2_000  # x, the values, a result on each level


def test_findings_two_thousand_graphs_deep() -> None:
    found = [str(f) for f in validate(nested(2_000, 10)) if f.rule == "NOD-05"]
    assert found == [
        "error: node 'add' (Add) in 'then_branch' of node 'if1999' (If), 2000 graphs deep: input 'lost' must be a "
        "graph input, an initializer or the output of a node, but nothing computes it [NOD-05]\n"
        "  remedy: add the node that computes 'lost', or read another value"
    ]


def test_many_subgraphs_share_what_they_see() -> None:
    """Copies of the main graph's names for each of them would take gigabytes."""
    nodes = [node("Neg", ["x"], [f"v{i}"], name=f"n{i}") for i in range(5_000)]
    for i in range(2_000):
        inner = graph("g", node("Neg", ["v0"], [f"i{i}"]), output=f"i{i}")
        nodes.append(node("If", ["x"], [f"r{i}"], name=f"if{i}", then_branch=inner))
    found = list(scopes(model(nodes)))
    assert all(scope.outer is found[0].visible for scope in found[1:])
    assert all(scope.in_order and scope.defined_once for scope in found)
    assert isinstance(found[1].visible, Layered)


def test_layered_names_are_a_set() -> None:
    names = Layered((frozenset({"a", "b"}), frozenset({"b", "c"}), frozenset({"d", "e", "f"})))
    assert names == {"a", "b", "c", "d", "e", "f"}
    assert len(names) == 6
    assert sorted(names) == ["a", "b", "c", "d", "e", "f"]
    assert "c" in names
    assert "g" not in names
    assert {"a", "f", "g"} - names == {"g"}
    assert frozenset({"h"}) - names == {"h"}
    assert [type(kind({"h"}) - names) for kind in (set, frozenset)] == [set, frozenset]
    assert names - {"a", "b", "c"} == {"d", "e", "f"}
    assert {"a", "z"} & names == {"a"}
    assert {"z"} | names == {"a", "b", "c", "d", "e", "f", "z"}
    assert {"a", "f"} <= names
    assert not {"a", "g"} <= names
    assert names >= {"d"}
    assert names.isdisjoint({"g"})
    assert not names.isdisjoint(["g", "d"])
    assert names
    assert not Layered(())


def test_names_of_absurd_length_are_cut() -> None:
    long = "n" * 100_000
    proto = model([node(long, ["x"], ["y"], name=long)])
    (scope,) = scopes(proto)
    assert scope.where(0) == f"node '{'n' * 120}...' (100000 characters) ('{'n' * 120}...' (100000 characters))"
    assert show("short") == "'short'"


def test_order_and_cycles() -> None:
    def read(*links: tuple[str, str]) -> list[onnx.NodeProto]:
        return [node("Sum", inputs.split(), outputs.split()) for inputs, outputs in links]

    given = {"x"}
    straight = read_nodes(read(("x", "a"), ("a x", "b"), ("b ", "c")))
    assert topological_order(straight, given) == ([0, 1, 2], [])
    turned = read_nodes(read(("b", "c"), ("a", "b"), ("x", "a"), ("x", "d")))
    assert topological_order(turned, given) == ([2, 1, 0, 3], [])
    # 0 -> 1 -> 0; 2 hangs behind it and before 3 -> 4 -> 3; 5 stands alone, 6 reads itself
    tangled = read_nodes(read(("b", "a"), ("a", "b"), ("b", "c"), ("c e", "d"), ("d", "e"), ("x", "f"), ("g", "g")))
    order, left = topological_order(tangled, given)
    assert (order, left) == ([5], [0, 1, 2, 3, 4, 6])
    assert node_cycles(tangled, left, given) == [[0, 1], [3, 4], [6]]
    # What is given does not wait for a node that makes it too.
    assert topological_order(read_nodes(read(("x", "x"))), given) == ([0], [])


def test_scopes_know_their_order() -> None:
    constant = numpy_helper.from_array(numpy_helper.to_array(helper.make_tensor("w", 1, [1], [1.0])), "w")
    nodes = [node("Sum", ["x", "", "w"], ["a"]), node("Neg", ["a"], ["y", ""])]
    (scope,) = scopes(model(nodes, constants={"w": constant}))
    assert scope.in_order
    assert scope.defined_once
    assert scope.results == ("a", "y", "")
    assert scope.producers == {"a": 0, "y": 1}
    for wrong in (nodes[::-1], [nodes[1]], [node("Sum", ["x", "y"], ["y"])]):
        (scope,) = scopes(model(wrong))
        assert not scope.in_order
