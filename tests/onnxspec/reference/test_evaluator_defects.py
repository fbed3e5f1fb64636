"""Each defect in the list, shown in the installed onnx; and the substitutes against onnxruntime, a second evaluator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from hwflow.onnxspec.reference.evaluator_defects import substitutes
from hwflow.operators.onnx_operators import RECORDS
from hwflow.operators.record import ML
from tests.onnxspec.build import model, node, value

Array = np.ndarray[Any, Any]
X = (np.arange(50, dtype=np.float32).reshape(1, 2, 5, 5) * 7 % 50) - 60  # nothing above 0: a pad of 0 would win

# Attributes of MaxPool that run into a defect, by the defect's name.
POOLS: dict[str, dict[str, Any]] = {
    "maxpool-pads-order": {"kernel_shape": [2, 2], "pads": [0, 1, 0, 0]},
    "maxpool-ceil-mode": {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    "maxpool-integers": {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]},
    "maxpool-same-lower": {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
    "maxpool-negative-pads": {"kernel_shape": [1, 1], "strides": [3, 3], "auto_pad": "SAME_UPPER"},
}
AVERAGES: dict[str, dict[str, Any]] = {
    "averagepool-ceil-mode": {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER", "ceil_mode": 1},
    "averagepool-dilations": {"kernel_shape": [2, 2], "dilations": [2, 2], "auto_pad": "VALID"},
    "averagepool-negative-pads": {"kernel_shape": [1, 1], "strides": [3, 3], "auto_pad": "SAME_UPPER"},
}
SOFTMAX = {"softmax-axes": "Softmax", "logsoftmax-axes": "LogSoftmax", "hardmax-axes": "Hardmax"}
GOOD_POOLS: list[dict[str, Any]] = [
    {"kernel_shape": [2, 2]},
    {"kernel_shape": [3, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 0, 2, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 1, 1, 1], "ceil_mode": 1},
    {"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1},
    {"kernel_shape": [2, 3], "dilations": [2, 1], "pads": [1, 1, 0, 1]},
    {"kernel_shape": [2, 2], "dilations": [3, 2], "strides": [1, 2]},
    {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2, 3], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "VALID"},
]


def pool_model(kind: int = onnx.TensorProto.FLOAT, opset: int = 13, **attributes: Any) -> onnx.ModelProto:
    nodes = [node("MaxPool", ["x"], ["y"], **attributes)]
    return model(nodes, [value("x", [1, 2, 5, 5], kind)], [value("y", [None] * 4, kind)], {}, {"": opset}, 8)


def reference(proto: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    """The installed evaluator as it is."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(ReferenceEvaluator(proto).run(None, feeds)[0])


def around(proto: onnx.ModelProto, feeds: dict[str, Array]) -> tuple[Array, set[str]]:
    """With the substitutes, and the defects they name."""
    names: set[str] = set()
    evaluator = ReferenceEvaluator(proto, new_ops=substitutes({"": proto.opset_import[0].version}, names.add))
    return np.asarray(evaluator.run(None, feeds)[0]), names


def runtime(proto: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds)[0])


def test_every_defect_is_shown_here() -> None:
    others = ["globalmaxpool-axes", "quantize-overflow", "dequantize-opset", "batchnormalization-statistics"]
    others += [*TRANSPOSED, "onehot-fractions", "onehot-values", "pow-cast"]
    # tests.verify: test_gather_defects, test_resize_defects, test_norm_defects; tests.operators.ml
    elsewhere = ("GatherElements", "Resize", "Upsample", "GlobalLpPool", "LRN", "LpNormalization")
    mended = [r.mended for r in RECORDS if r.mended is not None and r.name not in elsewhere and r.domains != ML]
    here = [defect.name for each in mended for defect in each.defects]
    assert sorted(here) == sorted([*POOLS, *AVERAGES, *QUANTIZED, *SOFTMAX, *others])


@pytest.mark.parametrize("name", POOLS)
def test_max_pool_defect(name: str) -> None:
    integers = name == "maxpool-integers"
    x = X.astype(np.int8) if integers else X
    proto = pool_model(onnx.TensorProto.INT8 if integers else onnx.TensorProto.FLOAT, **POOLS[name])
    # onnxruntime refuses negative pads; two positions, 0 and 3, of a window of one pixel are plain to see
    expected = x[:, :, ::3, ::3] if name == "maxpool-negative-pads" else runtime(proto, {"x": x})
    if integers:
        with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
            reference(proto, {"x": x})
    else:
        assert not np.array_equal(reference(proto, {"x": x}), expected)
    found, names = around(proto, {"x": x})
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, expected)
    assert name in names


@pytest.mark.parametrize("attributes", GOOD_POOLS, ids=str)
def test_max_pool_where_the_evaluator_is_right(attributes: dict[str, Any]) -> None:
    proto = pool_model(**attributes)
    found, names = around(proto, {"x": X})
    np.testing.assert_array_equal(found, reference(proto, {"x": X}))
    np.testing.assert_array_equal(found, runtime(proto, {"x": X}))
    assert not names


TRANSPOSED: dict[str, dict[str, Any]] = {
    "convtranspose-groups": {"group": 2, "strides": [2, 1], "pads": [1, 0, 0, 1]},
    "convtranspose-output-shape": {"output_shape": [10, 6], "strides": [2, 1]},
}


@pytest.mark.parametrize("name", [*TRANSPOSED, None])
def test_transposed_convolution(name: str | None) -> None:
    attributes = TRANSPOSED[name] if name else {"strides": [2, 3], "pads": [1, 0, 1, 1], "output_padding": [1, 2]}
    graph = [node("ConvTranspose", ["x", "w", "b"], ["y"], **attributes)]
    rng = np.random.default_rng(0)
    outputs = 3 * attributes.get("group", 1)
    constants = {"w": rng.integers(-9, 9, (2, 3, 3, 2)), "b": rng.integers(-9, 9, outputs)}
    constants = {key: array.astype(np.float32) for key, array in constants.items()}
    proto = model(graph, [value("x", [1, 2, 5, 5])], [value("y", [None] * 4)], constants, {"": 13}, 8)
    found, names = around(proto, {"x": X})
    np.testing.assert_array_equal(found, runtime(proto, {"x": X}))
    if name:
        with pytest.raises(ValueError):
            reference(proto, {"x": X})
    else:
        np.testing.assert_array_equal(found, reference(proto, {"x": X}))
    assert names == ({name} if name else set())


@pytest.mark.parametrize("shape", [(1, 2, 5), (1, 2, 5, 3), (1, 2, 3, 4, 2)])
def test_global_max_pool(shape: tuple[int, ...]) -> None:
    graph = [node("GlobalMaxPool", ["x"], ["y"])]
    proto = model(graph, [value("x", list(shape))], [value("y", [None] * len(shape))], {}, {"": 13}, 8)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found, names = around(proto, {"x": x})
    np.testing.assert_array_equal(found, runtime(proto, {"x": x}))
    right = reference(proto, {"x": x}).shape == found.shape and len(shape) == 4
    assert names == (set() if right else {"globalmaxpool-axes"})
    if not right:
        assert reference(proto, {"x": x}).shape != found.shape


@pytest.mark.parametrize(
    ("indices", "values", "name", "expected"),
    [
        ([0, 2, -1, 3, -4], np.array([5, 7], np.int32), None, [[7, 5, 5], [5, 5, 7], [5, 5, 7], [5] * 3, [5] * 3]),
        ([0.75, -0.5, -1.5], np.array([0, 1], np.float32), "onehot-fractions", [[1, 0, 0], [1, 0, 0], [0, 0, 1]]),
        ([1, 0], np.array([1e8, 1], np.float32), "onehot-values", [[1e8, 1, 1e8], [1, 1e8, 1e8]]),
        ([1], np.array([True, False]), "onehot-values", [[True, False, True]]),
    ],
)
def test_one_hot(indices: list[float], values: Array, name: str | None, expected: list[list[float]]) -> None:
    x = np.array(indices, np.float32)
    kind = onnx.helper.np_dtype_to_tensor_dtype(values.dtype)
    graph = [node("OneHot", ["x", "d", "v"], ["y"])]
    proto = model(
        graph, [value("x", [len(x)])], [value("y", [len(x), 3], kind)], {"d": np.int64(3), "v": values}, {"": 13}, 8
    )
    found, names = around(proto, {"x": x})
    assert found.tolist() == expected and found.dtype == values.dtype
    assert names == ({name} if name else set())
    try:
        assert (reference(proto, {"x": x}).tolist() == expected) == (name is None)
    except TypeError:
        assert values.dtype == bool


@pytest.mark.parametrize(
    ("x", "exponent", "defect"),
    [([2, -3, 7], [3.0, 3.0, 0.0], False), ([3, 2, -5], [20.0, 31.0, 2.0], True), ([9], [0.5], False)],
)
def test_power_of_integers_by_floats(x: list[int], exponent: list[float], defect: bool) -> None:
    """3**20 and 2**31 wrap around; the root of 9 is taken as it is."""
    base, power = np.array(x, np.int32), np.array(exponent, np.float32)
    kind = onnx.TensorProto.INT32
    proto = model(
        [node("Pow", ["x", "e"], ["y"])], [value("x", [len(x)], kind)], [value("y", [len(x)], kind)], {"e": power},
        {"": 15}, 8,
    )
    exact = [int(b**e) for b, e in zip(x, exponent, strict=True)]
    wrapped = [(v + 2**31) % 2**32 - 2**31 for v in exact]
    found, names = around(proto, {"x": base})
    assert found.tolist() == wrapped and found.dtype == np.int32
    assert names == ({"pow-cast"} if defect else set())
    assert (reference(proto, {"x": base}).tolist() == wrapped) != defect


def quantize_model(opset: int) -> onnx.ModelProto:
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["y"])]
    constants = {"s": np.float32(0.001), "z": np.uint8(7)}
    return model(nodes, [value("x", [4])], [value("y", [4], onnx.TensorProto.UINT8)], constants, {"": opset}, 8)


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23, 25])
def test_quantize_overflow(opset: int) -> None:
    x = np.array([3e6, -3e6, 0.1, 0.2], np.float32)  # quotients 3e9, -3e9, 100, 200
    assert reference(quantize_model(opset), {"x": x}).tolist() == [0, 0, 107, 207]  # the first must be 255
    found, names = around(quantize_model(opset), {"x": x})
    assert found.tolist() == [255, 0, 107, 207] and names == {"quantize-overflow"}
    found, names = around(quantize_model(opset), {"x": x[2:]})
    assert found.tolist() == [107, 207] and not names


def test_quantize_overflow_per_channel() -> None:
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["y"], axis=1)]
    constants = {"s": np.array([1e-6, 1], np.float32), "z": np.zeros(2, np.int8)}
    proto = model(nodes, [value("x", [1, 2])], [value("y", [1, 2], onnx.TensorProto.INT8)], constants, {"": 13}, 8)
    assert around(proto, {"x": np.array([[1e4, 5]], np.float32)})[0].tolist() == [[127, 5]]


def test_quantized_integers_are_clipped_at_whole_quotients() -> None:
    """A scale below 1 is 0 as an integer, and 3 * 2**30 wraps as an int32."""
    for scale, expected in ((0.5, [0, 0, 127, -128]), (3, [0, 0, 100, -100])):
        nodes = [node("QuantizeLinear", ["x", "s", "z"], ["y"])]
        shape, kinds = [4], (onnx.TensorProto.INT32, onnx.TensorProto.INT8)
        constants = {"s": np.float32(scale), "z": np.int8(0)}
        proto = model(nodes, [value("x", shape, kinds[0])], [value("y", shape, kinds[1])], constants, {"": 21})
        x = {"x": np.array([0, 0, 300, -300], np.int32)}
        assert reference(proto, x).tolist() == expected
        assert around(proto, x)[0].tolist() == expected


def test_dequantize_before_operator_set_19() -> None:
    nodes = [node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=1)]
    constants = {"s": np.array([0.5, 2], np.float32), "z": np.array([1, -1], np.int8)}
    proto = model(nodes, [value("x", [1, 2], onnx.TensorProto.INT8)], [value("y", [1, 2])], constants, {"": 18}, 8)
    x = np.array([[-4, 4]], np.int8)
    with pytest.raises(RuntimeError, match="No implementation for operator 'DequantizeLinear'"):
        reference(proto, {"x": x})
    found, names = around(proto, {"x": x})
    assert found.tolist() == [[-2.5, 10]] and not names


def average_model(**attributes: Any) -> onnx.ModelProto:
    nodes = [node("AveragePool", ["x"], ["y"], **attributes)]
    return model(nodes, [value("x", [1, 2, 5, 5])], [value("y", [None] * 4)], {}, {"": 19}, 8)


@pytest.mark.parametrize("name", AVERAGES)
def test_average_pool_defect(name: str) -> None:
    proto = average_model(**AVERAGES[name])
    expected = runtime(proto, {"x": X})
    try:
        assert not np.array_equal(reference(proto, {"x": X}), expected)
    except (AssertionError, ValueError) as failure:
        assert "ceil_mode is not supported" in str(failure) or "negative values" in str(failure)
    found, names = around(proto, {"x": X})
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    assert names == {name}


INCLUDED: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}


@pytest.mark.parametrize("attributes", [*GOOD_POOLS, INCLUDED], ids=str)
def test_average_pool_where_the_evaluator_is_right(attributes: dict[str, Any]) -> None:
    proto = average_model(**attributes)
    found, names = around(proto, {"x": X})
    np.testing.assert_allclose(found, reference(proto, {"x": X}), rtol=1e-6)
    np.testing.assert_allclose(found, runtime(proto, {"x": X}), rtol=1e-6)
    assert not names


def quantized_model(op: str, inputs: list[Array | None], kind: int, **attributes: Any) -> onnx.ModelProto:
    """One node; input x is its first input, the others are constants."""
    assert inputs[0] is not None
    names = ["" if array is None else f"i{k}" for k, array in enumerate(inputs)]
    constants = {f"i{k}": a for k, a in enumerate(inputs) if k and a is not None}
    graph_input = value("i0", inputs[0].shape, onnx.helper.np_dtype_to_tensor_dtype(inputs[0].dtype))
    nodes = [node(op, names, ["y"], **attributes)]
    return model(nodes, [graph_input], [value("y", None, kind)], constants, {"": 21}, 9)


def u8(*values: Any) -> Array:
    return np.array(values, np.uint8)


def f32(*values: Any) -> Array:
    return np.array(values, np.float32)


ONE, HALF, NONE, SEVEN = np.float32(1).reshape(()), np.float32(0.5).reshape(()), u8(0).reshape(()), u8(7).reshape(())
# Operator, inputs, result by hand, by the defect's name. Ties: q / 2 is 0.5, 1.5, 2.5, and 7 comes on top.
QUANTIZED: dict[str, tuple[str, list[Array], Any]] = {
    "qlinearconv-zero-point": (
        "QLinearConv", [u8([[1, 3, 5]]), HALF, NONE, u8([[1]]), ONE, NONE, ONE, SEVEN], [[[7, 9, 9]]],
    ),
    "qlinearmatmul-zero-point": (
        "QLinearMatMul", [u8([1], [3], [5]), HALF, NONE, u8([1]), ONE, NONE, ONE, SEVEN], [[7], [9], [9]],
    ),
    "qlinearconv-channels": (
        "QLinearConv", [u8([[2, 4]]), ONE, NONE, u8([[1]], [[1]]), f32(0.5, 2), u8(0, 0), ONE, NONE],
        [[[1, 2], [4, 8]]],
    ),
    "qlinearmatmul-rows": (
        "QLinearMatMul", [u8([2, 0], [4, 0]), f32(0.5, 2), u8(0, 1), u8([1, 2], [0, 0]), ONE, NONE, ONE, NONE],
        [[1, 2], [6, 12]],
    ),
    "convinteger-channels": (
        "ConvInteger", [u8([[2, 4]]), u8([[5]], [[5]]), NONE, u8(4, 3)], [[[2, 4], [4, 8]]],
    ),
    "matmulinteger-rows": (
        "MatMulInteger", [u8([2, 0], [4, 0]), u8([1, 2], [0, 0]), u8(0, 1), NONE], [[2, 4], [3, 6]],
    ),
}


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_operator_defect(name: str) -> None:
    op, inputs, expected = QUANTIZED[name]
    kind = onnx.TensorProto.INT32 if "Integer" in op else onnx.TensorProto.UINT8
    proto = quantized_model(op, [*inputs], kind)
    feeds = {"i0": inputs[0]}
    try:
        assert np.asarray(reference(proto, feeds)).tolist() != expected
    except ValueError as failure:
        assert "broadcast" in str(failure)
    found, names = around(proto, feeds)
    assert found.tolist() == expected and names == {name}
    assert found.dtype == (np.int32 if "Integer" in op else np.uint8)
    if "rows" not in name and op != "ConvInteger":  # which onnxruntime refuses
        assert runtime(proto, feeds).tolist() == expected


@pytest.mark.parametrize("shape", [(7,), (5, 6), (4, 3, 5)])
@pytest.mark.parametrize(
    "attributes", [{}, {"pads": 1}, {"strides": 2}, {"dilations": 2}, {"auto_pad": "SAME_LOWER"}, {"group": 2}], ids=str
)
def test_qlinear_conv_against_onnxruntime(shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """Products small enough for every processor; scales far from ties."""
    rng = np.random.default_rng(1)
    n = len(shape)
    more = {k: [v] * (2 * n if k == "pads" else n) if k in ("pads", "strides", "dilations") else v
            for k, v in attributes.items()}
    weights = rng.integers(-30, 30, (4, 4 // attributes.get("group", 1), *(2,) * n)).astype(np.int8)
    inputs: list[Array | None] = [
        rng.integers(0, 100, (2, 4, *shape)).astype(np.uint8), f32(0.037).reshape(()), u8(9).reshape(()), weights,
        rng.uniform(0.01, 0.02, 4).astype(np.float32), np.zeros(4, np.int8), f32(0.0213).reshape(()),
        u8(100).reshape(()),
        rng.integers(-900, 900, 4).astype(np.int32),
    ]
    assert inputs[0] is not None
    proto = quantized_model("QLinearConv", inputs, onnx.TensorProto.UINT8, **more)
    found, names = around(proto, {"i0": inputs[0]})
    np.testing.assert_array_equal(found, runtime(proto, {"i0": inputs[0]}))
    assert names == ({"qlinearconv-channels"} if n != 2 else set()) and len(np.unique(found)) > 15
    proto = quantized_model("ConvInteger", [inputs[0], weights, inputs[2]], onnx.TensorProto.INT32, **more)
    np.testing.assert_array_equal(around(proto, {"i0": inputs[0]})[0], runtime(proto, {"i0": inputs[0]}))


def test_qlinear_matmul_against_onnxruntime() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 100, (2, 3, 5)).astype(np.uint8), rng.integers(-30, 30, (5, 4)).astype(np.int8)
    inputs: list[Array | None] = [
        a, f32(0.037).reshape(()), u8(9).reshape(()), b, rng.uniform(0.01, 0.02, 4).astype(np.float32),
        rng.integers(-3, 3, 4).astype(np.int8), f32(0.171).reshape(()), u8(8).reshape(()),
    ]
    proto = quantized_model("QLinearMatMul", inputs, onnx.TensorProto.UINT8)
    found, names = around(proto, {"i0": a})
    np.testing.assert_array_equal(found, runtime(proto, {"i0": a}))
    assert not names and len(np.unique(found)) > 10
    proto = quantized_model("MatMulInteger", [a, b, inputs[2], inputs[5]], onnx.TensorProto.INT32)
    np.testing.assert_array_equal(around(proto, {"i0": a})[0], runtime(proto, {"i0": a}))


@pytest.mark.parametrize("name", SOFTMAX)
def test_softmax_before_operator_set_13(name: str) -> None:
    nodes = [node(SOFTMAX[name], ["x"], ["y"], axis=1)]
    x = X[:, :, :2, :3] / 10
    proto = model(nodes, [value("x", [1, 2, 2, 3])], [value("y", [1, 2, 2, 3])], {}, {"": 12}, 8)
    expected = runtime(proto, {"x": x})
    assert not np.allclose(reference(proto, {"x": x}), expected, rtol=1e-3)
    found, names = around(proto, {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert names == {name}
    proto.graph.node[0].attribute[0].i = 3
    found, names = around(proto, {"x": x})
    np.testing.assert_allclose(found, runtime(proto, {"x": x}), rtol=1e-5)
    assert not names


@pytest.mark.parametrize("opset", [7, 9, 13])
def test_batch_normalization_before_operator_set_14(opset: int) -> None:
    """2 * (x - 1) / sqrt(3 + 1) + 5 = x + 4; the other channel -(x + 2) / sqrt(0 + 1)."""
    nodes = [node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], epsilon=1.0)]
    constants = {"s": f32(2, -1), "b": f32(5, 0), "m": f32(1, -2), "v": f32(3, 0)}
    proto = model(nodes, [value("x", [1, 2, 5, 5])], [value("y", [1, 2, 5, 5])], constants, {"": opset}, 8)
    expected = np.stack([X[0, 0] + 4, -(X[0, 1] + 2)])[None]
    try:
        assert not np.allclose(reference(proto, {"x": X}), expected)
    except TypeError as failure:
        assert "BatchNormalization" in str(failure)
    found, names = around(proto, {"x": X})
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(runtime(proto, {"x": X}), expected)
    assert found.dtype == np.float32 and names == {"batchnormalization-statistics"}
