"""QuantizeLinear and DequantizeLinear: where reals become integers and back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hwflow.frontend.context import INTEGER_TYPES, Lowering, constant, exact_constant, refuse
from hwflow.frontend.views import (
    Constant,
    Fractions,
    HostInput,
    Integers,
    QuantizedConstant,
    Reals,
    View,
    fractions,
)
from hwflow.ir.graph import Port, Value, identity_order
from hwflow.numerics.rounding import quantize
from hwflow.numerics.stages import QuantizerStage
from hwflow.onnxspec.model import OnnxNode
from hwflow.types import IntType, TensorType


@dataclass(frozen=True)
class _Parameters:
    """Scale and zero point of a (De)QuantizeLinear, shaped to broadcast over the whole tensor."""

    scale: Fractions
    zero_point: Fractions

    def of_frame(self) -> _Parameters:
        """The same for one frame: the frame axis (of length 1) taken away."""
        return self if self.scale.ndim == 0 else _Parameters(self.scale[0], self.zero_point[0])


def _parameters(state: Lowering, node: OnnxNode) -> _Parameters:
    scale = constant(state, node, 1, "scale").array
    zero_point = (
        constant(state, node, 2, "zero point").array
        if len(node.inputs) > 2 and node.inputs[2]
        else np.zeros(scale.shape, dtype=np.int64)
    )
    if int(_integer(node, "block_size")) != 0:
        raise refuse(
            node, "blocked-scale",
            f"block_size must be 0 (one scale a tensor or a channel), not {node.attributes['block_size']}",
            "quantize per tensor or per channel",
        )
    if zero_point.shape != scale.shape and (zero_point.size, scale.size) != (1, 1):  # exporters mix [] and [1]
        raise refuse(
            node, "zero-point-shape",
            f"zero point must have the scale's shape {list(scale.shape)}, not {list(zero_point.shape)}",
            "make both alike",
        )
    wrong = scale[~(np.isfinite(scale) & (scale >= 0))].reshape(-1)
    if wrong.size:
        raise refuse(
            node, "scale-range", f"scale must be finite and not negative, not {wrong[0]}", "calibrate the model again"
        )
    exact_scale, exact_zero = fractions(scale), fractions(zero_point.astype(np.int64))
    shape = state.model.values[node.inputs[0]].shape
    if scale.size == 1:
        return _Parameters(exact_scale.reshape(()), exact_zero.reshape(()))
    axis = _integer(node, "axis", 1)
    if not -len(shape) <= axis < len(shape):
        raise refuse(
            node, "scale-axis", f"axis must be one of the {len(shape)} axes of '{node.inputs[0]}', not {axis}",
            "correct the axis",
        )
    axis %= len(shape)
    if scale.shape != (shape[axis],):
        raise refuse(
            node, "scale-shape",
            f"scale must have one element or {shape[axis]} (axis {axis} of '{node.inputs[0]}'), "
            f"not shape {list(scale.shape)}",
            "give one scale for each index of the axis",
        )
    broad = [1] * len(shape)
    broad[axis] = -1
    return _Parameters(exact_scale.reshape(broad), exact_zero.reshape(broad))


def _integer(node: OnnxNode, name: str, default: int = 0) -> int:
    value = node.attributes.get(name, default)
    assert isinstance(value, int)
    return value


def _element(state: Lowering, node: OnnxNode, name: str) -> IntType:
    dtype = state.model.values[name].dtype
    if dtype not in INTEGER_TYPES:
        known = ", ".join(INTEGER_TYPES)
        raise refuse(
            node, "integer-type", f"'{name}' must be of an integer type ({known}), not {dtype}",
            "use another quantized type",
        )
    return INTEGER_TYPES[dtype]


def graph_input(state: Lowering, name: str, origin: str, element: IntType, host: tuple[str, ...]) -> Integers:
    """A new hardware input for ONNX graph input ``name``; its integers are those of the ONNX value ``origin``."""
    shape, logical = state.frame_shape(origin), state.model.values[origin].shape[1:]
    value = Value(state.value_names.fresh(origin), TensorType(shape, element, element.interval), origin)
    port_name = name if all(p.name != name for p in state.inputs) else origin
    state.inputs.append(Port(port_name, value, logical, identity_order(logical), host=host))
    return Integers(value, shape, element.min, element.max)


def _say_scale(port: Port, parameters: _Parameters) -> None:
    """What the integers of a port mean, where scale and zero point vary along one axis at most."""
    axes = [axis for axis, size in enumerate(parameters.scale.shape) if size > 1]
    port.axis = axes[0] if axes else 0
    port.scale, port.zero_point = tuple(parameters.scale.reshape(-1)), tuple(parameters.zero_point.reshape(-1))


def dequantize_linear(state: Lowering, node: OnnxNode) -> View:
    """real = scale * (integer - zero point); no hardware: it says what the integers mean."""
    view = state.view(node.inputs[0])
    parameters = _parameters(state, node)
    if isinstance(view, Constant):
        _element(state, node, node.inputs[0])
        return QuantizedConstant(view.array.astype(np.int64), parameters.scale, parameters.zero_point)
    if isinstance(view, Integers):
        frame = parameters.of_frame()
        for port in state.inputs:
            if port.value is view.value and not port.host:  # the model reads integers: here it says what they mean
                _say_scale(port, frame)
        return Reals(view.value, view.shape, frame.scale, frame.zero_point)
    raise refuse(
        node, "quantized-operand", f"input '{node.inputs[0]}' must be an integer tensor, not a real one",
        "put a QuantizeLinear before it",
    )


def quantize_linear(state: Lowering, node: OnnxNode) -> View:
    """saturate(round_half_even(real / scale) + zero point): a staircase of the integers that carry the reals."""
    view = state.view(node.inputs[0])
    parameters = _parameters(state, node)
    element = _element(state, node, node.outputs[0])
    if any(s == 0 for s in parameters.scale.reshape(-1)):
        raise refuse(node, "scale-range", "scale must be greater than 0, not 0", "calibrate the model again")
    if isinstance(view, HostInput):
        integers = graph_input(state, view.name, node.outputs[0], element, (*view.nodes, node.name))
        _say_scale(state.inputs[-1], parameters.of_frame())
        return integers
    if isinstance(view, Constant | QuantizedConstant):
        real = exact_constant(state, node, 0, "the constant")
        scale, zero_point = np.broadcast_arrays(parameters.scale, parameters.zero_point)
        scale, zero_point = np.broadcast_to(scale, real.shape), np.broadcast_to(zero_point, real.shape)
        known: dict[tuple[int, int, int, int, int], int] = {}  # large constants repeat few values
        flat = []
        for x, s, z in zip(real.reshape(-1), scale.reshape(-1), zero_point.reshape(-1), strict=True):
            key = (x.numerator, x.denominator, s.numerator, s.denominator, int(z))
            if key not in known:
                known[key] = quantize(x, s, int(z), element.min, element.max)
            flat.append(known[key])
        return Constant(np.array(flat, dtype=np.int64).reshape(real.shape))
    if isinstance(view, Integers):  # int32 stands for itself
        view = Reals(view.value, view.shape, fractions(1), fractions(0))
    assert isinstance(view, Reals)
    return _requantize(state, node, view, parameters.of_frame(), element)


def _requantize(state: Lowering, node: OnnxNode, view: Reals, out: _Parameters, element: IntType) -> Integers:
    axis = _varying_axis(node, view, out)
    count = view.shape[axis] if axis is not None else 1

    def column(values: Fractions, index: int) -> Fraction:
        result: Fraction = values.reshape(-1)[0] if values.size == 1 else values.reshape(-1)[index]
        return result

    stages = tuple(
        (
            QuantizerStage(
                column(view.scale, i), column(view.zero_point, i), view.functions,
                column(out.scale, i), int(column(out.zero_point, i)), element.min, element.max,
            ),
        )
        for i in range(count)
    )
    attributes = {"axis": axis or 0, "stages": stages}
    value = state.add("requantize", node, [view.value], attributes, view.nodes)
    return Integers(value, view.shape, element.min, element.max)


def _varying_axis(node: OnnxNode, view: Reals, out: _Parameters) -> int | None:
    """The one axis of the frame along which scales or zero points differ; None if nothing differs."""
    axes: set[int] = set()
    for values in (view.scale, view.zero_point, out.scale, out.zero_point):
        if values.size > 1:
            axes.update(axis for axis, size in enumerate(values.shape) if size > 1)
    if len(axes) > 1:
        raise refuse(
            node, "one-channel-axis",
            f"scales and zero points must vary along one axis of a frame at most, not along axes {sorted(axes)}",
            "quantize per tensor or along one axis",
        )
    return axes.pop() if axes else None
