"""LRN: each element over a power of the sum of its neighbours' squares among the channels."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from hwflow.frontend.context import Lowering, finite, reals, refuse
from hwflow.frontend.frames import axes
from hwflow.frontend.views import Integers, Reals, View, as_array
from hwflow.ir.node_attributes import Window
from hwflow.onnxspec.reference import framewise
from hwflow.onnxspec.reference.defect import AnyArray, Attributes, Defect, Inputs, Mended, exactly
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.onnxspec.shapes import size_facts
from hwflow.operators.approximations.real_powers import powered
from hwflow.operators.elementwise.arithmetic import product_of
from hwflow.operators.float_errors.step_errors import Errors, Step, gamma, magnitude
from hwflow.operators.linear import spatial
from hwflow.operators.linear.pools import require_image
from hwflow.operators.moves.reshapes import reshaped
from hwflow.operators.norms.approximations import quotient, root, square
from hwflow.operators.norms.based import based
from hwflow.operators.norms.rows import Rows
from hwflow.operators.record import Operator, attributes

_QUARTERS = (1, 2, 3, 4)
"""Of beta: roots of roots, which are cheaper than logarithms."""


def lrn(state: Lowering, node: OnnxNode) -> View:
    """Lower LRN."""
    view, size = reals(state, node, 0), node.integer("size")
    require_image(node, view.shape)
    alpha, bias, beta = (finite(node, *of) for of in (("alpha", 1e-4), ("bias", 1.0), ("beta", 0.75)))
    if alpha <= 0 or bias <= 0:
        raise refuse(
            node, "lrn-sum", f"alpha and bias must be positive, not {float(alpha):.3g} and {float(bias):.3g}",
            "give both a positive value: a sum of squares may be 0, and is then not a divisor",
        )
    elements = based(state, node, Rows(state, node, view.shape, (0,)).prepared(view))
    sums = _sums(state, node, square(state, node, elements), size)
    scale = as_array(sums.scale * alpha / size)
    divisor = replace(sums, scale=scale, zero_point=as_array(-bias / scale))
    if 4 * beta not in _QUARTERS:
        result = product_of(state, node, elements, powered(state, node, divisor, -beta))
        return replace(result, anchor=view.anchor, after=(*view.after, node.name))
    quarters = int(4 * beta)
    if quarters != 4:
        roots = root(state, node, divisor)
        if quarters != 2:
            roots = root(state, node, roots)
        if quarters == 3:  # x / d ** (3 / 4) = x * d ** (1 / 4) / d
            elements = product_of(state, node, elements, roots)
        else:
            divisor = roots
    result = quotient(state, node, elements, divisor)
    return replace(result, anchor=view.anchor, after=(*view.after, node.name))


def _sums(state: Lowering, node: OnnxNode, view: Reals, size: int) -> Reals:
    """Return the sum of each element's neighbours, itself among them."""
    channels, others = view.shape[0], prod(view.shape[1:])
    before, after = (min(count, channels - 1) for count in ((size - 1) // 2, size // 2))
    window = Window((before + after + 1, 1), (1, 1), (before, 0, after, 0), (1, 1))
    image = reshaped(state, node, view, (1, channels, others))
    value = spatial.sum_pool(state, node, image.value, image.shape, window, (), origin="", pad_value=0)
    return reshaped(state, node, replace(image, value=value), view.shape)


def definition(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute LRN of images with any number of axes."""
    (x, *_) = inputs
    assert x is not None
    size, channels = int(attributes["size"]), x.shape[1]
    squares = x * x
    sums = np.stack(
        [
            squares[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1].sum(axis=1, dtype=x.dtype)
            for c in range(channels)
        ],
        axis=1,
    )
    alpha, bias, beta = (
        x.dtype.type(attributes.get(name, default)) for name, default in (("alpha", 1e-4), ("bias", 1), ("beta", 0.75))
    )
    result: AnyArray = x / (bias + alpha / x.dtype.type(size) * sums) ** beta
    return result


def _batch(attributes: Attributes, inputs: Inputs) -> bool:
    return inputs[0] is not None and inputs[0].shape[:1] != inputs[0].shape[1:2]


MENDED = Mended(
    (Defect("lrn-channels", "it takes the size of the batch for the number of channels, and fails unless there are two "
            "axes of the image", _batch),),
    exactly(definition),
)


def _error(step: Step) -> Errors:
    """Bound x / d ** beta, d no less than the bias: d errs by alpha / n times the sum of 2|x|E + E**2, and by
    gamma(n + 4) of itself."""
    u, size = step.unit, int(step.attributes["size"])
    alpha, bias = step.attribute("alpha", 1e-4), step.attribute("bias", 1.0)
    beta = step.attribute("beta", 0.75)
    x, error = magnitude(step.value(0)), np.broadcast_to(step.error(0), step.output.shape)

    def sums(values: Errors) -> Errors:
        parts = [
            values[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1].sum(axis=1) for c in range(values.shape[1])
        ]
        return np.stack(parts, axis=1)

    divisor = bias + abs(alpha) / size * sums(x**2)
    moved = abs(alpha) / size * sums(2 * x * error + error**2) + gamma(size + 6, u) * divisor
    with np.errstate(all="ignore"):
        least = np.maximum(divisor - moved, bias * (1 - 2 * u))
        power = divisor**-beta
        change = np.maximum(least**-beta - power, abs(beta) * moved * least ** (-beta - 1))
        result = error * (power + change) + x * change + 64 * u * x * power
    return np.asarray(np.nan_to_num(result, nan=np.inf, posinf=np.inf))


RECORDS = (
    Operator(
        "LRN", lower=lrn, honours=attributes("alpha", "beta", "bias", "size"),
        limits="positive alpha and bias, before a quantizer",
        becomes=("product", "quotient", "root", "sum_pool2d"), needs=(Integers, Reals), approximates=True,
        whole=True, frames=axes.IMAGE, error=_error, tame=True, framewise=framewise.always, mended=MENDED,
        sizes=size_facts.positive("size"),
    ),
)
