"""Each defect in the list, shown in the installed onnx; and the substitutes against onnxruntime, a second evaluator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from hwflow.onnxspec.evaluator_defects import DEFECTS, substitutes
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
    evaluator = ReferenceEvaluator(proto, new_ops=substitutes(proto.opset_import[0].version, names.add))
    return np.asarray(evaluator.run(None, feeds)[0]), names


def runtime(proto: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds)[0])


def test_every_defect_is_shown_here() -> None:
    assert sorted(d.name for d in DEFECTS) == sorted([*POOLS, "quantize-overflow", "dequantize-opset"])


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


def test_dequantize_before_operator_set_19() -> None:
    nodes = [node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=1)]
    constants = {"s": np.array([0.5, 2], np.float32), "z": np.array([1, -1], np.int8)}
    proto = model(nodes, [value("x", [1, 2], onnx.TensorProto.INT8)], [value("y", [1, 2])], constants, {"": 18}, 8)
    x = np.array([[-4, 4]], np.int8)
    with pytest.raises(RuntimeError, match="No implementation for operator 'DequantizeLinear'"):
        reference(proto, {"x": x})
    found, names = around(proto, {"x": x})
    assert found.tolist() == [[-2.5, 10]] and not names
