"""Kernel, strides, pads and dilations of windows (ONNX operators Conv 11 and MaxPool 12: auto_pad, ceil_mode)."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from hwflow.frontend.context import refuse
from hwflow.ir.node_attributes import Window
from hwflow.onnxspec.resolving.resolved_model import OnnxNode

MAX_TAPS = 1 << 16
"""The largest window: 256 x 256 pixels, each a multiplication or a comparison."""


AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
"""The values of auto_pad."""


def window_of(
    node: OnnxNode, image: Sequence[int], kernel: Sequence[int], inferred: Sequence[int]
) -> Window:
    """Return the window over ``image``, which has any number of axes.

    Attributes have one element per spatial axis, none negative: shape inference refuses others. ``inferred``: the
    output's size by shape inference, which must agree with the specification (onnx counts too many windows where
    ceil_mode meets auto_pad VALID, and windows that start after the image).
    """
    axes = len(kernel)
    if prod(kernel) > MAX_TAPS:
        raise refuse(
            node, "window-size", f"a window must have at most {MAX_TAPS} taps, not {prod(kernel)} {list(kernel)}",
            "use a smaller kernel",
        )
    strides = node.integers("strides") or (1,) * axes
    dilations = node.integers("dilations") or (1,) * axes
    spans = [(kernel[axis] - 1) * dilations[axis] + 1 for axis in range(axes)]
    pads = tuple(_pads(node, image, spans, strides))
    output = [(image[a] + pads[a] + pads[a + axes] - spans[a]) // strides[a] + 1 for a in range(axes)]
    if output != list(inferred):
        counted, found = (" x ".join(map(str, sizes)) for sizes in (output, inferred))
        raise refuse(
            node, "window-count", f"there must be {counted} windows, not {found} "
            "as by onnx's shape inference", "set ceil_mode to 0 and give the pads explicitly",
        )
    return Window(tuple(kernel), strides, pads, dilations)


def _pads(node: OnnxNode, image: Sequence[int], spans: Sequence[int], strides: Sequence[int]) -> list[int]:
    auto_pad = node.attributes.get("auto_pad", "NOTSET")
    axes = len(image)
    pads = [0] * (2 * axes)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        for axis in range(axes):
            total = max(0, (-(-image[axis] // strides[axis]) - 1) * strides[axis] + spans[axis] - image[axis])
            small, large = total // 2, total - total // 2
            pads[axis], pads[axis + axes] = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    elif auto_pad == "NOTSET":
        pads = list(node.integers("pads")) or pads
        if node.attributes.get("ceil_mode", 0):  # auto_pad determines the number of windows
            for axis in range(axes):
                room = image[axis] + pads[axis] + pads[axis + axes] - spans[axis]
                windows = -(-room // strides[axis]) + 1
                if (windows - 1) * strides[axis] >= image[axis] + pads[axis]:
                    windows -= 1  # the last window would start in the trailing padding
                pads[axis + axes] += max(0, (windows - 1) * strides[axis] - room)
    return pads


def holds_padding_only(image: Sequence[int], window: Window) -> bool:
    """Tell whether some window covers padding only."""
    for axis in range(len(image)):
        kernel, stride, dilation = (each[axis] for each in (window.kernel, window.strides, window.dilations))
        before, after = window.pads[axis], window.pads[axis + len(image)]
        span = (kernel - 1) * dilation + 1
        starts = range(-before, image[axis] + after - span + 1, stride)
        if not starts:
            continue
        if before >= span or starts[-1] >= image[axis]:
            return True
        # The first tap of a window that starts before the image reaches it at start modulo dilation, which may lie
        # after the image. These offsets repeat.
        if dilation > image[axis]:
            ahead = len(range(-before, min(0, starts.stop), stride))
            few = starts[: min(ahead, dilation // gcd(dilation, stride))]
            if any(start % dilation >= image[axis] for start in few):
                return True
    return False
