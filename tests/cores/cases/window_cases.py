"""Cases of sliding windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hwflow.cores.logical.image_windows import Clipping, WindowGeometry
from hwflow.cores.operator import Folding
from hwflow.cores.registry import hardware
from hwflow.types import IntType
from tests.cores.cases.case_parts import I8, PART, U4, stream
from tests.cores.harness import Case


def _window(
    name: str,
    size: tuple[int, int],
    channels: int,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilations: tuple[int, int],
    lanes: tuple[int, ...],
    *,
    pad_value: int = 0,
    element: IntType = I8,
    rows: int | None = None,
    clipped: bool = False,
    centred: bool = False,
    again: tuple[int, int] = (1, 1),
    images: int = 1,
    stacked: int = 1,
) -> Case:
    """``again``: windows of a segment, and how often it is sent; ``images``: of a frame; ``stacked``: so many
    times the channels come."""
    attributes = {"geometry": WindowGeometry(*size, kernel, strides, pads, dilations), "pad_value": pad_value}
    if clipped:
        attributes["clipping"] = Clipping.CLIPPED
    if centred:
        attributes["centred"] = True
    attributes["segment"], attributes["times"] = again
    attributes["images"], attributes["stacked"] = images, stacked
    source = stream(images * size[0] * size[1], stacked * channels, element)
    return Case(name, "sliding_window", attributes, source, tuple(Folding(n, n) for n in lanes), rows=rows)


SLIDING_WINDOW = [
    _window("3x3", (5, 4), 3, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (1, 2, 3), pad_value=-5),
    _window("least_rows", (5, 4), 2, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (2,), rows=3),
    _window("stride_2", (6, 7), 2, (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), (1, 2)),
    _window("dilated", (7, 6), 1, (2, 3), (1, 2), (2, 0, 1, 3), (3, 2), (1,), element=U4, pad_value=3),
    _window("all_padding_above", (2, 3), 1, (1, 2), (1, 1), (2, 0, 2, 1), (1, 1), (1,)),
    _window("skips_rows", (7, 3), 2, (1, 1), (3, 2), (0, 0, 0, 0), (1, 1), (2,)),
    _window("single_pixel", (1, 1), 5, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), (2, 5)),
    # 4,800 words of a byte: three block RAMs.
    _window("in_parts", (3, 100), 16, (2, 1), (1, 1), (0, 0, 0, 0), (1, 1), (1,), rows=3),
    _window("pad_beyond_the_type", (3, 3), 1, (2, 2), (1, 1), (0, 0, 1, 1), (1, 1), (1,), element=U4, pad_value=-1),
]

SLIDING_WINDOW += [
    _window("clipped_3x3", (5, 4), 3, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (1, 3), clipped=True),
    _window("clipped_least_rows", (5, 4), 2, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (2,), rows=3, clipped=True),
    _window("clipped_stride_2", (6, 8), 4, (3, 3), (2, 2), (0, 0, 1, 1), (1, 1), (2,), element=U4, clipped=True),
    _window("clipped_dilated", (7, 6), 2, (2, 3), (1, 2), (2, 1, 1, 3), (2, 2), (1,), clipped=True),
    _window("centred", (4, 4), 2, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (1, 2), pad_value=-128, centred=True),
    _window("centred_unsigned", (5, 4), 3, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (3,), element=U4, pad_value=-16,
            centred=True),
    _window("clipped_centred", (4, 4), 2, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (1, 2), pad_value=-128, centred=True,
            clipped=True),
    _window("clipped_8x8", (12, 16), 1, (8, 8), (1, 1), (3, 3, 4, 4), (1, 1), (1,), clipped=True),
]

SLIDING_WINDOW += [
    _window("segments", (4, 6), 3, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (1, 2, 3), pad_value=-5, again=(2, 3)),
    _window("segments_of_a_row", (4, 4), 2, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (1, 2), rows=3, again=(4, 2)),
    _window("segments_of_one", (3, 4), 2, (2, 2), (1, 1), (0, 0, 1, 1), (1, 1), (2,), again=(1, 5)),
    _window("segments_stride_2", (6, 8), 2, (3, 3), (2, 2), (1, 1, 0, 0), (1, 1), (1, 2), again=(2, 4)),
    _window("segments_centred", (4, 4), 2, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (2,), pad_value=-128, centred=True,
            again=(2, 2)),
    _window("segments_dilated", (7, 6), 1, (2, 3), (1, 2), (2, 0, 1, 3), (3, 2), (1,), element=U4, again=(1, 3)),
]

SLIDING_WINDOW += [
    _window("images", (5, 1), 3, (3, 1), (1, 1), (1, 0, 1, 0), (1, 1), (1, 2, 3), pad_value=-5, images=4),
    _window("images_of_rows", (3, 4), 2, (2, 2), (1, 2), (1, 0, 0, 0), (1, 1), (1, 2), images=3),
    _window("images_of_a_pixel", (1, 1), 2, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), (2,), images=5),
    _window("stacked", (6, 1), 2, (3, 1), (2, 1), (1, 0, 0, 0), (1, 1), (1, 2), pad_value=3, stacked=3),
    _window("images_stacked", (6, 1), 4, (3, 1), (1, 1), (1, 0, 1, 0), (1, 1), (1, 2, 4), images=3, stacked=3),
    _window("images_stacked_dilated", (7, 1), 2, (2, 1), (2, 1), (1, 0, 2, 0), (3, 1), (1,), element=U4, pad_value=-1,
            images=2, stacked=2),
    _window("images_stacked_centred", (4, 1), 2, (3, 1), (1, 1), (1, 0, 1, 0), (1, 1), (1, 2), pad_value=-128,
            centred=True, images=3, stacked=2),
]


def _random_window(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    while True:
        height, width = (int(n) for n in rng.integers(1, 7, 2))
        kernel, strides, dilations = (tuple(int(n) for n in rng.integers(1, 4, 2)) for _ in range(3))
        pads = tuple(int(n) for n in rng.integers(0, 3, 4))
        geometry = WindowGeometry(height, width, kernel, strides, pads, dilations)
        if min(geometry.output) >= 1 and np.prod(geometry.output) * geometry.taps <= 120:
            break
    channels = int(rng.integers(1, 5))
    return _window(
        f"random_{seed}",
        (height, width),
        channels,
        kernel,
        strides,
        pads,
        dilations,
        (int(rng.integers(1, channels + 1)),),
        pad_value=int(rng.integers(-8, 8)),
    )


SLIDING_WINDOW += [_random_window(seed) for seed in range(8)]


def _whole_windows(
    name: str,
    size: tuple[int, int],
    channels: int,
    kernel: tuple[int, int],
    pairs: tuple[tuple[int, int], ...],
    *,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilations: tuple[int, int] = (1, 1),
    pad_value: int = 0,
    element: IntType = I8,
    rows: int | None = None,
    centred: bool = False,
) -> Case:
    """``pairs``: (pixels per input beat, windows per output beat)."""
    case = _window(
        name, size, channels, kernel, strides, pads, dilations, (), pad_value=pad_value, element=element, rows=rows,
        centred=centred,
    )
    window = channels * kernel[0] * kernel[1]
    return replace(case, foldings=tuple(Folding(x * channels, p * window) for x, p in pairs))


SAME = (1, 1, 1, 1)

SLIDING_WINDOW += [
    _whole_windows("same", (5, 4), 1, (3, 3), ((1, 1), (2, 2), (4, 4)), pads=SAME, pad_value=-5),
    _whole_windows("centred", (3, 4), 1, (3, 3), ((1, 1), (4, 4), (12, 12)), pads=SAME, pad_value=-128, centred=True),
    _whole_windows("same_channels", (3, 4), 3, (3, 3), ((1, 1),), pads=SAME, pad_value=7),
    _whole_windows("same_whole", (2, 3), 1, (3, 3), ((6, 6),), pads=SAME, pad_value=7),
    _whole_windows("valid", (5, 8), 1, (3, 3), ((2, 2), (8, 6)), element=U4),
    _whole_windows("more_rows", (6, 4), 2, (3, 1), ((2, 2),), pads=(1, 0, 1, 0), rows=5),
    _whole_windows("least_rows", (6, 4), 1, (3, 2), ((2, 2), (4, 4)), pads=(1, 1, 1, 0), rows=3),
    _whole_windows("pool", (4, 8), 2, (2, 2), ((1, 1), (2, 1), (4, 2), (8, 4)), strides=(2, 2)),
    _whole_windows("pool_whole", (2, 4), 2, (2, 2), ((8, 2),), strides=(2, 2)),
    _whole_windows("stride_2", (7, 8), 1, (5, 5), ((2, 1), (8, 4)), strides=(2, 2), pads=(2, 2, 2, 2), element=U4),
    _whole_windows("uneven_pads", (4, 6), 1, (3, 2), ((1, 1), (3, 3)), pads=(0, 3, 2, 1), pad_value=3),
    _whole_windows("right_pad", (3, 2), 2, (2, 3), ((1, 1), (2, 6)), pads=(0, 1, 1, 5), pad_value=1),
    _whole_windows("dilated", (7, 6), 1, (2, 3), ((1, 1), (2, 2)), pads=(2, 0, 1, 0), dilations=(3, 2)),
    _whole_windows("columns_only", (1, 8), 2, (1, 3), ((4, 4), (8, 8)), pads=(0, 1, 0, 1)),
    _whole_windows("skips", (7, 6), 1, (1, 1), ((2, 2), (3, 1), (6, 2)), strides=(3, 3), element=U4),
    _whole_windows("all_padding_above", (2, 3), 1, (1, 2), ((1, 1), (3, 3)), pads=(2, 0, 2, 1), pad_value=-1),
    _whole_windows("pad_beyond_the_type", (3, 4), 1, (2, 1), ((4, 4), (12, 12)), pads=(0, 0, 1, 0), element=U4,
                   pad_value=-1),
]


def _random_whole_windows(seed: int) -> Case:
    """With up to two of the pairs that the operator offers."""
    rng = np.random.default_rng(100 + seed)
    case = replace(_random_window(50 + seed), name=f"random_whole_{seed}")
    channels = case.source.shape[1]
    foldings = hardware("sliding_window").foldings(case.node(), PART)
    offered = [f for f in foldings if channels < f.output_lanes <= 60]
    picks = rng.choice(len(offered), min(2, len(offered)), replace=False)
    return replace(case, foldings=tuple(offered[k] for k in sorted(picks)))


SLIDING_WINDOW += [_random_whole_windows(seed) for seed in range(6)]
