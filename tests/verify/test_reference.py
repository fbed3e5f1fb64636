"""Regions of models of any operator set, in a batch and frame by frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from hwflow.onnxspec.reference.evaluation import RegionEvaluator
from tests.onnxspec.build import model, node, refused, value

UINT8 = TensorProto.UINT8


def chain(opset: int) -> onnx.ModelProto:
    """Quantize, dequantize, Clip, Unsqueeze, Squeeze, quantize: spelled as ``opset`` wants it."""
    clip = node("Clip", ["d"], ["c"], min=-1.0, max=2.0) if opset < 11 else node("Clip", ["d", "low", "high"], ["c"])
    constants: dict[str, Any] = {"s": np.float32(0.25), "z": np.uint8(9), "t": np.float32(0.5)}
    if opset >= 11:
        constants |= {"low": np.float32(-1), "high": np.float32(2)}
    if opset < 13:
        moves = [node("Unsqueeze", ["c"], ["u"], axes=[1]), node("Squeeze", ["u"], ["v"], axes=[1])]
    else:
        constants["axes"] = np.array([1], np.int64)
        moves = [node("Unsqueeze", ["c", "axes"], ["u"]), node("Squeeze", ["u", "axes"], ["v"])]
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]), clip, *moves,
        node("QuantizeLinear", ["v", "t", "z"], ["y"]),
    ]
    version = 5 if opset < 11 else 8
    return model(nodes, [value("x", ["N", 3])], [value("y", ["N", 3], UINT8)], constants, {"": opset}, version)


@pytest.mark.parametrize("opset", [10, 11, 12, 13, 16, 18, 19])
def test_operator_sets(opset: int) -> None:
    x = np.array([[-3, -0.6, 0.1], [0.3, 0.9, 4]], np.float32)
    proto = chain(opset)
    evaluator = RegionEvaluator(proto)
    found = evaluator.run(["y"], {"x": x})["y"]
    # quarters: -2.25 (saturated) -0.5 0 | 0.25 1 4; clipped: -1 -0.5 0 | 0.25 1 2; halves: -2 -1 0 | 0.5 2 4; plus 9
    assert found.tolist() == [[7, 8, 9], [9, 11, 13]]
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(found, session.run(None, {"x": x})[0])
    assert evaluator.region(["y"], frozenset({"x"})).framewise
    inner = evaluator.run(["y"], {"q": np.array([[5, 7, 9]], np.uint8)})  # cut off at q: -1, -0.5, 0
    assert inner["y"].tolist() == [[7, 8, 9]]


@pytest.mark.parametrize(
    "nodes, constants, framewise",
    [
        ([node("Reshape", ["x", "to"], ["y"])], {"to": [-1, 6]}, True),
        ([node("Reshape", ["x", "to"], ["y"])], {"to": [0, 6]}, True),
        ([node("Reshape", ["x", "to"], ["y"])], {"to": [1, -1]}, False),
        ([node("Reshape", ["x", "to"], ["y"])], {"to": [1, 6]}, False),
        ([node("Constant", [], ["to"], value_ints=[1, 6]), node("Reshape", ["x", "to"], ["y"])], {}, False),
        ([node("Flatten", ["x"], ["y"])], {}, True),
        ([node("Flatten", ["x"], ["y"], axis=0)], {}, False),
        ([node("Transpose", ["x"], ["u"], perm=[0, 2, 1]), node("Flatten", ["u"], ["y"])], {}, True),
        ([node("Squeeze", ["x"], ["u"]), node("Reshape", ["u", "to"], ["y"])], {"to": [1, 6]}, False),
        ([node("Softmax", ["x"], ["u"]), node("Flatten", ["u"], ["y"])], {}, False),
        ([node("Softmax", ["x"], ["u"], axis=2), node("Flatten", ["u"], ["y"])], {}, True),
    ],
    ids=str,
)
def test_batches_only_where_they_are_safe(
    nodes: list[onnx.NodeProto], constants: dict[str, Any], framewise: bool
) -> None:
    arrays = {name: np.array(v, np.int64) for name, v in constants.items()}
    proto = model(nodes, [value("x", ["N", 2, 3])], [value("y", ["N", 6])], arrays, {"": 13}, 8)
    evaluator = RegionEvaluator(proto)
    x = np.random.default_rng(0).integers(-9, 9, (4, 2, 3)).astype(np.float32)
    found = evaluator.run(["y"], {"x": x})["y"]
    assert evaluator.region(["y"], frozenset({"x"})).framewise == framewise
    singles = [evaluator.run(["y"], {"x": x[i : i + 1]})["y"] for i in range(4)]
    assert found.shape == (4, 6)
    np.testing.assert_array_equal(found, np.concatenate(singles))


@pytest.mark.parametrize(
    ("resized", "constants", "framewise"),
    [
        (node("Resize", ["x", "", "by"], ["y"]), {"by": np.array([1, 1, 2], np.float32)}, True),
        (node("Resize", ["x", "", "", "to"], ["y"]), {"to": np.array([1, 2, 6])}, False),
        (node("Resize", ["x", "", "", "to"], ["y"], axes=[2]), {"to": np.array([6])}, True),
    ],
    ids=["scales", "sizes", "sizes_of_an_axis"],
)
def test_batches_of_a_resize(resized: onnx.NodeProto, constants: dict[str, Any], framewise: bool) -> None:
    """Sizes count the frames."""
    proto = model([resized], [value("x", ["N", 2, 3])], [value("y", ["N", 2, 6])], constants, {"": 19}, 9)
    evaluator = RegionEvaluator(proto)
    x = np.random.default_rng(0).integers(-9, 9, (4, 2, 3)).astype(np.float32)
    assert evaluator.region(["y"], frozenset({"x"})).framewise == framewise
    np.testing.assert_array_equal(evaluator.run(["y"], {"x": x})["y"], np.repeat(x, 2, axis=2))


def test_an_axis_before_the_frames_is_noticed() -> None:
    """x [N, 3] + a constant [1, 1, 3] is [1, N, 3]: not what one frame gives."""
    nodes = [node("Add", ["x", "c"], ["y"])]
    constants = {"c": np.ones((1, 1, 3), np.float32)}
    proto = model(nodes, [value("x", ["N", 3])], [value("y", [1, "N", 3])], constants, {"": 13}, 8)
    found = RegionEvaluator(proto).run(["y"], {"x": np.zeros((4, 3), np.float32)})["y"]
    assert found.shape == (4, 1, 3)


def test_local_functions_are_expanded() -> None:
    function = helper.make_function(
        "local", "Half", ["a"], ["b"],
        [node("Constant", [], ["k"], value_float=0.5), node("Mul", ["a", "k"], ["b"])], [helper.make_opsetid("", 13)],
    )
    proto = model(
        [node("Half", ["x"], ["h"], domain="local"), node("Relu", ["h"], ["y"])],
        [value("x", ["N", 2])], [value("y", ["N", 2])], {}, {"": 13, "local": 1}, 8, functions=[function],
    )
    assert RegionEvaluator(proto).run(["y"], {"x": np.array([[3, -1]], np.float32)})["y"].tolist() == [[1.5, 0]]


def test_what_cannot_be_computed_is_a_finding() -> None:
    proto = model([node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 4])], None, {"w": np.ones((3, 4), np.float32)})
    (text,) = refused(lambda: RegionEvaluator(proto).run(["y"], {"x": np.ones((1, 4), np.float32)}))
    assert text.startswith(
        "error: value 'y': must be what ONNX's reference evaluator can compute, but it failed: "
    )
    assert text.endswith("[reference-evaluator]\n  remedy: check the model with 'hwflow check'")
    assert refused(lambda: RegionEvaluator(proto).run(["y"], {})) == [
        "error: value 'x': must be fed, not missing [region-closed]\n  remedy: give it as an input"
    ]


QONNX, MICROSOFT = "qonnx.custom_op.general", "com.microsoft"


def test_dialects_in_a_batch() -> None:
    """Quant 8 bits / 0.5, MultiThreshold at 0 and 1, com.microsoft's quantizers, QLinearAdd: all frames at once."""
    nodes = [
        node("Quant", ["x", "s", "z", "bits"], ["q"], domain=QONNX, signed=1, narrow=0),
        node("MultiThreshold", ["q", "steps"], ["m"], domain=QONNX, out_dtype="UINT2"),
        node("QuantizeLinear", ["m", "s", "zero"], ["u"], domain=MICROSOFT),
        node("QLinearAdd", ["u", "s", "zero", "u", "s", "zero", "s", "zero"], ["y"], domain=MICROSOFT),
    ]
    constants = {
        "s": np.float32(0.5), "z": np.float32(0), "bits": np.float32(8), "steps": np.array([[0, 1]], np.float32),
        "zero": np.uint8(0),
    }
    opsets = {"": 13, QONNX: 1, MICROSOFT: 1}
    proto = model(nodes, [value("x", ["N", 3])], [value("y", ["N", 3], UINT8)], constants, opsets, 8)
    evaluator = RegionEvaluator(proto)
    x = np.array([[-0.2, 0.2, 0.8], [-1, 0.3, 9]], np.float32)
    # to halves, to even: 0, 0, 1 (1.6 -> 2) | -1, 0.5 (0.6 -> 1), 9; counts 1 1 2 | 0 1 2; / 0.5 and twice
    assert evaluator.run(["y"], {"x": x})["y"].tolist() == [[4, 4, 8], [0, 4, 8]]
    assert evaluator.region(["y"], frozenset({"x"})).framewise
