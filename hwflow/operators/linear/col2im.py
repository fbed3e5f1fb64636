"""Col2Im, the adjoint of im2col: exact sums of the elements that blocks contribute to each pixel."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, constant_integers, made, reals, refuse
from hwflow.frontend.frames import axes
from hwflow.frontend.views import Integers, Reals, View, as_reals, fractions
from hwflow.ir.graph import IntArray
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import Window
from hwflow.onnxspec.reference import framewise
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.alignment import aligned
from hwflow.operators.elementwise.integers import combined
from hwflow.operators.elementwise.keys import times
from hwflow.operators.float_errors.step_errors import Errors, Step, gamma, magnitude
from hwflow.operators.linear.pools import window_sum
from hwflow.operators.moves.moves import placed, with_zero
from hwflow.operators.moves.reshapes import reshaped
from hwflow.operators.record import Operator, attributes


def col2im(state: Lowering, node: OnnxNode) -> View:
    """Lower Col2Im: gather the elements of each pixel, padded with zeros to an equal number, and sum them. Sums of
    integer tensors wrap around."""
    view = state.view(node.inputs[0])
    shape = state.model.values[node.inputs[0]].shape
    image = constant_integers(state, node, 1, "image_shape")
    block = constant_integers(state, node, 2, "block_shape")
    sources = _sources(node, shape, image, block)
    if isinstance(view, Integers):
        if state.model.values[node.inputs[0]].dtype == "bool":
            raise refuse(
                node, "col2im-type", f"input {show(node.inputs[0])} must hold numbers, not bools",
                "cast it to an integer type",
            )
        sums = _sums(state, node, as_reals(view, node.inputs[0]), shape, prod(block), sources)
        return combined(state, node, Simple("wrap"), [Integers(sums.value, sums.shape, 0, 0)])
    sums = _sums(state, node, reals(state, node, 0), shape, prod(block), sources)
    target = (shape[1] // prod(block), *image)
    origin = "" if sums.functions else state.real_origin(node)
    result = reshaped(state, node, sums, target, origin=origin)
    if result.functions:
        return result
    exact = made(result.value, target, result.scale, result.zero_point, node)
    return replace(exact, low=sums.low, high=sums.high)


def _sources(
    node: OnnxNode, shape: tuple[int, ...], image: tuple[int, ...], block: tuple[int, ...]
) -> IntArray:
    """Return for each pixel of a channel the indices of its elements in [taps, blocks], row by row, padded with -1 to
    an equal number. Taps, blocks and pixels count with the last axis fastest."""
    count = len(image)
    strides, dilations = (node.integers(name) or (1,) * count for name in ("strides", "dilations"))
    pads = node.integers("pads") or (0,) * 2 * count
    lengths = (len(block), len(strides), len(dilations), len(pads))
    if not count or lengths != (count, count, count, 2 * count) or min(*image, *block, *strides, *dilations) < 1:
        raise refuse(
            node, "col2im-window",
            "image_shape, block_shape, strides and dilations must have a positive number for each axis, and pads two, "
            f"not {list(image)}, {list(block)}, {list(strides)}, {list(dilations)} and {list(pads)}",
            "correct them",
        )
    spans = [(block[a] - 1) * dilations[a] + 1 for a in range(count)]
    blocks = [(image[a] + pads[a] + pads[a + count] - spans[a]) // strides[a] + 1 for a in range(count)]
    if len(shape) != 3 or shape[1] % prod(block) or min(blocks) < 1 or shape[2] != prod(blocks):
        raise refuse(
            node, "col2im-blocks",
            f"input {show(node.inputs[0])} must be frames of a multiple of {prod(block)} taps and "
            f"{' x '.join(map(str, blocks))} blocks, as block_shape, image_shape and the attributes say, not of shape "
            f"{list(shape)}",
            "correct the shapes or the attributes",
        )
    pixels = np.zeros((1, 1), dtype=np.int64)  # [taps, blocks]: the pixel that each element goes to
    inside = np.ones((1, 1), dtype=bool)
    for a in range(count):
        along = np.arange(block[a])[:, None] * dilations[a] + np.arange(blocks[a]) * strides[a] - pads[a]
        both = (len(pixels) * block[a], pixels.shape[1] * blocks[a])
        pixels = (pixels[:, None, :, None] * image[a] + along[None, :, None, :]).reshape(both)
        inside = (inside[:, None, :, None] & ((along >= 0) & (along < image[a]))[None, :, None, :]).reshape(both)
    elements = np.flatnonzero(inside.reshape(-1))
    if not elements.size:
        raise refuse(
            node, "col2im-empty", "some element must go to the image, not all of them to the pads", "reduce the pads"
        )
    target = pixels.reshape(-1)[elements]
    order = np.argsort(target, kind="stable")
    counts = np.bincount(target, minlength=prod(image))
    place = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
    sources = np.full((prod(image), counts.max()), -1)
    sources[target[order], place] = elements[order]
    return sources


def _sums(
    state: Lowering, node: OnnxNode, view: Reals, shape: tuple[int, ...], taps: int, sources: IntArray
) -> Reals:
    """Return the sums per pixel, [channels, pixels, 1], of ``view``, [channels * taps, blocks]."""
    channels, size = shape[1] // taps, taps * shape[2]
    pixels, most = sources.shape
    holes = sources < 0
    if most > 1 and _differ(view, channels, taps):  # summands have one scale
        (integers,), unit = aligned(state, node, [view])
        assert isinstance(integers, Integers), "a stream"
        view = replace(view, value=integers.value, scale=unit, zero_point=fractions(0), functions=(), nodes=())
        view = replace(view, low=None, high=None)
    if holes.any():
        view = with_zero(state, node, view)
    starts = np.arange(channels).reshape(-1, 1, 1) * size
    index = (starts + np.where(holes, 0, sources))[None]  # [1, channels, pixels, most]

    def move(array: Any) -> Any:
        return array.reshape(-1)[index]

    result = placed(state, node, view, shape, move, np.broadcast_to(holes, index.shape))
    assert isinstance(result, Reals), "reals stay reals"
    if most == 1:
        return result
    window = Window((1, most), (1, most), (0,) * 4, (1, 1))
    sums = window_sum(state, node, result, window, (channels, pixels, 1), origin="")
    return times(sums, Fraction(most))


def _differ(view: Reals, channels: int, taps: int) -> bool:
    """Tell whether elements of one pixel may differ in scales, zero points or functions."""
    parameters = []
    for values in (view.scale, view.zero_point, *view.functions):
        wide = np.broadcast_to(values, view.shape) if values.ndim else values.reshape((1, 1))
        parameters.append(wide.reshape(channels, taps, -1) if wide.size > 1 else wide.reshape(1, 1, 1))
    return any((values != values[:, :1, :1]).any() for values in parameters)


def _error(step: Step) -> Errors:
    """Bound Col2Im: a pixel is the sum of at most one element per tap."""
    step.exact(1, 2)
    rest = step.inputs[1:]
    terms = prod(int(v) for v in step.value(2).reshape(-1))
    sizes = step.again([magnitude(step.value(0)), *rest])
    return step.again([step.error(0), *rest]) + gamma(terms, step.unit) * sizes + terms * step.tiny


RECORDS = (
    Operator(
        "Col2Im", lower=col2im, honours=attributes("dilations", "pads", "strides"),
        limits="constant image_shape and block_shape, with any number of axes; any strides, dilations and pads",
        becomes=("reindex", "sum_pool2d"), frames=axes.IMAGE, error=_error, framewise=framewise.data(0)
    ),
)
