"""Align reals of several scales and zero points: as integer multiples of a common divisor they keep their order."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from math import floor, prod

import numpy as np

from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.views import Integers, Reals, as_array, fraction_gcd, fractions, varying_axes
from hwflow.ir.graph import Fractions, IntArray
from hwflow.ir.integer_functions import Function, Multiplied, Simple, Times
from hwflow.ir.node_attributes import Conv2dAttributes, ElementwiseAttributes, ReshapeAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.lattice import plain

SHORT = 1 << 16
"""Larger multiples are longer than ranks (:mod:`hwflow.operators.elementwise.ranks`)."""

_MOST = 1 << 44  # keeps multiples of 16-bit operands within 62 bits
_MOST_OF_SUMS = 1 << 32  # the same for sums of 28 bits

Multiples = integers.Operand


def aligned(
    state: Lowering, node: OnnxNode, operands: Sequence[Reals | Fractions]
) -> tuple[list[Multiples], Fractions]:
    """Return the operands (streams, or constants that broadcast with them) as multiples of their greatest common
    divisor, and that divisor. Refuse the node where a multiple would be too large."""
    operands = [plain(state, node, v) if isinstance(v, Reals) else v for v in operands]
    unit, greatest = in_common(operands)
    known = all(view.low is not None for view in operands if isinstance(view, Reals))
    most = _MOST if known else _MOST_OF_SUMS
    if greatest >= most:
        raise refuse(
            node, "common-scale",
            f"operand scales and constants must have a usable common divisor, not none (ratio {float(greatest):.3g}, "
            f"limit {most})",
            "choose multiples of a power of two as scales and constants, or quantize the operands with one scale first",
        )
    result: list[Multiples] = []
    for operand in operands:
        if isinstance(operand, Reals):
            result.append(multiples(state, node, operand, _whole(operand.scale, unit), _whole(_offset(operand), unit)))
        else:
            constant = _whole(operand, unit)
            result.append(int(constant.reshape(-1)[0]) if (constant == constant.reshape(-1)[0]).all() else constant)
    return result, fractions(unit)


def in_order(state: Lowering, node: OnnxNode, view: Reals) -> Integers:
    """Return integers in the order of all elements of ``view``, which has no functions; zero points may be fractions.

    In units of the scales' greatest common divisor an element is an integer plus a fraction that depends on its place
    only. Elements are ordered by the integer, then by the fraction: the integer times the number of distinct
    fractions, plus the fraction's rank among them, has that order. (A bias is rarely a multiple of the sums' scale,
    which was rounded to a float.)
    """
    unit = reduce(fraction_gcd, {abs(v) for v in view.scale.reshape(-1)}, Fraction(0)) or Fraction(1)
    added = as_array(-_offset(view) / unit)
    floors = np.array([floor(v) for v in added.reshape(-1)], dtype=object)
    rests = [v - low for v, low in zip(added.reshape(-1), floors, strict=True)]
    place = {rest: rank for rank, rest in enumerate(sorted(set(rests)))}
    keys = [low * len(place) + place[rest] for low, rest in zip(floors, rests, strict=True)]
    factors = [int(v / unit) * len(place) for v in view.scale.reshape(-1)]
    most = _MOST if view.low is not None else _MOST_OF_SUMS
    if max(map(abs, factors)) >= most or max(map(abs, keys)) >= 1 << 60:
        raise refuse(
            node, "common-scale",
            f"operand scales must have a usable common divisor, not none (ratio {float(max(map(abs, factors))):.3g}, "
            f"limit {most})",
            "choose multiples of a power of two as scales, or quantize all elements with one scale first",
        )
    offsets = -np.array(keys, dtype=np.int64).reshape(added.shape)
    return multiples(state, node, view, np.array(factors, dtype=np.int64).reshape(view.scale.shape), offsets)


def in_common(operands: Sequence[Reals | Fractions]) -> tuple[Fraction, Fraction]:
    """Return the greatest common divisor of scales, zero points and constants (of views without functions), and the
    ratio to it of the greatest scale, or of 2**-16 of the greatest of the others, to which elements are added."""
    views = [v for v in operands if isinstance(v, Reals)]
    scales = [abs(v) for view in views for v in view.scale.reshape(-1) if v]
    others = [v for view in views for v in _offset(view).reshape(-1)]
    others += [v for constant in operands if not isinstance(constant, Reals) for v in constant.reshape(-1)]
    unit = reduce(fraction_gcd, {abs(v) for v in (*scales, *others) if v}, Fraction(0)) or Fraction(1)
    return unit, max([Fraction(0), *scales, *(abs(v) / (1 << 16) for v in others)]) / unit


def _offset(view: Reals) -> Fractions:
    return as_array(view.scale * view.zero_point)


def _whole(values: Fractions, unit: Fraction) -> IntArray:
    return np.array([int(v / unit) for v in values.reshape(-1)], dtype=np.int64).reshape(values.shape)


def multiples(state: Lowering, node: OnnxNode, view: Reals, factors: IntArray, offsets: IntArray) -> Integers:
    """Compute ``factors * integers - offsets`` of a view without functions; both broadcast over its frame."""
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
    """Multiply each element by its factor; factors per channel become a depthwise convolution of one tap, which needs
    no table of a whole frame."""
    whole = factors.reshape((1,) * (len(view.shape) - factors.ndim) + factors.shape)
    channels, pixels = view.shape[0], prod(view.shape[1:])
    if pixels == 1 or varying_axes(as_array(whole.astype(object))) != {0}:
        return step(state, node, Multiplied(), [view, np.broadcast_to(whole, view.shape)], before=before, origin="")
    value = state.add(node, [view.value], ReshapeAttributes((channels, pixels, 1)), origin="")
    attributes = Conv2dAttributes(
        whole.reshape(channels, 1, 1, 1), strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), pad_value=0,
        groups=channels,
    )
    value = state.add(node, [value], attributes, before, origin="")
    value = state.add(node, [value], ReshapeAttributes(view.shape), origin="")
    return Integers(value, view.shape, 0, 0)


def step(
    state: Lowering, node: OnnxNode, function: Function, operands: Sequence[Multiples], *,
    before: tuple[str, ...] = (), origin: str | None = None,
) -> Integers:
    """Add a node for an exact function of operands whose shapes broadcast."""
    views = [v for v in operands if isinstance(v, Integers)]
    tensors = [v.shape for v in operands if isinstance(v, np.ndarray)]
    shape = np.broadcast_shapes(*((1, *v.shape) for v in views), *tensors)[1:]
    if origin is None:
        shape = state.frame_shape(node.outputs[0])
    streams = [integers.expanded(state, node, v, shape) for v in views]
    constants = tuple(None if isinstance(v, Integers) else integers.of_frame(v, shape) for v in operands)
    attributes = ElementwiseAttributes(function, constants, None)
    value = state.add(node, [v.value for v in streams], attributes, before, origin=origin)
    return Integers(value, shape, 0, 1)
