"""Matrix products of two streams, in every dialect: against ONNX's reference evaluator, and ONNX's node tests in RTL.
(Those of Einsum, MatMulInteger and QLinearMatMul are run elsewhere.)"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from hwflow.api.checking import check
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.ir.graph import Graph
from hwflow.loaded_model import load
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import node_tests_of, passes_in_rtl
from tests.reference_agreement import agree_with_reference

NODE_TESTS = [name for op_type in ("Gemm", "MatMul") for name in node_tests_of(op_type)]


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_tests_in_rtl(name: str, tmp_path: Path) -> None:
    """Every operand is computed at run time."""
    passes_in_rtl(name, tmp_path)


def test_there_are_node_tests() -> None:
    assert len(NODE_TESTS) == 18


def multiplied(graph: Graph) -> bool:
    """Tell whether a core multiplies two streams."""
    return any(node.op == "stream_matrix" for node in graph.nodes)


def stream(b: Builder, name: str, *shape: int, scale: Any = 0.5, zero: Any = 3, kind: str = "int8", **more: int) -> str:
    return b.requantize(b.input(name, ["N", *shape]), scale, zero, kind, **more)


SHAPES = [
    ((3, 4), (4, 5)),
    ((1, 4), (4, 1)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (1, 4, 5)),
    ((1, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (1, 3, 4, 2)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    b = Builder(19, 9)
    product = b.node("MatMul", stream(b, "x", *left), stream(b, "y", *right, scale=0.25, zero=129, kind="uint8"))
    b.output(b.requantize(product, 2.0, 5, "int8"))
    assert multiplied(agree_with_reference(b))


def test_a_stream_times_itself() -> None:
    b = Builder(19, 9)
    x = stream(b, "x", 3, 4)
    b.output(b.requantize(b.node("MatMul", x, b.node("Transpose", x, perm=[0, 2, 1])), 4.0, 0, "int8"))
    assert multiplied(agree_with_reference(b))


def test_a_square_stream_times_itself() -> None:
    b = Builder(19, 9)
    x = stream(b, "x", 3, 3)
    b.output(b.requantize(b.node("MatMul", x, x), 4.0, 0, "int8"))
    assert multiplied(agree_with_reference(b))


def test_scales_of_rows_and_columns() -> None:
    """A row's scale is that of its results, and so is a column's; zero points differ as well."""
    b = Builder(19, 9)
    x = stream(b, "x", 3, 4, scale=[0.5, 0.25, 2.0], zero=[3, 0, -7], axis=1)
    y = stream(b, "y", 4, 2, scale=[1.0, 0.125], zero=[0, 9], axis=2)
    b.output(b.requantize(b.node("MatMul", x, y), 2.0, 5, "int8"))
    assert multiplied(agree_with_reference(b))


def test_functions_before_the_product() -> None:
    b = Builder(19, 9)
    x = b.node("Relu", stream(b, "x", 3, 4))
    y = b.node("Abs", stream(b, "y", 4, 2, zero=-3))
    b.output(b.requantize(b.node("Relu", b.node("MatMul", x, y)), 2.0, -128, "int8"))
    assert multiplied(agree_with_reference(b))


@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("addend", [None, (), (4,), (3, 1), (3, 4), "vector", "matrix"])
def test_gemm(trans_a: int, trans_b: int, addend: Any, tmp_path: Path) -> None:
    """Whole tensors; a C of every shape, a constant or a stream."""
    b = Builder(19, 9)

    def whole(name: str, *shape: int) -> str:
        return b.requantize(b.input(name, shape), 0.5, 3, "int8")

    operands = [
        whole("x", *((5, 3) if trans_a else (3, 5))), whole("y", *((4, 5) if trans_b else (5, 4))),
    ]
    if isinstance(addend, str):
        operands.append(whole("c", *((4,) if addend == "vector" else (3, 4))))
    elif addend is not None:
        operands.append(b.constant(np.random.default_rng(2).integers(-9, 9, addend) * 0.5))
    y = b.node("Gemm", *operands, transA=trans_a, transB=trans_b, alpha=0.5, beta=-2.0)
    b.output(b.requantize(y, 4.0, 5, "int8"))
    assert_whole(b, tmp_path)


def assert_whole(b: Builder, folder: Path) -> None:
    """A model without an axis of frames equals the reference evaluator, bit for bit."""
    proto = b.build()
    model = b.load(folder)
    rng = np.random.default_rng(3)
    arrays = {
        info.name: rng.integers(-9, 10, [dim.dim_value for dim in info.type.tensor_type.shape.dim]).astype(np.float32)
        for info in proto.graph.input
    }
    expected = ReferenceEvaluator(proto).run(None, arrays)
    frames = {n: a.reshape(-1, *model.resolved.values[n].shape[1:]) for n, a in arrays.items()}
    found = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, frames)), frames)
    for array, wanted in zip(found.values(), expected, strict=True):
        np.testing.assert_array_equal(array.reshape(wanted.shape), wanted)
    assert any(node.op == "matrix_product" for node in model.quantized.nodes)


@pytest.mark.parametrize("beta", [0.0, 1.0, 0.25])
def test_gemm_of_frames_with_a_stream_as_addend(beta: float) -> None:
    b = Builder(19, 9)
    weights = b.weights(np.random.default_rng(1).integers(-9, 9, (4, 3)), 0.25)
    y = b.node("Gemm", stream(b, "x", 4), weights, stream(b, "c", 3, scale=0.25), beta=beta, alpha=2.0)
    b.output(b.requantize(y, 2.0, 5, "int8"))
    agree_with_reference(b)


OTHER_RANKS = [
    ((4,), (4,)),
    ((4,), (4, 3)),
    ((3, 4), (4,)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 3)),
]


@pytest.mark.parametrize(("left", "right"), OTHER_RANKS)
def test_whole_tensors_of_other_ranks(left: tuple[int, ...], right: tuple[int, ...], tmp_path: Path) -> None:
    """A vector is a row on the left, a column on the right; matrices are the same for each of a batch."""
    b = Builder(19, 9)
    x, y = (b.requantize(b.input(name, shape), 0.5, 3, "int8") for name, shape in (("x", left), ("y", right)))
    b.output(b.requantize(b.node("MatMul", x, y), 4.0, 5, "int8"))
    assert_whole(b, tmp_path)


@pytest.mark.parametrize(("left", "right"), [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8")])
def test_matmul_integer(left: str, right: str) -> None:
    """Zero points of a row and of a column each."""
    b = Builder(19, 9)
    zeros = b.constant([3, 0, 7], left), b.constant([9, 1], right)
    b.output(b.node("MatMulInteger", b.input("x", ["N", 3, 4], left), b.input("y", ["N", 4, 2], right), *zeros))
    agree_with_reference(b)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_qlinear_matmul(kind: str) -> None:
    b = Builder(19, 9)

    def scaled(scale: float, zero: int) -> tuple[str, str]:
        return b.constant(scale), b.constant(zero, kind)

    x, y = b.input("x", ["N", 2, 3, 4], kind), b.input("y", ["N", 2, 4, 5], kind)
    b.output(b.node("QLinearMatMul", x, *scaled(0.5, 5), y, *scaled(0.25, 100), *scaled(16.0, 3)))
    assert multiplied(agree_with_reference(b))


def test_matmul_integer_to_float() -> None:
    b = Builder(19, 9)
    x, y = b.input("x", ["N", 3, 4], "uint8"), b.input("y", ["N", 4, 2], "int8")
    b.declare("p", ["N", 3, 2])
    scales = b.constant(0.5), b.constant([0.25, 2.0]), b.constant(7, "uint8"), b.constant([1, -3], "int8")
    p = b.node("MatMulIntegerToFloat", x, y, *scales, b.constant([1.0, -2.0]), name="p", domain="com.microsoft")
    b.output(b.requantize(p, 2.0, 0, "int8"))
    assert multiplied(agree_with_reference(b))


EQUATIONS = [
    ("bik,bkj->bij", (3, 4), (4, 2)),
    ("bik,bjk->bji", (3, 4), (2, 4)),
    ("bhqd,bhkd->bhqk", (2, 3, 4), (2, 5, 4)),
    ("bqhd,bkhd->bhqk", (3, 2, 4), (5, 2, 4)),
    ("bhqk,bkhd->bqhd", (2, 3, 5), (5, 2, 4)),
    ("bijk,bkjl->bil", (2, 3, 2), (2, 3, 4)),
    ("bij,bkl->bkjil", (2, 3), (2, 2)),
    ("bij,bj->bi", (3, 4), (4,)),
    ("bij,bjk->bk", (3, 4), (4, 2)),
    ("b...ij,b...jk->b...ik", (2, 3, 4), (2, 4, 2)),
    ("bij,bjk->bik", (3, 1), (4, 2)),
]


@pytest.mark.parametrize(("equation", "left", "right"), EQUATIONS)
def test_einsum(equation: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    b = Builder(19, 9)
    product = b.node("Einsum", stream(b, "x", *left), stream(b, "y", *right, zero=-2), equation=equation)
    b.output(b.requantize(product, 4.0, 5, "int8"))
    assert multiplied(agree_with_reference(b))


def test_einsum_of_integers_wraps() -> None:
    b = Builder(19, 9)
    x, y = b.input("x", ["N", 3, 4], "int8"), b.input("y", ["N", 4, 2], "int8")
    b.output(b.node("Einsum", x, y, equation="bij,bjk->bik"))
    assert multiplied(agree_with_reference(b))


def test_einsum_with_a_scale_for_each_summed_element() -> None:
    """No integer is the sum, so products are made one by one."""
    b = Builder(19, 9)
    x = stream(b, "x", 3, 2, scale=[0.5, 0.25], zero=[0, 0], axis=2)
    b.output(b.requantize(b.node("Einsum", x, stream(b, "y", 2, 2), equation="bij,bjk->bik"), 4.0, 5, "int8"))
    assert not multiplied(agree_with_reference(b))


SCALES: dict[str, Any] = {"scale": [0.5, 0.3, 0.7, 1.1], "zero": [0, 3, -2, 1]}


@pytest.mark.parametrize(("more", "others"), [({**SCALES, "axis": 2}, {}), ({}, {**SCALES, "axis": 1})])
def test_scales_along_the_axis_that_is_summed_over(more: Any, others: Any, tmp_path: Path) -> None:
    """No common divisor makes integers of them, so they are rounded far below what the quantizer rounds."""
    b = Builder(19, 9)
    product = b.node("MatMul", stream(b, "x", 3, 4, **more), stream(b, "y", 4, 2, **others))
    b.output(b.requantize(product, 2.0, 5, "int8"))
    assert all(row.unexplained == 0 for row in compare(b.save(tmp_path), frames=50).rows)


def test_what_is_refused(tmp_path: Path) -> None:
    b = Builder(19, 9)
    product = b.node("MatMul", stream(b, "x", 3, 4), stream(b, "y", 2, 4, 2), name="p")
    b.output(b.requantize(product, 2.0, 5, "int8"))
    (finding,) = (f for f in check(b.save(tmp_path)) if f.severity != "warning")
    assert "must have the same number of axes, those of matrices behind the frame axis, not 3 and 4" in finding.message
    assert finding.where == "node 'p' (MatMul)"


def test_weights_of_a_softmax_as_they_are(tmp_path: Path) -> None:
    """Its results are approximated, as precisely as the quantizer behind the product needs."""
    b = Builder(21, 10)
    scores = b.node("Softmax", stream(b, "s", 3, 4, scale=0.125), axis=-1)
    b.output(b.requantize(b.node("MatMul", scores, stream(b, "v", 4, 2)), 0.5, 5, "int8"))
    path = b.save(tmp_path)
    assert any(node.op == "matrix_product" for node in load(path).quantized.nodes)
    assert compare(path, frames=20).unexplained == 0


def test_scales_with_a_common_divisor_along_the_sum(tmp_path: Path) -> None:
    """As of keys that were quantized apart and joined."""
    b = Builder(19, 9)
    apart = stream(b, "y", 4, 2, scale=[0.5, 0.25, 0.5, 1.0], zero=[0] * 4, axis=1)
    b.output(b.requantize(b.node("MatMul", stream(b, "x", 3, 4), apart), 2.0, 5, "int8"))
    assert all(row.unexplained == 0 and row.mismatches == 0 for row in compare(b.save(tmp_path), frames=10).rows)
