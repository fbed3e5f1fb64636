"""What the dialects' operators refuse of operands and attributes, by hand; sources as in dialect_forms.py."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from onnx import TensorProto, helper

from hwflow.onnxspec import ValueInfo
from tests.onnxspec.build import FLOAT, model, node, refused, value
from tests.onnxspec.resolving.resolved import resolve
from tests.onnxspec.shapes.test_dialects import ZI, Input, S, Z

U8, I8 = TensorProto.UINT8, TensorProto.INT8
X: Input = (FLOAT, [1, 3, 4])
Q: Input = (U8, [1, 3])
REALS = "element type one of float16, bfloat16, float32, float64"
INTEGERS = "element type one of int2, uint2, int4, uint4, int8, uint8, int16, uint16, int32, uint32"

QONNX, MICROSOFT = "qonnx.custom_op.general", "com.microsoft"


def output(op: str, domain: str, inputs: list[Input | None], **attributes: Any) -> ValueInfo:
    """What a node makes; operands that have a frame axis of 1 are graph inputs, the others constants."""
    given = {f"i{k}": operand for k, operand in enumerate(inputs) if operand is not None}
    streams = {name: operand for name, operand in given.items() if operand[1][:1] == [1] and 0 not in operand[1]}
    constants = {
        name: helper.make_tensor(name, kind, shape, [b"0" if kind == TensorProto.STRING else 0] * prod(shape))
        for name, (kind, shape) in given.items()
        if name not in streams
    }
    proto = model(
        [node(op, [f"i{k}" if operand else "" for k, operand in enumerate(inputs)], ["y"], name="n", domain=domain,
              **attributes)],
        [value(name, shape, kind) for name, (kind, shape) in streams.items()],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        constants,
        opsets={"": 13, domain: 1},
    )
    return resolve(proto, {}).values["y"]


@pytest.mark.parametrize(
    ("domain", "op", "inputs", "attributes", "message"),
    [
        (QONNX, "Quant", [X, S, S], {}, "input 3 (bitwidth) must be present, but it is absent"),
        (QONNX, "Quant", [X, None, S, S], {}, "input 1 (scale) must be present, but it is absent"),
        (QONNX, "Quant", [X, S, S, S, S], {}, "the operator must have at most 4 inputs, not 5"),
        (QONNX, "BipolarQuant", [X, S, S], {}, "the operator must have at most 2 inputs, not 3"),
        (QONNX, "Trunc", [X, *[S] * 7], {}, "the operator must have at most 7 inputs, not 8"),
        (
            QONNX, "IntQuant", [X, (FLOAT, [1, 2, 4]), S, S], {},
            "input 1 (scale) must broadcast over shape [1, 3, 4], not have shape [1, 2, 4]",
        ),
        (
            QONNX, "Quant", [X, S, (FLOAT, [2, 1, 3, 4]), S], {},
            "input 2 (zeropt) must broadcast over shape [1, 3, 4], not have shape [2, 1, 3, 4]",
        ),
        (
            QONNX, "Quant", [X, S, S, (FLOAT, [0])], {},
            "input 3 (bitwidth) must hold at least one element, not have shape [0]",
        ),
        (
            QONNX, "MultiThreshold", [X, (FLOAT, [1, 0])], {},
            "input 1 (thresholds) must hold at least one element, not have shape [1, 0]",
        ),
        (
            QONNX, "Quant", [X, (TensorProto.STRING, []), S, S], {},
            "input 1 (scale) must be of element type one of float16, bfloat16, float32, float64, int2, uint2, int4, "
            "uint4, int8, uint8, int16, uint16, int32, uint32, int64, uint64, not string",
        ),
        (QONNX, "Quant", [X, S, S, S], {"signed": 1.5}, "attribute 'signed' must be an integer, not 1.5"),
        (QONNX, "Quant", [X, S, S, S], {"narrow": "yes"}, "attribute 'narrow' must be an integer, not 'yes'"),
        (QONNX, "Quant", [X, S, S, S], {"rounding_mode": 3}, "attribute 'rounding_mode' must be a text, not 3"),
        (
            QONNX, "MultiThreshold", [X, (FLOAT, [1, 2])], {"out_scale": float("nan"), "out_bias": float("inf")},
            "attribute 'out_scale' must be a finite number, not nan; "
            "attribute 'out_bias' must be a finite number, not inf",
        ),
        (
            QONNX, "MultiThreshold", [X, (FLOAT, [1, 2])], {"out_bias": list(range(50))},
            "attribute 'out_bias' must be a finite number, not (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, "
            "16, 1...",
        ),
        (MICROSOFT, "QLinearSigmoid", [X, S, Z, S, Z], {}, f"input 0 (X) must be of {INTEGERS}, not float32"),
        (MICROSOFT, "QLinearSigmoid", [Q, Z, Z, S, Z], {}, f"input 1 (X_scale) must be of {REALS}, not uint8"),
        (
            MICROSOFT, "QLinearSigmoid", [Q, S, ZI, S, Z], {},
            "input 2 (X_zero_point) must be uint8 as input 0 is, not int8",
        ),
        (
            MICROSOFT, "QLinearLeakyRelu", [Q, (FLOAT, [2]), Z, S, Z], {},
            "input 1 (X_scale) must have one element, not shape [2]",
        ),
        (
            MICROSOFT, "QLinearLeakyRelu", [Q, S, Z, S, Z], {"alpha": float("nan")},
            "attribute 'alpha' must be a finite number, not nan",
        ),
        (
            MICROSOFT, "QLinearAdd", [Q, S, Z, (I8, [1, 3]), S, ZI, S, Z], {},
            "input 3 (B) must be uint8 as input 0 is, not int8; "
            "input 5 (B_zero_point) must be uint8 as input 0 is, not int8",
        ),
        (
            MICROSOFT, "QLinearAveragePool", [(U8, [1, 3, 4, 4]), S, Z, S, Z], {"kernel_shape": [1.5]},
            "attribute 'kernel_shape' must be a list of integers, not (1.5,)",
        ),
        (MICROSOFT, "QLinearConcat", [S, Z, Q, S, Z, Q], {}, "input 6 (X_scale) must be present, but it is absent"),
        (
            MICROSOFT, "QLinearConcat", [S, Z, Q, S, Z, (I8, [1, 3]), S, Z], {"axis": 1},
            "input 7 (X_zero_point) must be int8 as input 5 is, not uint8",
        ),
        (
            MICROSOFT, "QGemm", [Q, S, Z, (I8, [3, 2]), (FLOAT, [2, 2]), ZI], {},
            "input 4 (b_scale) must have one axis, not shape [2, 2]",
        ),
        (
            MICROSOFT, "QGemm", [Q, S, Z, (I8, [3, 2]), S, ZI, (FLOAT, [2])], {},
            "input 6 (C) must be of element type int32, not float32",
        ),
        (
            MICROSOFT, "QGemm", [Q, S, Z, (I8, [3, 2]), S, ZI, (TensorProto.INT32, [3])], {},
            "C must broadcast over the result [1, 2], not have shape [3]",
        ),
        (
            MICROSOFT, "QLinearWhere", [Q, Q, S, Z, Q, S, Z, S, Z], {},
            "input 0 (condition) must be of element type bool, not uint8",
        ),
        (
            MICROSOFT, "DequantizeLinear", [Q, S, Z], {"block_size": [1]},
            "attribute 'block_size' must be an integer, not (1,)",
        ),
    ],
)
def test_refused(domain: str, op: str, inputs: list[Input | None], attributes: dict[str, Any], message: str) -> None:
    assert refused(lambda: output(op, domain, inputs, **attributes)) == [
        f"error: node 'n' ({op}): the node must fit its operator and its inputs, but: {message} "
        "[onnx.shape_inference]\n  remedy: correct the node or what it reads"
    ]


@pytest.mark.parametrize(
    ("domain", "op", "inputs", "attributes"),
    [
        (QONNX, "Quant", [X, (FLOAT, [1, 3, 1]), (TensorProto.INT64, []), (TensorProto.INT64, [1])], {"signed": 0}),
        (QONNX, "Quant", [X, (FLOAT, [1, 1, 1, 1]), S, S], {"alpha": "an attribute that means nothing"}),
        (QONNX, "Trunc", [X, S, S, S, S, S], {"rounding_mode": "FLOOR"}),
        (QONNX, "MultiThreshold", [X, (FLOAT, [3, 2])], {"out_scale": 2, "out_bias": -0.5}),
        (MICROSOFT, "QLinearAdd", [Q, S, None, Q, (FLOAT, [1, 1]), Z, S], {}),
        (MICROSOFT, "QGemm", [Q, S, Z, (I8, [3, 2]), (FLOAT, [2]), (I8, [2]), (TensorProto.INT32, [1, 2])], {}),
    ],
)
def test_accepted(domain: str, op: str, inputs: list[Input | None], attributes: dict[str, Any]) -> None:
    assert output(op, domain, inputs, **attributes).name == "y"
