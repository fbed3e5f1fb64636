"""Decide which operators process frames independently, so that the reference evaluator may run all frames at once.

A rule is called for a node that reads values with frames along the first axis. The operator's record names it;
elementwise operators, all of whose operands may have frames, need none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias

import onnx
from onnx import numpy_helper


@dataclass(frozen=True)
class FramedNode:
    """A node whose inputs in ``framed`` have frames. ``constant``: returns a tensor by name, None if it is not
    constant."""

    node: onnx.NodeProto
    attributes: Mapping[str, Any]
    framed: AbstractSet[str]
    constant: Callable[[str], onnx.TensorProto | None]

    def integers(self, attribute: str) -> list[int]:
        """Return input 1 as integers, or ``attribute`` in earlier operator sets; empty if it is no constant."""
        if len(self.node.input) < 2 or not self.node.input[1]:
            return [int(v) for v in self.attributes.get(attribute, ())]
        tensor = self.constant(self.node.input[1])
        return [] if tensor is None else [int(v) for v in numpy_helper.to_array(tensor).reshape(-1)]


FrameRule: TypeAlias = Callable[[FramedNode], bool]


def always(node: FramedNode) -> bool:
    """Accept: the first axis is a batch by definition."""
    return True


def data(*places: int) -> FrameRule:
    """Return the rule of inputs at ``places`` that all have frames first; other inputs are parameters of all frames."""

    def rule(node: FramedNode) -> bool:
        return not any(name in node.framed for place, name in enumerate(node.node.input) if place not in places)

    return rule


_FIRST = data(0)


def rows(node: FramedNode) -> bool:
    """Accept frames as rows of the first matrix."""
    return not node.attributes.get("transA", 0) and _FIRST(node)


def quantizer(node: FramedNode) -> bool:
    """Accept scales and zero points along any axis but that of frames."""
    return node.attributes.get("axis", 1) != 0 and _FIRST(node)


def flattened(node: FramedNode) -> bool:
    """Accept a Flatten that keeps the frame axis."""
    return bool(node.attributes.get("axis", 1) == 1)


def transposed(node: FramedNode) -> bool:
    """Accept a Transpose that keeps the frame axis first."""
    return bool(node.attributes.get("perm", [1])[0] == 0)


def inner_axes(node: FramedNode) -> bool:
    """Accept explicit axes, counted from the front, without that of frames."""
    axes = node.integers("axes")
    return bool(axes) and all(axis > 0 for axis in axes)


def inner_axis(node: FramedNode) -> bool:
    """Accept an explicit axis other than that of frames (for a softmax before operator set 13: all from that one
    on)."""
    return int(node.attributes.get("axis", 0)) > 0


def reshaped(node: FramedNode) -> bool:
    """Accept a Reshape to any number of frames."""
    target = node.integers("shape")
    return target[:1] == [-1] or (target[:1] == [0] and not node.attributes.get("allowzero", 0))


def resized(node: FramedNode) -> bool:
    """Accept scales that keep the frame axis, and sizes of other axes."""
    sized = len(node.node.input) > 3 and node.node.input[3] != ""
    axes = node.attributes.get("axes", [0])
    return _FIRST(node) and (not sized or all(axis > 0 for axis in axes))
