"""Shapes of the quantized dialects' operators, by hand; sources as in hwflow/onnxspec/shapes/dialects.py."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto, helper

from hwflow.onnxspec import ValueInfo
from tests.onnxspec.build import FLOAT, model, node, refused, value
from tests.onnxspec.resolving.resolved import resolve

pytestmark = pytest.mark.usefixtures("measured")

U8, I8, F = TensorProto.UINT8, TensorProto.INT8, FLOAT
Input = tuple[int, list[int]]
S: Input = (F, [])
Z: Input = (U8, [])
ZI: Input = (I8, [])


def output(op: str, domain: str, inputs: list[Input | None], **attributes: Any) -> ValueInfo:
    names = [f"i{k}" if given else "" for k, given in enumerate(inputs)]
    proto = model(
        [node(op, names, ["y"], name="n", domain=domain, **attributes)],
        # A leading zero-dimensional input has no frames; the others begin with 1.
        [value(f"i{k}", given[1], given[0]) for k, given in enumerate(inputs) if given],
        [helper.make_tensor_value_info("y", F, None)],
        opsets={"": 13, domain: 1},
    )
    return resolve(proto, {}).values["y"]


@pytest.mark.parametrize(
    ("op", "parameters"), [("Quant", 3), ("IntQuant", 3), ("FloatQuant", 5), ("BipolarQuant", 1), ("Trunc", 4)]
)
@pytest.mark.parametrize("domain", ["qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"])
def test_qonnx_keeps_the_shape(op: str, domain: str, parameters: int) -> None:
    assert output(op, domain, [(F, [1, 3, 4]), *[S] * parameters]) == ValueInfo("y", (1, 3, 4), "float32")


@pytest.mark.parametrize("domain", ["qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"])
def test_multi_threshold_keeps_the_shape(domain: str) -> None:
    assert output("MultiThreshold", domain, [(F, [1, 3, 4]), (F, [1, 7])]) == ValueInfo("y", (1, 3, 4), "float32")
    message = "the thresholds must have 2 dimensions (channels, steps), not 1"
    assert refused(lambda: output("MultiThreshold", domain, [(F, [1, 3, 4]), (F, [1])])) == [
        f"error: node 'n' (MultiThreshold): the node must fit its operator and its inputs, but: {message} "
        "[onnx.shape_inference]\n  remedy: correct the node or what it reads"
    ]


AVERAGE: list[Input | None] = [(U8, [1, 3, 6, 8]), S, Z, S, Z]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "shape", "dtype"),
    [
        ("QLinearAveragePool", AVERAGE, {"kernel_shape": [2, 3]}, (1, 3, 5, 6), "uint8"),
        ("QLinearAveragePool", AVERAGE, {"kernel_shape": [2, 3], "strides": [2, 2]}, (1, 3, 3, 3), "uint8"),
        (
            "QLinearAveragePool", AVERAGE, {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}, (1, 3, 3, 4),
            "uint8",
        ),
        ("QLinearAveragePool", AVERAGE, {"kernel_shape": [3, 3], "pads": [1, 0, 1, 2]}, (1, 3, 6, 8), "uint8"),
        (
            "QLinearAveragePool", AVERAGE,
            {"kernel_shape": [3, 3], "strides": [4, 4], "auto_pad": "SAME_UPPER"}, (1, 3, 2, 2), "uint8",
        ),
        ("QLinearAveragePool", AVERAGE, {"kernel_shape": [3, 3], "auto_pad": "VALID"}, (1, 3, 4, 6), "uint8"),
        ("QLinearAveragePool", AVERAGE, {"kernel_shape": [3, 2], "channels_last": 1}, (1, 1, 5, 8), "uint8"),
        ("QLinearReduceMean", [(I8, [1, 3, 4]), S, ZI, S, ZI], {"axes": [-1], "keepdims": 1}, (1, 3, 1), "int8"),
        ("QLinearReduceMean", [(I8, [1, 3, 4]), S, ZI, S, ZI], {"axes": [1], "keepdims": 0}, (1, 4), "int8"),
        (
            "QLinearWhere", [(TensorProto.BOOL, [1, 3]), (U8, [1, 1]), S, Z, (U8, []), S, Z, S, Z], {}, (1, 3), "uint8",
        ),
        ("QuantizeLinear", [(F, [1, 3]), S, ZI], {}, (1, 3), "int8"),
        ("QuantizeLinear", [(F, [1, 3]), S], {}, (1, 3), "uint8"),
        ("DequantizeLinear", [(U8, [1, 3]), S, Z], {}, (1, 3), "float32"),
        ("QLinearAdd", [(U8, [1, 3, 1]), S, Z, (U8, [1, 1, 4]), S, Z, S, Z], {}, (1, 3, 4), "uint8"),
        ("QLinearMul", [(I8, [1, 3]), S, None, (I8, []), S, None, S], {}, (1, 3), "int8"),
        ("QLinearSigmoid", [(U8, [1, 3]), S, Z, S, Z], {}, (1, 3), "uint8"),
        ("QLinearLeakyRelu", [(I8, [1, 3]), S, ZI, S, ZI], {"alpha": 0.1}, (1, 3), "int8"),
        ("QLinearSoftmax", [(U8, [1, 3]), S, Z, S, Z], {"opset": 13}, (1, 3), "uint8"),
        ("QLinearConcat", [S, Z, (U8, [1, 3, 2]), S, Z, (U8, [1, 4, 2]), S, Z], {"axis": 1}, (1, 7, 2), "uint8"),
        ("QLinearConcat", [S, Z, (U8, [1, 3]), S, Z, (U8, [1, 5]), S, Z], {"axis": -1}, (1, 8), "uint8"),
        ("QLinearGlobalAveragePool", [(U8, [1, 8, 5, 6]), S, Z, S, Z], {}, (1, 8, 1, 1), "uint8"),
        (
            "QLinearGlobalAveragePool",
            [(U8, [1, 5, 6, 8]), S, Z, S, Z],
            {"channels_last": 1},
            (1, 1, 1, 8),
            "uint8",
        ),
        ("QGemm", [(U8, [1, 3]), S, Z, (I8, [1, 3]), S, ZI, None, S, Z], {"transB": 1}, (1, 1), "uint8"),
        ("QGemm", [(U8, [1, 1]), S, Z, (I8, [1, 5]), S, ZI], {}, (1, 5), "float32"),
        ("QGemm", [(U8, [1, 1]), S, Z, (I8, [1, 5]), S, ZI], {"transA": 1}, (1, 5), "float32"),
    ],
)
def test_microsoft(
    op: str, inputs: list[Input | None], attributes: dict[str, Any], shape: tuple[int, ...], dtype: str
) -> None:
    assert output(op, "com.microsoft", inputs, **attributes) == ValueInfo("y", shape, dtype)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        (
            "QLinearAdd",
            [(U8, [1, 3]), S, Z, (U8, [1, 4]), S, Z, S],
            {},
            "the inputs must broadcast, not [1, 3] with [1, 4]",
        ),
        (
            "QLinearAdd", [(U8, [1, 3]), S, Z], {},
            "input 3 (B) must be present, but it is absent; input 4 (B_scale) must be present, but it is absent; "
            "input 6 (C_scale) must be present, but it is absent",
        ),
        (
            "QLinearConcat", [S, Z], {},
            "input 2 (X) must be present, but it is absent; input 3 (X_scale) must be present, but it is absent",
        ),
        ("QLinearConcat", [S, Z, (U8, [1, 3]), S, Z], {"axis": 2}, "attribute 'axis' must be in [-2, 1], not 2"),
        (
            "QLinearConcat",
            [S, Z, (U8, [1, 3]), S, Z, (U8, [1, 3, 1]), S, Z],
            {"axis": 1},
            "the inputs must agree on all axes but 1, not [1, 3], [1, 3, 1]",
        ),
        (
            "QGemm",
            [(U8, [1, 3]), S, Z, (I8, [1, 5]), S, ZI],
            {},
            "the inner dimensions of A and B must be equal, not 3 and 1",
        ),
        (
            "QGemm",
            [(U8, [1, 3, 1]), S, Z, (I8, [1, 5]), S, ZI],
            {},
            "A and B must have 2 dimensions, not [1, 3, 1] and [1, 5]",
        ),
        (
            "QGemm",
            [(U8, [1, 3]), S, Z, (I8, [1, 5]), S, ZI],
            {"transA": "yes"},
            "attribute 'transA' must be an integer, not 'yes'",
        ),
        ("QLinearAveragePool", AVERAGE, {}, "attribute 'kernel_shape' must be present, but it is absent"),
        (
            "QLinearAveragePool", AVERAGE, {"kernel_shape": [7, 1]},
            "the window must fit the padded image, not 7 in 6",
        ),
        (
            "QLinearAveragePool", AVERAGE, {"kernel_shape": [2]},
            "attribute 'kernel_shape' must be a list of 2 integers, not (2,)",
        ),
        (
            "QLinearAveragePool", AVERAGE, {"kernel_shape": [2, 0]},
            "kernel and strides must be at least 1 and pads at least 0, not [2, 0], [1, 1] and [0, 0, 0, 0]",
        ),
        (
            "QLinearAveragePool", [(U8, [1, 3]), S, Z, S, Z], {"kernel_shape": [2]},
            "the input must have at least 3 dimensions, not 2",
        ),
        (
            "QLinearReduceMean", [(U8, [1, 3]), S, Z, S, Z], {"axes": [2]},
            "attribute 'axes' must be a list of integers in [-2, 1], not (2,)",
        ),
        (
            "QLinearWhere", [(TensorProto.BOOL, [1, 3]), (U8, [1, 2]), S, Z, (U8, []), S, Z, S, Z], {},
            "condition and inputs must broadcast, not [1, 3], [1, 2], []",
        ),
        (
            "QLinearGlobalAveragePool",
            [(U8, [1, 3]), S, Z, S, Z],
            {},
            "the input must have at least 3 dimensions, not 2",
        ),
    ],
)
def test_microsoft_refusals(op: str, inputs: list[Input | None], attributes: dict[str, Any], message: str) -> None:
    assert refused(lambda: output(op, "com.microsoft", inputs, **attributes)) == [
        f"error: node 'n' ({op}): the node must fit its operator and its inputs, but: {message} "
        "[onnx.shape_inference]\n  remedy: correct the node or what it reads"
    ]
