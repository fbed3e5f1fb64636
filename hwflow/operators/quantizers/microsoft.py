"""Quantized operators of the domain com.microsoft, as onnxruntime's quantizer writes them: dequantize, operate,
quantize.

Rounding precedes the zero point, as in QuantizeLinear (some of onnxruntime's own kernels round after it).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, behind, constant, exact_constant, finite, given, refuse
from hwflow.frontend.views import Integers, Moved, QuantizedConstant, Reals, View, as_array, fractions
from hwflow.ir.graph import Fractions
from hwflow.numerics.functions.piecewise import LeakyRelu
from hwflow.numerics.functions.smooth import Sigmoid
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.arithmetic import affine, combined, product_of, sum_of
from hwflow.operators.elementwise.ordering import chosen
from hwflow.operators.linear.linear import product
from hwflow.operators.linear.matmul import multiplied
from hwflow.operators.linear.pools import averaged, globally_averaged, pooled, require_image
from hwflow.operators.linear.reductions import reduced
from hwflow.operators.moves.joins import joined
from hwflow.operators.moves.moves import broadcast, over_constant
from hwflow.operators.moves.reshapes import transposed
from hwflow.operators.norms.softmax import divided, softmax_axes
from hwflow.operators.quantizers.qlinear import fixed, operand, requantized, stream

_FOLD = "compute the node's result when the model is exported"


def _operands(state: Lowering, node: OnnxNode) -> tuple[Reals, Reals | Fractions]:
    """Return a stream, and the other stream or constant."""
    a, b = operand(state, node, 0, 1, 2), operand(state, node, 3, 4, 5)
    places = (0, 3)
    if isinstance(a, QuantizedConstant):
        a, b, places = b, a, (3, 0)
    names = [node.inputs[place] for place in places]
    if isinstance(a, QuantizedConstant):
        raise refuse(node, "stream-operand", "one operand must be computed at run time, not both be constant", _FOLD)
    if isinstance(b, QuantizedConstant):
        return over_constant(state, node, a, names[0], f"the constant {show(names[1])}", b.real())
    wholes = [state.model.values[name].shape for name in names]
    target = np.broadcast_shapes(*wholes)
    a, b = (broadcast(state, node, view, whole, target) for view, whole in zip((a, b), wholes, strict=True))
    return a, b


def qlinear_add(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearAdd of two streams, or of a stream and a constant."""
    a, b = _operands(state, node)
    if not isinstance(b, Reals):
        return requantized(state, node, affine(a, node, fractions(1), b), 6, 7)
    total = combined(node, "add", a, b) if a.value is b.value else sum_of(state, node, a, b)
    return requantized(state, node, total, 6, 7)


def qlinear_mul(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearMul of two streams, or of a stream and a constant."""
    a, b = _operands(state, node)
    if not isinstance(b, Reals):
        return requantized(state, node, affine(a, node, b, fractions(0)), 6, 7)
    total = combined(node, "mul", a, b) if a.value is b.value else product_of(state, node, a, b)
    return requantized(state, node, total, 6, 7)


def qlinear_sigmoid(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearSigmoid."""
    return requantized(state, node, behind(stream(state, node, 0, 1, 2), node, as_array(Sigmoid())), 3, 4)


def qlinear_softmax(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearSoftmax along the axes of Softmax in operator set ``opset``."""
    axes = softmax_axes(state, node, node.integer("opset", 13))
    return requantized(state, node, divided(state, node, stream(state, node, 0, 1, 2), axes), 3, 4)


def qlinear_leaky_relu(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearLeakyRelu."""
    function = as_array(LeakyRelu(finite(node, "alpha", 0.01)))
    return requantized(state, node, behind(stream(state, node, 0, 1, 2), node, function), 3, 4)


def _channels_first(state: Lowering, node: OnnxNode, view: Moved) -> Moved:
    """Transpose an image from (..., channels) to (channels, ...)."""
    axes = range(len(view.shape))
    return transposed(state, node, view, (axes[-1], *axes[:-1]))


def _channels_last(state: Lowering, node: OnnxNode, view: Moved) -> Moved:
    """Transpose back; the integers of an integer tensor are the node's result."""
    origin = None if isinstance(view, Integers) else ""
    return transposed(state, node, view, (*range(1, len(view.shape)), 0), origin=origin)


def qlinear_average_pool(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearAveragePool, channels first or last."""
    view = stream(state, node, 0, 1, 2)
    if not node.integer("channels_last"):
        return requantized(state, node, averaged(state, node, view), 3, 4)
    *image, channels = state.frame_shape(node.outputs[0])
    return _averaged_last(state, node, view, lambda first: averaged(state, node, first, (channels, *image)))


def qlinear_global_average_pool(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearGlobalAveragePool, channels first or last."""
    view = stream(state, node, 0, 1, 2)
    if not node.integer("channels_last"):
        return requantized(state, node, globally_averaged(state, node, view), 3, 4)
    return _averaged_last(state, node, view, lambda first: globally_averaged(state, node, first))


def _averaged_last(
    state: Lowering, node: OnnxNode, view: Reals, average: Callable[[Reals], Reals]
) -> View:
    """Apply ``average`` to an image with channels moved first; return it with channels last, quantized."""
    last = _channels_last(state, node, average(_channels_first(state, node, view)))
    return requantized(state, node, last, 3, 4)


def nhwc_max_pool(state: Lowering, node: OnnxNode) -> View:
    """Lower NhwcMaxPool: a MaxPool of integers, channels last."""
    view = state.view(node.inputs[0])
    if not isinstance(view, Integers):
        raise refuse(
            node, "integer-operand", f"input {show(node.inputs[0])} must be an integer tensor in hardware",
            "put QuantizeLinear before it",
        )
    require_image(node, view.shape)
    *image, channels = state.frame_shape(node.outputs[0])
    result = pooled(state, node, _channels_first(state, node, view), (channels, *image), origin="")
    assert isinstance(result, Integers), "of integers"
    return _channels_last(state, node, result)


def qlinear_reduce_mean(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearReduceMean over any axes of a frame."""
    axes = node.attributes.get("axes", ())
    mean = reduced(state, node, stream(state, node, 0, 1, 2), axes, "mean")
    assert isinstance(mean, Reals), "of reals"
    return requantized(state, node, mean, 3, 4)


def qlinear_where(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearWhere of two streams, or of a stream and a constant."""
    found = [operand(state, node, index, index + 1, index + 2) for index in (1, 4)]
    branches = [v.real() if isinstance(v, QuantizedConstant) else v for v in found]
    return requantized(state, node, chosen(state, node, branches), 7, 8)


def qlinear_concat(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearConcat of streams and constants. Inputs: the result's scale and zero point, then each operand with
    its own."""
    rank = len(state.model.values[node.outputs[0]].shape)
    axis = node.integer("axis") % rank
    views = [operand(state, node, index, index + 1, index + 2) for index in range(2, len(node.inputs), 3)]
    if not any(isinstance(view, Reals) for view in views):
        raise refuse(node, "stream-operand", "one operand must be computed at run time, not all be constant", _FOLD)
    return requantized(state, node, joined(state, node, views, axis - 1), 0, 1)


def qgemm(state: Lowering, node: OnnxNode) -> View:
    """Lower QGemm with a constant matrix; without an output scale the result is real."""
    if node.integer("transA"):
        raise refuse(node, "gemm-trans-a", "transA must be 0, not 1", "transpose the first operand in the model")
    axis = 0 if node.integer("transB") else 1
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


def matmul_integer_to_float(state: Lowering, node: OnnxNode) -> View:
    """Lower MatMulIntegerToFloat: the product of the dequantized operands, plus a bias."""
    a, b = operand(state, node, 0, 2, 4, -2), operand(state, node, 1, 3, 5, -1)
    result = multiplied(state, node, a, b, (node.inputs[0], node.inputs[1]))
    if not given(node, 6):
        return result
    return affine(result, node, fractions(1), exact_constant(state, node, 6, "bias"))
