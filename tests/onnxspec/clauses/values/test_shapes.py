"""Clauses about shapes and dimension variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.onnxspec.build import FLOAT, model, node, value
from tests.onnxspec.clauses.twins import Twin, check, findings_of

pytestmark = pytest.mark.usefixtures("measured")

Dims = Sequence[int | str | None] | None

RELU = node("Relu", ["x"], ["y"], name="relu")
SIZE = "\n  remedy: correct the size that is wrong, or give different sizes different variables"
UNSET = "\n  remedy: leave the dimension unset if its size is unknown"


def ends(shape: Dims, output: Dims = None) -> onnx.ModelProto:
    """Input and output of one Relu."""
    return model([RELU], [value("x", shape)], [value("y", shape if output is None else output)])


def pair(first: Dims, second: Dims, out: Dims = ("K",)) -> onnx.ModelProto:
    """Two inputs, each through a Relu; the output of the first is ``out``."""
    nodes = [node("Relu", ["x"], ["y"], name="r0"), node("Relu", ["z"], ["w"], name="r1")]
    return model(nodes, [value("x", first), value("z", second)], [value("y", out), value("w", [4])])


def weight(shape: Dims, other: Dims) -> onnx.ModelProto:
    """Initializers of sizes [3] and [4] that are inputs too, as shapes ``shape`` and ``other``."""
    nodes = [node("Relu", ["a"], ["b"], name="r0"), node("Relu", ["c"], ["y"], name="r1")]
    return model(
        nodes,
        [value("a", shape), value("c", other)],
        [value("y", [4])],
        constants={"a": np.zeros(3, np.float32), "c": np.zeros(4, np.float32)},
    )


def chosen(shape: Dims) -> onnx.ModelProto:
    """An If that gives x; a branch says that its value has ``shape``."""

    def branch(name: str) -> onnx.GraphProto:
        nodes = [node("Relu", ["x"], [f"m_{name}"], name=f"r_{name}"), node("Relu", [f"m_{name}"], [name])]
        infos = [value(f"m_{name}", shape if name == "t" else None)]
        return helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=name)], value_info=infos, doc_string="One.")

    choose = node("If", ["c"], ["y"], name="choose", then_branch=branch("t"), else_branch=branch("e"))
    return model([choose], [value("x", ["N", 4]), value("c", [], TensorProto.BOOL)], [value("y", [3, 4])])


def function(shape: Dims) -> onnx.ModelProto:
    """A function called with sizes 2 and 3, that says of a value in it that it has ``shape``."""
    body = helper.make_function(
        "org.example",
        "F",
        ["a"],
        ["b"],
        [node("Relu", ["a"], ["m"]), node("Relu", ["m"], ["b"])],
        [helper.make_opsetid("", 21)],
        value_info=[value("m", shape)],
    )
    calls = [node("F", [x], [y], name=y, domain="org.example") for x, y in (("x", "y"), ("z", "w"))]
    return model(
        calls,
        [value("x", [2]), value("z", [3])],
        [value("y", [2]), value("w", [3])],
        opsets={"": 21, "org.example": 1},
        functions=[body],
    )


def joined(shape: Dims, second: Dims = (5, 4), operator: str = "SequenceConstruct") -> onnx.ModelProto:
    """A sequence of tensors [3, 4] and ``second``, whose tensors the model says to have shape ``shape``."""
    if operator == "SequenceConstruct":
        nodes = [node(operator, ["x", "z"], ["s"], name="join")]
    else:
        nodes = [node("SequenceConstruct", ["x"], ["r"], name="first"), node(operator, ["r", "z"], ["s"], name="join")]
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, shape))
    nodes += [node("SequenceAt", ["s", "zero"], ["t"], name="at"), node("Shape", ["t"], ["y"], name="shape")]
    return model(
        nodes,
        [value("x", [3, 4]), value("z", second)],
        [value("y", [None], TensorProto.INT64)],
        constants={"zero": np.int64(0)},
        value_info=[helper.make_value_info("s", kind)],
    )


def split(shape: Dims, sizes: Sequence[int]) -> onnx.ModelProto:
    """A tensor [5, 4] split along its first axis."""
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, shape))
    nodes = [
        node("SplitToSequence", ["x", "sizes"], ["s"], name="split"),
        node("SequenceAt", ["s", "zero"], ["y"], name="at"),
    ]
    return model(
        nodes,
        [value("x", [5, 4])],
        [value("y", [None, 4])],
        constants={"zero": np.int64(0), "sizes": np.int64(sizes)},
        value_info=[helper.make_value_info("s", kind)],
    )


def says(text: str, clause: str, remedy: str) -> list[str]:
    return [f"{text} [{clause}]{remedy}"]


TWINS = [
    Twin(
        "SHP-06",
        bad=ends([-2, 4], [None, 4]),
        good=ends([2, 4], [None, 4]),
        findings=says("error: input 'x': the size of axis 0 must not be negative, not -2", "SHP-06", UNSET),
    ),
    Twin(
        "SHP-06",
        bad=ends([4, -1], [4, None]),
        good=ends([4, None], [4, None]),
        findings=says(
            "warning: input 'x': the size of axis 1 must not be negative, not -1, which is read as unknown",
            "SHP-06",
            UNSET,
        ),
        name="unknown",
    ),
    Twin(
        "SHP-08",
        bad=ends(["2*N", 4]),
        good=ends(["N_2", 4]),
        findings=says(
            "warning: graph 'graph': dimension variables must be C identifiers, but '2*N' is not",
            "SHP-08",
            "\n  remedy: rename the dimension variables",
        ),
    ),
    Twin(
        "SHP-08",
        bad=ends(["höhe", "batch size"]),
        good=ends(["_h", "N2"]),
        findings=says(
            "warning: graph 'graph': dimension variables must be C identifiers, but 'höhe', 'batch size' are not",
            "SHP-08",
            "\n  remedy: rename the dimension variables",
        ),
        name="several",
    ),
    Twin(
        "SHP-14",
        bad=ends(["", 4], [None, 4]),
        good=ends([None, 4], [None, 4]),
        findings=says(
            "warning: input 'x': the dimension variable of axis 0 must have a name, but it is empty, which is read as "
            "unknown",
            "SHP-14",
            UNSET,
        ),
    ),
    Twin(
        "SHP-15",
        bad=ends(["*", 4], [None, 4]),
        good=ends(["N", 4], [None, 4]),
        findings=says(
            "warning: input 'x': axis 0 must be one dimension, not '*' for any number of them, which is read as "
            "unknown",
            "SHP-15",
            "\n  remedy: leave the shape out if the rank is unknown",
        ),
    ),
    Twin(  # N = 3 at the one, N = 4 at the other
        "SHP-10",
        bad=pair(["N"], ["N"], [3]),
        good=pair(["N"], ["M"], [3]),
        findings=says(
            "error: output 'w': dimension variable 'N' must have one size in the whole model, but it is 3 (output 'y', "
            "axis 0) and 4 (output 'w', axis 0)",
            "SHP-10",
            SIZE,
        ),
    ),
    Twin(  # K = N at the one, which is 3 there, M = 4 at the other, which are equal
        "SHP-10",
        bad=model(
            [node("Relu", ["x"], ["a"]), node("Relu", ["a"], ["y"]), node("Relu", ["z"], ["w"])],
            [value("x", ["N"]), value("z", ["M"])],
            [value("y", [3]), value("w", [4])],
            value_info=[value("a", ["M"])],
        ),
        good=model(
            [node("Relu", ["x"], ["a"]), node("Relu", ["a"], ["y"]), node("Relu", ["z"], ["w"])],
            [value("x", ["N"]), value("z", ["M"])],
            [value("y", [3]), value("w", [4])],
            value_info=[value("a", ["N"])],
        ),
        findings=says(
            "error: output 'w': dimension variables 'N' and 'M' must have one size, because the model makes them "
            "equal, but they are 3 (output 'y', axis 0) and 4 (output 'w', axis 0)",
            "SHP-10",
            SIZE,
        ),
        name="equal",
    ),
    Twin(
        "SHP-10",
        bad=ends([1, 4], [1, 5]),
        good=ends([1, 4], [1, 4]),
        findings=says(
            "error: output 'y': the size of axis 1 must be 4, which node 'relu' (Relu) gives it, not 5", "SHP-10", SIZE
        ),
        name="integers",
    ),
    Twin(
        "SHP-10",
        bad=weight(["N"], ["N"]),
        good=weight(["N"], ["M"]),
        findings=says(
            "error: input 'c': dimension variable 'N' must have one size in the whole model, but it is 3 (input 'a', "
            "axis 0) and 4 (input 'c', axis 0)",
            "SHP-10",
            SIZE,
        ),
        name="initializers",
    ),
    Twin(
        "SHP-10",
        bad=chosen([2, 4]),
        good=chosen(["N", 4]),
        findings=says(
            "error: value 'm_t' in 'then_branch' of node 'choose' (If): dimension variable 'N' must have one size in "
            "the whole model, but it is 3 (output 'y', axis 0) and 2 (value 'm_t' in 'then_branch' of node 'choose' "
            "(If), axis 0)",
            "SHP-10",
            SIZE,
        ),
        name="through-subgraph",
    ),
    Twin(
        "SHP-10",
        bad=chosen(["N", 5]),
        good=chosen(["N", 4]),
        findings=says(
            "error: value 'm_t' in 'then_branch' of node 'choose' (If): the size of axis 1 must be 4, which node 'r_t' "
            "(Relu) in 'then_branch' of node 'choose' (If) gives it, not 5",
            "SHP-10",
            SIZE,
        ),
        name="subgraph",
    ),
    Twin(
        "SHP-11",
        bad=joined(["A", 4]),
        good=joined([None, 4]),
        findings=says(
            "error: value 's': the type must not state the size of axis 0, for the tensors in the sequence have sizes "
            "3, 5, but it states 'A'",
            "SHP-11",
            "\n  remedy: leave the dimension unset",
        ),
    ),
    Twin(
        "SHP-11",
        bad=joined([3, 4], operator="SequenceInsert"),
        good=joined([3, 4], (3, 4), "SequenceInsert"),
        findings=says(
            "error: value 's': the type must not state the size of axis 0, for the tensors in the sequence have sizes "
            "3, 5, but it states 3",
            "SHP-11",
            "\n  remedy: leave the dimension unset",
        ),
        name="insert",
    ),
    Twin(
        "SHP-11",
        bad=split(["A", 4], [2, 3]),
        good=split([None, 4], [2, 3]),
        findings=says(
            "error: value 's': the type must not state the size of axis 0, for the tensors in the sequence have sizes "
            "2, 3, but it states 'A'",
            "SHP-11",
            "\n  remedy: leave the dimension unset",
        ),
        name="split",
    ),
    Twin(
        "SHP-12",
        bad=joined([None, None], (3,)),
        good=joined(None, (3,)),
        findings=says(
            "error: value 's': the type must not state a shape, for the tensors in the sequence have 1 and 2 "
            "dimensions, but it states [?, ?]",
            "SHP-12",
            "\n  remedy: leave the shape out",
        ),
    ),
    Twin(
        "SHP-16",
        bad=ends([1, 4], [1, 4, 1]),
        good=ends([1, 4], [1, 4]),
        findings=says(
            "error: output 'y': the shape must have 2 dimensions, which node 'relu' (Relu) gives it, not 3: [1, 4, 1]",
            "SHP-16",
            "\n  remedy: correct the shape that the model states",
        ),
    ),
    Twin(
        "SHP-16",
        bad=weight([1, 3], [4]),
        good=weight([3], [4]),
        findings=says(
            "error: input 'a': the shape must have 1 dimension, which its initializer has, not 2: [1, 3]",
            "SHP-16",
            "\n  remedy: correct the shape that the model states",
        ),
        name="initializer",
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


LEGAL = {
    "a function's variables are its calls'": function(["N"]),
    "two inputs of one variable": pair(["N"], ["N"], ["N"]),
    "a sequence of tensors of one variable": joined(["A", 4], (3, 4)),
    "ranks that nothing knows": model(
        [node("NonZero", ["x"], ["n"]), node("Transpose", ["n"], ["y"])],
        outputs=[value("y", ["K", 2], TensorProto.INT64)],
    ),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, tmp_path: Path) -> None:
    assert [str(f) for f in findings_of(LEGAL[name], tmp_path / "model") if f.severity == "error"] == []


def hostile_models() -> dict[str, Callable[[], onnx.ModelProto]]:
    def one(operator: str, *inputs: onnx.ValueInfoProto, count: int = 1, **attributes: int) -> onnx.ModelProto:
        names = [info.name for info in inputs]
        nodes = [node(operator, names, ["v0"], **attributes)]
        nodes += [node(operator, [f"v{i}"] * len(names), [f"v{i + 1}"], **attributes) for i in range(count - 1)]
        return model(nodes, inputs, [onnx.ValueInfoProto(name=f"v{count - 1}")])

    indices = value("i", [2, 2], TensorProto.INT64)
    x = value("x", [4, 4, 4])
    return {
        "an attribute on which onnx 1.23.2 dies": lambda: one("GatherND", x, indices, batch_dims=-5),
        "ranks that double": lambda: one("Gather", indices, indices, count=40, axis=0),
        "sizes by the billion": lambda: one("Split", x, num_outputs=2**31),
        "a million dimensions": lambda: one("Relu", value("x", [2] * 1_000_000)),
    }


@pytest.mark.parametrize("name", hostile_models())
def test_hostile(name: str, tmp_path: Path) -> None:
    """Inference that takes all memory, all time or the process with it becomes a finding."""
    found = findings_of(hostile_models()[name](), tmp_path / "model")
    assert any(f.severity == "error" for f in found)
