"""Quantized operators of the domain com.microsoft, as onnxruntime's quantizer writes them: dequantize, operate,
quantize.

Rounding comes before the zero point, as in QuantizeLinear (onnxruntime's own kernels of some round after it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from hwflow.frontend import qdq
from hwflow.frontend.arithmetic import affine, combined, product_of, sum_of
from hwflow.frontend.context import Handler, Lowering, behind, constant, finite, given, integer, over_frame, refuse
from hwflow.frontend.linear import product
from hwflow.frontend.moves import broadcast
from hwflow.frontend.ordering import chosen
from hwflow.frontend.pools import averaged, globally_averaged, pooled, require_image
from hwflow.frontend.qlinear import fixed, operand, requantized, stream
from hwflow.frontend.reductions import reduced
from hwflow.frontend.shapes import joined
from hwflow.frontend.views import Integers, QuantizedConstant, Reals, View, as_array, fractions, rearranged
from hwflow.ir.graph import Fractions
from hwflow.numerics.elementwise import LeakyRelu
from hwflow.numerics.smooth import Sigmoid
from hwflow.onnxspec.model import OnnxNode


def _operands(state: Lowering, node: OnnxNode) -> tuple[Reals, Reals | Fractions]:
    """A stream, and the other stream or constant."""
    a, b = operand(state, node, 0, 1, 2), operand(state, node, 3, 4, 5)
    if isinstance(a, QuantizedConstant):
        a, b = b, a
    if isinstance(a, QuantizedConstant):
        raise refuse(node, "stream-operand", "one operand must be computed at run time", "fold the node")
    if isinstance(b, QuantizedConstant):
        return a, over_frame(state, node, "the constant operand", b.real(), a.shape)
    wholes = [state.model.values[node.inputs[place]].shape for place in (0, 3)]
    target = np.broadcast_shapes(*wholes)
    a, b = (broadcast(state, node, view, whole, target) for view, whole in zip((a, b), wholes, strict=True))
    return a, b


def qlinear_add(state: Lowering, node: OnnxNode) -> View:
    """QLinearAdd of two streams or a constant."""
    a, b = _operands(state, node)
    if not isinstance(b, Reals):
        return requantized(state, node, affine(a, node, fractions(1), b), 6, 7)
    total = combined(node, "add", a, b) if a.value is b.value else sum_of(state, node, a, b)
    return requantized(state, node, total, 6, 7)


def qlinear_mul(state: Lowering, node: OnnxNode) -> View:
    """QLinearMul of two streams or a constant."""
    a, b = _operands(state, node)
    if not isinstance(b, Reals):
        return requantized(state, node, affine(a, node, b, fractions(0)), 6, 7)
    total = combined(node, "mul", a, b) if a.value is b.value else product_of(state, node, a, b)
    return requantized(state, node, total, 6, 7)


def qlinear_sigmoid(state: Lowering, node: OnnxNode) -> View:
    """QLinearSigmoid."""
    return requantized(state, node, behind(stream(state, node, 0, 1, 2), node, as_array(Sigmoid())), 3, 4)


def qlinear_leaky_relu(state: Lowering, node: OnnxNode) -> View:
    """QLinearLeakyRelu."""
    function = as_array(LeakyRelu(finite(node, "alpha", 0.01)))
    return requantized(state, node, behind(stream(state, node, 0, 1, 2), node, function), 3, 4)


def _channels_first(state: Lowering, node: OnnxNode, view: Integers | Reals) -> Integers | Reals:
    """An image (..., channels) as (channels, ...)."""
    axes = range(len(view.shape))
    return _transposed(state, node, view, (axes[-1], *axes[:-1]))


def _channels_last(state: Lowering, node: OnnxNode, view: Integers | Reals) -> Integers | Reals:
    return _transposed(state, node, view, (*range(1, len(view.shape)), 0), last=True)


def _transposed(
    state: Lowering, node: OnnxNode, view: Integers | Reals, perm: tuple[int, ...], *, last: bool = False
) -> Integers | Reals:
    """``last``: it makes the node's result, where that is integers."""
    origin = None if last and isinstance(view, Integers) else ""
    value = state.add("transpose", node, [view.value], {"perm": perm}, origin=origin)
    shape = tuple(view.shape[axis] for axis in perm)
    if isinstance(view, Integers):
        return replace(view, value=value, shape=shape)
    scale, zero_point, *functions = (
        rearranged(v, view.shape, lambda array: array.transpose(perm))
        for v in (view.scale, view.zero_point, *view.functions)
    )
    return replace(view, value=value, shape=shape, scale=scale, zero_point=zero_point, functions=tuple(functions))


def qlinear_average_pool(state: Lowering, node: OnnxNode) -> View:
    """QLinearAveragePool, channels first or last."""
    view = stream(state, node, 0, 1, 2)
    if not integer(node, "channels_last"):
        return requantized(state, node, averaged(state, node, view), 3, 4)
    *image, channels = state.frame_shape(node.outputs[0])
    return _averaged_last(state, node, view, lambda first: averaged(state, node, first, (channels, *image)))


def qlinear_global_average_pool(state: Lowering, node: OnnxNode) -> View:
    """QLinearGlobalAveragePool, channels first or last."""
    view = stream(state, node, 0, 1, 2)
    if not integer(node, "channels_last"):
        return requantized(state, node, globally_averaged(state, node, view), 3, 4)
    return _averaged_last(state, node, view, lambda first: globally_averaged(state, node, first))


def _averaged_last(
    state: Lowering, node: OnnxNode, view: Reals, average: Callable[[Reals], Reals]
) -> View:
    """What ``average`` makes of an image with its channels first, with them last and quantized."""
    first = _channels_first(state, node, view)
    assert isinstance(first, Reals), "reals stay reals"
    last = _channels_last(state, node, average(first))
    assert isinstance(last, Reals), "reals stay reals"
    return requantized(state, node, last, 3, 4)


def nhwc_max_pool(state: Lowering, node: OnnxNode) -> View:
    """NhwcMaxPool: a MaxPool of integers, channels last."""
    view = state.view(node.inputs[0])
    if not isinstance(view, Integers):
        raise refuse(
            node, "integer-operand", f"input '{node.inputs[0]}' must be an integer tensor in hardware",
            "put QuantizeLinear before it",
        )
    require_image(node, view.shape)
    *image, channels = state.frame_shape(node.outputs[0])
    result = pooled(state, node, _channels_first(state, node, view), (channels, *image), origin="")
    assert isinstance(result, Integers), "of integers"
    return _channels_last(state, node, result)


def qlinear_reduce_mean(state: Lowering, node: OnnxNode) -> View:
    """QLinearReduceMean over any axes of a frame."""
    axes = node.attributes.get("axes", ())
    mean = reduced(state, node, stream(state, node, 0, 1, 2), axes, "mean")
    assert isinstance(mean, Reals), "of reals"
    return requantized(state, node, mean, 3, 4)


def qlinear_where(state: Lowering, node: OnnxNode) -> View:
    """QLinearWhere of two streams, or of a stream and a constant."""
    found = [operand(state, node, index, index + 1, index + 2) for index in (1, 4)]
    branches = [v.real() if isinstance(v, QuantizedConstant) else v for v in found]
    return requantized(state, node, chosen(state, node, branches), 7, 8)


def qlinear_concat(state: Lowering, node: OnnxNode) -> View:
    """QLinearConcat of streams: inputs are the result's scale and zero point, then tensor, scale, zero point each."""
    rank = len(state.model.values[node.outputs[0]].shape)
    axis = integer(node, "axis") % rank
    views = [stream(state, node, index, index + 1, index + 2) for index in range(2, len(node.inputs), 3)]
    whole = joined(state, node, views, axis - 1) if len(views) > 1 else views[0]
    return requantized(state, node, whole, 0, 1)


def qgemm(state: Lowering, node: OnnxNode) -> View:
    """QGemm with a constant matrix; without an output scale the result is real."""
    if integer(node, "transA"):
        raise refuse(node, "gemm-trans-a", "transA must be 0, not 1", "transpose the first operand in the model")
    axis = 0 if integer(node, "transB") else 1
    a, b = stream(state, node, 0, 1, 2), fixed(state, node, 3, 4, 5, axis)
    alpha = finite(node, "alpha", 1.0)
    if alpha == 0:
        raise refuse(node, "gemm-alpha", "alpha must not be 0", "remove the product")
    bias: Fractions | None = None
    if given(node, 6):
        units = b.scale.reshape(-1) * a.scale * alpha
        bias = as_array(fractions(constant(state, node, 6, "bias").array) * units)
    sums = product(state, node, a, b, node.inputs[3], axis, bias, alpha)
    return requantized(state, node, sums, 7, 8) if given(node, 7) else sums


HANDLERS: Mapping[str, Handler] = {
    "DequantizeLinear": qdq.dequantize_linear,
    "NhwcMaxPool": nhwc_max_pool,
    "QGemm": qgemm,
    "QLinearAdd": qlinear_add,
    "QLinearAveragePool": qlinear_average_pool,
    "QLinearConcat": qlinear_concat,
    "QLinearGlobalAveragePool": qlinear_global_average_pool,
    "QLinearLeakyRelu": qlinear_leaky_relu,
    "QLinearMul": qlinear_mul,
    "QLinearReduceMean": qlinear_reduce_mean,
    "QLinearSigmoid": qlinear_sigmoid,
    "QLinearWhere": qlinear_where,
    "QuantizeLinear": qdq.quantize_linear,
}
