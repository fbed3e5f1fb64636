"""Sizes through the operators: variables that nodes leave no size (SHP-10), and sizes that an operator cannot have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hwflow.onnxspec.shapes.size_facts import Equal, SameElements, Term
from hwflow.onnxspec.shapes.sizes import Solver
from hwflow.onnxspec.shapes.unify import Unifier
from tests.onnxspec.build import model, node, value
from tests.onnxspec.clauses.twins import Twin, check, findings_of

pytestmark = pytest.mark.usefixtures("measured")

Shape = Sequence[int | str | None]
SIZE = " [SHP-10]\n  remedy: correct the size that is wrong, or give different sizes different variables"
OWN = " [operator-sizes]\n  remedy: correct the size or the attribute that is wrong"


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def built(
    nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Shape], outputs: Mapping[str, Shape], **constants: Any
) -> onnx.ModelProto:
    infos = [[value(name, shape) for name, shape in shapes.items()] for shapes in (inputs, outputs)]
    return model(nodes, *infos, constants=constants)


def products(shape: Shape, second: int) -> onnx.ModelProto:
    """x through two MatMul, by matrices of 3 and of ``second`` rows."""
    nodes = [node("MatMul", ["x", "a"], ["y"], name="m1"), node("MatMul", ["x", "b"], ["z"], name="m2")]
    return built(nodes, {"x": shape}, {"y": [1, 5], "z": [1, 5]}, a=zeros(3, 5), b=zeros(second, 5))


def joined(out: int, second: str = "N") -> onnx.ModelProto:
    return built([node("Concat", ["x", "z"], ["y"], name="c", axis=0)], {"x": ["N"], "z": [second]}, {"y": [out]})


def convolutions(second: int, groups: int = 1) -> onnx.ModelProto:
    """Weights of 3 channels and of ``second`` in ``groups`` on the same image."""
    nodes = [
        node("Conv", ["x", "a"], ["y"], name="c1"),
        node("Conv", ["x", "b"], ["z"], name="c2", group=groups),
    ]
    ends = {"y": [1, 6, 6, 6], "z": [1, 6, 6, 6]}
    return built(nodes, {"x": [1, "C", 8, 8]}, ends, a=zeros(6, 3, 3, 3), b=zeros(6, second, 3, 3))


def added(second: int, other: str = "M") -> onnx.ModelProto:
    """x and z are read by a MatMul each, of 3 and of ``second`` rows, and added."""
    nodes = [
        node("MatMul", ["x", "a"], ["p"], name="m1"),
        node("MatMul", ["z", "b"], ["q"], name="m2"),
        node("Add", ["x", "z"], ["y"], name="add"),
    ]
    ends: dict[str, Shape] = {"y": [None], "p": [5], "q": [5]}
    return built(nodes, {"x": ["N"], "z": [other]}, ends, a=zeros(3, 5), b=zeros(second, 5))


def equal_by_name(second: int) -> onnx.ModelProto:
    """A MatMul makes N and M equal; others give them sizes."""
    nodes = [
        node("MatMul", ["x", "z"], ["y"], name="m"),
        node("MatMul", ["x", "a"], ["p"], name="m1"),
        node("MatMul", ["b", "z"], ["q"], name="m2"),
    ]
    ends = {"y": [1, 1], "p": [1, 5], "q": [5, 1]}
    return built(nodes, {"x": [1, "N"], "z": ["M", 1]}, ends, a=zeros(3, 5), b=zeros(5, second))


def broadcast(length: int) -> onnx.ModelProto:
    """A MatMul says that N is 2; a vector of ``length`` is added."""
    nodes = [node("MatMul", ["x", "a"], ["p"], name="m"), node("Add", ["x", "b"], ["y"], name="add")]
    return built(nodes, {"x": ["N"]}, {"y": [None], "p": [5]}, a=zeros(2, 5), b=zeros(length))


def later(declared: int) -> onnx.ModelProto:
    """A MatMul says that N is 9; the convolution beside it leaves 7, and the model says ``declared``."""
    nodes = [node("MatMul", ["x", "a"], ["p"], name="m"), node("Conv", ["x", "w"], ["y"], name="c")]
    ends = {"p": [1, 2, 5], "y": [1, 4, declared]}
    return built(nodes, {"x": [1, 2, "N"]}, ends, a=zeros(9, 5), w=zeros(4, 2, 3))


def conv(channels: int = 4, weights: Shape = (6, 4, 3, 3), bias: int = 6, **attributes: Any) -> onnx.ModelProto:
    conv = node("Conv", ["x", "w", "b"], ["y"], name="c", **attributes)
    return built([conv], {"x": [1, channels, 8, 8]}, {"y": [1, 6, None, None]}, w=zeros(*weights), b=zeros(bias))


def transposed(channels: int, bias: int = 6) -> onnx.ModelProto:
    nodes = [node("ConvTranspose", ["x", "w", "b"], ["y"], name="c", group=2)]
    ends: dict[str, Shape] = {"y": [1, 6, None, None]}
    return built(nodes, {"x": [1, channels, 8, 8]}, ends, w=zeros(4, 3, 3, 3), b=zeros(bias))


def reshaped(shape: Shape, target: Sequence[int], out: Shape) -> onnx.ModelProto:
    nodes = [node("Reshape", ["x", "s"], ["y"], name="r")]
    return built(nodes, {"x": shape}, {"y": out}, s=np.array(target, np.int64))


def reshaped_beside(target: Sequence[int], out: Shape) -> onnx.ModelProto:
    """A MatMul says that N is 3; the same vector gets another shape."""
    nodes = [node("MatMul", ["x", "a"], ["p"], name="m"), node("Reshape", ["x", "s"], ["y"], name="r")]
    return built(nodes, {"x": ["N"]}, {"p": [5], "y": out}, a=zeros(3, 5), s=np.array(target, np.int64))


def recurrent(features: int, gates: int) -> onnx.ModelProto:
    """Weights for 4 features, and of 2 units."""
    lstm = node("LSTM", ["x", "w", "r"], ["y"], name="l", hidden_size=2)
    ends: dict[str, Shape] = {"y": [5, 1, 1, 2]}
    return built([lstm], {"x": [5, 1, features]}, ends, w=zeros(1, gates, 4), r=zeros(1, 8, 2))


def one(op_type: str, shape: Shape, second: Shape = (), **attributes: Any) -> onnx.ModelProto:
    """x, with zeros as second input if a shape is given, to outputs of unknown sizes."""
    constants = {"s": zeros(*second)} if second else {}
    nodes = [node(op_type, ["x", *constants], ["y"], name="n", **attributes)]
    return built(nodes, {"x": shape}, {"y": [None] * len(shape)}, **constants)


def twin(clause: str, name: str, bad: onnx.ModelProto, good: onnx.ModelProto, *findings: str) -> Twin:
    end = SIZE if clause == "SHP-10" else OWN
    return Twin(clause, bad, good, [f"error: {text}{end}" for text in findings], name=name)


M1, M2 = "node 'm1' (MatMul)", "node 'm2' (MatMul)"
TWINS = [
    twin(
        "SHP-10", "two products", products([1, "N"], 4), products([1, "N"], 3),
        f"{M2}: dimension variable 'N' must have one size in the whole model, but it is 3 ({M1}) and 4 ({M2})",
    ),
    twin(
        "SHP-10", "a size without a name", products([1, None], 4), products([1, None], 3),
        f"{M2}: axis 1 of 'x' must have one size, but it is 3 ({M1}) and 4 ({M2})",
    ),
    twin(
        "SHP-10", "a sum", joined(5), joined(6),
        "node 'c' (Concat): axis 0 of 'y' must be the sum of axis 0 of 'x' ('N') and axis 0 of 'z' ('N'), not 5",
    ),
    twin(
        "SHP-10", "two convolutions", convolutions(2), convolutions(1, 3),
        "node 'c2' (Conv): dimension variable 'C' must have one size in the whole model, but it is 3 (node 'c1' "
        "(Conv)) and 2 (node 'c2' (Conv))",
    ),
    twin(
        "SHP-10", "two names added", added(4), added(1),
        f"node 'add' (Add): with 'N' = 3 ({M1}) and 'M' = 4 ({M2}), the node must fit what it reads, but "
        "onnx.shape_inference says: Incompatible dimensions",
    ),
    twin(
        "SHP-10", "two names made equal", equal_by_name(4), equal_by_name(3),
        f"{M2}: dimension variables 'N' and 'M' must have one size, because the model makes them equal, but they are "
        f"3 ({M1}) and 4 ({M2})",
    ),
    twin(
        "SHP-10", "broadcasting", broadcast(3), broadcast(1),
        "node 'add' (Add): with 'N' = 2 (node 'm' (MatMul)), the node must fit what it reads, but "
        "onnx.shape_inference says: Incompatible dimensions",
    ),
    twin(
        "SHP-10", "what follows from a size", later(5), later(7),
        "output 'y': the size of axis 2 must be 7, which node 'c' (Conv) gives it, not 5",
    ),
    twin(
        "SHP-10", "elements", reshaped([4, "N"], [6], [6]), reshaped([3, "N"], [6], [6]),
        "node 'r' (Reshape): 'y' [6] must have as many elements as 'x' [4, N], which no size of its variables gives",
    ),
    twin(
        "SHP-10", "elements known elsewhere", reshaped_beside([2, 2], [2, 2]), reshaped_beside([3, 1], [3, 1]),
        "node 'r' (Reshape): 'y' [2, 2] must have 3 elements, as 'x' [3] has, not 4 ('N': 3, node 'm' (MatMul))",
    ),
    twin(
        "operator-sizes", "a recurrence", recurrent(3, 8), recurrent(4, 8),
        "node 'l' (LSTM): axis 2 of 'x' must be 4, as axis 2 of 'w' is, not 3",
    ),
    twin(
        "operator-sizes", "gates", recurrent(4, 6), recurrent(4, 8),
        "node 'l' (LSTM): axis 1 of 'w' must be 8, as axis 1 of 'r' is, not 6",
    ),
    twin(
        "operator-sizes", "channels", conv(3), conv(),
        "node 'c' (Conv): axis 1 of 'x' must be 4, as axis 1 of 'w' is, not 3",
    ),
    twin(
        "operator-sizes", "groups", conv(8, group=3), conv(8, group=2),
        "node 'c' (Conv): axis 1 of 'x' must be 12, 3 times axis 1 of 'w', not 8",
    ),
    twin(
        "operator-sizes", "no group", conv(group=0), conv(group=1),
        "node 'c' (Conv): attribute 'group' must be at least 1, not 0",
    ),
    twin(
        "operator-sizes", "outputs of groups", conv(16, group=4), conv(12, group=3),
        "node 'c' (Conv): axis 0 of 'w' must be a multiple of 4 (4 groups), not 6",
    ),
    twin(
        "operator-sizes", "a bias", conv(bias=5), conv(bias=6),
        "node 'c' (Conv): axis 0 of 'b' must be 6, as axis 0 of 'w' is, not 5",
    ),
    twin(
        "operator-sizes", "a kernel", conv(kernel_shape=[3, 2]), conv(kernel_shape=[3, 3]),
        "node 'c' (Conv): axis 3 of 'w' must be 2, as element 1 of attribute 'kernel_shape' is, not 3",
    ),
    twin(
        "operator-sizes", "a transposed convolution", transposed(6, 3), transposed(4),
        "node 'c' (ConvTranspose): axis 1 of 'x' must be 4, as axis 0 of 'w' is, not 6",
        "node 'c' (ConvTranspose): axis 0 of 'b' must be 6, 2 times axis 1 of 'w', not 3",
    ),
    twin(
        "operator-sizes", "elements", reshaped([6], [7, 7], [7, 7]), reshaped([49], [7, 7], [7, 7]),
        "node 'r' (Reshape): 'y' [7, 7] must have 6 elements, as 'x' [6] has, not 49",
    ),
    twin(
        "operator-sizes", "blocks",
        one("DepthToSpace", [1, 4, 2, 2], blocksize=3), one("DepthToSpace", [1, 9, 2, 2], blocksize=3),
        "node 'n' (DepthToSpace): axis 1 of 'x' must be a multiple of 9 (blocksize 3), not 4",
    ),
    twin(
        "operator-sizes", "slopes", one("PRelu", [2, 5], [4]), one("PRelu", [2, 5], [1]),
        "node 'n' (PRelu): axis 1 of 'x' must be 4, as axis 0 of 's' is, not 5",
    ),
    twin(
        "operator-sizes", "a window", one("LRN", [1, 2, 3, 4], size=0), one("LRN", [1, 2, 3, 4], size=1),
        "node 'n' (LRN): attribute 'size' must be at least 1, not 0",
    ),
]


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_twins(twin: Twin, tmp_path: Path) -> None:
    check(twin, tmp_path)


def chosen() -> onnx.ModelProto:
    """Each branch of an If multiplies x by a matrix of other rows: only one of them runs."""

    def branch(name: str) -> onnx.GraphProto:
        nodes = [node("MatMul", ["x", f"w_{name}"], [name], name=f"m_{name}")]
        return helper.make_graph(nodes, name, [], [value(name, [1, 5])], doc_string="One.")

    choose = node("If", ["c"], ["y"], name="choose", then_branch=branch("t"), else_branch=branch("e"))
    inputs = [value("x", [1, "N"]), value("c", [], TensorProto.BOOL)]
    return model([choose], inputs, [value("y", [1, 5])], constants={"w_t": zeros(3, 5), "w_e": zeros(4, 5)})


def in_a_branch(rows: Sequence[int], outside: int | None = None, inner: int = 0) -> onnx.ModelProto:
    """A branch of an If multiplies x, of N elements, by matrices of ``rows`` rows; ``outside``: of one beside the If;
    ``inner``: how many branches the products are inside of besides."""
    nodes = [node("MatMul", ["x", f"w{rows_}"], [f"p{k}"], name=f"m{k}") for k, rows_ in enumerate(rows)]
    nodes.append(node("Sum", [f"p{k}" for k in range(len(rows))], ["s"], name="sum"))
    nodes.append(node("Relu", ["s"], ["t"], name="relu"))
    result = [value("t", [1, 5])]
    other = [node("Identity", ["w"], ["e"])]
    body = helper.make_graph(nodes, "t", [], result, doc_string="One.")
    orelse = helper.make_graph(other, "e", [], [value("e", [1, 5])], doc_string="Another.")
    name = "choose"
    for depth in range(inner):
        choose = node("If", ["c"], ["t"], name=f"choose{depth}", then_branch=body, else_branch=orelse)
        body = helper.make_graph([choose], f"t{depth}", [], result, doc_string="One.")
        body.node[0].attribute[1].g.name = f"e{depth}"
    outer = [node("If", ["c"], ["y"], name=name, then_branch=body, else_branch=orelse)]
    constants = {f"w{k}": zeros(k, 5) for k in {*rows, *([] if outside is None else [outside])}}
    outputs = [value("y", [1, 5])]
    if outside is not None:
        outer.append(node("MatMul", ["x", f"w{outside}"], ["z"], name="beside"))
        outputs.append(value("z", [1, 5]))
    inputs = [value("x", [1, "N"]), value("c", [], TensorProto.BOOL)]
    return model(outer, inputs, outputs, constants={**constants, "w": zeros(1, 5)})


THEN = "in 'then_branch' of node 'choose' (If)"


@pytest.mark.parametrize(
    ("rows", "outside", "inner", "place", "sizes"),
    [
        (
            (3, 4), None, 0, f"node 'm1' (MatMul) {THEN}",
            f"3 (node 'm0' (MatMul) {THEN}) and 4 (node 'm1' (MatMul) {THEN})",
        ),
        ((4,), 3, 0, f"node 'm0' (MatMul) {THEN}", f"3 (node 'beside' (MatMul)) and 4 (node 'm0' (MatMul) {THEN})"),
        (
            (4,), 3, 1, f"node 'm0' (MatMul) in 'then_branch' of node 'choose0' (If) {THEN}",
            f"3 (node 'beside' (MatMul)) and 4 (node 'm0' (MatMul) in 'then_branch' of node 'choose0' (If) {THEN})",
        ),
    ],
)  # fmt: skip
def test_a_graph_that_no_size_lets_run(
    rows: Sequence[int], outside: int | None, inner: int, place: str, sizes: str, tmp_path: Path
) -> None:
    """By itself, or with what holds around it; both places are named."""
    findings = findings_of(in_a_branch(rows, outside, inner), tmp_path / "model")
    found = [str(f) for f in findings if f.severity == "error"]
    message = f"dimension variable 'N' must have one size in the whole model, but it is {sizes}"
    assert found == [f"error: {place}: {message}{SIZE}"]


LEGAL = {
    "branches": chosen(),
    "a branch that fits what is around it": in_a_branch((3, 3), 3, 1),
    "one element goes with all": built(
        [node("Add", ["x", "a"], ["p"], name="a1"), node("Add", ["x", "b"], ["y"], name="a2")],
        {"x": ["N"]}, {"p": [None], "y": [None]}, a=zeros(3), b=zeros(4),
    ),
    "any number of frames": reshaped(["N", 6], [-1, 4], [None, 4]),
    "no frame at all": reshaped([0, 6], [0, 7], [0, 7]),
    "one of two is 0": reshaped(["N", "M", 6], [0, 0, 49], ["N", "M", 49]),
    "groups of a variable": built(
        [node("Conv", ["x", "w"], ["y"], name="c", group=2)], {"x": [1, "C", 8]}, {"y": [1, 4, 6]}, w=zeros(4, 3, 3)
    ),
    "parts of a variable": built(
        [node("Split", ["x"], ["y", "z"], name="s", num_outputs=2)], {"x": ["N"]}, {"y": ["A"], "z": ["B"]}
    ),
    "slopes of old": model(
        [node("PRelu", ["x", "s"], ["y"], name="p")], [value("x", [2, 3, 4])], [value("y", [2, 3, 4])],
        constants={"s": zeros(3)}, opsets={"": 6},
    ),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, tmp_path: Path) -> None:
    assert [str(f) for f in findings_of(LEGAL[name], tmp_path / "model") if f.severity == "error"] == []


def beside(rows: int | None) -> onnx.ModelProto:
    """N frames of 6 elements become N of 49; a MatMul by a matrix of ``rows`` rows, if there is one, says what N is."""
    nodes = [node("Reshape", ["x", "s"], ["y"], name="r")]
    outputs: dict[str, Shape] = {"y": [None, 49]}
    constants: dict[str, Any] = {"s": np.array([0, 49], np.int64)}
    if rows is not None:
        nodes.append(node("MatMul", ["a", "x"], ["p"], name="m"))
        constants["a"] = zeros(5, rows)
        outputs["p"] = [5, 6]
    return built(nodes, {"x": ["N", 6]}, outputs, **constants)


EMPTY = "node 'r' (Reshape): 'y' [N, 49] should have as many elements as 'x' [N, 6], but has so only where 'N' is 0"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (None, [f"warning: {EMPTY}{SIZE}"]),
        (0, []),
        (3, [f"error: node 'r' (Reshape): 'y' [3, 49] must have 18 elements, as 'x' [3, 6] has, not 147 ('N': 3, node "
             f"'m' (MatMul)){SIZE}"]),
    ],
)  # fmt: skip
def test_what_only_an_empty_batch_can_pass(rows: int | None, expected: list[str], tmp_path: Path) -> None:
    """Legal, and a warning, until something says that the batch is not empty."""
    found = [str(f) for f in findings_of(beside(rows), tmp_path / "model")]
    assert [text for text in found if "[SHP-10]" in text] == expected


def solver() -> Solver:
    return Solver(Unifier(), lambda place: f"node {place[1]}")


def sizes(*every: int | str) -> tuple[Term, ...]:
    return tuple(Term(size, f"v{index}", 0) for index, size in enumerate(every))


def test_sums_wait_for_what_they_need() -> None:
    """7 = A + B, then B = 2 C, then C = 3: by hand B = 6, A = 1."""
    solved = solver()
    for index, (left, right, factor) in enumerate([(7, ("A", "B"), 1), ("B", ("C",), 2), ("C", (3,), 1)]):
        solved.add((0, index), Equal(Term(left, "left", 0), sizes(*right), factor))
    assert solved.unifier.sizes() == {"A": 1, "B": 6, "C": 3}
    assert solved.found == []


@pytest.mark.parametrize(
    ("left", "right", "size"),
    [((4, "N"), (2, 6), 3), (("N", "N"), (49,), 7), (("N", 5, "M"), ("M", 10), 2), (("N", "N"), (48,), None)],
)
def test_products(left: tuple[int | str, ...], right: tuple[int | str, ...], size: int | None) -> None:
    solved = solver()
    solved.add((0, 0), SameElements(left, right, ("x", "y")))
    assert solved.unifier.size("N") == size
    assert bool(solved.found) == (size is None)


def test_work_is_linear() -> None:
    """A chain of sums, each of which needs the one before it, given from its end."""
    count = 2000
    solved = solver()
    takes = 0
    take = solved._take

    def counted(*arguments: Any) -> None:
        nonlocal takes
        takes += 1
        take(*arguments)

    solved._take = counted  # type: ignore[method-assign]
    for index in reversed(range(count)):
        solved.add((0, index), Equal(Term(f"v{index + 1}", "left", 0), sizes(f"v{index}", 1)))
    solved.add((0, count), Equal(Term("v0", "left", 0), sizes(5)))
    assert solved.unifier.size(f"v{count}") == 5 + count
    assert takes <= 4 * count
