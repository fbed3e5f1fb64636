"""ConvTranspose: a transposed convolution with constant weights, as exact sums."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hwflow.display import show
from hwflow.frontend.context import Lowering, made, reals, refuse
from hwflow.frontend.views import View, changed, compact, fractions, uniform
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.lattice import from_zero, plain, whole_zero_point
from hwflow.operators.linear import spatial
from hwflow.operators.linear.linear import bias_of, meaning, of_groups, upright
from hwflow.operators.linear.weights import integer_weights


def conv_transpose(state: Lowering, node: OnnxNode) -> View:
    """Lower ConvTranspose, of any number of spatial axes."""
    view = reals(state, node, 0)
    name, groups = node.inputs[1], node.integer("group", 1)
    shape = state.model.values[name].shape
    channels = view.shape[0]
    view = from_zero(state, node, whole_zero_point(state, node, plain(state, node, view)))
    if any(size > 1 for size in view.scale.shape[1:]):
        raise refuse(
            node, "channel-scale", f"input {show(node.inputs[0])} must have one scale and zero point per channel, not "
            "one per pixel", "quantize before the convolution",
        )

    def outputs_first(array: Any) -> Any:
        """Reorder [C, M / groups, kernel] to [M, C / groups, kernel]."""
        split = array.reshape(groups, channels // groups, shape[1], *shape[2:]).swapaxes(1, 2)
        return split.reshape(groups * shape[1], channels // groups, *shape[2:])

    scale = uniform(view.scale)
    ordered = (groups * shape[1], channels // groups, *shape[2:])
    per_channel = None if scale is not None else of_groups(view.scale, ordered, groups)
    weights = integer_weights(node, changed(state.view(name), outputs_first), name, 0, per_channel)
    weights = upright(weights, scale, Fraction(1))
    image, output = view.shape[1:], state.frame_shape(node.outputs[0])[1:]
    axes = len(image)
    strides, dilations = (node.integers(n) or (1,) * axes for n in ("strides", "dilations"))
    value = spatial.transposed_convolution(
        state, node, view.value, view.shape, weights.integers, output, view.nodes, strides=strides,
        dilations=dilations, starts=_starts(node, image, shape[2:], strides, dilations, output), groups=groups,
    )
    bias = bias_of(state, node, 2, len(weights.integers))
    out = meaning(node, weights, None if scale is None else abs(scale), fractions(0), False, bias)
    out_scale, zero_point = (compact(v.reshape(-1, *(1,) * axes)) for v in out)
    return made(value, (len(weights.integers), *output), out_scale, zero_point, node)


def _starts(
    node: OnnxNode, image: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...],
    dilations: tuple[int, ...], output: tuple[int, ...],
) -> tuple[int, ...]:
    """Return what is cropped before each axis (ONNX operator ConvTranspose 11, pads, output_shape, auto_pad)."""
    axes = len(image)
    auto_pad = node.attributes.get("auto_pad", "NOTSET")
    given = node.integers("output_shape")
    if auto_pad == "VALID":
        return (0,) * axes
    if auto_pad == "NOTSET" and not given:
        return (node.integers("pads") or (0,) * 2 * axes)[:axes]
    more = node.integers("output_padding") or (0,) * axes
    starts = []
    for axis in range(axes):
        reach = strides[axis] * (image[axis] - 1) + more[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        total = max(0, reach - output[axis])
        starts.append(total // 2 if auto_pad == "SAME_UPPER" else total - total // 2)
    return tuple(starts)
