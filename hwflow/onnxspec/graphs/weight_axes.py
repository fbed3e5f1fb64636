"""The weights operand of linear operators, and its output axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Weights:
    """Operand ``index`` of a node, with one output per index of ``axis``; None: a single output."""

    index: int
    axis: int | None


WeightRule: TypeAlias = Callable[[int, tuple[int, ...], Mapping[str, Any]], Weights | None]
"""Returns the weights from the constant operand's index (0 or 1), its shape and the node's integer attributes; None if
that operand cannot be weights."""


def convolution(index: int, dims: tuple[int, ...], attributes: Mapping[str, Any]) -> Weights | None:
    """Return the axes of weights [outputs, inputs of a group, ...]."""
    return Weights(index, 0) if index else None


def transposed_convolution(index: int, dims: tuple[int, ...], attributes: Mapping[str, Any]) -> Weights | None:
    """Return the axes of weights [inputs, outputs of a group, ...]: with several groups, outputs at the same position
    share an index, unless each group has one input."""
    groups = attributes.get("group", 1)
    return Weights(index, 0 if groups > 1 and groups == dims[0] else 1) if index else None


def gemm(index: int, dims: tuple[int, ...], attributes: Mapping[str, Any]) -> Weights | None:
    """Return the axes of a matrix, transposed or not."""
    turned = bool(attributes.get("transA" if index == 0 else "transB", 0))
    return Weights(index, int(turned) if index == 0 else 1 - int(turned))


def matmul(index: int, dims: tuple[int, ...], attributes: Mapping[str, Any]) -> Weights | None:
    """Return the axes of a vector, or of matrices."""
    if len(dims) < 2:
        return Weights(index, None)
    return Weights(index, len(dims) - (2 if index == 0 else 1))
