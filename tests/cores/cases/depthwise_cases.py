"""Cases of depthwise convolutions."""

from __future__ import annotations

import numpy as np

from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.operator import Folding
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, IntType, TensorType
from tests.cores.harness import Case

I4, I8, U1, U4, U8 = IntType(4, True), IntType(8, True), IntType(1, False), IntType(4, False), IntType(8, False)
I20 = IntType(20, True)


def _corners(node: Node) -> IntArray:
    """Two images: in the first window's place each element at the end of its interval at which its product is least,
    then greatest."""
    source, weights, window = node.inputs[0].typed, node.attributes.weights, node.attributes.geometry
    low, high = (np.array([getattr(r, end) for r in source.channel_intervals(1)]) for end in ("lo", "hi"))
    images = np.broadcast_to(low, (2, window.height, window.width, source.shape[1])).copy()
    places = [(y * window.dilations[0], x * window.dilations[1]) for y in range(window.kernel[0])
              for x in range(window.kernel[1])]
    for (y, x), row in zip(places, weights, strict=True):
        images[0, y, x], images[1, y, x] = np.where(row < 0, high, low), np.where(row < 0, low, high)
    return images.reshape(2, *source.shape)


def _case(
    name: str, size: tuple[int, int], kernel: tuple[int, int], channels: int, lanes: tuple[int, ...], *,
    stride: tuple[int, int] = (1, 1), pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1), element: IntType = I8, weight: IntType = I8, pad_value: int = 0,
    kinds: tuple[str, ...] = ("dsp", "lut"), part: int = 0, intervals: tuple[Interval, ...] = (),
) -> Case:
    window = WindowGeometry(*size, kernel, stride, pads, dilation)
    weights = np.random.default_rng(channels).integers(
        weight.min, weight.max, (window.taps, channels), endpoint=True
    )
    source = TensorType((size[0] * size[1], channels), element, element.interval)
    if intervals:
        source = TensorType.of(source.shape, intervals, 1)
    taps = dict.fromkeys((1, kernel[1]))
    foldings = tuple(
        Folding(n, n, n * t, kind, part if kind == "dsp" else 0) for n in lanes for t in taps for kind in kinds
    )
    attributes = {"geometry": window, "pad_value": pad_value, "weights": weights}
    return Case(name, "depthwise", attributes, source, foldings, None if any(pads) else _corners)


DEPTHWISE = [
    _case("3x3", (5, 6), (3, 3), 4, (1,), pads=(1, 1, 1, 1), pad_value=-3),
    _case("3x3_strided", (6, 7), (3, 3), 5, (3,), stride=(2, 2), pads=(0, 0, 1, 1), kinds=("dsp",)),
    _case("2x3_dilated", (6, 8), (2, 3), 2, (2,), dilation=(3, 2), pads=(1, 2, 0, 3), kinds=("lut",), element=U4),
    _case("1x4", (1, 9), (1, 4), 3, (2,), pads=(0, 3, 0, 0), kinds=("dsp",), stride=(1, 2)),
    _case("4x1", (7, 1), (4, 1), 3, (1,), pads=(1, 0, 2, 0), kinds=("dsp",)),
    _case("1x1_strided", (4, 4), (1, 1), 4, (3,), stride=(2, 2), kinds=("dsp",)),
    _case("far_pads", (3, 2), (2, 2), 2, (1,), pads=(3, 2, 2, 4), pad_value=7, element=U4, kinds=("lut",)),
    _case("pad_outside", (3, 3), (2, 2), 3, (2,), pads=(1, 1, 0, 0), pad_value=-200, kinds=("dsp",)),
    _case("whole", (3, 4), (3, 4), 2, (1,), kinds=("dsp",), element=U8),
    _case("bits", (4, 4), (3, 3), 4, (2,), pads=(1, 1, 1, 1), element=U1, kinds=("lut",)),
    _case("wide", (3, 4), (2, 2), 3, (2,), element=I20, weight=IntType(18, True), part=17, kinds=("dsp",)),
    _case("many", (3, 3), (3, 3), 40, (5,), pads=(1, 1, 1, 1), kinds=("dsp",)),
    _case("deep", (3, 4), (3, 3), 64, (4,)),
    _case("by_pixel", (4, 8), (3, 3), 96, (8,), pads=(1, 1, 1, 1), pad_value=-3, kinds=("dsp",)),
    _case("by_pixel_strided", (5, 9), (3, 3), 80, (16,), stride=(2, 2), pads=(0, 0, 1, 1), kinds=("dsp",)),
    _case("by_pixel_dilated", (6, 8), (2, 3), 144, (24,), dilation=(3, 2), pads=(1, 2, 0, 3), kinds=("lut",),
          element=U4, weight=I4),
    _case("in_parts", (3, 130), (2, 1), 32, (1,), element=IntType(9, True), kinds=("dsp",)),  # 4,256 words: 3 parts
    _case("intervals", (4, 4), (2, 2), 2, (2,), intervals=(Interval(-3, 5), Interval(0, 100)), kinds=("dsp",)),
]
