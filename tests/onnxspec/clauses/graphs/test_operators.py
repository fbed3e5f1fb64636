"""Clauses about operators: which there are, and which attributes theirs are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from hwflow.onnxspec import validate
from hwflow.onnxspec.graphs.schemas import find_operator, find_schema, known_domains
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.twins import Twin, check

ONES = np.ones(4, np.float32)
RELU = node("Relu", ["x"], ["y"])
# onnx.checker lets these old experiments pass in the default domain.
EXPERIMENTS = (
    "ATen",
    "Affine",
    "ConstantFill",
    "Crop",
    "DynamicSlice",
    "GRUUnit",
    "GivenTensorFill",
    "ImageScaler",
    "ParametricSoftplus",
    "Scale",
    "ScaledTanh",
)
ML = "ai.onnx.ml"


def binarizer(version: int) -> onnx.ModelProto:
    return model([node("Binarizer", ["x"], ["y"], name="n", domain=ML)], opsets={"": 21, ML: version})


def body(*nodes: onnx.NodeProto, opset: int = 21, attributes: tuple[str, ...] = ()) -> onnx.ModelProto:
    """A model of opset 21 that calls a function with these nodes, from p to q."""
    function = helper.make_function(
        "org.example", "F", ["p"], ["q"], nodes, [helper.make_opsetid("", opset)], list(attributes)
    )
    call = node("F", ["x"], ["y"], name="call", domain="org.example", **dict.fromkeys(attributes, 1))
    return model([call], opsets={"": 21, "org.example": 1}, functions=[function])


def refers(op_type: str, **references: tuple[str, int]) -> onnx.NodeProto:
    """A node from p to q whose attributes, of the given types, refer to those of the function around it."""
    made = node(op_type, ["p"], ["q"], name="n")
    for name, (of_function, kind) in references.items():
        made.attribute.add(name=name, ref_attr_name=of_function, type=kind)
    return made


def untyped(**values: int | float) -> onnx.ModelProto:
    """A model of IR version 1, which had no types of attributes."""
    softmax = node("Softmax", ["x"], ["y"], name="n")
    for name, number in values.items():
        field = {"i": number} if isinstance(number, int) else {"f": number}
        softmax.attribute.add(name=name, **field)
    return model([softmax], ir_version=1, opsets={"": 1})


ONE_VALUE = (
    "Constant (version 21) must have exactly one of the attributes 'sparse_value', 'value', 'value_float', "
    "'value_floats', 'value_int', 'value_ints', 'value_string', 'value_strings'"
)


def constant(**values: Any) -> onnx.ModelProto:
    """A Constant that is added to x."""
    return model([node("Constant", [], ["c"], name="n", **values), node("Add", ["x", "c"], ["y"])])


TWINS = [
    Twin(
        "OPR-01",
        bad=model([node("Rellu", ["x"], ["y"], name="n")]),
        good=model([node("Relu", ["x"], ["y"], name="n")]),
        findings=[
            "error: node 'n' (Rellu): the operator must be in version 21 of operator set 'ai.onnx', but 'Rellu' is not "
            "[OPR-01]\n  remedy: did you mean Relu?"
        ],
    ),
    Twin(
        "OPR-01",
        bad=body(node("Gelu", ["p"], ["q"], name="n"), opset=13),
        good=body(node("Gelu", ["p"], ["q"], name="n"), opset=20),
        findings=[
            "error: node 'n' (Gelu) in function 'org.example.F': the operator must be in version 13 of operator set "
            "'ai.onnx', but Gelu came with version 20 [OPR-01]\n  remedy: export the model with opset 20 or higher"
        ],
        name="by-the-function's-own-opset",
    ),
    Twin(
        "OPR-01",
        bad=model([node("GroupNormalization", ["x", "s", "s"], ["y"], name="n", num_groups=2)], opsets={"": 18}),
        good=model(
            [node("GroupNormalization", ["x", "s", "s"], ["y"], name="n", num_groups=2)],
            [value("x", [1, 4])],
            constants={"s": ONES},
        ),
        findings=[
            "error: node 'n' (GroupNormalization): the operator must not be deprecated, but GroupNormalization is in "
            "version 18 of operator set 'ai.onnx' [OPR-01]\n  remedy: export the model with the operator that replaces "
            "it"
        ],
        name="deprecated",
    ),
    Twin(
        "OPR-01",
        bad=model(
            [
                RELU,
                node("Foo", ["x"], ["z"], name="n", domain="org.other"),
                node("Bar", ["x"], ["v"], domain="org.other"),
                node("Foo", ["x"], ["w"], domain="org.other"),
            ],
            opsets={"": 21, "org.other": 1},
        ),
        good=model(
            [RELU, node("Foo", ["x"], ["z"], name="n", domain="com.microsoft")], opsets={"": 21, "com.microsoft": 1}
        ),
        findings=[
            "warning: node 'n' (Foo): the operators that a graph uses must be declared by the operator sets it "
            "imports, but set 'org.other' is not known ('Bar', 'Foo'): its nodes cannot be checked [OPR-01]\n  remedy: "
            "replace the nodes by operators of a known set, or add functions for them to the model"
        ],
        name="of-an-unknown-set",
    ),
    Twin(
        "OPR-01",
        bad=binarizer(6),
        good=binarizer(5),
        findings=[
            "error: node 'n' (Binarizer): operator set 'ai.onnx.ml' must be of a version from 1 to 5, not 6 "
            "('Binarizer') [OPR-01]\n  remedy: export the model with version 5 or lower of 'ai.onnx.ml'"
        ],
        name="version-too-high",
    ),
    Twin(
        "OPR-01",
        bad=model([node("Binarize", ["x"], ["y"], name="n", domain=ML)], opsets={"": 21, ML: 5}),
        good=binarizer(5),
        findings=[
            "error: node 'n' (Binarize): the operator must be in version 5 of operator set 'ai.onnx.ml', but "
            "'Binarize' is not [OPR-01]\n  remedy: did you mean Binarizer?"
        ],
        name="of-another-known-set",
    ),
    Twin(
        "NOD-33",
        bad=model([node("LeakyRelu", ["x"], ["y"], name="n", alfa=0.5)]),
        good=model([node("LeakyRelu", ["x"], ["y"], name="n", alpha=0.5)]),
        findings=[
            "error: node 'n' (LeakyRelu): an attribute of LeakyRelu (version 16) must be one of 'alpha', not 'alfa' "
            "[NOD-33]\n  remedy: did you mean alpha?"
        ],
        name="unknown",
    ),
    Twin(
        "NOD-33",
        bad=model([node("Relu", ["x"], ["y"], name="n", axis=1, alpha=1.0)]),
        good=model([node("Relu", ["x"], ["y"], name="n")]),
        findings=[
            f"error: node 'n' (Relu): an attribute of Relu (version 14) must be absent, not '{name}' [NOD-33]\n"
            "  remedy: remove the attribute"
            for name in ("alpha", "axis")
        ],
        name="none-at-all",
    ),
    Twin(
        "NOD-33",
        bad=model([node("Relu", ["x"], ["y"], name="n", __mark=1)]),
        good=model([node("Relu", ["x"], ["y"], name="n")]),
        findings=[
            "warning: node 'n' (Relu): an attribute of Relu (version 14) must be absent, not '__mark' [NOD-33]\n"
            "  remedy: remove the attribute"
        ],
        name="internal",
    ),
    Twin(
        "NOD-33",
        bad=model([node("LayerNormalization", ["x", "s"], ["y"], name="n", mark=1)], constants={"s": ONES}),
        good=model([node("LayerNormalization", ["x", "s"], ["y"], name="n", axis=1)], constants={"s": ONES}),
        findings=[
            "warning: node 'n' (LayerNormalization): an attribute of LayerNormalization (version 17) must be one of "
            "'axis', 'epsilon', 'stash_type', not 'mark' [NOD-33]\n  remedy: remove the attribute"
        ],
        name="unchecked",
    ),
    Twin(
        "NOD-33",
        bad=constant(value_float=1.0, value_int=1),
        good=constant(value_float=1.0),
        findings=[
            f"error: node 'n' (Constant): {ONE_VALUE}, not 'value_float', 'value_int' [NOD-33]\n"
            "  remedy: remove all but one of them"
        ],
        name="two-values",
    ),
    Twin(
        "NOD-33",
        bad=constant(),
        good=constant(value_floats=[1.0]),
        findings=[
            f"error: node 'n' (Constant): {ONE_VALUE}, not none [NOD-33]\n  remedy: give the value in one of them"
        ],
        name="no-value",
    ),
    Twin(
        "NOD-33",
        bad=model([node("Concat", ["x"], ["y"], name="n")]),
        good=model([node("Concat", ["x"], ["y"], name="n", axis=1)]),
        findings=[
            "error: node 'n' (Concat): Concat (version 13) must have attribute 'axis', but it is missing [NOD-33]\n"
            "  remedy: add attribute 'axis'"
        ],
        name="missing",
    ),
    Twin(
        "NOD-33",
        bad=body(refers("Concat"), attributes=("a",)),
        good=body(refers("Concat", axis=("a", 2)), attributes=("a",)),
        findings=[
            "error: node 'n' (Concat) in function 'org.example.F': Concat (version 13) must have attribute 'axis', "
            "but it is missing [NOD-33]\n  remedy: add attribute 'axis'"
        ],
        name="in-a-function",
    ),
    Twin(
        "NOD-34",
        bad=model([node("Softmax", ["x"], ["y"], name="n", axis=1.0)]),
        good=model([node("Softmax", ["x"], ["y"], name="n", axis=1)]),
        findings=[
            "error: node 'n' (Softmax): attribute 'axis' of Softmax (version 13) must be of type INT, not FLOAT "
            "[NOD-34]\n  remedy: give the attribute the type that the operator says"
        ],
    ),
    Twin(
        "NOD-34",
        bad=model([node("Transpose", ["x"], ["y"], name="n", perm="01")]),
        good=model([node("Transpose", ["x"], ["y"], name="n", perm=[0, 1])]),
        findings=[
            "error: node 'n' (Transpose): attribute 'perm' of Transpose (version 21) must be of type INTS, not STRING "
            "[NOD-34]\n  remedy: give the attribute the type that the operator says"
        ],
        name="list",
    ),
    Twin(
        "NOD-34",
        bad=body(refers("Softmax", axis=("a", 1)), attributes=("a",)),
        good=body(refers("Softmax", axis=("a", 2)), attributes=("a",)),
        findings=[
            "error: node 'n' (Softmax) in function 'org.example.F': attribute 'axis' of Softmax (version 13) must be "
            "of type INT, not FLOAT [NOD-34]\n  remedy: give the attribute the type that the operator says"
        ],
        name="reference",
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


@pytest.mark.parametrize("op_type", EXPERIMENTS)
def test_old_experiments_are_no_operators(op_type: str) -> None:
    found = [f for f in validate(model([node(op_type, ["x"], ["y"], name="n")])) if f.rule == "OPR-01"]
    message = f"the operator must be in version 21 of operator set 'ai.onnx', but '{op_type}' is not"
    assert [(f.severity, f.message) for f in found] == [("error", message)]


def test_before_attributes_had_types() -> None:
    assert [f.message for f in validate(untyped(axis=1)) if f.rule == "NOD-34"] == []
    assert [f.message for f in validate(untyped(axis=1.0)) if f.rule == "NOD-34"] == [
        "attribute 'axis' of Softmax (version 1) must be of type INT, not FLOAT"
    ]


def test_a_function_goes_before_an_operator() -> None:
    """A function may be called like an operator; then the node is a call."""
    relu = helper.make_function(
        "", "Relu", ["p", "slope"], ["q"], [node("PRelu", ["p", "slope"], ["q"])], [helper.make_opsetid("", 21)]
    )
    proto = model([node("Relu", ["x", "x"], ["y"], mark=1)], functions=[relu])
    assert {f.rule for f in validate(proto)} & {"OPR-01", "NOD-30", "NOD-33"} == set()


def test_overloads_are_functions_of_their_own() -> None:
    one = helper.make_function(
        "org.example", "F", ["p"], ["q"], [node("Relu", ["p"], ["q"])], [helper.make_opsetid("", 21)], overload="one"
    )
    calls = [
        node("F", ["x"], ["a"], domain="org.example", overload="one"),
        node("F", ["x"], ["y"], name="n", domain="org.example", overload="two"),
    ]
    proto = model(calls, opsets={"": 21, "org.example": 1}, functions=[one])
    assert [(f.severity, f.where) for f in validate(proto) if f.rule == "OPR-01"] == [("warning", "node 'n' (F)")]


@pytest.mark.parametrize("version", [-(2**63), -1, 0, 2**31, 2**63 - 1])
@pytest.mark.parametrize("domain", ["", ML, "org.other"])
def test_absurd_versions(version: int, domain: str) -> None:
    validate(model([node("Relu", ["x"], ["y"], domain=domain)], opsets={"": 21, domain: version}))
    assert (find_schema("Relu", version, domain) is not None) == (version > 0 and domain == "")
    assert (find_operator("Relu", version, domain) is not None) == (version > 0 and domain == "")


def test_domains_that_onnx_knows() -> None:
    assert known_domains()[""] == onnx.defs.onnx_opset_version()
    assert {ML, "ai.onnx.training", "ai.onnx.preview.training"} <= known_domains().keys()
