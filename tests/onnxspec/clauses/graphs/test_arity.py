"""Clauses about the number of a node's inputs and outputs, and which of them may be left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hwflow.onnxspec import validate
from tests.onnxspec.build import FLOAT, model, node, value
from tests.onnxspec.clauses.twins import Twin, check


def with_function(*nodes: onnx.NodeProto, **more: object) -> onnx.ModelProto:
    """A model with function org.example.Sum2: a, b -> s, d."""
    function = helper.make_function(
        "org.example",
        "Sum2",
        ["a", "b"],
        ["s", "d"],
        [node("Add", ["a", "b"], ["s"]), node("Sub", ["a", "b"], ["d"])],
        [helper.make_opsetid("", 21)],
    )
    return model(nodes, opsets={"": 21, "org.example": 1}, functions=[function], **more)


def function_body(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    """A model that calls a function with these nodes, from p to q."""
    function = helper.make_function("org.example", "F", ["p"], ["q"], nodes, [helper.make_opsetid("", 21)])
    call = node("F", ["x"], ["y"], name="call", domain="org.example")
    return model([call], opsets={"": 21, "org.example": 1}, functions=[function])


def branch(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    """A model with an If whose branches are these nodes, from x to q."""
    graphs = [helper.make_graph(nodes, name, [], [value("q", [1, 4])]) for name in ("yes", "no")]
    choice = node("If", ["c"], ["y"], name="if", then_branch=graphs[0], else_branch=graphs[1])
    return model([choice], [value("x", [1, 4]), value("c", [], TensorProto.BOOL)])


def training(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    """A model with an algorithm graph of these nodes, from x to q."""
    proto = model([node("Relu", ["x"], ["y"])])
    proto.training_info.add().algorithm.CopyFrom(helper.make_graph(nodes, "step", [], [value("q", [1, 4])]))
    return proto


def call(inputs: list[str], outputs: list[str]) -> onnx.NodeProto:
    return node("Sum2", inputs, outputs, name="call", domain="org.example")


def batch_norm(outputs: list[str], opset: int, **mode: int) -> onnx.ModelProto:
    norm = node("BatchNormalization", ["x", "s", "s", "s", "s"], outputs, name="n", **mode)
    shape = [1, 4, 2, 2]
    ones = np.ones(4, np.float32)
    return model([norm], [value("x", shape)], [value("y", shape)], {"s": ones}, {"": opset})


LOOP_BODY = helper.make_graph(
    [node("Identity", ["c"], ["more"]), node("Relu", ["v"], ["w"])],
    "body",
    [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("v", [1, 4])],
    [value("more", [], TensorProto.BOOL), value("w", [1, 4])],
)
ADD = "must have 2 inputs (A, B), not 1"

TWINS = [
    Twin(
        "NOD-30",
        bad=model([node("Add", ["x"], ["y"], name="n")]),
        good=model([node("Add", ["x", "x"], ["y"], name="n")]),
        findings=[f"error: node 'n' (Add): Add (version 14) {ADD} [NOD-30]\n  remedy: add the missing input"],
        name="too-few",
    ),
    Twin(
        "NOD-30",
        bad=model([node("Clip", ["x", "", "", ""], ["y"], name="n")]),
        good=model([node("Clip", ["x", "", ""], ["y"], name="n")]),
        findings=[
            "error: node 'n' (Clip): Clip (version 13) must have 1 to 3 inputs (input, [min], [max]), not 4 [NOD-30]\n"
            "  remedy: remove the last input"
        ],
        name="too-many-even-empty",
    ),
    Twin(
        "NOD-30",  # max and min were attributes before version 11
        bad=model([node("Clip", ["x", "l", "l"], ["y"], name="n")], constants={"l": [0.0]}, opsets={"": 10}),
        good=model([node("Clip", ["x"], ["y"], name="n")], opsets={"": 10}),
        findings=[
            "error: node 'n' (Clip): Clip (version 6) must have 1 input (input), not 3 [NOD-30]\n"
            "  remedy: remove the last 2 inputs"
        ],
        name="of-another-version",
    ),
    Twin(
        "NOD-30",
        bad=model([node("Constant", ["x"], ["c"], name="n", value_float=1.0), node("Relu", ["x"], ["y"])]),
        good=model([node("Constant", [], ["c"], name="n", value_float=1.0), node("Relu", ["x"], ["y"])]),
        findings=[
            "error: node 'n' (Constant): Constant (version 21) must have no inputs, not 1 [NOD-30]\n"
            "  remedy: remove the last input"
        ],
        name="none",
    ),
    Twin(
        "NOD-30",
        bad=model([node("Concat", [], ["y"], name="n", axis=1)]),
        good=model([node("Concat", ["x"], ["y"], name="n", axis=1)]),
        findings=[
            "error: node 'n' (Concat): Concat (version 13) must have at least 1 input (inputs...), not 0 [NOD-30]\n"
            "  remedy: add the missing input"
        ],
        name="variadic",
    ),
    Twin(
        "NOD-30",
        bad=with_function(call(["x", "x", "x"], ["y", "d"])),
        good=with_function(call(["x", "x"], ["y", "d"])),
        findings=[
            "error: node 'call' (Sum2): function 'org.example.Sum2' must have at most 2 inputs ([a], [b]), not 3 "
            "[NOD-30]\n  remedy: remove the last input"
        ],
        name="of-a-function",
    ),
    Twin(
        "NOD-30",
        bad=function_body(node("Add", ["p"], ["q"], name="n")),
        good=function_body(node("Add", ["p", "p"], ["q"], name="n")),
        findings=[
            f"error: node 'n' (Add) in function 'org.example.F': Add (version 14) {ADD} [NOD-30]\n"
            "  remedy: add the missing input"
        ],
        name="in-a-function",
    ),
    Twin(
        "NOD-30",
        bad=branch(node("Add", ["x"], ["q"], name="n")),
        good=branch(node("Add", ["x", "x"], ["q"], name="n")),
        findings=[
            f"error: node 'n' (Add) in '{name}' of node 'if' (If): Add (version 14) {ADD} [NOD-30]\n"
            "  remedy: add the missing input"
            for name in ("else_branch", "then_branch")
        ],
        name="in-a-subgraph",
    ),
    Twin(
        "NOD-30",
        bad=training(node("Add", ["y"], ["q"], name="n")),
        good=training(node("Add", ["y", "y"], ["q"], name="n")),
        findings=[
            f"error: node 'n' (Add) in algorithm graph of training_info[0]: Add (version 14) {ADD} [NOD-30]\n"
            "  remedy: add the missing input"
        ],
        name="in-a-training-graph",
    ),
    Twin(
        "NOD-31",
        bad=model([node("Relu", ["x"], ["y", "z"], name="n")]),
        good=model([node("Relu", ["x"], ["y"], name="n")]),
        findings=[
            "error: node 'n' (Relu): Relu (version 14) must have 1 output (Y), not 2 [NOD-31]\n"
            "  remedy: remove the last output"
        ],
        name="too-many",
    ),
    Twin(
        "NOD-31",
        bad=model([node("TopK", ["x", "k"], ["y"], name="n")], constants={"k": [4]}),
        good=model([node("TopK", ["x", "k"], ["y", "i"], name="n")], constants={"k": [4]}),
        findings=[
            "error: node 'n' (TopK): TopK (version 11) must have 2 outputs (Values, Indices), not 1 [NOD-31]\n"
            "  remedy: add the missing output"
        ],
        name="too-few",
    ),
    Twin(
        "NOD-31",
        bad=with_function(call(["x", "x"], ["y", "d", "e", "f"])),
        good=with_function(call(["x", "x"], ["y", "d"])),
        findings=[
            "error: node 'call' (Sum2): function 'org.example.Sum2' must have at most 2 outputs ([s], [d]), not 4 "
            "[NOD-31]\n  remedy: remove the last 2 outputs"
        ],
        name="of-a-function",
    ),
    *(
        Twin(
            "NOD-31",
            bad=batch_norm(["y", "mean"], opset, **mode),
            good=batch_norm(["y", *others], opset, **mode),
            findings=[
                f"error: node 'n' (BatchNormalization): BatchNormalization (version {opset}) must have 1 or "
                f"{1 + len(others)} outputs (Y, {formal}), not 2 [NOD-31]\n"
                "  remedy: name all outputs, or only the first"
            ],
            name=f"one-or-all-{opset}",
        )
        for opset, mode, others, formal in (
            (9, {}, ["mean", "var", "a", "b"], "[mean], [var], [saved_mean], [saved_var]"),
            (15, {"training_mode": 1}, ["mean", "var"], "[running_mean], [running_var]"),
        )
    ),
    Twin(
        "VAR-03",
        bad=model([node("Concat", [], ["y"], name="n", axis=1)]),
        good=model([node("Concat", ["x"], ["y"], name="n", axis=1)]),
        findings=[
            "error: node 'n' (Concat): Concat (version 13) must have at least 1 input (inputs...), not 0 [VAR-03]\n"
            "  remedy: add the missing input"
        ],
    ),
    Twin(
        "VAR-03",  # a loop without variables is legal, but not in version 1
        bad=model([node("Loop", ["", "on"], ["y"], name="n", body=LOOP_BODY)], constants={"on": False}, opsets={"": 1}),
        good=model(
            [node("Loop", ["", "on", "x"], ["y"], name="n", body=LOOP_BODY)], constants={"on": False}, opsets={"": 1}
        ),
        findings=[
            "error: node 'n' (Loop): Loop (version 1) must have at least 3 inputs ([M], [cond], v_initial...), not 2 "
            "[VAR-03]\n  remedy: add the missing input"
        ],
        name="behind-others",
    ),
    Twin(
        "VAR-04",
        bad=model([node("Split", ["x"], [], name="n", axis=1, num_outputs=1), node("Relu", ["x"], ["y"])]),
        good=model([node("Split", ["x"], ["s"], name="n", axis=1, num_outputs=1), node("Relu", ["x"], ["y"])]),
        findings=[
            "error: node 'n' (Split): Split (version 18) must have at least 1 output (outputs...), not 0 [VAR-04]\n"
            "  remedy: add the missing output"
        ],
    ),
    Twin(
        "OPT-04",
        bad=model([node("Add", ["x", ""], ["y"], name="n")]),
        good=model([node("Add", ["x", "x"], ["y"], name="n")]),
        findings=[
            "error: node 'n' (Add): input 1 (B) of Add (version 14) is not optional and must have a name, but it is "
            "the empty string [OPT-04]\n  remedy: name the value to read"
        ],
        name="input",
    ),
    Twin(
        "OPT-04",
        bad=model([node("TopK", ["x", "k"], ["", "i"], name="n"), node("Relu", ["x"], ["y"])], constants={"k": [4]}),
        good=model([node("TopK", ["x", "k"], ["v", "i"], name="n"), node("Relu", ["x"], ["y"])], constants={"k": [4]}),
        findings=[
            "error: node 'n' (TopK): output 0 (Values) of TopK (version 11) is not optional and must have a name, but "
            "it is the empty string [OPT-04]\n  remedy: name the output"
        ],
        name="output",
    ),
    Twin(
        "OPT-04",
        bad=model([node("Sum", ["x", "", "x"], ["y"], name="n")]),
        good=model([node("Sum", ["x", "x"], ["y"], name="n")]),
        findings=[
            "error: node 'n' (Sum): all inputs of Sum (version 13) for its variadic parameter data_0 must have names, "
            "but input 1 is the empty string [OPT-04]\n  remedy: name the value to read"
        ],
        name="variadic-input",
    ),
    Twin(
        "OPT-04",
        bad=model([node("Split", ["x"], ["s", ""], name="n", axis=1, num_outputs=2), node("Relu", ["x"], ["y"])]),
        good=model([node("Split", ["x"], ["s", "t"], name="n", axis=1, num_outputs=2), node("Relu", ["x"], ["y"])]),
        findings=[
            "error: node 'n' (Split): all outputs of Split (version 18) for its variadic parameter outputs must have "
            "names, but output 1 is the empty string [OPT-04]\n  remedy: name the output"
        ],
        name="variadic-output",
    ),
    Twin(
        "OPT-04",
        bad=model([node("Sum", ["x", "", "x", ""], ["y"], name="n")]),
        good=model([node("Sum", ["x", "x"], ["y"], name="n")]),
        findings=[
            "error: node 'n' (Sum): all inputs of Sum (version 13) for its variadic parameter data_0 must have names, "
            "but 2 inputs from 1 on are the empty string [OPT-04]\n  remedy: name the value to read"
        ],
        name="several",
    ),
    Twin(
        "OPT-04",
        bad=function_body(node("Relu", [""], ["q"], name="n")),
        good=function_body(node("Relu", ["p"], ["q"], name="n")),
        findings=[
            "error: node 'n' (Relu) in function 'org.example.F': input 0 (X) of Relu (version 14) is not optional and "
            "must have a name, but it is the empty string [OPT-04]\n  remedy: name the value to read"
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
        model([node("Clip", ["x", "", "h"], ["y"])], constants={"h": FLOAT_ONE})
        for FLOAT_ONE in [helper.make_tensor("h", FLOAT, [], [1.0])]
    ]
    + [
        with_function(call(["x"], ["y"])),
        with_function(call(["", "x"], ["", "y"])),
        # Nothing is known of these.
        model([node("Quant", ["x"], ["y"], domain="onnx.brevitas")], opsets={"": 21, "onnx.brevitas": 1}),
        model([node("Quant", ["", "", ""], ["y"], domain="org.other")], opsets={"": 21, "org.other": 1}),
    ],
)
def test_what_may_be_left_out(proto: onnx.ModelProto) -> None:
    said = {finding.rule for finding in validate(proto)}
    assert said & {"NOD-30", "NOD-31", "VAR-03", "VAR-04", "OPT-04"} == set()


def test_the_same_text_for_the_same_defect() -> None:
    found = validate(model([node("Concat", [], ["y"], name="n", axis=1)]))
    concat = {(f.where, f.message, f.remedy, f.severity) for f in found if f.rule in ("NOD-30", "VAR-03")}
    assert len(concat) == 1
