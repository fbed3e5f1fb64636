"""Reals of several scales and zero points as integer multiples of one number: what has their order, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from math import prod

import numpy as np

from hwflow.frontend import integers
from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.lattice import plain
from hwflow.frontend.views import Integers, Reals, as_array, fraction_gcd, fractions, varying_axes
from hwflow.ir.graph import Fractions, IntArray
from hwflow.ir.integer_functions import Function, Multiplied, Simple, Times
from hwflow.onnxspec.model import OnnxNode

_MOST = 1 << 44  # with operands of 16 bits within 62
_MOST_OF_SUMS = 1 << 32  # with sums of 28 bits

Multiples = integers.Operand


def aligned(
    state: Lowering, node: OnnxNode, operands: Sequence[Reals | Fractions]
) -> tuple[list[Multiples], Fractions]:
    """The operands (streams, or constants that broadcast with them) as multiples of one positive number, and that
    number: the greatest there is. Refused where some of the multiples would be too large."""
    streams = {place: plain(state, node, v) for place, v in enumerate(operands) if isinstance(v, Reals)}
    offsets = {place: as_array(view.scale * view.zero_point) for place, view in streams.items()}
    scales = [v for view in streams.values() for v in view.scale.reshape(-1) if v]
    if not scales:
        raise refuse(
            node, "one-scale", "some operand must have a scale other than 0", "correct the scales",
        )
    others = [v for offset in offsets.values() for v in offset.reshape(-1)]
    others += [v for constant in operands if not isinstance(constant, Reals) for v in constant.reshape(-1)]
    common = reduce(fraction_gcd, {abs(v) for v in (*scales, *others) if v})
    known = all(view.low is not None for view in streams.values())
    most = _MOST if known else _MOST_OF_SUMS
    greatest = max(max(map(abs, scales)) / common, max(map(abs, others), default=0) / common / (1 << 16))
    if greatest >= most:
        raise refuse(
            node, "common-scale",
            f"scales and constants must be multiples of one number, at most {most} times as great, not "
            f"{float(greatest):.3g} times",
            "choose scales and constants that are multiples of a power of two, or quantize the operands alike before",
        )
    result: list[Multiples] = []
    for place, operand in enumerate(operands):
        if place in streams:
            view = streams[place]
            result.append(multiples(state, node, view, _whole(view.scale, common), _whole(offsets[place], common)))
        else:
            constant = _whole(operand, common)
            result.append(int(constant.reshape(-1)[0]) if (constant == constant.reshape(-1)[0]).all() else constant)
    return result, fractions(common)


def _whole(values: Fractions | Reals, unit: Fraction) -> IntArray:
    assert isinstance(values, np.ndarray)
    return np.array([int(v / unit) for v in values.reshape(-1)], dtype=np.int64).reshape(values.shape)


def multiples(state: Lowering, node: OnnxNode, view: Reals, factors: IntArray, offsets: IntArray) -> Integers:
    """``factors * integers - offsets`` of a view without functions; both broadcast over its frame."""
    result = Integers(view.value, view.shape, 0, 0)
    factor = int(factors.reshape(-1)[0])
    if (factors != factor).any():
        result = _scaled(state, node, result, factors, view.nodes)
    elif factor != 1:
        result = step(state, node, Times(factor), [result], before=view.nodes, origin="")
    if offsets.any():
        constant = int(offsets.reshape(-1)[0]) if (offsets == offsets.reshape(-1)[0]).all() else offsets
        result = step(state, node, Simple("sub"), [result, constant], before=view.nodes, origin="")
    return result


def _scaled(
    state: Lowering, node: OnnxNode, view: Integers, factors: IntArray, before: tuple[str, ...]
) -> Integers:
    """Each element times a factor of its own; of one a channel, by a convolution of one tap a channel, which needs no
    table of a whole frame."""
    whole = factors.reshape((1,) * (len(view.shape) - factors.ndim) + factors.shape)
    channels, pixels = view.shape[0], prod(view.shape[1:])
    if pixels == 1 or varying_axes(as_array(whole.astype(object))) != {0}:
        return step(state, node, Multiplied(), [view, np.broadcast_to(whole, view.shape)], before=before, origin="")
    value = state.add("reshape", node, [view.value], {"shape": (channels, pixels, 1)}, origin="")
    attributes = {
        "weights": whole.reshape(channels, 1, 1, 1), "groups": channels, "strides": (1, 1), "pads": (0, 0, 0, 0),
        "dilations": (1, 1), "pad_value": 0,
    }
    value = state.add("conv2d", node, [value], attributes, before, origin="")
    value = state.add("reshape", node, [value], {"shape": view.shape}, origin="")
    return Integers(value, view.shape, 0, 0)


def step(
    state: Lowering, node: OnnxNode, function: Function, operands: Sequence[Multiples], *,
    before: tuple[str, ...] = (), origin: str | None = None,
) -> Integers:
    """An exact function of operands whose shapes broadcast."""
    views = [v for v in operands if isinstance(v, Integers)]
    tensors = [v.shape for v in operands if isinstance(v, np.ndarray)]
    shape = np.broadcast_shapes(*((1, *v.shape) for v in views), *tensors)[1:]
    if origin is None:
        shape = state.frame_shape(node.outputs[0])
    streams = [integers.expanded(state, node, v, shape) for v in views]
    constants = tuple(None if isinstance(v, Integers) else integers.of_frame(v, shape) for v in operands)
    attributes = {"function": function, "constants": constants, "wrap": None}
    value = state.add("elementwise", node, [v.value for v in streams], attributes, before, origin=origin)
    return Integers(value, shape, 0, 1)
