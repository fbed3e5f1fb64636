"""Known defects of ONNX's reference evaluator (seen in onnx 1.23.2), and operators that evaluate around them.

One list, :data:`DEFECTS`, for the operators hwflow compiles today; a test shows each in the installed onnx. The
substitutes replace the evaluator's operator where it is wrong, so that a comparison still says something, and note the
name of each defect they went around, so that it is named and the model is not blamed.
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

from hwflow.onnxspec.dialect_operators.windows import Windows, explicit_pads, pads_are_same, same_totals

AnyArray = npt.NDArray[Any]

FIRST_DEQUANTIZE = 19
"""The evaluator has no DequantizeLinear of an earlier operator set."""

_LARGEST_QUOTIENT = 2.0**30
"""Quotients beyond this saturate in every quantized type (16 bits at most) and still fit an int32."""


@dataclass(frozen=True)
class Defect:
    """``applies(attributes, inputs)``: whether evaluating a node of ``operator`` runs into it. ``attributes`` are those
    of the node with the schema's defaults; ``inputs`` the arrays it is evaluated on. None: an operator that is missing,
    not wrong; its substitute is the evaluator's own of a later operator set and is not noted."""

    name: str
    operator: str
    text: str
    applies: Callable[[Mapping[str, Any], Sequence[AnyArray | None]], bool] | None


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
    Defect("dequantize-opset", "DequantizeLinear", f"there is none before operator set {FIRST_DEQUANTIZE}", None),
)


def substitutes(version: int, note: Callable[[str], None]) -> list[type[OpRun]]:
    """Operators for ``onnx.reference.ReferenceEvaluator(new_ops=...)`` on a model of ai.onnx operator set ``version``.

    ``note`` is called with the name of each defect that was gone around, once for each evaluation of a node.
    """

    def tell(operator: str, attributes: Mapping[str, Any], inputs: Sequence[AnyArray | None]) -> None:
        for defect in DEFECTS:
            if defect.operator == operator and defect.applies is not None and defect.applies(attributes, inputs):
                note(defect.name)

    def max_pool_run(self: OpRun, x: AnyArray, **attributes: Any) -> tuple[AnyArray]:
        tell("MaxPool", attributes, [x])
        return (max_pool(x, attributes),)

    made = [_operator("MaxPool", (OpRun,), version, max_pool_run)]
    if version < 10:
        return made
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
