"""Elementwise operators on integer and bool tensors: computed on the integers and wrapped to ONNX's types.

The operands are streams whose shapes broadcast, or constants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Handler, Lowering, given, refuse
from hwflow.frontend.stream_types import COMPUTED_TYPES, REAL_TYPES
from hwflow.frontend.views import Constant, Integers, Reals, View, uniform
from hwflow.ir.graph import IntArray
from hwflow.ir.integer_functions import (
    MAXIMUM,
    MINIMUM,
    Function,
    Modulus,
    Multiplied,
    Remainder,
    Shifted,
    Simple,
    Times,
)
from hwflow.ir.node_attributes import ElementwiseAttributes, ProductAttributes, ReindexAttributes, ReshapeAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.types import IntType

Operand = Integers | int | IntArray
"""A stream, or a constant: one number, or a tensor of the whole shape by ONNX."""


@dataclass(frozen=True)
class Product:
    """The product of two operands, which has its own operator."""

    operands: ClassVar[int] = 2


Make = Callable[[OnnxNode, IntType], "Function | Product"]
"""Returns the function of a node whose operands have an integer type."""


def or_real(make: Make, handler: Handler | None = None) -> Handler:
    """Return the handler that applies ``make`` where an operand is an integer tensor in hardware, else ``handler``."""

    def either(state: Lowering, node: OnnxNode) -> View:
        real = state.model.values[node.inputs[-1]].dtype in REAL_TYPES
        if handler is None or (not real and any(isinstance(state.view(n), Integers) for n in node.inputs if n)):
            return lowered(state, node, make)
        result = handler(state, node)
        assert not isinstance(result, tuple), "elementwise operators have one result"
        return result

    return either


def lowered(state: Lowering, node: OnnxNode, make: Make) -> View:
    """Lower a node with operands that are integer tensors in hardware."""
    source = COMPUTED_TYPES[state.model.values[node.inputs[-1]].dtype]
    operands = [operand(state, node, index) for index in range(len(node.inputs))]
    function = make(node, source)
    if len(operands) == 1 and function.operands > 1:  # the greatest of one, the sum of one
        return state.view(node.inputs[0])
    return combined(state, node, function, operands)


def combined(state: Lowering, node: OnnxNode, function: Function | Product, operands: list[Operand]) -> Integers:
    """Apply a function to the operands of ``node``, pairwise where there are more than two (Max, Min)."""
    target = COMPUTED_TYPES[state.model.values[node.outputs[0]].dtype]
    count = function.operands
    while len(operands) > count:
        operands = [step(state, node, function, operands[:count], target, last=False), *operands[count:]]
    return step(state, node, function, operands, target)


def step(
    state: Lowering, node: OnnxNode, function: Function | Product, operands: list[Operand], wrap: IntType, *,
    last: bool = True,
) -> Integers:
    """Apply a function once and wrap to a type; ``last``: this is the result of ``node``."""
    streams = [v for v in operands if isinstance(v, Integers)]
    if last:
        shape = state.frame_shape(node.outputs[0])
    else:  # constant tensors have the last step's shape or a shorter one
        tensors = [v.shape for v in operands if isinstance(v, np.ndarray)]
        whole = np.broadcast_shapes(*((1, *v.shape) for v in streams), *tensors)
        shape = whole[1:]
    values = [expanded(state, node, v, shape).value for v in streams]
    constants = tuple(None if isinstance(v, Integers) else of_frame(v, shape) for v in operands)
    origin = None if last else ""
    if isinstance(function, Product) and len(streams) == 1:
        (factor,) = (c for c in constants if c is not None)
        function = Multiplied() if isinstance(factor, np.ndarray) else Times(factor)
        constants = constants if isinstance(factor, np.ndarray) else (None,)
    if isinstance(function, Product):
        value = state.add(node, values, ProductAttributes((0, 0), wrap), origin=origin)
    else:
        attributes = ElementwiseAttributes(function, constants, wrap)
        value = state.add(node, values, attributes, origin=origin)
    return Integers(value, shape, wrap.min, wrap.max)


def operand(state: Lowering, node: OnnxNode, index: int) -> Operand:
    """Return input ``index``: a stream of integers or a constant."""
    name = node.inputs[index]
    view = state.view(name)
    if isinstance(view, Integers):
        return view
    if isinstance(view, Constant):
        values = view.array.astype(np.int64)
        return int(values.reshape(-1)[0]) if (values == values.reshape(-1)[0]).all() else values
    if isinstance(view, Reals) and state.model.values[name].dtype in COMPUTED_TYPES:
        return _plain(state, node, name, view)
    raise refuse(
        node, "integer-operand",
        f"input {show(name)} must be an integer tensor in hardware or a constant, not {_found(view)}",
        "quantize it, or cast the other operand to float and quantize the result",
    )


def of_frame(constant: int | IntArray, shape: tuple[int, ...]) -> int | IntArray:
    """Reduce a constant to the size of one frame."""
    if isinstance(constant, int):
        return constant
    # a longer shape has the frame axis, of length 1, in front
    own = constant.shape[-len(shape) :] if constant.ndim > len(shape) else constant.shape
    return np.broadcast_to(constant.reshape(own), shape)


def _found(view: View) -> str:
    return "a real one" if isinstance(view, Reals) else "a result of the host"


def _plain(state: Lowering, node: OnnxNode, name: str, view: Reals) -> Integers:
    """Return an integer tensor that is represented as reals (a sum of ConvInteger, say)."""
    element = COMPUTED_TYPES[state.model.values[name].dtype]
    zero = uniform(view.zero_point)
    if uniform(view.scale) != Fraction(1) or zero is None or zero.denominator != 1 or view.functions:
        raise refuse(
            node, "integer-operand", f"input {show(name)} must be a plain sum, not a function of one",
            "cast the sum to float and quantize it",
        )
    return step(state, node, Simple("sub"), [Integers(view.value, view.shape, 0, 0), int(zero)], element, last=False)


def expanded(state: Lowering, node: OnnxNode, view: Integers, shape: tuple[int, ...]) -> Integers:
    """Broadcast a stream to ``shape``."""
    if view.shape == shape:
        return view
    count = int(np.prod(view.shape, dtype=np.int64))
    if count == int(np.prod(shape, dtype=np.int64)):
        value = state.add(node, [view.value], ReshapeAttributes(shape), origin="")
    else:
        index = np.broadcast_to(np.arange(count).reshape(view.shape), shape)
        value = state.add(node, [view.value], ReindexAttributes(index, 0), origin="")
    return Integers(value, shape, view.low, view.high)


def mod(node: OnnxNode, element: IntType) -> Function:
    return Remainder() if node.integer("fmod") else Modulus()


def bit_shift(node: OnnxNode, element: IntType) -> Function:
    return Shifted(node.attributes.get("direction") == "LEFT", element.bits)


def always(function: Function | Product) -> Make:
    return lambda node, element: function


def neg(state: Lowering, node: OnnxNode) -> View:
    """Lower Neg of an integer tensor."""
    return combined(state, node, Simple("sub"), [0, operand(state, node, 0)])


def clip(state: Lowering, node: OnnxNode) -> View:
    """Lower Clip of an integer tensor: the maximum with the lower bound, then the minimum with the upper one."""
    result = operand(state, node, 0)
    target = COMPUTED_TYPES[state.model.values[node.outputs[0]].dtype]
    for index, function in ((1, MAXIMUM), (2, MINIMUM)):
        if given(node, index):
            later = index == 1 and given(node, 2)
            result = step(state, node, function, [result, operand(state, node, index)], target, last=not later)
    assert isinstance(result, Integers), "the first operand is a stream"
    return result


def cast(state: Lowering, node: OnnxNode, view: Integers, target: str) -> Integers:
    """Cast between integer types, which wraps, or to bool: nonzero."""
    function = Simple("not_equal") if target == "bool" else Simple("wrap")
    operands: list[Operand] = [view, 0] if target == "bool" else [view]
    return combined(state, node, function, operands)
