"""Find the axis along which parameters of an operator vary, merging several axes into one."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.frontend.context import Lowering
from hwflow.frontend.views import varying_axes
from hwflow.ir.graph import Attributes, Meaning, Value
from hwflow.ir.node_attributes import ReshapeAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode


class Channels:
    """The single axis along which ``parameters`` (object arrays that broadcast over a frame of ``shape``) vary.

    Hardware has parameters along one axis. The axes from the first to the last one that varies are merged by a reshape,
    which moves nothing. ``count``: the size of the merged axis, 1 where nothing varies.
    """

    def __init__(self, shape: tuple[int, ...], *parameters: npt.NDArray[Any]) -> None:
        rank = len(shape)
        axes = varying_axes(*(v.reshape((1,) * (rank - v.ndim) + v.shape) for v in parameters))
        first, last = min(axes, default=0), max(axes, default=0)
        self.shape, self.axis = shape, first
        self._merged = (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :])
        self.count = self._merged[first] if axes else 1

    def column(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return one of the parameters as ``count`` values."""
        if values.size == 1:
            flat = values.reshape(-1)
            return flat if self.count == 1 else np.broadcast_to(flat, (self.count,))
        whole = np.broadcast_to(values, self.shape).reshape(self._merged)
        return np.moveaxis(whole, self.axis, 0).reshape(self.count, -1)[:, 0]

    def add(
        self, state: Lowering, node: OnnxNode, inputs: list[Value], attributes: Callable[[int], Attributes],
        before: tuple[str, ...] = (), *, origin: str | None = None, meaning: Meaning | None = None,
    ) -> Value:
        """Add an IR node, as :meth:`Lowering.add` does; ``attributes``: those with parameters along an axis."""
        made = attributes(self.axis)
        if self._merged == self.shape:
            return state.add(node, inputs, made, before, origin=origin, meaning=meaning)
        inputs = [state.add(node, [value], ReshapeAttributes(self._merged), origin="") for value in inputs]
        result = state.add(node, inputs, made, before, origin="")
        return state.add(node, [result], ReshapeAttributes(self.shape), origin=origin, meaning=meaning)
