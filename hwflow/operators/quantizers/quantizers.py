"""Quantization for all dialects: of a graph input, of a constant, or in hardware."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from hwflow.frontend.context import Lowering, exact_constant, refuse, require_finite
from hwflow.frontend.views import (
    Constant,
    Integers,
    Reals,
    as_array,
    compact,
    elementwise,
    fractions,
    uniform,
    varying_axes,
)
from hwflow.ir.graph import Fractions, IntArray, Meaning, Port, Value, identity_order
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.functions.float_interval import FloatIntervals
from hwflow.numerics.functions.piecewise import Affine
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.numerics.requantizers.staircase import MAX_LEVELS
from hwflow.numerics.rounding import Quantizer, Rounding
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.moves.channels import Channels
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

    @property
    def signs(self) -> Fractions:
        """The signs of the scale: a quantizer with a negative scale quantizes the negated real by the scale's
        magnitude."""
        return as_array(np.frompyfunc(lambda scale: Fraction(-1 if scale < 0 else 1), 1, 1)(self.scale))

    @property
    def upright(self) -> Quantization:
        """Return the quantization with the scale's magnitude."""
        return replace(self, scale=as_array(abs(self.scale)))

    def of_frame(self) -> Quantization:
        """Return the quantization of one frame, without the frame axis (of length 1)."""
        return replace(self, scale=without_frame_axis(self.scale), zero_point=without_frame_axis(self.zero_point))


def without_frame_axis(values: Fractions) -> Fractions:
    """Remove the frame axis from parameters of a whole tensor's rank; scalars stay."""
    return values if values.ndim == 0 else values[0]


def graph_input(
    state: Lowering, name: str, origin: str, element: IntType, meaning: Meaning | None = None,
    interval: Interval | None = None,
) -> Integers:
    """Add a hardware input for the ONNX graph input ``name``; its integers are those of the ONNX value ``origin``, of
    the type's whole range or of ``interval``."""
    shape, logical = state.frame_shape(origin), state.model.values[origin].shape[1:]
    type_ = TensorType(shape, element, interval or element.interval)
    value = Value(state.value_names.fresh(origin), type_, origin, meaning)
    port_name = name if all(p.name != name for p in state.inputs) else origin
    state.inputs.append(Port(port_name, value, logical, identity_order(logical)))
    return Integers(value, shape, element.min, element.max)


def say_scale(port: Port, scale: Fractions, zero_point: Fractions) -> bool:
    """Set scale and zero point of a port (parameters of a frame); return False if they vary along more than one
    axis."""
    axes = varying_axes(scale, zero_point)
    if len(axes) > 1:
        return False
    port.axis = axes.pop() if axes else 0
    port.scale, port.zero_point = tuple(scale.reshape(-1)), tuple(zero_point.reshape(-1))
    return True


def constant_levels(state: Lowering, node: OnnxNode, q: Quantization) -> IntArray:
    """Return the levels of a quantizer's constant input 0."""
    view = state.view(node.inputs[0])
    signs, q = q.signs, q.upright
    if isinstance(view, Constant) and view.array.dtype.kind == "f":
        require_finite(node, 0, "the constant", view.array)
        return _levels_of_floats(view.array * signs.astype(np.float64), q)
    real = exact_constant(state, node, 0, "the constant") * signs
    levels = np.frompyfunc(lambda x, scale, zero: _quantizer(q, scale, zero)(x), 3, 1)(real, q.scale, q.zero_point)
    return np.asarray(levels, dtype=np.int64)


def _quantizer(q: Quantization, scale: Fraction, zero_point: Fraction) -> Quantizer:
    return Quantizer(scale, zero_point, q.low, q.high, q.rounding, q.zero_point_inside)


def _levels_of_floats(array: npt.NDArray[np.float64], q: Quantization) -> IntArray:
    """Quantize in float64 where that is certain, else exactly: weights are many, and few lie near a rounding
    boundary."""
    kinds: dict[tuple[Fraction, Fraction], int] = {}
    number = np.frompyfunc(lambda scale, zero: kinds.setdefault((scale, zero), len(kinds)), 2, 1)
    kind = np.broadcast_to(np.asarray(number(q.scale, q.zero_point), dtype=np.int64), array.shape)
    levels = np.empty(array.shape, dtype=np.int64)
    for parameters, index in kinds.items():
        quantizer, here = _quantizer(q, *parameters), kind == index
        values, places = np.unique(array[here], return_inverse=True)
        low, high = quantizer.floats(FloatIntervals.of(values, values))
        for place in np.flatnonzero(low != high):
            low[place] = quantizer(Fraction(values[place]))
        levels[here] = low[places.reshape(-1)]
    return levels


def requantize(
    state: Lowering, node: OnnxNode, view: Reals, q: Quantization, meaning: Meaning | None = None,
    origin: str | None = None, stage: type[QuantizerStage] = QuantizerStage,
) -> Value:
    """Add a requantizer from ``view`` to levels; ``q``: the quantization of one frame."""
    if q.high - q.low >= MAX_LEVELS:
        raise refuse(
            node, "quantizer-levels", f"a quantizer must have at most {MAX_LEVELS} levels, not {q.high - q.low + 1}",
            "quantize to a narrower type",
        )
    signs, q = q.signs, q.upright
    if uniform(signs) != 1:
        negated = elementwise(Affine, signs, fractions(0))
        view = replace(view, functions=(*view.functions, negated)) if view.functions else replace(
            view, scale=compact(as_array(view.scale * signs))
        )
    channels = Channels(view.shape, view.scale, view.zero_point, *view.functions, q.scale, q.zero_point)
    functions = [channels.column(step) for step in view.functions]
    chains = zip(*functions, strict=True) if functions else ((),) * channels.count
    columns = (channels.column(v) for v in (view.scale, view.zero_point, q.scale, q.zero_point))
    stages = tuple(
        (
            stage(
                scale, zero_point, tuple(f for f in chain if f is not None), unit, zero, q.low, q.high, q.rounding,
                q.zero_point_inside,
            ),
        )
        for scale, zero_point, unit, zero, chain in zip(*columns, chains, strict=True)
    )
    return channels.add(
        state, node, [view.value], lambda axis: RequantizeAttributes(axis, stages), view.nodes,
        origin=origin, meaning=meaning,
    )


def require_divisor(node: OnnxNode, scale: Fractions) -> None:
    """Refuse a scale of 0, by which a quantizer would divide."""
    if any(s == 0 for s in scale.reshape(-1)):
        raise refuse(node, "scale-range", "scale must not be 0", "calibrate the model again")
