"""Rows: the elements of a frame along some axes, over which sums and maxima go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.error_bounds import Bound, added
from hwflow.frontend.views import Integers, Reals, as_array, fractions, uniform, varying_axes
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import ElementwiseAttributes, ScaledAddAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.ranks import alike
from hwflow.operators.linear import spatial
from hwflow.operators.linear.pools import whole
from hwflow.operators.linear.reductions import as_image
from hwflow.operators.moves.reshapes import reshaped
from hwflow.operators.norms.approximations import operand
from hwflow.types import Interval, IntType


def frame_axes(node: OnnxNode, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return axes of the whole shape, of ``rank``, as axes of a frame."""
    found = sorted({axis % rank for axis in axes})
    if found[:1] == [0]:
        raise refuse(
            node, "frame-axis", f"axes must not include the frame axis 0, not be {list(axes)}", "reduce within a frame"
        )
    return tuple(axis - 1 for axis in found)


class Rows:
    """Rows along ``axes`` of frames of ``shape``, for the work of ``node``."""

    def __init__(self, state: Lowering, node: OnnxNode, shape: tuple[int, ...], axes: Sequence[int]) -> None:
        self.state, self.node, self.shape, self.axes = state, node, shape, tuple(axes)
        self.count = prod(shape[axis] for axis in axes)
        self._kept = [axis for axis in range(len(shape)) if axis not in axes]
        self._one_each = tuple(1 if axis in axes else size for axis, size in enumerate(shape))

    def prepared(self, view: Reals) -> Reals:
        """Return ``view`` without functions, with one scale and zero point along each row."""
        view = operand(self.state, self.node, view)
        rank = len(self.shape)
        parameters = (v.reshape((1,) * (rank - v.ndim) + v.shape) for v in (view.scale, view.zero_point))
        if varying_axes(*parameters).isdisjoint(self.axes):
            return view
        found = alike(self.state, self.node, view)
        return operand(self.state, self.node, found)

    def require_alike(self, view: Reals) -> None:
        """Refuse the node where scales or zero points vary along rows."""
        rank = len(self.shape)
        parameters = (v.reshape((1,) * (rank - v.ndim) + v.shape) for v in (view.scale, view.zero_point))
        if not varying_axes(*parameters).isdisjoint(self.axes):
            raise refuse(
                self.node, "scale-range", "masked elements must have one scale along each row, not several",
                "quantize them per tensor before the mask",
            )

    def total(self, view: Reals) -> Reals:
        """Return the sum of each row, one element for each, of integers that are sums."""
        image = as_image(self.state, self.node, view, self._kept, list(self.axes))
        value = spatial.sum_pool(
            self.state, self.node, image.value, image.shape, whole(image.shape), view.nodes, origin="", pad_value=0
        )
        sums = replace(image, value=value, shape=(image.shape[0], 1, 1), nodes=(), low=None, high=None)
        sums = reshaped(self.state, self.node, sums, self._one_each)
        return replace(sums, zero_point=as_array(sums.zero_point * self.count))

    def extreme(self, view: Reals, *, least: bool = False) -> Reals:
        """Return each row's maximum, or minimum, by the integers."""
        image = as_image(self.state, self.node, view, self._kept, list(self.axes))
        value = spatial.max_pool(
            self.state, self.node, image.value, image.shape, whole(image.shape), least=least, origin=""
        )
        found = replace(image, value=value, shape=(image.shape[0], 1, 1))
        return reshaped(self.state, self.node, found, self._one_each)

    def spread(self, view: Reals) -> Reals:
        """Repeat a result of each row for its elements."""
        stream = integers.expanded(self.state, self.node, Integers(view.value, view.shape, 0, 0), self.shape)
        return replace(view, value=stream.value, shape=self.shape)

    def centred(self, view: Reals) -> Reals:
        """Return each element less its row's mean: as many times the element as the row has, less the sum."""
        total = self.spread(self.total(view))
        attributes = ScaledAddAttributes(0, ((self.count,), (-1,)))
        value = self.state.add(self.node, [view.value, total.value], attributes, view.nodes, origin="")
        scale = as_array(view.scale / self.count)
        return replace(
            view, value=value, scale=scale, zero_point=fractions(0), nodes=(), low=None, high=None
        )


def same_sign(node: OnnxNode, view: Reals) -> int:
    """Return the sign of the scales; refuse the node where they have both."""
    signs = uniform(as_array(np.sign(view.scale.astype(np.float64)).astype(int).astype(object)))
    if signs not in (1, -1):
        message = "scales of the input must have one sign, not both or none"
        raise refuse(node, "scale-range", message, f"quantize it before {show(node.name)}")
    return int(signs)


def below_greatest(
    state: Lowering, node: OnnxNode, view: Reals, ends: Reals, places: tuple[int, ...]
) -> Reals:
    """Return the elements of ``view`` less the greatest of their rows along ``places``, which ``ends`` repeats:
    integers from 0 on, as far as the greatest is away, with a negative scale."""
    falling = same_sign(node, view) < 0
    bounds = [state.bound(v.value) for v in (view, ends)]
    bound = bounds[0].interval
    assert bound is not None, "only known ones have maxima"
    distance = IntType.holding(Interval(0, bound.hi - bound.lo))  # an unsigned type, which it fits
    operands = [view, ends] if falling else [ends, view]
    value = state.add(
        node, [v.value for v in operands], ElementwiseAttributes(Simple("sub"), (None, None), distance), view.nodes,
        origin="", bound=Bound(Interval(0, distance.max), added(*(b.errors for b in bounds))),
    )
    state.facts.zeros[value] = places
    return replace(
        view, value=value, scale=as_array(-abs(view.scale)), zero_point=fractions(0), nodes=(), low=0,
        high=distance.max,
    )
