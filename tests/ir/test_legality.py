"""Each rule of the legality tables, violated by a hand-made graph; and graphs that are legal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hwflow.errors import InternalError
from hwflow.ir.graph import Attributes, Delaying, Graph, Names, Node, Port, Stage, Value, identity_order
from hwflow.ir.legality import RULES, check
from hwflow.types import Interval, IntType, TensorType

OPERATORS = {stage: frozenset({"double", "fork"}) for stage in Stage}
BYTES = TensorType((4, 2), IntType(8, False), Interval(0, 255))


def value(name: str, type_: TensorType | None = BYTES) -> Value:
    return Value(name, type_)


def port(name: str, carrier: Value) -> Port:
    return Port(name, carrier, (8,), identity_order((8,)))


class Double(Attributes):
    op = "double"


class Hold(Delaying):
    op = "double"


class Halve(Attributes):
    op = "halve"


def node(name: str, inputs: list[Value], outputs: list[Value]) -> Node:
    return Node(name, inputs, outputs, Double())


def graph(stage: Stage, change: Callable[[Graph], None] | None = None) -> Graph:
    """x -> first -> second -> y, and ``change`` made to it."""
    x, h, y = value("x"), value("h"), value("y")
    nodes = [node("first", [x], [h]), node("second", [h], [y])]
    made = Graph("g", stage, [port("x", x)], [port("y", y)], nodes)
    if change is not None:
        change(made)
    return made


def set_operator(g: Graph) -> None:
    g.nodes[1].attributes = Halve()


def produce_twice(g: Graph) -> None:
    g.nodes[1].outputs = [g.nodes[0].outputs[0]]
    g.outputs = []


def swap(g: Graph) -> None:
    g.nodes.reverse()


def read_nothing(g: Graph) -> None:
    g.nodes[0].inputs = [value("lost")]
    g.inputs = []


def output_of_nothing(g: Graph) -> None:
    g.nodes.pop()
    g.outputs[0].value = value("lost")
    g.nodes[0].outputs = []


def same_value_name(g: Graph) -> None:
    g.nodes[1].outputs[0].name = "h"


def same_node_name(g: Graph) -> None:
    g.nodes[1].name = "first"


def no_type(g: Graph) -> None:
    g.nodes[0].outputs[0].type = None


def interval_too_wide(g: Graph) -> None:
    g.nodes[0].outputs[0].type = TensorType((4, 2), IntType(8, False), Interval(-1, 7))


def image_shape(g: Graph) -> None:
    g.nodes[0].outputs[0].type = TensorType((2, 2, 2), IntType(8, False), Interval(0, 255))


def two_readers(g: Graph) -> None:
    g.outputs.append(port("h", g.nodes[0].outputs[0]))


def no_reader(g: Graph) -> None:
    g.outputs.clear()


def of_an_unknown_operator_and_type(g: Graph) -> None:
    set_operator(g)
    no_type(g)


def as_a_circuit(g: Graph) -> None:
    """The second node delays what it reads, and stands before what makes it."""
    g.nodes[1].attributes = Hold()
    g.nodes.reverse()


def delayed_as_another_type(g: Graph) -> None:
    as_a_circuit(g)
    g.nodes[0].outputs[0].type = TensorType((4, 2), IntType(8, False), Interval(0, 9))


def delayed_nothing(g: Graph) -> None:
    as_a_circuit(g)
    g.nodes[0].inputs = [value("lost")]
    g.outputs.append(port("h", g.nodes[1].outputs[0]))


CASES = [
    (Stage.QUANTIZED, delayed_as_another_type, "node 'second'", "delayed-type",
     "a delay's result must hold what it delays; found: u8[4x2] in [0, 255] delayed as u8[4x2] in [0, 9]"),
    (Stage.DATAFLOW, delayed_nothing, "node 'second'", "topological-order",
     "a node must read only values produced before it, unless it delays them; found: 'lost', which nothing produces"),
    (Stage.QUANTIZED, set_operator, "node 'second'", "legal-operators",
     "every node's operator must be legal at this stage; found: operator 'halve'"),
    (Stage.QUANTIZED, produce_twice, "value 'h'", "single-producer",
     "every value must have exactly one producer; found: two producers"),
    (Stage.QUANTIZED, swap, "node 'second'", "topological-order",
     "a node must read only values produced before it, unless it delays them; "
     "found: 'h', which nothing before it produces"),
    (Stage.QUANTIZED, read_nothing, "node 'first'", "topological-order",
     "a node must read only values produced before it, unless it delays them; "
     "found: 'lost', which nothing before it produces"),
    (Stage.QUANTIZED, output_of_nothing, "output 'y'", "topological-order",
     "a node must read only values produced before it, unless it delays them; found: 'lost', which nothing produces"),
    (Stage.QUANTIZED, same_value_name, "value 'h'", "unique-names",
     "node names and value names must be unique; found: the same name twice"),
    (Stage.QUANTIZED, same_node_name, "node 'first'", "unique-names",
     "node names and value names must be unique; found: the same name twice"),
    (Stage.QUANTIZED, no_type, "value 'h'", "typed-values",
     "every value must have a type that holds its interval; found: no type"),
    (Stage.QUANTIZED, interval_too_wide, "value 'h'", "typed-values",
     "every value must have a type that holds its interval; found: interval [-1, 7] outside u8"),
    (Stage.DATAFLOW, image_shape, "value 'h'", "stream-shape",
     "every value must have the shape (pixels, channels); found: shape (2, 2, 2)"),
    (Stage.DATAFLOW, two_readers, "value 'h'", "single-consumer",
     "every value must have exactly one consumer (fan-out is a fork); found: 2 consumers"),
    (Stage.DATAFLOW, no_reader, "value 'y'", "single-consumer",
     "every value must have exactly one consumer (fan-out is a fork); found: 0 consumers"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("stage", "change", "where", "rule", "text"), CASES, ids=lambda v: getattr(v, "__name__", None)
)
def test_violation(stage: Stage, change: Callable[[Graph], None], where: str, rule: str, text: str) -> None:
    with pytest.raises(InternalError) as caught:
        check(graph(stage, change), "a_pass", OPERATORS)
    assert [str(f) for f in caught.value.findings] == [
        f"error: {where}: {text} (after pass 'a_pass') [{rule}]\n  remedy: report this model as a defect of hwflow"
    ]


def test_everything_at_once() -> None:
    with pytest.raises(InternalError) as caught:
        check(graph(Stage.SCHEDULED, of_an_unknown_operator_and_type), "fold", OPERATORS)
    assert [f.rule for f in caught.value.findings] == ["legal-operators", "typed-values"]


def test_a_reader_of_nothing_at_the_dataflow_stage() -> None:
    """The count of consumers meets a value that is not in the graph."""
    with pytest.raises(InternalError) as caught:
        check(graph(Stage.DATAFLOW, read_nothing), "a_pass", OPERATORS)
    assert [f.rule for f in caught.value.findings] == ["topological-order"]


@pytest.mark.parametrize("stage", Stage)
def test_legal_graphs(stage: Stage) -> None:
    check(graph(stage), "a_pass", OPERATORS)


@pytest.mark.parametrize("stage", Stage)
def test_a_circuit_through_a_delay_is_legal(stage: Stage) -> None:
    check(graph(stage, as_a_circuit), "a_pass", OPERATORS)


def test_every_rule_is_violated_here() -> None:
    assert {rule.name for rule in RULES} == {case[3] for case in CASES}


def test_copy_shares_nothing() -> None:
    original = graph(Stage.DATAFLOW)
    twin = original.copy()
    check(twin, "copy", OPERATORS)
    twin.nodes[0].outputs[0].type = None
    twin.nodes[0].attributes = Halve()
    twin.outputs[0].name = "z"
    twin.inputs[0].value.name = "other"
    check(original, "copy", OPERATORS)
    assert (original.nodes[0].op, original.outputs[0].name, original.inputs[0].value.name) == ("double", "y", "x")
    assert not set(original.values()) & set(twin.values())


def test_producers_and_consumers() -> None:
    g = graph(Stage.QUANTIZED)
    first, second = g.nodes
    assert g.producers() == {first.outputs[0]: first, second.outputs[0]: second}
    x, h, y = g.values()
    assert g.consumers() == {x: [(first, 0)], h: [(second, 0)], y: []}


def test_names_and_order() -> None:
    names = Names(["a", "a_2"])
    assert [names.fresh(n) for n in ("a", "b", "a", "b")] == ["a_3", "b", "a_4", "b_2"]
    np.testing.assert_array_equal(identity_order((2, 3)), [0, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(identity_order(()), [0])
