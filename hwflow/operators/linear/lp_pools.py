"""LpPool: the root of the sum of powers over each window. The powers are tabulated, their sums exact, and the root is
part of the next quantizer's function."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np

from hwflow.frontend.context import Lowering, behind, made, reals, refuse
from hwflow.frontend.frames import axes
from hwflow.frontend.views import Integers, Reals, View, as_array
from hwflow.ir.node_attributes import Window
from hwflow.numerics.functions.piecewise import Abs
from hwflow.numerics.functions.power import Pow
from hwflow.onnxspec.reference import framewise
from hwflow.onnxspec.reference.defect import AnyArray, Attributes, Defect, Inputs, Mended, exactly
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.keys import times
from hwflow.operators.float_errors.step_errors import Errors, Step, gamma, magnitude
from hwflow.operators.linear.pools import require_image, whole, window_sum
from hwflow.operators.linear.window import AUTO_PADS, window_of
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases


def lp_pool(state: Lowering, node: OnnxNode) -> View:
    """Lower LpPool of a positive integer power, with zeros in the padding."""
    view = reals(state, node, 0)
    require_image(node, view.shape)
    kernel = node.attributes["kernel_shape"]
    assert isinstance(kernel, tuple)
    shape = state.frame_shape(node.outputs[0])
    window = window_of(node, view.shape[1:], [int(k) for k in kernel], shape[1:])
    return _norm(state, node, view, window, shape)


def global_lp_pool(state: Lowering, node: OnnxNode) -> View:
    """Lower GlobalLpPool: one window covers the image."""
    view = reals(state, node, 0)
    require_image(node, view.shape)
    return _norm(state, node, view, whole(view.shape), state.frame_shape(node.outputs[0]))


def _norm(state: Lowering, node: OnnxNode, view: Reals, window: Window, shape: tuple[int, ...]) -> Reals:
    power = _power(node)
    powers = behind(view, node, as_array(Abs()))
    if power > 1:
        powers = behind(powers, node, as_array(Pow(Fraction(power))))
    mean = window_sum(state, node, powers, window, shape, origin="" if power > 1 else None)
    count = Fraction(prod(window.kernel))
    if mean.functions:  # keys
        total = times(mean, count)
    else:
        total = made(mean.value, shape, as_array(mean.scale * count), mean.zero_point, node)
    return behind(total, node, as_array(Pow(Fraction(1, power)))) if power > 1 else total


def _power(node: OnnxNode) -> int:
    """Return the attribute p; refuse one that is no positive integer."""
    power = node.attributes.get("p", 2)
    assert isinstance(power, int | float)
    if power < 1 or power != int(power):
        raise refuse(
            node, "pool-power", f"p must be a positive integer, not {power}", "use 1 or 2: sums, or roots of squares"
        )
    return int(power)


def _error(step: Step) -> Errors:
    """Bound a norm, which is convex in the magnitudes: its change where they grow, and the roundings of its sum."""
    size = magnitude(step.value(0))
    most, middle = (step.again([v]) for v in (size + step.error(0), size))
    terms = prod(step.attributes.get("kernel_shape") or size.shape[2:])
    result: Errors = abs(most - middle) + gamma(2 * terms + 64, step.unit) * abs(most) + 64 * step.tiny
    return result


def definition(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute GlobalLpPool."""
    (x, *_) = inputs
    assert x is not None
    power = x.dtype.type(attributes.get("p", 2))
    result: AnyArray = (np.abs(x) ** power).sum(axis=tuple(range(2, x.ndim)), keepdims=True) ** (1 / power)
    return result.astype(x.dtype)


GLOBAL = Mended((Defect("globallppool", "it has none", None),), exactly(definition))

RECORDS = (
    Operator(
        "LpPool", lower=lp_pool,
        honours=attributes("dilations", "kernel_shape", "p", "pads", "strides", auto_pad=AUTO_PADS, ceil_mode=(0,)),
        limits=f"{phrases.POOL}; no ceil_mode; powers of at most 16 bits before their sum",
        becomes=("requantize", "sum_pool2d"), needs=(Integers, Reals), heavy=True, frames=axes.IMAGE, error=_error,
        framewise=framewise.always, images=1
    ),
    Operator(
        "GlobalLpPool", lower=global_lp_pool, honours=attributes("p"),
        limits="of images with any number of axes; powers of at most 16 bits before their sum",
        becomes=("requantize", "sum_pool2d"), needs=(Integers, Reals), heavy=True, frames=axes.IMAGE, error=_error,
        tame=True, framewise=framewise.always, mended=GLOBAL, images=1
    ),
)
