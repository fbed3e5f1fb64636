"""Models without a frame axis: with one in front, each operator computes the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from hwflow.frontend.frames.batches import whole_inputs, with_frame_axis
from hwflow.onnxspec import dialect_operators, resolve_with_graph
from hwflow.onnxspec.reference.evaluator_defects import substitutes
from hwflow.operators.onnx_operators import HANDLERS
from tests.models import Builder

Make = Callable[[Builder], str]


def ints(b: Builder, *shape: int) -> str:
    return b.input("x", shape, "int32")


def vector(b: Builder, *values: int) -> str:
    return b.constant(values, "int64")


CASES: dict[str, Make] = {
    "add_of_ranks": lambda b: b.node("Add", ints(b, 3, 4), b.input("y", [4], "int32")),
    "add_of_a_scalar": lambda b: b.node("Add", ints(b, 3, 4), b.input("y", [], "int32")),
    "add_of_a_constant": lambda b: b.node("Add", ints(b, 3, 4), b.constant(np.arange(12).reshape(3, 4), "int32")),
    "add_of_a_longer_constant": lambda b: b.node(
        "Add", ints(b, 4), b.constant(np.arange(12).reshape(3, 4), "int32")
    ),
    "where": lambda b: b.node("Where", b.input("c", [3, 1], "bool"), ints(b, 4), b.constant(7, "int32")),
    "clip": lambda b: b.node("Clip", ints(b, 3), b.constant(-2, "int32"), b.constant(3, "int32")),
    "cast": lambda b: b.node("Cast", ints(b, 3), to=onnx.TensorProto.INT8),
    "transpose": lambda b: b.node("Transpose", ints(b, 2, 3, 4), perm=[2, 0, 1]),
    "transpose_reversed": lambda b: b.node("Transpose", ints(b, 2, 3, 4)),
    "reshape": lambda b: b.node("Reshape", ints(b, 2, 6), vector(b, 0, 3, -1)),
    "a_scalar": lambda b: b.node("Neg", ints(b)),
    "flatten": lambda b: b.node("Flatten", ints(b, 2, 3, 4), axis=2),
    "squeeze": lambda b: b.node("Squeeze", ints(b, 3, 1, 4)),
    "unsqueeze": lambda b: b.node("Unsqueeze", ints(b, 3, 4), vector(b, 0, -1)),
    "concat": lambda b: b.node("Concat", ints(b, 3, 4), b.input("y", [2, 4], "int32"), axis=0),
    "concat_from_behind": lambda b: b.node("Concat", ints(b, 3, 4), b.constant(np.ones((3, 2)), "int32"), axis=-1),
    "split": lambda b: b.node("Split", ints(b, 6, 2), vector(b, 1, 5), outputs=["rest"], axis=0),
    "slice": lambda b: b.node(
        "Slice", ints(b, 5, 6), vector(b, 4, 1), vector(b, 0, 6), vector(b, 0, -1), vector(b, -2, 3)
    ),
    "slice_of_all_axes": lambda b: b.node("Slice", ints(b, 5, 6), vector(b, 1, 2), vector(b, 3, 6)),
    "pad": lambda b: b.node("Pad", ints(b, 3, 4), vector(b, 1, 0, 2, 3), b.constant(9, "int32")),
    "pad_of_an_axis": lambda b: b.node("Pad", ints(b, 3, 4), vector(b, 2, 1), "", vector(b, 0), mode="reflect"),
    "tile": lambda b: b.node("Tile", ints(b, 2, 3), vector(b, 3, 2)),
    "expand": lambda b: b.node("Expand", ints(b, 3, 1), vector(b, 2, 1, 4)),
    "gather": lambda b: b.node("Gather", ints(b, 5, 3), b.constant([[4, 0], [1, 1]], "int64"), axis=0),
    "gather_from_behind": lambda b: b.node("Gather", ints(b, 5, 3), b.constant(2, "int64"), axis=-1),
    "resize": lambda b: b.node("Resize", ints(b, 3, 4), "", b.constant([2.0, 1.5])),
    "resize_to_sizes": lambda b: b.node(
        "Resize", ints(b, 3, 4), "", "", vector(b, 7, 9), keep_aspect_ratio_policy="not_larger"
    ),
    "resize_of_an_axis": lambda b: b.node(
        "Resize", ints(b, 3, 4), b.constant([0.5, 1.25]), "", vector(b, 5), axes=[1], extrapolation_value=7.0,
        coordinate_transformation_mode="tf_crop_and_resize",
    ),
    "reduce_all": lambda b: b.node("ReduceMax", ints(b, 3, 4), keepdims=0),
    "reduce_first": lambda b: b.node("ReduceSum", ints(b, 3, 4), vector(b, 0), keepdims=0),
    "reduce_nothing": lambda b: b.node("ReduceMin", ints(b, 3, 4), noop_with_empty_axes=1),
    "reduce_a_scalar": lambda b: b.node("ReduceMax", ints(b), keepdims=0),
    "arg_max": lambda b: b.node("ArgMax", ints(b, 3, 4), axis=0, keepdims=0),
    "arg_max_from_behind": lambda b: b.node("ArgMax", ints(b, 3, 4), axis=-1),
    "matmul": lambda b: b.node("MatMul", ints(b, 3, 4), b.constant(np.arange(8).reshape(4, 2), "int32")),
    "matmul_of_a_vector": lambda b: b.node("MatMul", ints(b, 4), b.constant(np.arange(8).reshape(4, 2), "int32")),
    "matmul_from_the_left": lambda b: b.node("MatMul", b.constant(np.arange(6).reshape(2, 3), "int32"), ints(b, 3, 4)),
    "matmul_of_a_batch": lambda b: b.node(
        "MatMul", ints(b, 2, 3, 4), b.constant(np.arange(16).reshape(2, 4, 2), "int32")
    ),
    "a_matrix_by_a_batch": lambda b: b.node(
        "MatMul", ints(b, 3, 4), b.constant(np.arange(16).reshape(2, 4, 2), "int32")
    ),
    "gemm": lambda b: b.node(
        "Gemm", b.input("x", [4, 3]), b.constant(np.arange(8).reshape(2, 4)), b.constant(np.arange(6).reshape(3, 2)),
        transA=1, transB=1, alpha=0.5, beta=-2.0,
    ),
    "gemm_of_a_constant": lambda b: b.node(
        "Gemm", b.constant(np.arange(6).reshape(3, 2)), b.input("x", [4, 3]), b.constant([1.0]), transA=1, transB=1
    ),
    "quantized_along_an_axis": lambda b: b.quantize(
        b.input("x", [3, 4]), [0.5, 1.0, 2.0], [0, 1, 2], "uint8", axis=0
    ),
    "quantized": lambda b: b.quantize(b.input("x", [3, 4]), 0.5, 3, "uint8"),
    "of_a_shape": lambda b: b.node(
        "Reshape", ints(b, 2, 6), b.node("Concat", b.node("Shape", "x", start=1), vector(b, 2), axis=0)
    ),
}


def feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    result = {}
    for info in model.graph.input:
        kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        ends = (0, 2) if kind.kind == "b" else (-9, 9)
        result[info.name] = rng.integers(*ends, shape).astype(kind)
    return result


@pytest.mark.parametrize("name", CASES)
def test_computes_the_same(name: str) -> None:
    b = Builder(18, 9)
    b.output(CASES[name](b))
    model = b.build()
    assert whole_inputs(model)
    resolved, flat = resolve_with_graph(model, {}, whole=True)
    framed = with_frame_axis(flat, resolved)
    assert isinstance(framed, onnx.ModelProto)
    onnx.checker.check_model(framed, full_check=True)
    inputs, new_ops = feeds(model), substitutes({"": 18}, lambda defect: None)
    expected = ReferenceEvaluator(model, new_ops=new_ops).run(None, inputs)
    raised = {key: value[np.newaxis] for key, value in inputs.items()}
    found = ReferenceEvaluator(framed, new_ops=new_ops).run(None, raised)
    for output, wanted, array in zip(model.graph.output, expected, found, strict=True):
        assert array.dtype == wanted.dtype
        np.testing.assert_array_equal(array, wanted[np.newaxis], output.name)
    again, _ = resolve_with_graph(framed, {})
    assert all(again.values[value].shape[:1] == (1,) for value in (*again.inputs, *again.outputs))


@pytest.mark.parametrize("transposed", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("c", [None, (), (2,), (3, 1), (3, 2)])
@pytest.mark.parametrize("real", [False, True])
def test_a_whole_qgemm(transposed: tuple[int, int], c: tuple[int, ...] | None, real: bool) -> None:
    """The rows of A are no frames: what it is made of computes the same, against the operator's own definition."""
    b, rng = Builder(18, 9), np.random.default_rng(2)
    x = b.input("x", [4, 3] if transposed[0] else [3, 4], "uint8")
    w = b.constant(rng.integers(0, 9, (2, 4) if transposed[1] else (4, 2)), "uint8")
    weights = [w, b.constant([0.5, 0.25]), b.constant([1, 2], "uint8")]
    more = [""] if c is None else [b.constant(rng.integers(-99, 99, c), "int32")]
    more += [] if real else [b.constant(2.0), b.constant(90, "uint8")]
    a = [x, b.constant(0.5), b.constant(7, "uint8")]
    y = b.node(
        "QGemm", *a, *weights, *more, transA=transposed[0], transB=transposed[1], alpha=0.5, domain="com.microsoft"
    )
    b.output(b.declare(y, [3, 2], "float" if real else "uint8"))
    model = b.build()
    framed = with_frame_axis(*reversed(resolve_with_graph(model, {}, whole=True)))
    assert isinstance(framed, onnx.ModelProto)
    inputs = {"x": rng.integers(0, 256, (4, 3) if transposed[0] else (3, 4)).astype(np.uint8)}
    (expected,) = ReferenceEvaluator(model, new_ops=dialect_operators.operators()).run(None, inputs)
    (found,) = ReferenceEvaluator(framed).run(None, {"x": inputs["x"][np.newaxis]})
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected[np.newaxis])


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 13])
def test_resize_of_earlier_versions(opset: int) -> None:
    """In which axes have no names: the new one is in scales and region of interest."""
    b = Builder(opset, 8)
    x = ints(b, 3, 4)
    if opset == 7:
        b.output(b.node("Upsample", x, scales=[2.0, 1.5]))
    elif opset < 11:
        b.output(b.node("Upsample" if opset == 9 else "Resize", x, b.constant([2.0, 1.5])))
    else:
        roi, sizes = b.constant([0.0, 0.5, 1.0, 1.25]), vector(b, 5, 3)
        mode = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
        b.output(b.node("Resize", x, roi, b.constant([]), sizes, **mode))
    model = b.build()
    resolved, flat = resolve_with_graph(model, {}, whole=True)
    framed = with_frame_axis(flat, resolved)
    assert isinstance(framed, onnx.ModelProto)
    onnx.checker.check_model(framed, full_check=True)
    inputs = feeds(model)
    around = substitutes({"": opset}, lambda name: None)
    (expected,) = ReferenceEvaluator(model, new_ops=around).run(None, inputs)
    (found,) = ReferenceEvaluator(framed, new_ops=around).run(None, {"x": inputs["x"][np.newaxis]})
    np.testing.assert_array_equal(found, expected[np.newaxis])


@pytest.mark.parametrize(
    "shapes, whole",
    [
        ([[1, 3]], False), ([["N", 3]], False), ([["N", 3], [5]], False), ([[3]], True), ([[]], True),
        ([[1, 3], [4, 3]], True), ([[1, 3], []], True),
    ],
)
def test_which_models_lack_one(shapes: list[list[int | str]], whole: bool) -> None:
    b = Builder()
    b.output(b.node("Max", *(b.input(f"x{place}", shape) for place, shape in enumerate(shapes))))
    assert bool(whole_inputs(b.build())) == whole


@pytest.mark.parametrize("operator", ["Conv", "GlobalMaxPool", "ReverseSequence"])
def test_what_cannot_be_given_one(operator: str) -> None:
    """The first axis of an image is the frame's by definition; others have no translation."""
    b = Builder(13)
    x = b.input("x", [2, 1, 4, 4])
    more = {"Conv": [b.constant(np.ones((1, 1, 2, 2)))], "ReverseSequence": [b.constant([2], "int64")]}
    b.output(b.node(operator, x, *more.get(operator, [])))
    resolved, flat = resolve_with_graph(b.build(), {}, whole=True)
    assert [node.op_type for node in with_frame_axis(flat, resolved)] == [operator]

@pytest.mark.parametrize("operator", ["Slice", "Pad"])
def test_attributes_of_earlier_versions(operator: str) -> None:
    """Which later are inputs."""
    b = Builder(9, 8)
    x = b.input("x", [5, 6])
    more = {"Slice": {"starts": [1, -3], "ends": [4, 6]}, "Pad": {"pads": [1, 0, 2, 3], "value": 7.0}}
    b.output(b.node(operator, x, **more[operator]))
    model = b.build()
    resolved, flat = resolve_with_graph(model, {}, whole=True)
    framed = with_frame_axis(flat, resolved)
    assert isinstance(framed, onnx.ModelProto)
    array = np.arange(30, dtype=np.float32).reshape(5, 6)
    around = substitutes({"": 9}, lambda name: None)
    (expected,) = ReferenceEvaluator(model, new_ops=around).run(None, {"x": array})
    (found,) = ReferenceEvaluator(framed, new_ops=around).run(None, {"x": array[np.newaxis]})
    np.testing.assert_array_equal(found, expected[np.newaxis])


def test_a_batch_of_matrices_on_both_sides() -> None:
    """Two inputs, of which the second is no constant to be given an axis."""
    b = Builder(13)
    scale, zero = b.constant(0.5), b.constant(1, "int8")
    x, y = b.input("x", [2, 3, 4], "int8"), b.input("y", [2, 4, 5], "int8")
    b.output(b.node("QLinearMatMul", x, scale, zero, y, scale, zero, scale, zero))
    model = b.build()
    framed = with_frame_axis(model, resolve_with_graph(model, {}, whole=True)[0])
    assert isinstance(framed, onnx.ModelProto)
    assert framed.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 1


def test_a_rule_for_every_operator() -> None:
    """What becomes of its axes is known, whatever hardware is made of."""
    assert [key for key, record in HANDLERS.items() if not record.never and record.frames is None] == []
