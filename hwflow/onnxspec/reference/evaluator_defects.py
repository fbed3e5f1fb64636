"""Known defects of ONNX's reference evaluator (seen in onnx 1.23.2), and operators that evaluate around them.

One list, :data:`DEFECTS`, for the operators hwflow compiles or leaves to the host; a test shows each in the installed
onnx. The substitutes replace the evaluator's operator where it is wrong, so that a comparison still says something, and
note the name of each defect they went around, so that it is named and the model is not blamed.

:data:`RUNTIME_DIFFERENCES` tells where onnxruntime (seen in 1.31.1) does not do what operators are defined to do; a
comparison with its results has to expect these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op
from onnx.reference.ops.op_dequantize_linear import DequantizeLinear_19

from hwflow.onnxspec.dialect_operators import qoperator
from hwflow.onnxspec.dialect_operators.quantized_windows import (
    Windows,
    explicit_pads,
    pads_are_same,
    same_totals,
    window_sums,
)
from hwflow.onnxspec.dialect_operators.quantizer_levels import Levels
from hwflow.onnxspec.reference import resize_defects
from hwflow.onnxspec.reference.conv_transpose import conv_transpose
from hwflow.onnxspec.reference.defect import Defect

AnyArray = npt.NDArray[Any]

FIRST_DEQUANTIZE = 19
"""The evaluator has no DequantizeLinear of an earlier operator set."""

LAST_AXIS_ALONE = 13
"""The operator set since which Softmax normalizes along one axis."""

FIRST_INFERENCE = 14
"""The evaluator's BatchNormalization infers (rather than trains) from this operator set on."""

_LARGEST_QUOTIENT = 2.0**30
"""Quotients beyond this saturate in every quantized type (16 bits at most) and still fit an int32."""


def _unit(attributes: Mapping[str, Any]) -> bool:
    """Strides and dilations are all 1: the evaluator's MaxPool then shares its code with AveragePool."""
    return all(v == 1 for key in ("strides", "dilations") for v in attributes.get(key) or ())


def _pads_order(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    pads = explicit_pads(attributes)
    return _unit(attributes) and len(pads) == 4 and pads[1] != pads[2]


def _ceil_mode(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    return _unit(attributes) and bool(attributes.get("ceil_mode")) and any(explicit_pads(attributes))


def _integers(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    integers = inputs[0] is not None and inputs[0].dtype.kind in "iu"
    return integers and _unit(attributes) and (any(explicit_pads(attributes)) or pads_are_same(attributes))


def _same_lower(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    return not _unit(attributes) and attributes.get("auto_pad") == "SAME_LOWER"


def _negative_same(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    if _unit(attributes) or not pads_are_same(attributes) or inputs[0] is None:
        return False
    return any(total < 0 for total in same_totals(inputs[0].shape[2:], attributes["kernel_shape"], attributes))


def _overflow(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    limits, x = _limits(attributes, inputs), inputs[0]
    return limits is not None and x is not None and bool(np.any(np.abs(x) > limits))


def _odd_zero_point(index: int) -> Callable[[Mapping[str, Any], Sequence[AnyArray | None]], bool]:
    def applies(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
        zero_point = inputs[index] if len(inputs) > index else None
        return zero_point is not None and bool(np.any(zero_point.astype(np.int64) % 2))

    return applies


def _no_image(index: int) -> Callable[[Mapping[str, Any], Sequence[AnyArray | None]], bool]:
    """A parameter of each output channel where the image has not two spatial axes."""

    def applies(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
        parameter, x = (inputs[i] if len(inputs) > i else None for i in (index, 0))
        return parameter is not None and x is not None and parameter.size > 1 and x.ndim != 4

    return applies


def _of_rows(*places: int) -> Callable[[Mapping[str, Any], Sequence[AnyArray | None]], bool]:
    """A parameter of each row of a matrix product, given as a list."""

    def applies(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
        parameters = (inputs[index] if len(inputs) > index else None for index in places)
        return any(p is not None and p.ndim == 1 and p.size > 1 for p in parameters)

    return applies


def _average_ceil(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    return bool(attributes.get("ceil_mode")) and attributes.get("auto_pad") not in (None, "", "NOTSET")


def _average_dilations(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    automatic = attributes.get("auto_pad") not in (None, "", "NOTSET")
    return any(d > 1 for d in attributes.get("dilations") or ()) and (automatic or bool(attributes.get("ceil_mode")))


def _average_negative(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    x = inputs[0]
    if x is None or not pads_are_same(attributes):
        return False
    return any(total < 0 for total in same_totals(x.shape[2:], attributes["kernel_shape"], attributes))


def _inner_axis(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    x = inputs[0]
    return x is not None and int(attributes.get("axis", 1)) % x.ndim < x.ndim - 1


def _not_two_axes(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    """Images of other than two spatial axes."""
    return inputs[0] is not None and inputs[0].ndim != 4


def _groups(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    return int(attributes.get("group", 1)) > 1


def _output_shape(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    return bool(attributes.get("output_shape"))


def _always(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
    return True


DEFECTS = (
    Defect(
        "maxpool-pads-order", "MaxPool", "with unit strides and dilations, pads are read as top, bottom, left, right",
        _pads_order,
    ),
    Defect(
        "maxpool-ceil-mode", "MaxPool", "with unit strides and dilations, ceil_mode counts the pads twice", _ceil_mode
    ),
    Defect(
        "maxpool-integers", "MaxPool",
        "with unit strides and dilations, padding integers fails (the pads are NaN)", _integers,
    ),
    Defect(
        "maxpool-same-lower", "MaxPool",
        "with strides or dilations, SAME_LOWER rounds the output size down and pads at the end", _same_lower,
    ),
    Defect(
        "maxpool-negative-pads", "MaxPool",
        "with strides greater than the kernel, SAME pads become negative and crop the image", _negative_same,
    ),
    Defect(
        "quantize-overflow", "QuantizeLinear",
        "a quotient of 2**31 or more wraps to the lowest level instead of saturating", _overflow,
    ),
    Defect(
        "qlinearconv-zero-point", "QLinearConv", "the zero point is added before rounding: ties differ where it is odd",
        _odd_zero_point(7),
    ),
    Defect(
        "qlinearconv-channels", "QLinearConv",
        "with weight scales of their own for each channel, the image is taken to have two spatial axes", _no_image(4),
    ),
    Defect(
        "qlinearmatmul-zero-point", "QLinearMatMul",
        "the zero point is added before rounding: ties differ where it is odd", _odd_zero_point(7),
    ),
    Defect(
        "qlinearmatmul-rows", "QLinearMatMul", "scales or zero points of rows go along the columns",
        _of_rows(1, 2, 6, 7),
    ),
    Defect(
        "convinteger-channels", "ConvInteger",
        "with weight zero points of their own for each channel, the image is taken to have two spatial axes",
        _no_image(3),
    ),
    Defect("matmulinteger-rows", "MatMulInteger", "zero points of rows go along the columns", _of_rows(2)),
    Defect("averagepool-ceil-mode", "AveragePool", "ceil_mode fails with auto_pad", _average_ceil),
    Defect(
        "averagepool-dilations", "AveragePool", "auto_pad and ceil_mode leave dilations out of account",
        _average_dilations,
    ),
    Defect(
        "averagepool-negative-pads", "AveragePool",
        "with strides greater than the kernel, SAME pads become negative and it fails", _average_negative,
    ),
    Defect("convtranspose-groups", "ConvTranspose", "with several groups it fails", _groups),
    Defect("convtranspose-output-shape", "ConvTranspose", "with output_shape it fails", _output_shape),
    Defect(
        "globalmaxpool-axes", "GlobalMaxPool", "with other than two spatial axes it reduces others", _not_two_axes
    ),
    Defect(
        "softmax-axes", "Softmax",
        f"before operator set {LAST_AXIS_ALONE} all axes from 'axis' on are normalized together; here it is one",
        _inner_axis,
    ),
    Defect(
        "logsoftmax-axes", "LogSoftmax",
        f"before operator set {LAST_AXIS_ALONE} all axes from 'axis' on are normalized together; here it is one",
        _inner_axis,
    ),
    Defect(
        "batchnormalization-statistics", "BatchNormalization",
        f"before operator set {FIRST_INFERENCE} it takes the statistics of the batch, or fails", _always,
    ),
    *resize_defects.DEFECTS,
    Defect("dequantize-opset", "DequantizeLinear", f"there is none before operator set {FIRST_DEQUANTIZE}", None),
)


@dataclass(frozen=True)
class Difference:
    """Where onnxruntime's CPU kernels of ``operators`` do not give what the operators are defined to give."""

    name: str
    operators: tuple[str, ...]
    text: str


RUNTIME_DIFFERENCES = (
    Difference(
        "runtime-rounding", ("QLinearAdd", "QLinearMul", "QLinearAveragePool"),
        "the zero point is added before rounding: ties differ where it is odd (of the pool, in the vector kernel only)",
    ),
    Difference(
        "runtime-softmax", ("QLinearSoftmax",),
        "levels may be off by one where no tie is near",
    ),
    Difference(
        "runtime-saturation", ("QLinearConv", "QLinearMatMul", "QGemm", "ConvInteger", "MatMulInteger"),
        "on x86 processors without VNNI, sums of two products of uint8 and int8 saturate at 16 bits",
    ),
    Difference("runtime-resize", ("Resize",), "means of integers are cut off, not rounded"),
    Difference(
        "runtime-float32", ("QLinear*", "QGemm"),
        "quotients are float32: a level may be off by one where a tie is within a few units in the last place",
    ),
)


def substitutes(version: int, note: Callable[[str], None]) -> list[type[OpRun]]:
    """Operators for ``onnx.reference.ReferenceEvaluator(new_ops=...)`` on a model of ai.onnx operator set ``version``.

    ``note`` is called with the name of each defect that was gone around, once for each evaluation of a node.
    """

    def tell(operator: str, attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> bool:
        found = [
            defect.name for defect in DEFECTS
            if defect.operator == operator and defect.applies is not None and defect.applies(attributes, inputs)
        ]
        for name in found:
            note(name)
        return bool(found)

    def max_pool_run(self: OpRun, x: AnyArray, **attributes: Any) -> tuple[AnyArray]:
        tell("MaxPool", attributes, [x])
        return (max_pool(x, attributes),)

    def average_pool_run(self: OpRun, x: AnyArray, **attributes: Any) -> tuple[AnyArray]:
        tell("AveragePool", attributes, [x])
        return (average_pool(x, attributes),)

    def global_max_pool_run(self: OpRun, x: AnyArray, **attributes: Any) -> tuple[AnyArray]:
        tell("GlobalMaxPool", attributes, [x])
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)

    def conv_transpose_run(
        self: OpRun, x: AnyArray, w: AnyArray, b: AnyArray | None = None, **attributes: Any
    ) -> tuple[AnyArray]:
        tell("ConvTranspose", attributes, [x, w, b])
        return (conv_transpose(x, w, b, attributes),)

    made = [
        _operator("ConvTranspose", (OpRun,), version, conv_transpose_run),
        _operator("GlobalMaxPool", (OpRun,), version, global_max_pool_run),
        _operator("MaxPool", (OpRun,), version, max_pool_run),
        _operator("AveragePool", (OpRun,), version, average_pool_run),
    ]
    runs = resize_defects.substitutes(version, tell)
    made += [_operator(name, (OpRun,), version, run) for name, run in runs.items()]
    if version < FIRST_INFERENCE:

        def normalize_run(self: OpRun, *inputs: AnyArray, **attributes: Any) -> tuple[AnyArray]:
            tell("BatchNormalization", attributes, inputs)
            if attributes.get("is_test") == 0:
                raise ValueError("BatchNormalization trains: is_test must be 1, not 0")
            return (batch_normalization(inputs, float(attributes.get("epsilon", 1e-5)), attributes.get("spatial", 1)),)

        made.append(_operator("BatchNormalization", (OpRun,), version, normalize_run))
    if version < LAST_AXIS_ALONE:
        made += [_flattened(name, version, tell) for name in ("Softmax", "LogSoftmax")]
    if version < 10:
        return made
    for name, levels in qoperator.LEVELS.items():
        made.append(_operator(name, (OpRun,), version, _told(name, _integers_of(levels), tell)))
    for name, exact in qoperator.EXACT.items():
        made.append(_operator(name, (OpRun,), version, _told(name, exact, tell)))
    quantize = load_op("", "QuantizeLinear", version)

    def quantize_run(
        self: OpRun, x: AnyArray, scale: AnyArray, *rest: AnyArray | None, **attributes: Any
    ) -> tuple[AnyArray]:
        tell("QuantizeLinear", attributes, [x, scale])
        limits = _limits(attributes, [x, scale])
        if limits is not None:
            x = np.clip(x, -limits, limits)
        result: tuple[AnyArray] = quantize._run(self, x, scale, *rest, **attributes)
        return result

    made.append(_operator("QuantizeLinear", (quantize,), version, quantize_run))
    if version < FIRST_DEQUANTIZE:

        made.append(_operator("DequantizeLinear", (DequantizeLinear_19,), version, DequantizeLinear_19._run))
    return made


def max_pool(x: AnyArray, attributes: Mapping[str, Any]) -> AnyArray:
    """MaxPool of ``x`` [frames, channels, height, width] as the operator's specification says (versions 1 to 22): pads
    never win, and a window must start inside the image or the pads before it. Any element type; one output."""
    windows = Windows.of(x.shape[2:], tuple(attributes["kernel_shape"]), attributes)
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    result = np.full((*x.shape[:2], *windows.sizes), least, dtype=x.dtype)
    for _, target, source in windows.taps():
        place = (slice(None), slice(None), *target)
        result[place] = np.maximum(result[place], x[(slice(None), slice(None), *source)])
    return result


def average_pool(x: AnyArray, attributes: Mapping[str, Any]) -> AnyArray:
    """AveragePool of ``x`` [frames, channels, ...] as its specification says (versions 1 to 22): a mean does not count
    what lies beyond image and pads, nor the pads unless ``count_include_pad``. Summed in float64, rounded to x's type
    once."""
    windows = Windows.of(x.shape[2:], tuple(attributes["kernel_shape"]), attributes)
    counts = windows.counts(bool(attributes.get("count_include_pad")))
    return (window_sums(x.astype(np.float64), windows) / counts).astype(x.dtype)


def batch_normalization(inputs: Sequence[AnyArray], epsilon: float, spatial: int = 1) -> AnyArray:
    """scale * (x - mean) / sqrt(variance + epsilon) + bias for each channel, as the evaluator's version 15 does it; for
    each element of a frame where ``spatial`` is 0."""
    x, scale, bias, mean, variance = inputs
    shape = (1, -1) + (1,) * (x.ndim - 2) if spatial else (1, *x.shape[1:])
    scale, bias, mean, variance = (p.reshape(shape) for p in (scale, bias, mean, variance))
    result: AnyArray = scale * (x - mean) / np.sqrt(variance + epsilon) + bias
    return result.astype(x.dtype)


def _integers_of(
    levels: Callable[[Sequence[AnyArray | None], Mapping[str, Any]], Levels],
) -> Callable[[Sequence[AnyArray | None], Mapping[str, Any]], AnyArray]:
    return lambda inputs, attributes: levels(inputs, attributes).array()


_Tell = resize_defects.Tell


def _told(
    name: str, result: Callable[[Sequence[AnyArray | None], Mapping[str, Any]], AnyArray], tell: _Tell
) -> Callable[..., tuple[AnyArray]]:
    """The ``_run`` of an operator that gives ``result``, once its defects have been told of."""

    def run(self: OpRun, *inputs: AnyArray | None, **attributes: Any) -> tuple[AnyArray]:
        tell(name, attributes, inputs)
        return (result(inputs, attributes),)

    return run


def _flattened(name: str, version: int, tell: _Tell) -> type[OpRun]:
    """Softmax or LogSoftmax before operator set 13: of a matrix of [axes before 'axis', the others]."""

    def run(self: OpRun, x: AnyArray, **attributes: Any) -> tuple[AnyArray]:
        tell(name, attributes, [x])
        axis = int(attributes.get("axis", 1)) % max(1, x.ndim)
        flat = x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)
        powers = np.exp(flat - flat.max(axis=1, keepdims=True))
        result = powers / powers.sum(axis=1, keepdims=True)
        return ((np.log(result) if name == "LogSoftmax" else result).reshape(x.shape),)

    return _operator(name, (OpRun,), version, run)


def _operator(name: str, bases: tuple[type, ...], version: int, run: Callable[..., tuple[AnyArray]]) -> type[OpRun]:
    """An operator class: the evaluator finds it by its name and takes default attributes from ``op_schema``."""
    schema = onnx.defs.get_schema(name, version, "")
    return type(name, bases, {"op_domain": "", "op_schema": schema, "_run": run})


def _limits(attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> AnyArray | None:
    """The greatest magnitude of a QuantizeLinear's input that its int32 holds, broadcastable over it, if known."""
    x, scale = inputs[0], inputs[1]
    assert x is not None and scale is not None
    if attributes.get("block_size") or scale.ndim > 1:
        return None
    if scale.size > 1:
        shape = [1] * x.ndim
        shape[attributes.get("axis", 1)] = -1
        scale = scale.reshape(shape)
    elif scale.ndim:
        scale = scale[0]
    limits: AnyArray = scale.astype(x.dtype) * x.dtype.type(_LARGEST_QUOTIENT)
    return limits
