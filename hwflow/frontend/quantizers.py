"""What every dialect's quantizers share: reals become integers, at a graph input, of a constant, or in hardware."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.views import Integers, QuantizedConstant, Reals, varying_axes
from hwflow.ir.graph import Fractions, IntArray, Meaning, Port, Value, identity_order
from hwflow.numerics.elementwise import Elementwise
from hwflow.numerics.rounding import Quantizer, Rounding
from hwflow.numerics.stages import QuantizerStage
from hwflow.numerics.staircase import MAX_LEVELS
from hwflow.onnxspec.model import OnnxNode
from hwflow.types import Interval, IntType, TensorType


@dataclass(frozen=True)
class Quantization:
    """Parameters of a quantizer (see :class:`hwflow.numerics.rounding.Quantizer`); scale and zero point broadcast over
    the tensor, or, after :meth:`of_frame`, over one frame of it."""

    scale: Fractions
    zero_point: Fractions
    low: int
    high: int
    rounding: Rounding = Rounding.ROUND
    zero_point_inside: bool = False

    def of_frame(self) -> Quantization:
        """The same for one frame: the frame axis (of length 1) taken away."""
        return replace(self, scale=without_frame_axis(self.scale), zero_point=without_frame_axis(self.zero_point))

    @property
    def meaning(self) -> Meaning:
        return Meaning(self.scale, self.zero_point)


def without_frame_axis(values: Fractions) -> Fractions:
    """Parameters of the rank of a whole tensor, one frame's; scalars stay."""
    return values if values.ndim == 0 else values[0]


def graph_input(
    state: Lowering, name: str, origin: str, element: IntType, meaning: Meaning | None = None,
    interval: Interval | None = None,
) -> Integers:
    """A new hardware input for ONNX graph input ``name``; its integers are those of the ONNX value ``origin``, all of
    the type's or those of ``interval``."""
    shape, logical = state.frame_shape(origin), state.model.values[origin].shape[1:]
    type_ = TensorType(shape, element, interval or element.interval)
    value = Value(state.value_names.fresh(origin), type_, origin, meaning)
    port_name = name if all(p.name != name for p in state.inputs) else origin
    state.inputs.append(Port(port_name, value, logical, identity_order(logical)))
    return Integers(value, shape, element.min, element.max)


def say_scale(port: Port, scale: Fractions, zero_point: Fractions) -> bool:
    """Say what a port's integers mean (parameters of a frame); False where that varies along more than one axis."""
    axes = varying_axes(scale, zero_point)
    if len(axes) > 1:
        return False
    port.axis = axes.pop() if axes else 0
    port.scale, port.zero_point = tuple(scale.reshape(-1)), tuple(zero_point.reshape(-1))
    return True


def quantized_integers(real: Fractions, q: Quantization) -> IntArray:
    """The levels of constant reals; large constants repeat few values."""
    flat = np.broadcast_arrays(real, q.scale, q.zero_point)
    known: dict[tuple[Any, ...], int] = {}
    quantizers: dict[tuple[Fraction, Fraction], Quantizer] = {}
    levels = np.empty(flat[0].size, dtype=np.int64)
    for index, (x, scale, zero) in enumerate(zip(*(a.reshape(-1) for a in flat), strict=True)):
        key = (x.numerator, x.denominator, id(scale), id(zero))
        level = known.get(key)
        if level is None:
            if (scale, zero) not in quantizers:
                quantizers[scale, zero] = Quantizer(scale, zero, q.low, q.high, q.rounding, q.zero_point_inside)
            level = known[key] = quantizers[scale, zero](x)
        levels[index] = level
    return levels.reshape(flat[0].shape)


def requantize(
    state: Lowering, node: OnnxNode, view: Reals, q: Quantization, meaning: Meaning | None = None,
    origin: str | None = None,
) -> Value:
    """A requantizer that makes levels of ``view``; ``q`` is that of one frame."""
    if q.high - q.low >= MAX_LEVELS:
        raise refuse(
            node, "quantizer-levels", f"a quantizer must have at most {MAX_LEVELS} levels, not {q.high - q.low + 1}",
            "quantize to a narrower type",
        )
    axes = varying_axes(view.scale, view.zero_point, *view.functions, q.scale, q.zero_point)
    if len(axes) > 1:
        raise refuse(
            node, "one-channel-axis",
            f"scales, zero points and constants must vary along one axis of a frame at most, not along axes "
            f"{sorted(axes)}",
            "quantize per tensor or along one axis",
        )
    axis = axes.pop() if axes else None
    count = view.shape[axis] if axis is not None else 1

    def column(values: Any, index: int) -> Any:
        return values.reshape(-1)[0 if values.size == 1 else index]

    def chain(index: int) -> tuple[Elementwise, ...]:
        return tuple(f for step in view.functions if (f := column(step, index)) is not None)

    stages = tuple(
        (
            QuantizerStage(
                column(view.scale, i), column(view.zero_point, i), chain(i), column(q.scale, i),
                column(q.zero_point, i), q.low, q.high, q.rounding, q.zero_point_inside,
            ),
        )
        for i in range(count)
    )
    attributes = {"axis": axis or 0, "stages": stages}
    return state.add("requantize", node, [view.value], attributes, view.nodes, origin=origin, meaning=meaning)


def quantized_constant(real: Fractions, q: Quantization) -> QuantizedConstant:
    """A constant behind a quantizer and its dequantizer."""
    return QuantizedConstant(quantized_integers(real, q), q.scale, q.zero_point)


def require_positive(node: OnnxNode, scale: Fractions) -> None:
    """A quantizer divides by its scale."""
    if any(s == 0 for s in scale.reshape(-1)):
        raise refuse(node, "scale-range", "scale must be greater than 0, not 0", "calibrate the model again")
