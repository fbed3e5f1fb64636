"""Which nodes the clauses of ai.onnx.ml look at, and how much they say."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.ml.ml_models import ML, single
from tests.onnxspec.clauses.ml.test_tree_lists import CLS, REG

SCALER: dict[str, Any] = {"offset": [1.0], "scale": [1.0] * 4}
CHILD = "'nodes_truenodeids' must be the id of a node of the same tree"
UNEQUAL = "'offset' and 'scale' must be equally long, not 1 and 4"


def found(proto: onnx.ModelProto) -> list[tuple[str, str]]:
    return [(f.where, f.message) for f in validate(proto) if f.rule.startswith("ml-")]


def scaler(name: str, inside: str, outside: str) -> onnx.NodeProto:
    return node("Scaler", [inside], [outside], name=name, domain=ML, **SCALER)


def test_nodes_of_subgraphs_and_functions() -> None:
    then = helper.make_graph([scaler("inner", "x", "t")], "then", [], [value("t", [1, 4])])
    other = helper.make_graph([node("Neg", ["x"], ["e"])], "other", [], [value("e", [1, 4])])
    choose = node("If", ["c"], ["a"], name="choose", then_branch=then, else_branch=other)
    call = node("F", ["a"], ["y"], domain="org.example")
    opsets = {"": 21, ML: 3, "org.example": 1}
    function = helper.make_function(
        "org.example", "F", ["p"], ["q"], [scaler("body", "p", "q")], [helper.make_opsetid(ML, 1)]
    )
    proto = model(
        [choose, call], [value("x", [1, 4]), value("c", [], onnx.TensorProto.BOOL)], opsets=opsets, functions=[function]
    )
    assert found(proto) == [
        ("node 'inner' (Scaler) in 'then_branch' of node 'choose' (If)", UNEQUAL),
        ("node 'body' (Scaler) in function 'org.example.F'", UNEQUAL),
    ]


def test_a_function_of_that_name_is_another_operator() -> None:
    opsets = [helper.make_opsetid("", 21)]
    function = helper.make_function(ML, "Scaler", ["p"], ["q"], [node("Neg", ["p"], ["q"])], opsets)
    proto = model([node("Scaler", ["x"], ["y"], domain=ML)], opsets={"": 21, ML: 3}, functions=[function])
    assert found(proto) == []


def test_attributes_of_the_function_are_not_decided() -> None:
    inner = node("Scaler", ["p"], ["q"], name="body", domain=ML, offset=[1.0])
    inner.attribute.append(onnx.AttributeProto(name="scale", ref_attr_name="s", type=onnx.AttributeProto.FLOATS))
    function = helper.make_function("org.example", "F", ["p"], ["q"], [inner], [helper.make_opsetid(ML, 1)], ["s"])
    call = node("F", ["x"], ["y"], domain="org.example", s=[1.0] * 4)
    assert found(model([call], opsets={"": 21, "org.example": 1}, functions=[function])) == []


@pytest.mark.parametrize("version", [1, 3, 4, 5])
def test_every_version(version: int) -> None:
    wrong = single("TreeEnsembleRegressor", {**REG, "nodes_truenodeids": [0, 0, 0]}, version)
    cycle = ("node 'n' (TreeEnsembleRegressor)", "a tree must have no cycle, but node 0 of tree 7 is its own child")
    assert cycle in found(wrong)


def test_two_classes_may_have_the_weights_of_one() -> None:
    """As exporters write them: one base value, the weights of class 0 or of class 1."""
    outputs = [value("y", ["N"], onnx.TensorProto.INT64), value("z", ["N", 2])]
    for of in (0, 1):
        legal = {**CLS, "class_ids": [of] * 3, "classlabels_int64s": [0, 1], "base_values": [0.5]}
        assert found(single("TreeEnsembleClassifier", legal, outputs=outputs)) == []


def test_the_first_faults_are_told() -> None:
    count = 100
    lists = {name: entries * count for name, entries in REG.items() if isinstance(entries, list)}
    lists |= {"nodes_treeids": [k // 3 for k in range(3 * count)], "target_treeids": [k // 2 for k in range(2 * count)]}
    proto = single("TreeEnsembleRegressor", {**lists, "n_targets": 1, "nodes_truenodeids": [4, 0, 0] * count})
    told = [message for _, message in found(proto)]
    assert told == [
        *(f"{CHILD}, not 4 at node 0 of tree {k}" for k in range(4)),
        f"{CHILD}, not 4 at node 0 of tree 4 (95 more are wrong)",
    ]


def test_only_so_many_nodes_are_checked() -> None:
    count = 2002
    nodes = [scaler(f"n{k}", "x", f"y{k}") for k in range(count)]
    told = found(model(nodes, outputs=[value("y0", [1, 4])], opsets={"": 21, ML: 1}))
    assert len(told) == 2001
    assert told[-1] == (
        "node 'n2000' (Scaler)", "at most 2000 nodes of ai.onnx.ml are checked, but there are more from here on"
    )

