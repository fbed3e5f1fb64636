"""Clauses about functions local to the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import AttributeProto, helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.twins import Twin, check

pytestmark = pytest.mark.usefixtures("measured")

FLOAT = AttributeProto.FLOAT


def ref(inner: onnx.NodeProto, kind: int = FLOAT, **references: str) -> onnx.NodeProto:
    """``inner`` with attributes that refer to those of the function around it."""
    for name, outer in references.items():
        inner.attribute.append(AttributeProto(name=name, ref_attr_name=outer, type=kind))  # type: ignore[arg-type]  # an int is one
    return inner


def function(
    nodes: Sequence[onnx.NodeProto],
    name: str = "F",
    inputs: Sequence[str] = ("a",),
    outputs: Sequence[str] = ("b",),
    opsets: Mapping[str, int] | None = None,
    **more: Any,
) -> onnx.FunctionProto:
    """A function of domain org.local with input a and output b; its import of org.local lets it call others."""
    imports = [helper.make_opsetid(d, v) for d, v in (opsets or {"": 21, "org.local": 1}).items()]
    return helper.make_function("org.local", name, inputs, outputs, nodes, imports, **more)


def calling(*functions: onnx.FunctionProto, ir_version: int = 10, attributes: Any = None) -> onnx.ModelProto:
    """A model that calls function F of domain org.local."""
    call = node("F", ["x"], ["y"], name="call", domain="org.local", **(attributes or {}))
    return model([call], opsets={"": 21, "org.local": 1}, functions=functions, ir_version=ir_version)


def changed(source: onnx.ModelProto, number: int = 0, **lists: Any) -> onnx.ModelProto:
    """A copy of ``source`` with fields of one function replaced; None clears a field."""
    copy = onnx.ModelProto.FromString(source.SerializeToString())
    for name, content in lists.items():
        copy.functions[number].ClearField(name)  # type: ignore[arg-type]  # a name of a field
        if isinstance(content, list):
            getattr(copy.functions[number], name).extend(content)
        elif content is not None:
            setattr(copy.functions[number], name, content)
    return copy


RELU = calling(function([node("Relu", ["a"], ["b"], name="r")]))
ELU = function([ref(node("Elu", ["a"], ["b"], name="e"), alpha="slope")], attributes=["slope"])
SLOPED = calling(ELU, attributes={"slope": 0.5})
F = "error: function 'org.local.F':"
IN_F = "in function 'org.local.F':"


def overloads(ir_version: int) -> onnx.ModelProto:
    second = function([node("Neg", ["a"], ["b"])], overload="other")
    return calling(function([node("Relu", ["a"], ["b"])]), second, ir_version=ir_version)


def call(name: str, result: str = "b", given: str = "a") -> onnx.NodeProto:
    return node(name, [given], [result], name=f"to{name}", domain="org.local")


def branching(inner: onnx.NodeProto, **more: Any) -> onnx.FunctionProto:
    """F with ``inner``, which makes t, in both branches of an If."""
    branch = helper.make_graph([inner], "branch", [], [value("t", None)])
    condition = node("Constant", [], ["c"], value=helper.make_tensor("c", onnx.TensorProto.BOOL, [], [True]))
    choice = node("If", ["c"], ["b"], name="choose", then_branch=branch, else_branch=branch)
    return function([condition, choice], **more)


def main_reference(nested: bool = False) -> onnx.ModelProto:
    inner = ref(node("Elu", ["x"], ["t" if nested else "y"], name="e"), alpha="slope")
    if not nested:
        return model([inner])
    condition = node("Constant", [], ["c"], value=helper.make_tensor("c", onnx.TensorProto.BOOL, [], [True]))
    then_branch = helper.make_graph([inner], "one", [], [value("t", [1, 4])])
    else_branch = helper.make_graph([node("Relu", ["x"], ["u"])], "two", [], [value("u", [1, 4])])
    choice = node("If", ["c"], ["y"], name="choose", then_branch=then_branch, else_branch=else_branch)
    return model([condition, choice])


def valued_reference() -> onnx.ModelProto:
    proto = calling(ELU, attributes={"slope": 0.5})
    proto.functions[0].node[0].attribute[0].f = 0.0
    return proto


RECURSION = "  remedy: write the function without recursion, for example with Loop"
CALLS_ITSELF = "a function must not call itself, directly or through others, but this one does:"
CHAIN = [function([call(f"F{i + 1}")], f"F{i}") for i in range(19)]

SLOPE = f"attribute 'alpha' of node 'e' (Elu) {IN_F.removesuffix(':')}"
OUTER = function(
    [ref(node("F", ["a"], ["b"], name="inner", domain="org.local"), slope="steepness")], "G", attributes=["steepness"]
)


def defaulted(value: Any) -> onnx.ModelProto:
    return changed(calling(ELU), attribute=None, attribute_proto=[helper.make_attribute("slope", value)])


def outer(value: Any) -> onnx.ModelProto:
    """A call of G, which hands its attribute on to F."""
    proto = calling(ELU, OUTER)
    proto.graph.node[0].op_type = "G"
    proto.graph.node[0].attribute.append(helper.make_attribute("steepness", value))
    return proto


WRONG_TYPES = [
    (
        "a call", calling(ELU, attributes={"slope": 1}), SLOPED,
        f"node 'call' (F): attribute 'slope' of function 'org.local.F' must be of type FLOAT, as {SLOPE} is, not INT",
    ),
    (
        "a default", defaulted("steep"), defaulted(1.0),
        f"attribute 'slope' of function 'org.local.F': the default must be of type FLOAT, as {SLOPE} is, not STRING",
    ),
    (
        "a call through two functions", outer(1), outer(1.0),
        "node 'call' (G): attribute 'steepness' of function 'org.local.G' must be of type FLOAT, as "
        f"{SLOPE} is, not INT",
    ),
]

TWINS = [
    Twin(
        "FUN-01",
        bad=calling(function([node("Relu", ["a"], ["b"])]), function([node("Neg", ["a"], ["b"])])),
        good=calling(function([node("Relu", ["a"], ["b"])]), function([node("Neg", ["a"], ["b"])], "G")),
        findings=[
            f"{F} functions must differ in domain, name or overload, but there is 'org.local.F' twice [FUN-01]\n"
            "  remedy: rename one of them"
        ],
    ),
    Twin(
        "FUN-01",
        name="overloads before IR 10",
        bad=overloads(9),
        good=overloads(10),
        findings=[
            "error: function 'org.local.F:other': functions must differ in domain, name or overload, but there is "
            "'org.local.F:other' twice (overloads came with IR 10) [FUN-01]\n  remedy: rename one of them"
        ],
    ),
    Twin(
        "FUN-02",
        bad=calling(function([call("F")])),
        good=calling(function([call("G")]), function([node("Relu", ["a"], ["b"])], "G")),
        findings=[f"{F} {CALLS_ITSELF} 'org.local.F' -> 'org.local.F' [FUN-02]\n{RECURSION}"],
    ),
    Twin(
        "FUN-02",
        name="through another",
        bad=calling(function([call("G")]), function([call("H")], "G"), function([call("G")], "H")),
        good=calling(function([call("G")]), function([call("H")], "G"), function([node("Neg", ["a"], ["b"])], "H")),
        findings=[
            f"error: function 'org.local.G': {CALLS_ITSELF} 'org.local.G' -> 'org.local.H' -> 'org.local.G' [FUN-02]\n"
            f"{RECURSION}"
        ],
    ),
    Twin(
        "FUN-02",
        name="in a subgraph",
        bad=calling(branching(call("F", "t"))),
        good=calling(branching(call("G", "t")), function([node("Relu", ["a"], ["b"])], "G")),
        findings=[f"{F} {CALLS_ITSELF} 'org.local.F' -> 'org.local.F' [FUN-02]\n{RECURSION}"],
    ),
    Twin(
        "FUN-02",
        name="two cycles",
        bad=calling(
            function([call("F", "c"), call("G", "b", "c")]), function([call("H")], "G"), function([call("F")], "H")
        ),
        good=calling(
            function([call("G", "c"), call("G", "b", "c")]), function([call("H")], "G"),
            function([node("Relu", ["a"], ["b"])], "H"),
        ),
        findings=[
            f"{F} {CALLS_ITSELF} 'org.local.F' -> 'org.local.F' [FUN-02]\n{RECURSION}",
            f"{F} {CALLS_ITSELF} 'org.local.F' -> 'org.local.G' -> 'org.local.H' -> 'org.local.F' [FUN-02]\n"
            f"{RECURSION}",
        ],
    ),
    Twin(
        "FUN-02",
        name="a long way",
        bad=calling(function([call("F0")]), *CHAIN, function([call("F0")], "F19")),
        good=calling(function([call("F0")]), *CHAIN, function([node("Relu", ["a"], ["b"])], "F19")),
        findings=[
            f"error: function 'org.local.F0': {CALLS_ITSELF} 'org.local.F0' -> 'org.local.F1' -> 'org.local.F2' -> "
            "'org.local.F3' -> 'org.local.F4' -> 'org.local.F5' -> ... -> 'org.local.F16' -> 'org.local.F17' -> "
            f"'org.local.F18' -> 'org.local.F19' -> 'org.local.F0' [FUN-02]\n{RECURSION}"
        ],
    ),
    Twin(
        "FUN-03",
        bad=changed(RELU, opset_import=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx", 20)]),
        good=changed(RELU, opset_import=[helper.make_opsetid("", 21), helper.make_opsetid("org.local", 20)]),
        findings=[
            f"{F} a function must import one version of operator set 'ai.onnx', not 20 and 21 [FUN-03]\n"
            "  remedy: keep one of the imports"
        ],
    ),
    Twin(
        "FUN-04",
        bad=changed(RELU, opset_import=[helper.make_opsetid("", 13)]),
        good=changed(RELU, opset_import=[helper.make_opsetid("", 14)]),  # Relu has been as it is since 14
        findings=[
            f"warning: node 'r' (Relu) {IN_F} the operator should be the same in the function's import of 'ai.onnx' "
            "(version 13) and in the model's (21), but Relu changed in between [FUN-04]\n"
            "  remedy: import the same version in function and model"
        ],
    ),
    Twin(
        "FUN-05",
        bad=changed(SLOPED, attribute_proto=[helper.make_attribute("slope", 1.0)]),
        good=changed(SLOPED, attribute_proto=[helper.make_attribute("other", 1.0)]),
        findings=[
            f"{F} an attribute must be in attribute (without a default) or in attribute_proto (with one), "
            "but 'slope' is in both [FUN-05]\n  remedy: declare each attribute once"
        ],
    ),
    Twin(
        "FUN-05",
        name="twice in a list",
        bad=changed(
            SLOPED,
            attribute=["slope", "slope"],
            attribute_proto=[helper.make_attribute("c", 1.0), helper.make_attribute("c", 2.0)],
        ),
        good=changed(SLOPED, attribute=["slope"], attribute_proto=[helper.make_attribute("c", 1.0)]),
        findings=[
            f"{F} the names in attribute must be distinct, but there is 'slope' more than once [FUN-05]\n"
            "  remedy: rename one of them",
            f"{F} the names in attribute_proto must be distinct, but there is 'c' more than once [FUN-05]\n"
            "  remedy: rename one of them",
        ],
    ),
    Twin(
        "FUN-06",
        bad=main_reference(),
        good=model([node("Elu", ["x"], ["y"], alpha=0.5)]),
        findings=[
            "error: node 'e' (Elu): attribute 'alpha' must have a value of its own, but it refers to attribute 'slope' "
            "of a function, and the node is in none [FUN-06]\n  remedy: give the attribute a value"
        ],
    ),
    Twin(
        "FUN-06",
        name="in a subgraph",
        bad=main_reference(nested=True),
        good=calling(
            branching(ref(node("Elu", ["a"], ["t"]), alpha="slope"), attributes=["slope"]), attributes={"slope": 0.5}
        ),
        findings=[
            "error: node 'e' (Elu) in 'then_branch' of node 'choose' (If): attribute 'alpha' must have a value of its "
            "own, but it refers to attribute 'slope' of a function, and the node is in none [FUN-06]\n"
            "  remedy: give the attribute a value"
        ],
    ),
    Twin(
        "FUN-07",
        bad=valued_reference(),
        good=SLOPED,
        findings=[
            f"error: node 'e' (Elu) {IN_F} attribute 'alpha' refers to attribute 'slope' of the function and must hold "
            "no value, but it has one in f [FUN-07]\n  remedy: keep the reference or the value"
        ],
    ),
    Twin(
        "FUN-08",
        bad=changed(RELU, output=["b", "lost"]),
        good=changed(RELU, output=["b"]),
        findings=[
            f"{F} output 'lost' must be computed by a node of the function, but nothing computes it [FUN-08]\n"
            "  remedy: add the node that computes 'lost', or remove the output"
        ],
    ),
    Twin(
        "FUN-08",
        name="an input as output",
        bad=changed(RELU, output=["b", "a"]),
        good=changed(RELU, output=["b"]),
        findings=[
            f"{F} output 'a' must be computed by a node of the function, but it is an input [FUN-08]\n"
            "  remedy: put an Identity node in between"
        ],
    ),
    Twin(
        "FUN-08",
        name="names that are not distinct",
        bad=changed(RELU, input=["a", "", "a"], output=["b", "b", ""]),
        good=changed(RELU, input=["a", "c", "d"], output=["b"]),
        findings=[
            f"{F} input 1 must have a name, but it has none [FUN-08]\n  remedy: give it a name",
            f"{F} inputs must have distinct names, but 'a' is there more than once [FUN-08]\n"
            "  remedy: rename one of them",
            f"{F} outputs must have distinct names, but 'b' is there more than once [FUN-08]\n"
            "  remedy: rename one of them",
            f"{F} output 2 must have a name, but it has none [FUN-08]\n  remedy: give it a name",
        ],
    ),
    Twin(
        "FUN-09",
        bad=calling(function([node("Add", ["a", "x"], ["b"], name="n")])),  # x is there in the main graph only
        good=calling(function([node("Add", ["a", "a"], ["b"], name="n")])),
        findings=[
            f"error: node 'n' (Add) {IN_F} input 'x' must be an input of the function or the output of a node in it, "
            "but it is neither [FUN-09]\n  remedy: make 'x' an input of the function, or add the node that computes it"
        ],
    ),
    Twin(
        "FUN-09",
        name="in a subgraph",
        bad=calling(branching(node("Relu", ["x"], ["t"], name="n"))),
        good=calling(branching(node("Relu", ["a"], ["t"], name="n"))),
        findings=[
            f"error: node 'n' (Relu) in '{branch}' of node 'choose' (If) {IN_F} input 'x' must be an input of the "
            "function or the output of a node in it, but it is neither [FUN-09]\n"
            "  remedy: make 'x' an input of the function, or add the node that computes it"
            for branch in ("else_branch", "then_branch")
        ],
    ),
    Twin(
        "FUN-10",
        bad=changed(RELU, name=None),
        good=changed(RELU, name="F"),
        findings=["error: function 0: a function must have a name, but this one has none [FUN-10]\n"
                  "  remedy: give it a name"],
    ),
    Twin(
        "FUN-10",
        name="domain",
        bad=changed(RELU, domain=None),
        good=changed(RELU, domain="org.local"),
        findings=["error: function '.F': a function must have a domain, but this one has none [FUN-10]\n"
                  "  remedy: give it a domain"],
    ),
    Twin(
        "FUN-11",
        bad=changed(RELU, value_info=[value("b", [4]), value("a", [4]), value("b", [4])]),
        good=changed(RELU, value_info=[value("b", [4]), value("a", [4])]),
        findings=[
            "warning: function 'org.local.F': the names in value_info must be distinct, but there is 'b' more than "
            "once [FUN-11]\n  remedy: keep one of the entries"
        ],
    ),
    Twin(
        "FUN-11",
        name="a name that is not there",
        bad=changed(RELU, value_info=[value("b", [4]), value("x", [4])]),
        good=changed(RELU, value_info=[value("b", [4])]),
        findings=[
            "warning: function 'org.local.F': value_info must name values of the function, but there is no 'x' "
            "[FUN-11]\n  remedy: remove the entries"
        ],
    ),
    Twin(
        "FUN-12",
        bad=calling(function([node("Neg", ["t"], ["b"], name="late"), node("Relu", ["a"], ["t"], name="early")])),
        good=calling(function([node("Relu", ["a"], ["t"], name="early"), node("Neg", ["t"], ["b"], name="late")])),
        findings=[
            f"error: node 'late' (Neg) {IN_F} nodes must be in topological order, but 't' is computed later, by node "
            "'early' (Relu) in function 'org.local.F' [FUN-12]\n"
            "  remedy: sort the nodes so that each one follows those it reads from"
        ],
    ),
    Twin(
        "FUN-12",
        name="a cycle",
        bad=calling(function([node("Add", ["a", "b"], ["t"], name="m"), node("Neg", ["t"], ["b"], name="n")])),
        good=calling(function([node("Add", ["a", "a"], ["t"], name="m"), node("Neg", ["t"], ["b"], name="n")])),
        findings=[
            f"error: node 'm' (Add) {IN_F} the function must have no cycle, but there is one: 'm' -> 'n' -> 'm' "
            "[FUN-12]\n  remedy: break the cycle: no node may read, directly or through others, its own results"
        ],
    ),
    Twin(
        "FUN-12",
        name="a value defined twice",
        bad=calling(function([node("Relu", ["a"], ["b"], name="m"), node("Neg", ["a"], ["b"], name="n")])),
        good=calling(function([node("Relu", ["a"], ["b"], name="m"), node("Neg", ["a"], ["c"], name="n")])),
        findings=[
            f"error: node 'n' (Neg) {IN_F} value 'b' must be defined once, but node 'm' (Relu) in function "
            "'org.local.F' defines it too [FUN-12]\n  remedy: rename one of them"
        ],
    ),
    Twin(
        "FUN-12",
        name="an input made anew",
        bad=calling(function([node("Relu", ["a"], ["b"], name="m"), node("Neg", ["b"], ["a"], name="n")])),
        good=calling(function([node("Relu", ["a"], ["b"], name="m"), node("Neg", ["b"], ["c"], name="n")])),
        findings=[
            f"error: node 'n' (Neg) {IN_F} value 'a' must be defined once, but the function's input defines it too "
            "[FUN-12]\n  remedy: rename one of them"
        ],
    ),
    Twin(
        "FUN-13",
        bad=calling(ELU),
        good=SLOPED,
        findings=[
            "error: node 'call' (F): the call must give the attributes of 'org.local.F' that have no default, but "
            "'slope' is absent [FUN-13]\n  remedy: give the node the attribute"
        ],
    ),
    Twin(
        "FUN-13",
        name="a default",
        bad=calling(ELU),
        good=changed(calling(ELU), attribute=None, attribute_proto=[helper.make_attribute("slope", 1.0)]),
        findings=[
            "error: node 'call' (F): the call must give the attributes of 'org.local.F' that have no default, but "
            "'slope' is absent [FUN-13]\n  remedy: give the node the attribute"
        ],
    ),
    Twin(
        "FUN-13",
        name="one that is not declared",
        bad=calling(ELU, attributes={"slope": 0.5, "slop": 1.0}),
        good=SLOPED,
        findings=[
            "error: node 'call' (F): the call must give only attributes that 'org.local.F' declares, not 'slop'; "
            "it declares 'slope' [FUN-13]\n  remedy: correct the name, or remove the attribute"
        ],
    ),
    Twin(
        "FUN-13",
        name="a reference to nothing",
        bad=calling(function([ref(node("Elu", ["a"], ["b"], name="e"), alpha="slope")])),
        good=SLOPED,
        findings=[
            f"error: node 'e' (Elu) {IN_F} attribute 'alpha' must refer to an attribute that the function declares, "
            "not to 'slope'; it declares none [FUN-13]\n  remedy: correct the name, or declare the attribute"
        ],
    ),
    Twin(
        "FUN-13",
        name="a call in another function's subgraph",
        bad=calling(branching(node("G", ["a"], ["t"], name="call", domain="org.local")),
                    function([ref(node("Elu", ["a"], ["b"]), alpha="slope")], "G", attributes=["slope"])),
        good=calling(branching(node("G", ["a"], ["t"], name="call", domain="org.local", slope=1.0)),
                     function([ref(node("Elu", ["a"], ["b"]), alpha="slope")], "G", attributes=["slope"])),
        findings=[
            f"error: node 'call' (G) in '{branch}' of node 'choose' (If) {IN_F} the call must give the attributes of "
            "'org.local.G' that have no default, but 'slope' is absent [FUN-13]\n  remedy: give the node the attribute"
            for branch in ("else_branch", "then_branch")
        ],
    ),
    *(
        Twin(
            clause,
            name=f"{name} of another type",
            bad=bad,
            good=good,
            findings=[f"error: {text} [{clause}]\n  remedy: give the attribute the type that the operator says"],
        )
        for clause in ("NOD-34", "FUN-13")
        for name, bad, good, text in WRONG_TYPES
    ),
]


def chain(calls: int) -> onnx.ModelProto:
    """Seventeen functions, each with ``calls`` calls of the next."""
    steps = [[call(f"F{i + 1}", f"b{k}") for k in range(calls)] for i in range(17)]
    functions = [function(step, f"F{i}", outputs=["b0"]) for i, step in enumerate(steps)]
    return calling(function([call("F0")]), *functions, function([node("Relu", ["a"], ["b"])], "F17"))


OWN = [
    # 3 * 2^17 - 2 nodes in F0, 3 * 2^16 - 2 in F1
    Twin(
        "inlined-size",
        bad=chain(2),
        good=chain(1),
        findings=[
            "error: function 'org.local.F1': a function must stand for at most 100000 nodes, those of the functions it "
            "calls included, but this one stands for more [inlined-size]\n  remedy: write the model with fewer calls"
        ],
    ),
]


@pytest.mark.parametrize("twin", OWN, ids=str)
def test_own_rules(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def test_functions_without_a_graph() -> None:
    proto = onnx.ModelProto.FromString(SLOPED.SerializeToString())
    proto.ClearField("graph")
    assert [finding.rule for finding in validate(proto)] == ["PRO-28"]
