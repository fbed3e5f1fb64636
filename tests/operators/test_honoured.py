"""Every attribute that a handler declares as honoured does in hardware what ONNX's reference evaluator says it does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from hwflow.api.checking import check
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.operators.onnx_operators import HANDLERS
from hwflow.verify import golden
from tests.models import Builder
from tests.operators.own_cases import declared
from tests.reference_agreement import agree_with_reference

Make = Callable[..., str]
NEW, OLD = 28, 10  # the newest operator set; the oldest with quantizers of ONNX's own, which has attributes of its own

SCALE = 1.9348217  # of results: no ties, of which floats decide some

IDLE = {
    "BatchNormalization": {"momentum"}, "Cast": {"round_mode", "saturate", "to"}, "Dropout": {"ratio", "seed"},
    "MaxPool": {"storage_order"}, "QuantizeLinear": {"saturate"},
}  # fmt: skip
"""What means nothing for inference by integers, and Cast's type, which its result has."""

TRAINING = {"BatchNormalization": {"is_test", "spatial", "training_mode"}, "Dropout": {"is_test"}}
"""What must have one value (that of training_mode comes with other outputs, which are refused too): see
:func:`test_what_trains_is_refused`."""


def weights(b: Builder, *shape: int) -> str:
    values = np.random.default_rng(7).integers(-9, 10, shape)
    return b.weights(values, 0.25)


def ints(b: Builder, *values: int) -> str:
    return b.constant(list(values), "int64")


def one(op: str, *parameters: Callable[[Builder], str]) -> Make:
    """An operator of a stream, constants and attributes."""

    def make(b: Builder, x: str, **attributes: Any) -> str:
        return b.node(op, x, *(parameter(b) for parameter in parameters), **attributes)

    return make


def first(op: str, *parameters: Callable[[Builder], str]) -> Make:
    """Likewise, the first of two results."""
    return lambda b, x, **a: b.node(op, x, *(parameter(b) for parameter in parameters), outputs=["other"], **a)


def quantizer(b: Builder, x: str, **attributes: Any) -> str:
    """Scales along an axis."""
    count = {1: 2, 2: 3, 3: 4}[attributes.get("axis", 1)]
    return b.requantize(x, np.arange(1, count + 1) / 4, np.arange(count), "int8", **attributes)


def bits(b: Builder, x: str, **attributes: Any) -> str:
    q = b.quantize(x, 0.5, 0, "uint8")
    return b.node("Cast", b.node("BitShift", q, b.constant(2, "uint8"), **attributes), to=TensorProto.FLOAT)


def remainder(b: Builder, x: str, **attributes: Any) -> str:
    q = b.quantize(x, 0.5, 0, "int8")
    return b.node("Cast", b.node("Mod", q, b.constant(7, "int8"), **attributes), to=TensorProto.FLOAT)


def to_float(make: Make) -> Make:
    return lambda b, x, **attributes: b.node("Cast", make(b, x, **attributes), to=TensorProto.FLOAT)


def integer_convolution(b: Builder, x: str, **attributes: Any) -> str:
    q = b.quantize(x, 0.5, 3, "uint8")
    w = b.constant(np.random.default_rng(7).integers(-9, 10, (2, 2 // attributes.get("group", 1), 2, 2)), "int8")
    return b.node("Cast", b.node("ConvInteger", q, w, b.constant(3, "uint8"), **attributes), to=TensorProto.FLOAT)


def quantized_convolution(b: Builder, x: str, **attributes: Any) -> str:
    q, half, zero = b.quantize(x, 0.5, 2, "uint8"), b.constant(0.5), b.constant(2, "uint8")
    w = b.constant(np.random.default_rng(7).integers(-9, 10, (2, 2 // attributes.get("group", 1), 2, 2)), "int8")
    y = b.node("QLinearConv", q, half, zero, w, half, b.constant(0, "int8"), b.constant(4.0), zero, **attributes)
    return b.dequantize(y, 4.0, 2)


def grouped(op: str) -> Make:
    def make(b: Builder, x: str, **attributes: Any) -> str:
        group = attributes.get("group", 1)
        shape = (2, 2 // group, 2, 2) if op == "Conv" else (2, 4 // group, 2, 2)
        return b.node(op, x, weights(b, *shape), **attributes)

    return make


def gemm(b: Builder, x: str, **attributes: Any) -> str:
    flat = b.node("Flatten", x)
    shape = (3, 24) if attributes.get("transB") else (24, 3)
    return b.node("Gemm", flat, weights(b, *shape), b.constant([1.0, -2.0, 0.5]), **attributes)


def resized(*inputs: Callable[[Builder], str]) -> Make:
    return one("Resize", *inputs)


def small_gemm(b: Builder, x: str, **attributes: Any) -> str:
    """Of weights that are small multiples of one number, whoever made them."""
    w = b.constant(np.random.default_rng(7).integers(-9, 10, (3, 24)) / 4)
    return b.node("Gemm", b.node("Flatten", x), w, b.constant([1.0, -2.0, 0.5]), **attributes)


def left_out(b: Builder) -> str:
    return ""


def scales(b: Builder) -> str:
    return b.constant([1.0, 1.0, 2.0, 0.5])


def sizes(b: Builder) -> str:
    return ints(b, 1, 2, 5, 2)


def inner_sizes(b: Builder) -> str:
    return ints(b, 5, 2)


def split(b: Builder, x: str, **attributes: Any) -> str:
    return b.node("Split", x, outputs=["second"], **attributes)


def typed(b: Builder, x: str, **attributes: Any) -> str:
    return b.node("DequantizeLinear", b.quantize(x, 0.5, 0, "int8"), b.constant(0.5), **attributes)


def typed_levels(b: Builder, x: str, **attributes: Any) -> str:
    """Sixteen bits: of eight some would saturate."""
    return b.node("DequantizeLinear", b.node("QuantizeLinear", x, b.constant(0.25), **attributes), b.constant(0.25))


def blocked(b: Builder, x: str, **attributes: Any) -> str:
    """Scales of two rows each."""
    w, scale = b.constant(np.arange(12).reshape(4, 3) - 5, "int8"), b.constant([[1, 2, 0.5], [0.25, 4, 1]])
    return b.node("MatMul", x, b.node("DequantizeLinear", w, scale, axis=0, **attributes))


def blocked_levels(b: Builder, x: str, **attributes: Any) -> str:
    w, scale = b.constant(np.arange(12).reshape(4, 3) - 5.25), b.constant([[1, 2, 0.5], [0.25, 4, 1]])
    q = b.node("QuantizeLinear", w, scale, b.constant(np.zeros((2, 3)), "int8"), axis=0, **attributes)
    return b.node("MatMul", x, b.node("DequantizeLinear", q, scale, axis=0, **attributes))


STATISTICS = [lambda b, v=v: b.constant([v, v + 1]) for v in (2.0, 1.0, 0.5, 4.0)]
WINDOW: dict[str, Any] = {"strides": [2, 1], "pads": [1, 0, 0, 1], "dilations": [1, 2], "kernel_shape": [2, 2]}
EDGE = {"auto_pad": "SAME_LOWER"}
REDUCED = {"keepdims": 0, "axes": [1, -1]}
CUBIC = {"mode": "cubic", "coordinate_transformation_mode": "asymmetric"}

CASES: list[tuple[str, int, Make, dict[str, Any]]] = [
    *((op, NEW, to_float(one(op)), {"axis": 2, "keepdims": 0, "select_last_index": 1}) for op in ("ArgMax", "ArgMin")),
    ("AveragePool", NEW, one("AveragePool"), {**WINDOW, "count_include_pad": 1}),
    ("AveragePool", NEW, one("AveragePool"), {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("AveragePool", NEW, one("AveragePool"), {"kernel_shape": [2, 2], **EDGE}),
    ("BatchNormalization", NEW, one("BatchNormalization", *STATISTICS), {"epsilon": 0.25, "momentum": 0.5}),
    ("BitShift", NEW, bits, {"direction": "LEFT"}),
    ("BitShift", NEW, bits, {"direction": "RIGHT"}),
    ("Celu", NEW, one("Celu"), {"alpha": 3.0}),
    ("Clip", OLD, one("Clip"), {"max": 3.25, "min": -1.5}),
    ("Concat", NEW, lambda b, x, **a: b.node("Concat", x, b.node("Neg", x), **a), {"axis": -2}),
    ("Conv", NEW, grouped("Conv"), {**WINDOW, "group": 2}),
    ("Conv", NEW, grouped("Conv"), EDGE),
    ("ConvInteger", NEW, integer_convolution, {**WINDOW, "group": 2}),
    ("ConvInteger", NEW, integer_convolution, EDGE),
    ("ConvTranspose", NEW, grouped("ConvTranspose"), {**WINDOW, "group": 2, "output_padding": [1, 0]}),
    ("ConvTranspose", NEW, grouped("ConvTranspose"), {"strides": [2, 2], "output_shape": [5, 7], **EDGE}),
    ("DepthToSpace", NEW, lambda b, x, **a: one("DepthToSpace")(b, b.node("Concat", x, x, axis=1), **a),
     {"blocksize": 2, "mode": "CRD"}),
    ("DequantizeLinear", NEW, quantizer, {"axis": 3}),
    ("Dropout", OLD, one("Dropout"), {"ratio": 0.75}),
    ("Elu", NEW, one("Elu"), {"alpha": 3.0}),
    ("Flatten", NEW, lambda b, x, **a: one("Flatten")(b, x, **a), {"axis": -3}),
    ("Gather", NEW, one("Gather", lambda b: ints(b, 2, 0, -1)), {"axis": 2}),
    ("Gelu", NEW, one("Gelu"), {"approximate": "tanh"}),
    ("Gemm", NEW, gemm, {"alpha": -0.5, "beta": 2.0, "transB": 1, "transA": 0}),
    ("HardSigmoid", NEW, one("HardSigmoid"), {"alpha": 0.125, "beta": 0.75}),
    ("LeakyRelu", NEW, one("LeakyRelu"), {"alpha": 0.5}),
    ("MaxPool", NEW, one("MaxPool"), {**WINDOW, "storage_order": 1}),
    ("MaxPool", NEW, one("MaxPool"), {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("MaxPool", NEW, one("MaxPool"), {"kernel_shape": [2, 2], **EDGE}),
    ("Mod", NEW, remainder, {"fmod": 1}),
    *(
        ("Pad", NEW, one("Pad", lambda b: ints(b, 0, 0, 1, 2, 0, 0, 1, 1)), {"mode": mode})
        for mode in ("edge", "reflect", "wrap")
    ),
    ("Pad", OLD, one("Pad"), {"pads": [0, 0, 1, 2, 0, 1, 0, 0], "value": 1.5}),
    ("QLinearConv", NEW, quantized_convolution, {**WINDOW, "group": 2}),
    ("QLinearConv", NEW, quantized_convolution, EDGE),
    ("QuantizeLinear", NEW, quantizer, {"axis": 2}),
    *((op, OLD, one(op), REDUCED) for op in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")),
    *(
        (op, NEW, one(op), {"noop_with_empty_axes": 1})
        for op in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")
    ),
    ("LpPool", NEW, one("LpPool"), {**WINDOW, "p": 1, "ceil_mode": 0}),
    ("LpPool", NEW, one("LpPool"), {"kernel_shape": [2, 2], **EDGE, "p": 1}),
    ("ReduceProd", OLD, one("ReduceProd"), {"keepdims": 0, "axes": [1]}),
    ("ReduceProd", NEW, one("ReduceProd"), {"noop_with_empty_axes": 1}),
    ("Reshape", NEW, one("Reshape", lambda b: ints(b, 1, 6, 4)), {"allowzero": 1}),
    ("Resize", NEW, resized(left_out, scales), {"mode": "linear", "antialias": 1}),
    ("Resize", NEW, resized(left_out, scales), {**CUBIC, "cubic_coeff_a": -0.5, "exclude_outside": 1}),
    ("Resize", NEW, resized(left_out, scales),
     {"nearest_mode": "ceil", "coordinate_transformation_mode": "asymmetric"}),
    ("Resize", NEW, resized(lambda b: b.constant([0.0, 0, -0.5, 0, 1, 1, 1.5, 1]), left_out, sizes),
     {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 1.5}),
    ("Resize", NEW, resized(left_out, left_out, inner_sizes),
     {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}),
    ("Selu", NEW, one("Selu"), {"alpha": 0.5, "gamma": 2.0}),
    ("SpaceToDepth", NEW, lambda b, x, **a: one("SpaceToDepth")(b, b.node("Concat", x, x, axis=2), **a),
     {"blocksize": 2, "mode": "CRD"}),
    ("Split", NEW, split, {"axis": 3, "num_outputs": 2}),
    ("Split", OLD, split, {"axis": 3, "split": [1, 3]}),
    ("Squeeze", OLD, lambda b, x, **a: b.node("Squeeze", b.node("Unsqueeze", x, axes=[2]), **a), {"axes": [2]}),
    ("ThresholdedRelu", NEW, one("ThresholdedRelu"), {"alpha": 2.5}),
    ("TopK", NEW, first("TopK", lambda b: ints(b, 2)), {"axis": 2, "largest": 0}),
    ("TopK", NEW, first("TopK", lambda b: ints(b, 2)), {"axis": 2, "sorted": 0}),
    ("Transpose", NEW, one("Transpose"), {"perm": [0, 3, 1, 2]}),
    ("Unsqueeze", OLD, one("Unsqueeze"), {"axes": [1, 3]}),
    ("DequantizeLinear", NEW, typed, {"output_dtype": TensorProto.FLOAT}),
    ("DequantizeLinear", NEW, blocked, {"block_size": 2}),
    ("QuantizeLinear", NEW, typed_levels, {"output_dtype": TensorProto.INT16, "precision": TensorProto.FLOAT}),
    ("QuantizeLinear", NEW, blocked_levels, {"block_size": 2}),
    *((name, NEW, make, attributes) for name, make, attributes in declared("HONOURED")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("opset", "make", "attributes"), [case[1:] for case in CASES], ids=[f"{c[0]} {' '.join(c[3])}" for c in CASES]
)
def test_as_the_reference_evaluator(opset: int, make: Make, attributes: dict[str, Any]) -> None:
    b = Builder(opset, 14 if opset > 25 else 10)
    x = b.requantize(b.input("x", ["N", 2, 3, 4]), 0.5, 3, "int8")
    b.output(b.requantize(make(b, x, **attributes), SCALE, -7, "int8"))
    agree_with_reference(b)


def quant(b: Builder, x: str, scale: float, *shape: int, bits: int = 8) -> str:
    """A quantizer of a dialect, for operator sets before 10."""
    parameters = (b.constant(v) for v in (scale, 0.0, float(bits)))
    more: dict[str, Any] = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
    return b.declare(b.node("Quant", x, *parameters, domain="qonnx.custom_op.general", **more), ["N", *shape])


def added(op: str, **more: Any) -> Make:
    """A stream of [N, 2, 3, 4] and a constant that is aligned at its end."""
    return lambda b, x, **attributes: b.node(op, x, b.constant([1.0, -2.0, 0.5, 4.0]), **attributes, **more)


def compared(op: str) -> Make:
    def make(b: Builder, x: str, **attributes: Any) -> str:
        y = b.node(op, x, b.constant([1.0, -2.0, 0.5, 4.0]), **attributes)
        return b.node("Cast", b.declare(y, ["N", 2, 3, 4], "bool"), to=TensorProto.FLOAT)

    return make


def logical(op: str) -> Make:
    def make(b: Builder, x: str, **attributes: Any) -> str:
        low = b.declare(b.node("Greater", x, b.constant([0.0]), broadcast=1), ["N", 2, 3, 4], "bool")
        y = b.node(op, low, b.constant([True, False, True, False], "bool"), **attributes)
        return b.node("Cast", b.declare(y, ["N", 2, 3, 4], "bool"), to=TensorProto.FLOAT)

    return make


ALIGNED = {"broadcast": 1}
EARLY: list[tuple[str, int, Make, dict[str, Any], tuple[int, ...]]] = [
    *((op, 6, added(op), ALIGNED, (2, 3, 4)) for op in ("Add", "Div", "Mul", "Sub")),
    *((op, 6, compared(op), ALIGNED, (2, 3, 4)) for op in ("Greater", "Less")),
    *((op, 6, logical(op), ALIGNED, (2, 3, 4)) for op in ("And", "Or", "Xor")),
    ("Gemm", 6, small_gemm, {**ALIGNED, "transB": 1}, (3,)),
    ("Slice", 9, one("Slice"), {"axes": [2, 3], "starts": [1, -3], "ends": [3, 4]}, (2, 2, 3)),
    ("TopK", 9, first("TopK"), {"axis": 2, "k": 2}, (2, 2, 4)),
    ("Upsample", 9, one("Upsample", lambda b: b.constant([1.0, 1.0, 2.0, 3.0])), {"mode": "linear"}, (2, 6, 12)),
    ("Upsample", 7, one("Upsample"), {"scales": [1.0, 1.0, 2.0, 3.0]}, (2, 6, 12)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("opset", "make", "attributes", "shape"), [case[1:] for case in EARLY], ids=[f"{c[0]} {c[1]}" for c in EARLY]
)
def test_of_early_operator_sets(opset: int, make: Make, attributes: dict[str, Any], shape: tuple[int, ...]) -> None:
    b = Builder(opset, 10)
    x = quant(b, b.input("x", ["N", 2, 3, 4]), 0.5, 2, 3, 4)
    b.output(quant(b, b.declare(make(b, x, **attributes), ["N", *shape]), SCALE, *shape))
    agree_with_reference(b)


def wide(x: np.ndarray) -> np.ndarray:
    return np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 2)], constant_values=1.5)


Function = Callable[[np.ndarray], np.ndarray]
BY_HAND: list[tuple[str, Make, dict[str, Any], Function]] = [
    ("Concat", lambda b, x: b.node("Concat", x, x), {}, lambda x: np.concatenate([x, x], axis=1)),
    ("PRelu", one("PRelu", lambda b: b.constant([0.5, -2.0])), {},
     lambda x: np.where(x < 0, x * np.reshape([0.5, -2.0], (2, 1, 1)), x)),
    ("Pad", one("Pad"), {"paddings": [0, 0, 1, 0, 0, 0, 0, 2], "value": 1.5}, wide),
    ("Pow", one("Pow", lambda b: b.constant([2.0])), ALIGNED, lambda x: x**2),
    ("Reshape", one("Reshape"), {"shape": [0, 4, -1]}, lambda x: x.reshape(len(x), 4, -1)),
    ("Tile", one("Tile", lambda b: b.constant(3.0), lambda b: b.constant(2.0)), {}, lambda x: np.tile(x, (1, 1, 3, 1))),
    ("Upsample", one("Upsample"), {"height_scale": 2.0, "width_scale": 3.0},
     lambda x: x.repeat(2, axis=2).repeat(3, axis=3)),
]  # fmt: skip
"""Of operator set 1, which the evaluator does not have: results in numpy, as the operators' texts say."""


@pytest.mark.parametrize(("make", "attributes", "function"), [c[1:] for c in BY_HAND], ids=[c[0] for c in BY_HAND])
def test_of_the_first_operator_set(make: Make, attributes: dict[str, Any], function: Function, tmp_path: Path) -> None:
    frames = np.random.default_rng(3).integers(-40, 40, (3, 2, 3, 4)) / 2
    expected = function(frames)
    b = Builder(1, 10)
    y = make(b, quant(b, b.input("x", ["N", 2, 3, 4]), 0.5, 2, 3, 4), **attributes)
    shape = expected.shape[1:]
    b.output(quant(b, b.declare(y, ["N", *shape]), 0.25, *shape, bits=16))
    model = b.load(tmp_path)
    arrays = {"x": frames.astype(np.float32)}
    (found,) = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays).values()
    np.testing.assert_array_equal(found, expected)


def test_equal_of_the_first_operator_set(tmp_path: Path) -> None:
    b = Builder(1, 10)
    y = b.node("Equal", b.input("x", ["N", 2, 3], "int32"), b.constant([1, 0, 2], "int32"), broadcast=1)
    b.output(b.declare(y, ["N", 2, 3], "bool"))
    frames = np.arange(12).reshape(2, 2, 3) % 3
    (found,) = golden.evaluate(b.load(tmp_path).quantized, {"x": frames}).values()
    np.testing.assert_array_equal(found, frames == [1, 0, 2])


NORM = one("BatchNormalization", *STATISTICS)
DROP = one("Dropout")


@pytest.mark.parametrize(
    ("opset", "make", "attributes", "message"),
    [
        (6, NORM, {"is_test": 1}, ""),
        (6, NORM, {}, "is_test must be 1, not 0, which trains"),
        (6, NORM, {"is_test": 1, "spatial": 0}, "attribute 'spatial' must be 1, not 0"),
        (7, NORM, {}, ""),
        (6, DROP, {"is_test": 1}, ""),
        (6, DROP, {}, "is_test must be 1, not 0, which trains"),
        (7, DROP, {}, ""),
    ],
)
def test_what_trains_is_refused(
    opset: int, make: Make, attributes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    b = Builder(opset, 10)
    y = b.declare(make(b, quant(b, b.input("x", ["N", 2, 3, 4]), 0.5, 2, 3, 4), **attributes), ["N", 2, 3, 4])
    b.output(quant(b, y, 0.25, 2, 3, 4))
    found = [finding.message for finding in check(b.save(tmp_path)) if finding.severity != "warning"]
    assert found == ([message] if message else [])


def test_a_kernel_shape_unlike_the_weights(tmp_path: Path) -> None:
    b = Builder(21, 10)
    y = b.node("ConvTranspose", b.requantize(b.input("x", ["N", 2, 3, 4]), 0.5), weights(b, 2, 2, 2, 2),
               kernel_shape=[3, 3])
    b.output(b.requantize(y, 0.5))
    rules = [finding.rule for finding in check(b.save(tmp_path)) if finding.severity != "warning"]
    assert rules == ["operator-sizes"] * 2  # of both axes


def test_there_is_a_case_for_every_attribute() -> None:
    tested: dict[str, set[str]] = {"Equal": {"broadcast"}}
    first_set = [(name, 1, make, attributes) for name, make, attributes, _ in BY_HAND]
    for name, _, _, attributes, *_ in [*CASES, *EARLY, *first_set]:
        tested.setdefault(name, set()).update(attributes)
    missing = {
        (name, attribute)
        for (domain, name), taken in HANDLERS.items()
        for attribute in taken.honours
        if domain == "" and attribute not in tested.get(name, set()) | IDLE.get(name, set()) | TRAINING.get(name, set())
    }
    assert not missing
