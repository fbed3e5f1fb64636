"""The axis along which parameters of an operator vary; where it is several, a shape in which these are one."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.frontend.context import Lowering
from hwflow.frontend.views import varying_axes
from hwflow.ir.graph import Meaning, Value
from hwflow.onnxspec.resolving.resolved_model import OnnxNode


class Channels:
    """The axis of a frame of ``shape`` along which ``parameters`` (object arrays that broadcast over it) vary.

    Hardware has parameters along one axis. The axes from the first to the last one that varies become one, whose index
    tells theirs: a reshape, which moves nothing. ``count``: how many different places there are, 1 where nothing
    varies.
    """

    def __init__(self, shape: tuple[int, ...], *parameters: npt.NDArray[Any]) -> None:
        rank = len(shape)
        axes = varying_axes(*(v.reshape((1,) * (rank - v.ndim) + v.shape) for v in parameters))
        first, last = min(axes, default=0), max(axes, default=0)
        self.shape, self.axis = shape, first
        self._merged = (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :])
        self.count = self._merged[first] if axes else 1

    def column(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One of the parameters as ``count`` values."""
        if values.size == 1:
            flat = values.reshape(-1)
            return flat if self.count == 1 else np.broadcast_to(flat, (self.count,))
        whole = np.broadcast_to(values, self.shape).reshape(self._merged)
        return np.moveaxis(whole, self.axis, 0).reshape(self.count, -1)[:, 0]

    def add(
        self, state: Lowering, op: str, node: OnnxNode, inputs: list[Value], attributes: Mapping[str, Any],
        before: tuple[str, ...] = (), *, origin: str | None = None, meaning: Meaning | None = None,
    ) -> Value:
        """A new IR node, as :meth:`Lowering.add` makes it, with parameters along the attribute ``axis``."""
        attributes = {"axis": self.axis, **attributes}
        if self._merged == self.shape:
            return state.add(op, node, inputs, attributes, before, origin=origin, meaning=meaning)
        inputs = [state.add("reshape", node, [value], {"shape": self._merged}, origin="") for value in inputs]
        result = state.add(op, node, inputs, attributes, before, origin="")
        return state.add("reshape", node, [result], {"shape": self.shape}, origin=origin, meaning=meaning)
