"""Kernel, strides, pads and dilations of Conv and MaxPool nodes (ONNX operators Conv 11, MaxPool 12: auto_pad, ceil_mode)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hwflow.frontend.context import refuse
from hwflow.onnxspec.model import OnnxNode


def window_attributes(node: OnnxNode, image: Sequence[int], kernel: Sequence[int]) -> dict[str, Any]:
    """kernel, strides, pads (top, left, bottom, right) and dilations of a two-dimensional window over ``image``."""
    strides = _pair(node, "strides")
    dilations = _pair(node, "dilations")
    kernel = (int(kernel[0]), int(kernel[1]))
    auto_pad = node.attributes.get("auto_pad", "NOTSET")
    pads: list[int] = [0, 0, 0, 0]
    if auto_pad in ("NOTSET", ""):
        given = node.attributes.get("pads", ())
        pads = [int(p) for p in given] if isinstance(given, tuple) and given else pads  # type: ignore[arg-type]
        if min(pads) < 0:
            raise refuse(node, "window-pads", f"pads must not be negative, not {pads}", "crop the image with a Slice instead")
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        for axis in range(2):
            span = (kernel[axis] - 1) * dilations[axis] + 1
            total = max(0, (-(-image[axis] // strides[axis]) - 1) * strides[axis] + span - image[axis])
            small, large = total // 2, total - total // 2
            pads[axis], pads[axis + 2] = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    if node.attributes.get("ceil_mode", 0):
        for axis in range(2):
            span = (kernel[axis] - 1) * dilations[axis] + 1
            room = image[axis] + pads[axis] + pads[axis + 2] - span
            windows = -(-room // strides[axis]) + 1
            if (windows - 1) * strides[axis] >= image[axis] + pads[axis]:
                windows -= 1  # the last window would start in the padding at the end
            pads[axis + 2] += max(0, (windows - 1) * strides[axis] - room)
    return {"kernel": kernel, "strides": strides, "pads": tuple(pads), "dilations": dilations}


def _pair(node: OnnxNode, name: str) -> tuple[int, int]:
    given = node.attributes.get(name, ())
    values = tuple(int(v) for v in given) if isinstance(given, tuple) else ()  # type: ignore[arg-type]
    return (values[0], values[1]) if len(values) == 2 else (1, 1)
