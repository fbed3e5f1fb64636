"""Clauses about the attributes of nodes, and of functions' definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.twins import Twin, check

INT = AttributeProto.INT
EXPORT = "export the model again"


def attribute(name: str = "axis", **fields: Any) -> AttributeProto:
    return AttributeProto(name=name, **fields)


AXIS = attribute(type=INT, i=1)


def softmax(*attributes: AttributeProto, x: str = "x", **more: Any) -> onnx.ModelProto:
    """A model of one Softmax with these attributes."""
    made = node("Softmax", [x], ["y"], name="n")
    made.attribute.extend(attributes)
    return model([made], [value(x, [1, 4])], **more)


def definition(*attributes: AttributeProto, name: str = "p") -> onnx.ModelProto:
    """A model that calls a function with these attributes that have defaults, from the input ``name``."""
    function = helper.make_function(
        "org.example", "F", [name], ["q"], [node("Relu", [name], ["q"])], [helper.make_opsetid("", 21)], (), attributes
    )
    call = node("F", ["x"], ["y"], name="call", domain="org.example")
    return model([call], opsets={"": 21, "org.example": 1}, functions=[function])


def body(*attributes: AttributeProto) -> onnx.ModelProto:
    """A model that calls a function whose Softmax has these attributes; the function has an attribute 'a'."""
    made = node("Softmax", ["p"], ["q"], name="n")
    made.attribute.extend(attributes)
    function = helper.make_function(
        "org.example", "F", ["p"], ["q"], [made], [helper.make_opsetid("", 21)], (), [attribute("a", type=INT, i=1)]
    )
    call = node("F", ["x"], ["y"], name="call", domain="org.example")
    return model([call], opsets={"": 21, "org.example": 1}, functions=[function])


def branch(*attributes: AttributeProto) -> onnx.ModelProto:
    """A model with an If, in whose first branch is a Softmax with these attributes."""
    made = node("Softmax", ["x"], ["q"], name="n")
    made.attribute.extend(attributes)
    yes = helper.make_graph([made], "yes", [], [value("q", [1, 4])])
    no = helper.make_graph([node("Relu", ["x"], ["r"])], "no", [], [value("r", [1, 4])])
    choice = node("If", ["c"], ["y"], name="if", then_branch=yes, else_branch=no)
    return model([choice], [value("x", [1, 4]), value("c", [], TensorProto.BOOL)])


def with_attribute(op_type: str, made: AttributeProto, domain: str = "") -> onnx.ModelProto:
    """A Relu from x to y beside a node from x to z with one attribute."""
    other = node(op_type, ["x"] if op_type != "Constant" else [], ["z"], name="n", domain=domain)
    other.attribute.append(made)
    opsets = {"": 21, domain: 1} if domain else {"": 21}
    return model([node("Relu", ["x"], ["y"]), other], opsets=opsets)


def unknown_type() -> AttributeProto:
    """An attribute of type 99."""
    made = attribute(i=1)
    made.MergeFromString(bytes([20 << 3 & 0x7F | 0x80, 20 << 3 >> 7, 99]))  # field 20 as a varint
    return made


HERE = "attribute 'axis' of node 'n' (Softmax)"
TENSOR = helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0])

TWINS = [
    Twin(
        "ATT-02",
        bad=softmax(AXIS, AXIS),
        good=softmax(AXIS),
        findings=[
            "error: node 'n' (Softmax): attribute names must be distinct, but 'axis' is there more than once "
            "[ATT-02]\n  remedy: remove all but one of them"
        ],
        name="twice",
    ),
    Twin(
        "ATT-02",
        bad=softmax(AXIS, x="axis"),
        good=softmax(AXIS, x="axes"),
        findings=[
            "warning: node 'n' (Softmax): an attribute must not have the name of an input or output beside it, but "
            "'axis' is both [ATT-02]\n  remedy: rename the value"
        ],
        name="like-a-value",
    ),
    Twin(
        "ATT-02",
        bad=definition(attribute("a", type=INT, i=1), attribute("a", type=INT, i=2)),
        good=definition(attribute("a", type=INT, i=1), attribute("b", type=INT, i=2)),
        findings=[
            "error: function 'org.example.F': attribute names must be distinct, but 'a' is there more than once "
            "[ATT-02]\n  remedy: remove all but one of them"
        ],
        name="twice-in-a-definition",
    ),
    Twin(
        "ATT-02",
        bad=definition(attribute("p", type=INT, i=1)),
        good=definition(attribute("a", type=INT, i=1)),
        findings=[
            "warning: function 'org.example.F': an attribute must not have the name of an input or output beside it, "
            "but 'p' is both [ATT-02]\n  remedy: rename the value"
        ],
        name="like-an-input-of-the-function",
    ),
    Twin(
        "ATT-03",
        bad=softmax(attribute(type=INT, f=1.0)),
        good=softmax(attribute(type=INT, i=1)),
        findings=[
            f"error: {HERE}: the value must be in field i, as type INT says, not in f [ATT-03]\n"
            "  remedy: correct the type, or the value"
        ],
    ),
    Twin(
        "ATT-03",
        bad=with_attribute("Constant", attribute("value_ints", type=AttributeProto.INTS, i=1)),
        good=with_attribute("Constant", attribute("value_ints", type=AttributeProto.INTS, ints=[1])),
        findings=[
            "error: attribute 'value_ints' of node 'n' (Constant): the value must be in field ints, as type INTS says, "
            "not in i [ATT-03]\n  remedy: correct the type, or the value"
        ],
        name="list",
    ),
    Twin(
        "ATT-03",
        bad=definition(attribute("a", type=INT, s=b"one")),
        good=definition(attribute("a", type=INT, i=1)),
        findings=[
            "error: attribute 'a' of function 'org.example.F': the value must be in field i, as type INT says, not in "
            "s [ATT-03]\n  remedy: correct the type, or the value"
        ],
        name="in-a-definition",
    ),
    Twin(
        "ATT-04",
        bad=with_attribute("Gelu", attribute("approximate", type=AttributeProto.STRING, s=b"tanh\xff")),
        good=with_attribute("Gelu", attribute("approximate", type=AttributeProto.STRING, s=b"tanh")),
        findings=[
            "error: attribute 'approximate' of node 'n' (Gelu): text must be UTF-8, but this is not [ATT-04]\n"
            "  remedy: write the text as UTF-8, or keep the bytes in a tensor"
        ],
    ),
    Twin(
        "ATT-04",
        bad=with_attribute(
            "Constant", attribute("value_strings", type=AttributeProto.STRINGS, strings=[b"a", b"\xc3"])
        ),
        good=with_attribute(
            "Constant", attribute("value_strings", type=AttributeProto.STRINGS, strings=[b"a", b"\xc3\xa4"])
        ),
        findings=[
            "error: attribute 'value_strings' of node 'n' (Constant): text must be UTF-8, but this is not [ATT-04]\n"
            "  remedy: write the text as UTF-8, or keep the bytes in a tensor"
        ],
        name="list",
    ),
    Twin(
        "ATT-04",
        bad=with_attribute("Program", attribute("code", type=AttributeProto.STRING, s=b"\x80\x81"), "com.microsoft"),
        good=with_attribute("Program", attribute("code", type=AttributeProto.STRING, s=b"1"), "com.microsoft"),
        findings=[
            "warning: attribute 'code' of node 'n' (Program): text must be UTF-8, but this is not [ATT-04]\n"
            "  remedy: write the text as UTF-8, or keep the bytes in a tensor"
        ],
        name="of-another-set",
    ),
    Twin(
        "ATT-05",
        bad=softmax(AXIS, AttributeProto(type=INT, i=1)),
        good=softmax(AXIS),
        findings=[
            "error: attribute 1 of node 'n' (Softmax): an attribute must have a name, but this one has none [ATT-05]\n"
            "  remedy: give it the name that its operator says"
        ],
    ),
    Twin(
        "ATT-05",
        bad=branch(AttributeProto(type=INT, i=1)),
        good=branch(AXIS),
        findings=[
            "error: attribute 0 of node 'n' (Softmax) in 'then_branch' of node 'if' (If): an attribute must have a "
            "name, but this one has none [ATT-05]\n  remedy: give it the name that its operator says"
        ],
        name="in-a-subgraph",
    ),
    Twin(
        "ATT-06",
        bad=softmax(attribute(i=1)),
        good=softmax(attribute(type=INT, i=1)),
        findings=[
            f"error: {HERE}: an attribute must have a type, but this one has none [ATT-06]\n"
            "  remedy: give it the type of its value"
        ],
    ),
    Twin(
        "ATT-06",
        bad=softmax(attribute(type=AttributeProto.UNDEFINED, i=1)),
        good=softmax(attribute(type=INT, i=1)),
        findings=[
            f"error: {HERE}: an attribute must have a type, but this one has none [ATT-06]\n"
            "  remedy: give it the type of its value"
        ],
        name="undefined",
    ),
    Twin(
        "ATT-06",
        bad=softmax(unknown_type()),
        good=softmax(attribute(type=INT, i=1)),
        findings=[
            f"error: {HERE}: an attribute must have one of the types 1 to 14, not 99 [ATT-06]\n"
            "  remedy: give it the type of its value"
        ],
        name="unknown",
    ),
    Twin(
        "ATT-06",
        bad=body(attribute(ref_attr_name="a")),
        good=body(attribute(ref_attr_name="a", type=INT)),
        findings=[
            f"error: {HERE} in function 'org.example.F': an attribute must have a type, but this one has none "
            "[ATT-06]\n  remedy: give it the type of its value"
        ],
        name="reference",
    ),
    Twin(
        "ATT-07",
        bad=softmax(AXIS),
        good=softmax(attribute(type=INT, i=1, doc_string="Along which.")),
        findings=[
            "warning: graph 'graph': attributes should have a doc_string, but 'axis' of node 'n' (Softmax) has none "
            "[ATT-07]\n  remedy: add a doc_string"
        ],
    ),
    Twin(
        "ATT-07",
        bad=definition(*(attribute(name, type=INT, i=1) for name in "abcde")),
        good=definition(*(attribute(name, type=INT, i=1, doc_string="One.") for name in "abcde")),
        findings=[
            "warning: function 'org.example.F': attributes should have a doc_string, but 'a' of function "
            "'org.example.F', 'b' of function 'org.example.F', 'c' of function 'org.example.F' and 2 more have none "
            "[ATT-07]\n  remedy: add a doc_string"
        ],
        name="in-a-definition",
    ),
    Twin(
        "ATT-08",
        bad=softmax(attribute(type=INT, i=1, f=1.0)),
        good=softmax(attribute(type=INT, i=1)),
        findings=[
            f"error: {HERE}: an attribute must have one value, but this one has 2: in fields f and i [ATT-08]\n"
            "  remedy: keep the one that the type names"
        ],
        name="two",
    ),
    Twin(
        "ATT-08",
        bad=softmax(attribute(type=INT)),
        good=softmax(attribute(type=INT, i=0)),
        findings=[
            f"warning: {HERE}: an attribute must have a value, in field i as its type says, but this one has none: 0 "
            f"is taken [ATT-08]\n  remedy: {EXPORT}"
        ],
        name="default-left-out",
    ),
    Twin(
        "ATT-08",
        bad=with_attribute("Constant", attribute("value", type=AttributeProto.TENSOR)),
        good=with_attribute("Constant", attribute("value", type=AttributeProto.TENSOR, t=TENSOR)),
        findings=[
            "error: attribute 'value' of node 'n' (Constant): an attribute must have a value, in field t as its type "
            f"says, but this one has none [ATT-08]\n  remedy: {EXPORT}"
        ],
        name="no-tensor",
    ),
    Twin(
        "ATT-08",
        bad=softmax(attribute()),
        good=softmax(attribute(type=INT, i=1)),
        findings=[f"error: {HERE}: an attribute must have a value, but this one has none [ATT-08]\n  remedy: {EXPORT}"],
        name="nothing",
    ),
    Twin(
        "ATT-08",
        bad=definition(attribute("a", type=INT, i=1, ints=[1])),
        good=definition(attribute("a", type=INT, i=1)),
        findings=[
            "error: attribute 'a' of function 'org.example.F': an attribute must have one value, but this one has 2: "
            "in fields i and ints [ATT-08]\n  remedy: keep the one that the type names"
        ],
        name="in-a-definition",
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def said(proto: onnx.ModelProto) -> set[str]:
    return {finding.rule for finding in validate(proto) if finding.rule.startswith("ATT-")}


@pytest.mark.parametrize("kind", [AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS])
def test_a_list_may_be_empty(kind: int) -> None:
    name = f"value_{AttributeProto.AttributeType.Name(kind).lower()}"
    assert said(with_attribute("Constant", attribute(name, type=kind))) == set()


def test_a_reference_has_no_value() -> None:
    assert said(body(attribute(ref_attr_name="a", type=INT))) == set()


def test_before_attributes_had_types() -> None:
    assert said(softmax(attribute(i=1), ir_version=1)) == set()
    assert said(softmax(attribute(), ir_version=1)) == {"ATT-08"}
    assert said(softmax(attribute(i=1, f=1.0), ir_version=1)) == {"ATT-08"}


def test_text_of_other_fields_is_not_looked_at() -> None:
    """What is no text may hold any bytes."""
    tensor = TensorProto(name="t", data_type=TensorProto.UINT8, dims=[1], raw_data=b"\xff")
    assert said(with_attribute("Constant", attribute("value", type=AttributeProto.TENSOR, t=tensor))) == set()


def test_the_same_attribute_at_many_nodes() -> None:
    nodes = [node("Softmax", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}", axis=1) for i in range(50)]
    nodes[20].attribute.append(nodes[20].attribute[0])
    nodes[30].attribute[0].ClearField("type")
    found = validate(model(nodes, [value("v0", [1, 4])], [value("v50", [1, 4])]))
    assert [(f.rule, f.where) for f in found if f.rule.startswith("ATT-")] == [
        ("ATT-02", "node 'n20' (Softmax)"),
        ("ATT-06", "attribute 'axis' of node 'n30' (Softmax)"),
    ]
