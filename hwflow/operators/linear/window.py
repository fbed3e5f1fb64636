"""Kernel, strides, pads and dilations of windows (ONNX operators Conv 11 and MaxPool 12: auto_pad, ceil_mode)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, prod
from typing import Any

from hwflow.frontend.context import refuse
from hwflow.onnxspec.resolving.resolved_model import OnnxNode

MAX_TAPS = 1 << 16
"""Of one window: 256 x 256 pixels, each of which is a multiplication or a comparison."""


AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
"""The values of auto_pad."""


def window_attributes(
    node: OnnxNode, image: Sequence[int], kernel: Sequence[int], inferred: Sequence[int]
) -> dict[str, Any]:
    """kernel, strides, pads (of all axes before the image, then of all behind it) and dilations of a window over
    ``image``, which has any number of axes.

    Attributes have one element a spatial axis, none of them negative: shape inference refuses a node otherwise.
    ``inferred`` is the output's size by shape inference, which must be what the specification says (onnx counts too
    many windows where ceil_mode meets auto_pad VALID, and windows that start behind the image).
    """
    axes = len(kernel)
    require_kernel(node, kernel)
    if prod(kernel) > MAX_TAPS:
        raise refuse(
            node, "window-size", f"a window must have at most {MAX_TAPS} taps, not {prod(kernel)} {list(kernel)}",
            "use a smaller kernel",
        )
    strides = integers_of(node, "strides") or (1,) * axes
    dilations = integers_of(node, "dilations") or (1,) * axes
    spans = [(kernel[axis] - 1) * dilations[axis] + 1 for axis in range(axes)]
    pads = tuple(_pads(node, image, spans, strides))
    output = [(image[a] + pads[a] + pads[a + axes] - spans[a]) // strides[a] + 1 for a in range(axes)]
    if output != list(inferred):
        counted, found = (" x ".join(map(str, sizes)) for sizes in (output, inferred))
        raise refuse(
            node, "window-count", f"there must be {counted} windows, not {found} "
            "as onnx's shape inference has it", "set ceil_mode to 0 and give the pads explicitly",
        )
    return {"kernel": tuple(kernel), "strides": strides, "pads": pads, "dilations": dilations}


def require_kernel(node: OnnxNode, kernel: Sequence[int]) -> None:
    """Refuse a kernel_shape that is not the one of the weights."""
    named = integers_of(node, "kernel_shape") or kernel
    if tuple(named) != tuple(kernel):
        raise refuse(
            node, "window-kernel", f"kernel_shape must be that of the weights {list(kernel)}, not {list(named)}",
            "correct the attribute or leave it out",
        )


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
        pads = list(integers_of(node, "pads")) or pads
        if node.attributes.get("ceil_mode", 0):  # with auto_pad the number of windows is given
            for axis in range(axes):
                room = image[axis] + pads[axis] + pads[axis + axes] - spans[axis]
                windows = -(-room // strides[axis]) + 1
                if (windows - 1) * strides[axis] >= image[axis] + pads[axis]:
                    windows -= 1  # the last window would start in the padding at the end
                pads[axis + axes] += max(0, (windows - 1) * strides[axis] - room)
    return pads


def holds_padding_only(image: Sequence[int], attributes: Mapping[str, Any]) -> bool:
    """Whether at some position no tap of the window touches the image."""
    for axis in range(len(image)):
        kernel, stride, dilation = (attributes[name][axis] for name in ("kernel", "strides", "dilations"))
        before, after = attributes["pads"][axis], attributes["pads"][axis + len(image)]
        span = (kernel - 1) * dilation + 1
        starts = range(-before, image[axis] + after - span + 1, stride)
        if not starts:
            continue
        if before >= span or starts[-1] >= image[axis]:
            return True
        # A window that starts before the image and reaches it has its first tap there at start modulo dilation; it may
        # lie behind the image. These places repeat.
        if dilation > image[axis]:
            ahead = len(range(-before, min(0, starts.stop), stride))
            few = starts[: min(ahead, dilation // gcd(dilation, stride))]
            if any(start % dilation >= image[axis] for start in few):
                return True
    return False


def integers_of(node: OnnxNode, name: str) -> tuple[int, ...]:
    """A list attribute; empty if absent."""
    given = node.attributes.get(name, ())
    assert isinstance(given, tuple)
    return tuple(int(v) for v in given)
