"""Defects of operators of ONNX's reference evaluator, and their substitutes: see
:mod:`hwflow.onnxspec.reference.defect`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op
from onnx.reference.ops.op_dequantize_linear import DequantizeLinear_19

from hwflow.onnxspec.dialect_operators import qoperator
from hwflow.onnxspec.dialect_operators.call_arguments import maybe, need
from hwflow.onnxspec.dialect_operators.quantized_windows import (
    Windows,
    explicit_pads,
    pads_are_same,
    same_totals,
    window_sums,
)
from hwflow.onnxspec.dialect_operators.quantizer_levels import Levels
from hwflow.onnxspec.graphs.operator_facts import all_facts
from hwflow.onnxspec.graphs.schemas import find_schema
from hwflow.onnxspec.reference.conv_transpose import conv_transpose
from hwflow.onnxspec.reference.defect import AnyArray, Attributes, Defect, Inputs, Mended, Tell, exactly, operator_class

FIRST_DEQUANTIZE = 19
"""The evaluator has no DequantizeLinear of an earlier operator set."""

LAST_AXIS_ALONE = 13
"""The operator set since which Softmax normalizes along one axis."""

FIRST_INFERENCE = 14
"""The evaluator's BatchNormalization infers (rather than trains) from this operator set on."""

_LARGEST_QUOTIENT = 2.0**30
"""Quotients beyond this saturate in every quantized type (16 bits at most) and still fit an int32."""


def _unit(attributes: Attributes) -> bool:
    """Tell whether strides and dilations are all 1: the evaluator's MaxPool then shares its code with AveragePool."""
    return all(v == 1 for key in ("strides", "dilations") for v in attributes.get(key) or ())


def _pads_order(attributes: Attributes, inputs: Inputs) -> bool:
    pads = explicit_pads(attributes)
    return _unit(attributes) and len(pads) == 4 and pads[1] != pads[2]


def _ceil_mode(attributes: Attributes, inputs: Inputs) -> bool:
    return _unit(attributes) and bool(attributes.get("ceil_mode")) and any(explicit_pads(attributes))


def _integers(attributes: Attributes, inputs: Inputs) -> bool:
    integers = inputs[0] is not None and inputs[0].dtype.kind in "iu"
    return integers and _unit(attributes) and (any(explicit_pads(attributes)) or pads_are_same(attributes))


def _same_lower(attributes: Attributes, inputs: Inputs) -> bool:
    return not _unit(attributes) and attributes.get("auto_pad") == "SAME_LOWER"


def _negative_same(attributes: Attributes, inputs: Inputs) -> bool:
    if _unit(attributes) or not pads_are_same(attributes) or inputs[0] is None:
        return False
    return any(total < 0 for total in same_totals(inputs[0].shape[2:], attributes["kernel_shape"], attributes))


def _overflow(attributes: Attributes, inputs: Inputs) -> bool:
    limits, x = _limits(attributes, inputs), inputs[0]
    return limits is not None and x is not None and bool(np.any(np.abs(x) > limits))


def _odd_zero_point(index: int) -> Callable[[Attributes, Inputs], bool]:
    def applies(attributes: Attributes, inputs: Inputs) -> bool:
        zero_point = inputs[index] if len(inputs) > index else None
        return zero_point is not None and bool(np.any(zero_point.astype(np.int64) % 2))

    return applies


def _no_image(index: int) -> Callable[[Attributes, Inputs], bool]:
    """Match a parameter per output channel with an image of other than two spatial axes."""

    def applies(attributes: Attributes, inputs: Inputs) -> bool:
        parameter, x = (inputs[i] if len(inputs) > i else None for i in (index, 0))
        return parameter is not None and x is not None and parameter.size > 1 and x.ndim != 4

    return applies


def _of_rows(*places: int) -> Callable[[Attributes, Inputs], bool]:
    """Match a parameter per row of a matrix product, given as a list."""

    def applies(attributes: Attributes, inputs: Inputs) -> bool:
        parameters = (inputs[index] if len(inputs) > index else None for index in places)
        return any(p is not None and p.ndim == 1 and p.size > 1 for p in parameters)

    return applies


def _average_ceil(attributes: Attributes, inputs: Inputs) -> bool:
    return bool(attributes.get("ceil_mode")) and attributes.get("auto_pad") not in (None, "", "NOTSET")


def _average_dilations(attributes: Attributes, inputs: Inputs) -> bool:
    automatic = attributes.get("auto_pad") not in (None, "", "NOTSET")
    return any(d > 1 for d in attributes.get("dilations") or ()) and (automatic or bool(attributes.get("ceil_mode")))


def _average_negative(attributes: Attributes, inputs: Inputs) -> bool:
    x = inputs[0]
    if x is None or not pads_are_same(attributes):
        return False
    return any(total < 0 for total in same_totals(x.shape[2:], attributes["kernel_shape"], attributes))


def _inner_axis(attributes: Attributes, inputs: Inputs) -> bool:
    x = inputs[0]
    return x is not None and int(attributes.get("axis", 1)) % x.ndim < x.ndim - 1


def _not_two_axes(attributes: Attributes, inputs: Inputs) -> bool:
    """Match images of other than two spatial axes."""
    return inputs[0] is not None and inputs[0].ndim != 4


def _groups(attributes: Attributes, inputs: Inputs) -> bool:
    return int(attributes.get("group", 1)) > 1


def _output_shape(attributes: Attributes, inputs: Inputs) -> bool:
    return bool(attributes.get("output_shape"))


def _always(attributes: Attributes, inputs: Inputs) -> bool:
    return True


def max_pool(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute MaxPool of ``x`` [frames, channels, height, width] by its specification (versions 1 to 22): padding never
    wins, and a window must start inside the image or the pads before it. Any element type; one output."""
    x = need(inputs, 0)
    windows = Windows.of(x.shape[2:], tuple(attributes["kernel_shape"]), attributes)
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    result = np.full((*x.shape[:2], *windows.sizes), least, dtype=x.dtype)
    for _, target, source in windows.taps():
        place = (slice(None), slice(None), *target)
        result[place] = np.maximum(result[place], x[(slice(None), slice(None), *source)])
    return result


def average_pool(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute AveragePool of ``x`` [frames, channels, ...] by its specification (versions 1 to 22): a mean does not
    count anything beyond image and pads, nor the pads unless ``count_include_pad``. Summed in float64, rounded to x's
    type once."""
    x = need(inputs, 0)
    windows = Windows.of(x.shape[2:], tuple(attributes["kernel_shape"]), attributes)
    counts = windows.counts(bool(attributes.get("count_include_pad")))
    return (window_sums(x.astype(np.float64), windows) / counts).astype(x.dtype)


def global_max_pool(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute GlobalMaxPool: the maximum of each image."""
    x = need(inputs, 0)
    result: AnyArray = x.max(axis=tuple(range(2, x.ndim)), keepdims=True)
    return result


def transposed_convolution(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute ConvTranspose by its specification."""
    return conv_transpose(need(inputs, 0), need(inputs, 1), maybe(inputs, 2), attributes)


def batch_normalization(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute scale * (x - mean) / sqrt(variance + epsilon) + bias per channel, like the evaluator's version 15; per
    element of a frame if ``spatial`` is 0."""
    if attributes.get("is_test") == 0:
        raise ValueError("BatchNormalization trains: is_test must be 1, not 0")
    x, *parameters = (need(inputs, index) for index in range(5))
    shape = (1, -1) + (1,) * (x.ndim - 2) if attributes.get("spatial", 1) else (1, *x.shape[1:])
    scale, bias, mean, variance = (p.reshape(shape) for p in parameters)
    epsilon = float(attributes.get("epsilon", 1e-5))
    result: AnyArray = scale * (x - mean) / np.sqrt(variance + epsilon) + bias
    return result.astype(x.dtype)


def flattened_softmax(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute Softmax before operator set 13, over a matrix of [axes before 'axis', the others]."""
    x = need(inputs, 0)
    axis = int(attributes.get("axis", 1)) % max(1, x.ndim)
    flat = x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)
    powers = np.exp(flat - flat.max(axis=1, keepdims=True))
    result: AnyArray = (powers / powers.sum(axis=1, keepdims=True)).reshape(x.shape)
    return result


def flattened_hardmax(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute Hardmax before operator set 13."""
    x = need(inputs, 0)
    axis = int(attributes.get("axis", 1)) % max(1, x.ndim)
    flat = x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)
    result: AnyArray = np.zeros_like(flat)
    result[np.arange(len(flat)), flat.argmax(axis=1)] = 1
    return result.reshape(x.shape)


def flattened_log_softmax(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute LogSoftmax before operator set 13."""
    result: AnyArray = np.log(flattened_softmax(inputs, attributes))
    return result


def _rounded(levels: Callable[[Inputs, Attributes], Levels]) -> Callable[[Inputs, Attributes], AnyArray]:
    return lambda inputs, attributes: levels(inputs, attributes).array()


def _saturating(name: str, version: int, tell: Tell) -> type[OpRun]:
    """Run the evaluator's QuantizeLinear with quotients clipped to where they saturate."""
    own = load_op("", name, version)

    def run(self: OpRun, x: AnyArray, scale: AnyArray, *rest: AnyArray | None, **attributes: Any) -> tuple[AnyArray]:
        tell(attributes, [x, scale])
        limits = _limits(attributes, [x, scale])
        if limits is not None:
            x = np.clip(x, -limits, limits)
        result: tuple[AnyArray] = own._run(self, x, scale, *rest, **attributes)
        return result

    return operator_class(name, version, (own,), run)


def _later_dequantize(name: str, version: int, tell: Tell) -> type[OpRun] | None:
    if version >= FIRST_DEQUANTIZE:
        return None
    return operator_class(name, version, (DequantizeLinear_19,), DequantizeLinear_19._run)


def _limits(attributes: Attributes, inputs: Inputs) -> AnyArray | None:
    """Return the greatest magnitude of a QuantizeLinear's input that its int32 holds, broadcastable over it, if
    known."""
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
    kind = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)  # integers are divided in float64
    limits: AnyArray = scale.astype(kind) * kind.type(_LARGEST_QUOTIENT)
    return limits


MAX_POOL = Mended(
    (
        Defect(
            "maxpool-pads-order",
            "with unit strides and dilations, pads are read as top, bottom, left, right", _pads_order,
        ),
        Defect("maxpool-ceil-mode", "with unit strides and dilations, ceil_mode counts the pads twice", _ceil_mode),
        Defect(
            "maxpool-integers", "with unit strides and dilations, padding integers fails (the pads are NaN)", _integers,
        ),
        Defect(
            "maxpool-same-lower",
            "with strides or dilations, SAME_LOWER rounds the output size down and pads at the end", _same_lower,
        ),
        Defect(
            "maxpool-negative-pads",
            "with strides greater than the kernel, SAME pads become negative and crop the image", _negative_same,
        ),
    ),
    exactly(max_pool),
)
AVERAGE_POOL = Mended(
    (
        Defect("averagepool-ceil-mode", "ceil_mode fails with auto_pad", _average_ceil),
        Defect("averagepool-dilations", "auto_pad and ceil_mode leave dilations out of account", _average_dilations),
        Defect(
            "averagepool-negative-pads",
            "with strides greater than the kernel, SAME pads become negative and it fails", _average_negative,
        ),
    ),
    exactly(average_pool),
)
GLOBAL_MAX_POOL = Mended(
    (
        Defect("globalmaxpool-axes", "with other than two spatial axes it reduces others", _not_two_axes),
    ),
    exactly(global_max_pool),
)
CONV_TRANSPOSE = Mended(
    (
        Defect("convtranspose-groups", "with several groups it fails", _groups),
        Defect("convtranspose-output-shape", "with output_shape it fails", _output_shape),
    ),
    exactly(transposed_convolution),
)
BATCH_NORMALIZATION = Mended(
    (
        Defect(
            "batchnormalization-statistics",
            f"before operator set {FIRST_INFERENCE} it takes the statistics of the batch, or fails", _always,
        ),
    ),
    exactly(batch_normalization, before=FIRST_INFERENCE),
)
SOFTMAX = Mended(
    (
        Defect(
            "softmax-axes",
            f"before operator set {LAST_AXIS_ALONE} all axes from 'axis' on are normalized together; here it is one",
            _inner_axis,
        ),
    ),
    exactly(flattened_softmax, before=LAST_AXIS_ALONE),
)
HARDMAX = Mended(
    (
        Defect(
            "hardmax-axes",
            f"before operator set {LAST_AXIS_ALONE} the greatest of all axes from 'axis' on is 1; here it is of one",
            _inner_axis,
        ),
    ),
    exactly(flattened_hardmax, before=LAST_AXIS_ALONE),
)
LOG_SOFTMAX = Mended(
    (
        Defect(
            "logsoftmax-axes",
            f"before operator set {LAST_AXIS_ALONE} all axes from 'axis' on are normalized together; here it is one",
            _inner_axis,
        ),
    ),
    exactly(flattened_log_softmax, before=LAST_AXIS_ALONE),
)
QUANTIZE = Mended(
    (
        Defect(
            "quantize-overflow",
            "a quotient of 2**31 or more wraps to the lowest level instead of saturating", _overflow,
        ),
    ),
    _saturating,
)
DEQUANTIZE = Mended(
    (
        Defect("dequantize-opset", f"there is none before operator set {FIRST_DEQUANTIZE}", None),
    ),
    _later_dequantize,
)
QUANTIZED_CONV = Mended(
    (
        Defect(
            "qlinearconv-zero-point",
            "the zero point is added before rounding: ties differ where it is odd", _odd_zero_point(7),
        ),
        Defect(
            "qlinearconv-channels",
            "with weight scales of their own for each channel, the image is taken to have two spatial axes",
            _no_image(4),
        ),
    ),
    exactly(_rounded(qoperator.qlinear_conv)),
)
QUANTIZED_PRODUCT = Mended(
    (
        Defect(
            "qlinearmatmul-zero-point",
            "the zero point is added before rounding: ties differ where it is odd", _odd_zero_point(7),
        ),
        Defect("qlinearmatmul-rows", "scales or zero points of rows go along the columns", _of_rows(1, 2, 6, 7)),
    ),
    exactly(_rounded(qoperator.qlinear_matmul)),
)
INTEGER_CONV = Mended(
    (
        Defect(
            "convinteger-channels",
            "with weight zero points of their own for each channel, the image is taken to have two spatial axes",
            _no_image(3),
        ),
    ),
    exactly(qoperator.conv_integer),
)
INTEGER_PRODUCT = Mended(
    (
        Defect("matmulinteger-rows", "zero points of rows go along the columns", _of_rows(2)),
    ),
    exactly(qoperator.matmul_integer),
)


def substitutes(versions: Mapping[str, int], note: Callable[[str], None]) -> list[type[OpRun]]:
    """Return operators for ``onnx.reference.ReferenceEvaluator(new_ops=...)`` for a model of these versions of operator
    sets by domain.

    ``note`` is called with the name of each defect avoided, once per evaluation of a node.
    """

    def teller(defects: Sequence[Defect]) -> Tell:
        def tell(attributes: Attributes, inputs: Inputs) -> bool:
            found = [d.name for d in defects if d.applies is not None and d.applies(attributes, inputs)]
            for name in found:
                note(name)
            return bool(found)

        return tell

    result = []
    for (domain, name), operator in all_facts():
        version = versions.get(domain, 0)
        if operator.mended is not None and find_schema(name, version, domain) is not None:
            substitute = operator.mended.substitute(name, version, teller(operator.mended.defects))
            result += [] if substitute is None else [substitute]
    return result
