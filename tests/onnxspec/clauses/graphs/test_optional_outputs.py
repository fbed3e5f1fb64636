"""The clause about optional outputs that an operator does not compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.twins import Twin, check

X = [value("x", [1, 4, 2, 2])]
Y = [value("y", [1, 4, 2, 2])]
STATISTICS = {name: np.ones(4, np.float32) for name in ("s", "b", "m", "v")}


def batch_norm(outputs: list[str], opset: int, reader: str = "", **attributes: object) -> onnx.ModelProto:
    nodes = [node("BatchNormalization", ["x", "s", "b", "m", "v"], outputs, name="n", **attributes)]
    if reader:
        nodes.append(node("Neg", [reader], ["read"]))
    return model(nodes, X, Y, STATISTICS, {"": opset})


def dropout(outputs: list[str], opset: int, reader: str = "", **attributes: object) -> onnx.ModelProto:
    nodes = [node("Dropout", ["x"], outputs, name="n", **attributes)]
    if reader:
        nodes.append(node("Neg", [reader], ["read"]))
    return model(nodes, X, Y, opsets={"": opset})


def in_function(outputs: list[str], training_mode: int | None) -> onnx.ModelProto:
    """A function's body with a BatchNormalization; None: the caller says whether it trains."""
    norm = node("BatchNormalization", ["p", "s", "b", "m", "v"], outputs, name="n")
    if training_mode is None:
        norm.attribute.add(name="training_mode", ref_attr_name="train", type=onnx.AttributeProto.INT)
    else:
        norm.attribute.append(helper.make_attribute("training_mode", training_mode))
    function = helper.make_function(
        "org.example", "F", ["p", "s", "b", "m", "v"], ["q"], [norm], [helper.make_opsetid("", 15)], ["train"]
    )
    call = node("F", ["x", "s", "b", "m", "v"], ["y"], name="call", domain="org.example", train=1)
    return model([call], X, Y, STATISTICS, {"": 15, "org.example": 1}, functions=[function])


def batch_norm_findings(version: int, names: list[tuple[str, str]], severity: str = "error") -> list[str]:
    return [
        f"{severity}: node 'n' (BatchNormalization): output {k} ({formal}) of BatchNormalization (version {version}) "
        f"must have no name, as it is not computed with {'training_mode=0' if version > 9 else 'is_test=1'}, but it "
        f"is '{name}' [OPT-06]\n  remedy: leave the output out"
        for k, (formal, name) in enumerate(names, 1)
        if name
    ]


def dropout_findings(version: int, severity: str) -> list[str]:
    return [
        f"{severity}: node 'n' (Dropout): output 1 (mask) of Dropout (version {version}) must have no name, as it is "
        "not computed with is_test=1, but it is 'mask' [OPT-06]\n  remedy: leave the output out"
    ]


TWINS = [
    Twin(
        "OPT-06",
        bad=batch_norm(["y", "mean", "var"], 15),
        good=batch_norm(["y", "mean", "var"], 15, training_mode=1),
        findings=batch_norm_findings(15, [("running_mean", "mean"), ("running_var", "var")]),
    ),
    Twin(
        "OPT-06",
        bad=batch_norm(["y", "", "var"], 14, training_mode=0),
        good=batch_norm(["y"], 14, training_mode=0),
        findings=batch_norm_findings(14, [("running_mean", ""), ("running_var", "var")]),
        name="mode-stated",
    ),
    Twin(
        "OPT-06",
        bad=batch_norm(["y", "mean", "", "", ""], 6, is_test=1),
        good=batch_norm(["y"], 6, is_test=1),
        findings=batch_norm_findings(6, [("mean", "mean")], "warning"),
        name="old-and-not-read",
    ),
    Twin(
        "OPT-06",
        bad=batch_norm(["y", "mean", "", "", ""], 6, "mean", is_test=1),
        good=batch_norm(["y", "mean", "", "", ""], 6, "mean", is_test=0),
        findings=batch_norm_findings(6, [("mean", "mean")]),
        name="old-and-read",
    ),
    Twin(
        "OPT-06",
        bad=batch_norm(["y", "mean", "", "", ""], 1, is_test=1, consumed_inputs=[0, 0, 0, 1, 1]),
        good=batch_norm(["y"], 1, is_test=1, consumed_inputs=[0, 0, 0, 1, 1]),
        findings=batch_norm_findings(1, [("mean", "mean")], "warning"),
        name="oldest",
    ),
    Twin(
        "OPT-06",
        bad=dropout(["y", "mask"], 6, is_test=1),
        good=dropout(["y", "mask"], 6),
        findings=dropout_findings(6, "warning"),
        name="mask",
    ),
    Twin(
        "OPT-06",
        bad=dropout(["y", "mask"], 1, "mask", is_test=1),
        good=dropout(["y"], 1, is_test=1),
        findings=dropout_findings(1, "error"),
        name="mask-read",
    ),
    Twin(
        "OPT-06",
        bad=in_function(["q", "mean", ""], 0),
        good=in_function(["q"], 0),
        findings=[
            "error: node 'n' (BatchNormalization) in function 'org.example.F': output 1 (running_mean) of "
            "BatchNormalization (version 15) must have no name, as it is not computed with training_mode=0, but it is "
            "'mean' [OPT-06]\n  remedy: leave the output out"
        ],
        name="in-a-function",
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


@pytest.mark.parametrize(
    "proto",
    [
        batch_norm(["y", "mean", "var", "a", "b"], 7),  # these versions train where further outputs are named
        batch_norm(["y", "mean", "var", "a", "b"], 9),
        batch_norm(["y", "mean", "var"], 14, training_mode=1),
        in_function(["q", "mean", ""], None),  # the caller trains
        dropout(["y", "mask"], 7),
        dropout(["y", "mask"], 13),  # all ones
        model(
            [node("Attention", ["x", "x", "x"], ["y", "k", "v"])], X, Y, opsets={"": 23}
        ),  # what is kept for the next step, from the first on
        model([node("MaxPool", ["x"], ["y", "i"], kernel_shape=[1, 1])], X, Y),
    ],
)
def test_what_is_computed(proto: onnx.ModelProto) -> None:
    assert [f for f in validate(proto) if f.rule == "OPT-06"] == []


def test_outputs_beyond_the_last_are_another_clause() -> None:
    proto = batch_norm(["y", "mean", "var", "a"], 15)
    assert [f.message[:8] for f in validate(proto) if f.rule == "OPT-06"] == ["output 1", "output 2"]
