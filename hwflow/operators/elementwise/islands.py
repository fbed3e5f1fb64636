"""Elementwise float operators: no hardware, the next quantizer's step function includes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import (
    Handler,
    Lowering,
    Refusal,
    behind,
    constant,
    exact_constant,
    finite,
    given,
    made,
    reals,
    refuse,
)
from hwflow.frontend.stream_types import COMPUTED_TYPES, INTEGER_TYPES, REAL_TYPES
from hwflow.frontend.views import (
    Constant,
    Integers,
    Masked,
    QuantizedConstant,
    View,
    as_array,
    elementwise,
    fractions,
    uniform,
)
from hwflow.ir.integer_functions import MAXIMUM
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import Abs, Affine, Clip, LeakyRelu, Relu
from hwflow.numerics.functions.power import RootMultiply
from hwflow.numerics.functions.smooth import Exp
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.numerics.requantizers.staircase import MAX_LEVELS
from hwflow.numerics.rounding import Rounding
from hwflow.onnxspec.resolving.resolved_model import Array, OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.arithmetic import affine
from hwflow.operators.moves.moves import with_constant
from hwflow.operators.norms.exponentials import exponentials
from hwflow.operators.quantizers.quantizers import Quantization, requantize


def unary(make: Callable[[OnnxNode], Elementwise]) -> Handler:
    def handler(state: Lowering, node: OnnxNode) -> View:
        return behind(reals(state, node, 0), node, as_array(make(node)))

    return handler


def divisor(node: OnnxNode, name: str, default: float) -> Fraction:
    """Return a float attribute that must not be 0."""
    value = finite(node, name, default)
    if value == 0:
        raise refuse(node, "divisor-zero", f"{name} must not be 0", "give it another value: the operator divides by it")
    return value


absolute = unary(lambda node: Abs())


def clip(state: Lowering, node: OnnxNode) -> View:
    """Lower Clip of reals (a function before the next quantizer) or of integers (narrow ranges of QCDQ models)."""
    view = state.view(node.inputs[0])
    if isinstance(view, Integers):
        bounds = [state.view(node.inputs[index]) for index in (1, 2) if given(node, index)]
        if view.high - view.low >= MAX_LEVELS or not all(isinstance(v, Constant) for v in bounds):
            return integers.clip(state, node)
    low, high = _bound(state, node, 1, "min", -inf), _bound(state, node, 2, "max", inf)
    if isinstance(view, Integers):
        return _clipped(state, node, view, low, high)
    if isinstance(view, Constant):
        number = float if view.array.dtype.kind == "f" else int
        array = view.array if low is None else np.maximum(view.array, number(low))
        return Constant(array if high is None else np.minimum(array, number(high)))
    return behind(reals(state, node, 0), node, as_array(Clip(low, high)))


def relu(state: Lowering, node: OnnxNode) -> View:
    """Lower Relu of reals or of integers."""
    view = state.view(node.inputs[0])
    if isinstance(view, Integers):
        if view.high >= MAX_LEVELS:
            return integers.combined(state, node, MAXIMUM, [view, 0])
        return _clipped(state, node, view, Fraction(0), None)
    return behind(reals(state, node, 0), node, as_array(Relu()))


def _clipped(
    state: Lowering, node: OnnxNode, view: Integers, low: Fraction | None, high: Fraction | None
) -> Integers:
    least, most = (_limited(level, low, high) for level in (view.low, view.high))
    stage = QuantizerStage(Fraction(1), Fraction(0), (), Fraction(1), 0, least, most)
    value = state.add(node, [view.value], RequantizeAttributes(0, ((stage,),)))
    return Integers(value, view.shape, least, most)


def _limited(level: int, low: Fraction | None, high: Fraction | None) -> int:
    """Clip one level; low > high gives high."""
    level = level if low is None else max(level, int(low))
    return level if high is None else min(level, int(high))


def _bound(state: Lowering, node: OnnxNode, index: int, name: str, none: float) -> Fraction | None:
    """Return a bound of Clip; None if it is absent or the infinity ``none``."""
    if given(node, index):
        array = constant(state, node, index, name).array
        if array.size != 1:  # shape inference does not check it
            raise refuse(
                node, "clip-bound", f"{name} {show(node.inputs[index])} must have one element, not {array.size}",
                "give one bound for all elements",
            )
        if array.reshape(-1)[0] == none:
            return None
        value: Fraction = exact_constant(state, node, index, name).reshape(-1)[0]
        return value
    # operator sets before 11
    return None if node.attributes.get(name, none) == none else finite(node, name, none)


def exponential(state: Lowering, node: OnnxNode) -> View:
    """Lower Exp: of what lies below the greatest element of a row and may be masked, or as any function."""
    view = state.view(node.inputs[0])
    if isinstance(view, Masked) and view.reals.value in state.facts.zeros and uniform(view.reals.zero_point) == 0:
        return exponentials(state, node, view.reals, view.least + 1)
    return behind(reals(state, node, 0), node, as_array(Exp()))


def prelu(state: Lowering, node: OnnxNode) -> View:
    """Lower PRelu with a constant slope, one or one per channel."""
    if node.version < 7:  # one, or one per channel, whatever the shape
        view = reals(state, node, 0)
        slope = exact_constant(state, node, 1, "slope").reshape(-1, *(1,) * (len(view.shape) - 1))
        if slope.size not in (1, view.shape[0]):
            raise refuse(
                node, "frame-constant",
                f"slope {show(node.inputs[1])} must have one element, or one per channel ({view.shape[0]}), not "
                f"{slope.size}",
                "give one slope per channel",
            )
    else:
        view, slope = with_constant(state, node, 1, "slope")
    return behind(view, node, elementwise(LeakyRelu, slope))


def batch_normalization(state: Lowering, node: OnnxNode) -> View:
    """Lower BatchNormalization at inference: scale * (x - mean) / sqrt(var + epsilon) + bias.

    The square root is irrational unless var + epsilon is a square, so it stays a separate function.
    """
    _require_inference(node)
    if node.attributes.get("training_mode", 0):
        raise refuse(
            node, "inference-mode", "training_mode must be 0, not 1", "export the model for inference (eval mode)"
        )
    if any(node.outputs[1:]):
        raise refuse(
            node, "inference-mode", "the running statistics must not be outputs", "export the model for inference"
        )
    view = reals(state, node, 0)
    shape = (-1,) + (1,) * (len(view.shape) - 1)
    names = ("scale", "B", "mean", "var")
    gamma, beta, mean, variance = (
        exact_constant(state, node, index, name).reshape(shape) for index, name in enumerate(names, 1)
    )
    spread = as_array(variance + finite(node, "epsilon", 1e-5))
    wrong = [v for v in spread.reshape(-1) if v <= 0]
    if wrong:
        raise refuse(
            node, "variance-range", f"var + epsilon must be greater than 0, not {float(wrong[0]):.3g}",
            "take the statistics of a trained model: the root of the sum is a divisor",
        )
    centred = affine(view, node, fractions(1), as_array(-mean))
    divided = behind(centred, node, elementwise(RootMultiply, as_array(1 / spread)))
    result = behind(divided, node, elementwise(Affine, gamma, beta))
    unique = tuple(dict.fromkeys(result.nodes)), tuple(dict.fromkeys(result.after))
    return replace(result, nodes=unique[0], after=unique[1])


def _require_inference(node: OnnxNode) -> None:
    """Refuse a node of an operator set before 7 in training mode, its default."""
    if "is_test" in node.attributes and node.attributes["is_test"] == 0:
        raise refuse(
            node, "inference-mode", "is_test must be 1, not 0, which trains", "export the model for inference"
        )


def cast(state: Lowering, node: OnnxNode) -> View:
    """Lower Cast: from integers to the same reals, between real types (all are real numbers here), or from reals to
    integers (towards zero)."""
    view = state.view(node.inputs[0])
    source, target = (state.model.values[name].dtype for name in (node.inputs[0], node.outputs[0]))
    if isinstance(view, QuantizedConstant):
        if source in REAL_TYPES and target in REAL_TYPES:
            return view
        raise refuse(
            node, "cast-types", f"a dequantized constant must stay real, not become {target}", "cast before quantizing"
        )
    if isinstance(view, Constant):
        return Constant(_cast_constant(node, view.array, target))
    if isinstance(view, Integers):
        if target in REAL_TYPES:
            real = made(view.value, view.shape, fractions(1), fractions(0), node)
            return replace(real, low=view.low, high=view.high)
        type_ = COMPUTED_TYPES.get(target)
        if type_ is None:
            raise _narrow_cast(node, source, target)
        return view if type_.min <= view.low and view.high <= type_.max else integers.cast(state, node, view, target)
    view = reals(state, node, 0)
    if target in REAL_TYPES:
        return replace(view, nodes=(*view.nodes, node.name), after=(*view.after, node.name))
    if source in INTEGER_TYPES:  # sums (ConvInteger and the like), which no narrower type holds
        if target == source:
            return replace(view, nodes=(*view.nodes, node.name), after=(*view.after, node.name))
        raise _narrow_cast(node, source, target)
    type_ = INTEGER_TYPES.get(target)
    if type_ is None or type_.bits > 16:
        raise refuse(
            node, "cast-types", f"reals must become integers of at most 16 bits, not {target}", "use QuantizeLinear"
        )
    q = Quantization(fractions(1), fractions(0), type_.min, type_.max, Rounding.ROUND_TO_ZERO)
    return Integers(requantize(state, node, view, q), view.shape, type_.min, type_.max)


def _cast_constant(node: OnnxNode, array: Array, target: str) -> Array:
    """Cast a constant to another type, which must hold it (ONNX wraps integers around)."""
    if target in REAL_TYPES:
        return array.astype(np.float64)
    type_ = INTEGER_TYPES.get(target)
    if type_ is None or array.min(initial=0) < type_.min or array.max(initial=0) > type_.max:
        raise _narrow_cast(node, "the constant", target)
    return array.astype(np.int64)


def _narrow_cast(node: OnnxNode, source: str, target: str) -> Refusal:
    return refuse(
        node, "cast-types", f"the target type must hold every value of {source} (or be real), not {target}",
        "cast to a wider type",
    )


def identity(state: Lowering, node: OnnxNode) -> View:
    """Lower Identity to the same view."""
    return state.view(node.inputs[0])


def dropout(state: Lowering, node: OnnxNode) -> View:
    """Lower Dropout at inference to the same view."""
    _require_inference(node)
    if any(node.outputs[1:]):
        raise refuse(node, "inference-mode", "the output 'mask' must be absent, not used", "export for inference")
    if given(node, 2) and constant(state, node, 2, "training_mode").array.any():
        raise refuse(
            node, "inference-mode", "training_mode must be false, not true", "export the model for inference"
        )
    return state.view(node.inputs[0])
