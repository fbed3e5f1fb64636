"""The table of cases: every hardware operator with the shapes and foldings the harness runs it with.

Lanes that do not divide the channels, single pixels, single channels, windows in the padding: the awkward ones are
written out; the rest are random from fixed seeds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.boards import find_board
from hwflow.ir.graph import IntArray, Node
from hwflow.numerics.elementwise import Relu
from hwflow.numerics.stages import QuantizerStage, StepStage
from hwflow.numerics.step_function import StepFunction
from hwflow.ops.operator import Folding
from hwflow.ops.registry import hardware
from hwflow.ops.windows import WindowGeometry
from hwflow.types import Interval, IntType, TensorType
from tests.ops.elementwise_cases import ELEMENTWISE
from tests.ops.harness import Case
from tests.ops.rearrange_cases import REARRANGE
from tests.ops.weighted_pool_cases import WEIGHTED_POOL

PART = find_board("ulx3s_85f").part


def stream(pixels: int, channels: int, element: IntType, intervals: tuple[Interval, ...] = ()) -> TensorType:
    """A stream; ``intervals`` one a channel, else the element's whole range."""
    if intervals:
        hull = intervals[0]
        for interval in intervals:
            hull = hull.hull(interval)
        return TensorType((pixels, channels), element, hull, intervals, 1)
    return TensorType((pixels, channels), element, element.interval)


def intervals_within(element: IntType, count: int, rng: np.random.Generator) -> tuple[Interval, ...]:
    ends = np.sort(rng.integers(element.min, element.max + 1, (count, 2)), axis=1)
    return tuple(Interval(int(lo), int(hi)) for lo, hi in ends)


U1, U4, U8, I4, I8, I12, I16 = (
    IntType(1, False),
    IntType(4, False),
    IntType(8, False),
    IntType(4, True),
    IntType(8, True),
    IntType(12, True),
    IntType(16, True),
)


I2, U2 = IntType(2, True), IntType(2, False)


def constant_corners(node: Node) -> IntArray:
    """Each channel all least, then all greatest: enough where the result is monotone in every input."""
    source = node.inputs[0].typed
    ranges = source.channel_intervals(1)
    low, high = ([r.lo for r in ranges], [r.hi for r in ranges])
    return np.stack([np.broadcast_to(np.array(end, dtype=np.int64), source.shape) for end in (low, high)])


def paired_corners(node: Node) -> list[IntArray]:
    """Every combination of all least and all greatest of each input: enough where the result is monotone in each."""
    ends = []
    for value in node.inputs:
        ranges = value.typed.channel_intervals(1)
        ends.append([np.broadcast_to([getattr(r, e) for r in ranges], value.typed.shape) for e in ("lo", "hi")])
    return [np.stack(arrays) for arrays in zip(*itertools.product(*ends), strict=True)]


# --- forks, width converters, frame synchronisers -----------------------------------------------------------------

FORK = [
    Case(
        "two",
        "fork",
        {"outputs": 2},
        stream(5, 3, I8),
        (Folding(1, 1), Folding(2, 2), Folding(3, 3), Folding(15, 15)),
        constant_corners,
    ),
    Case(
        "in_block_ram",
        "fork",
        {"outputs": 2, "styles": ("auto", "block")},
        stream(5, 3, I8),
        (Folding(2, 2),),
        constant_corners,
    ),
    Case("three", "fork", {"outputs": 3}, stream(4, 1, U1), (Folding(1, 1),), constant_corners),
    Case(
        "intervals",
        "fork",
        {"outputs": 2},
        stream(1, 2, I8, (Interval(-3, 0), Interval(5, 5))),
        (Folding(2, 2),),
        constant_corners,
    ),
]

WIDTH_CONVERTER = [
    Case(
        f"x{a}_to_x{b}_of_{c}", "width_converter", {"view": (4, c)}, stream(4, c, I4), (Folding(a, b),),
        constant_corners,
    )
    for a, b, c in [
        (1, 2, 4),
        (1, 3, 7),
        (2, 6, 5),
        (3, 1, 7),
        (4, 2, 6),
        (6, 2, 5),
        (1, 5, 5),
        (5, 1, 5),
        (2, 4, 9),
        (8, 4, 5),
        (3, 7, 7),
        (7, 3, 7),
    ]
] + [
    Case(
        f"x{a}_to_x{b}_of_{c}_in_pixels_of_{own}", "width_converter", {"view": (12 * own // c, c)},
        stream(12, own, I4), (Folding(a, b),), constant_corners,
    )
    for a, b, c, own in [
        (2, 8, 8, 2),
        (12, 3, 12, 3),
        (4, 12, 12, 4),
        (5, 12, 12, 2),
    ]
]

FRAME_SYNC = [
    Case(
        "image", "frame_sync", {}, stream(6, 3, I8), (Folding(1, 1), Folding(2, 2), Folding(3, 3)), constant_corners
    ),
    Case("pixels", "frame_sync", {}, stream(6, 3, I8), (Folding(6, 6), Folding(18, 18)), constant_corners),
    Case("vectors", "frame_sync", {"view": (2, 9)}, stream(6, 3, I8), (Folding(4, 4),), constant_corners),
    Case("single_beat", "frame_sync", {}, stream(1, 1, U4), (Folding(1, 1),), constant_corners),
]

FIFO = [
    Case("image", "fifo", {}, stream(6, 3, I8), (Folding(1, 1), Folding(2, 2)), constant_corners),
    Case("pixels", "fifo", {}, stream(6, 3, I8), (Folding(6, 6), Folding(18, 18)), constant_corners),
    Case("vectors", "fifo", {"view": (2, 9)}, stream(6, 3, I8), (Folding(4, 4),), constant_corners),
    Case("single_beat", "fifo", {}, stream(1, 1, U4), (Folding(1, 1),), constant_corners),
]

# --- sliding windows ----------------------------------------------------------------------------------------------


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
) -> Case:
    attributes = {"geometry": WindowGeometry(*size, kernel, strides, pads, dilations), "pad_value": pad_value}
    if rows is not None:
        attributes["rows"] = rows
    source = stream(size[0] * size[1], channels, element)
    return Case(name, "sliding_window", attributes, source, tuple(Folding(n, n) for n in lanes))


SLIDING_WINDOW = [
    _window("3x3", (5, 4), 3, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (1, 2, 3), pad_value=-5),
    _window("least_rows", (5, 4), 2, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (2,), rows=3),
    _window("stride_2", (6, 7), 2, (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), (1, 2)),
    _window("dilated", (7, 6), 1, (2, 3), (1, 2), (2, 0, 1, 3), (3, 2), (1,), element=U4, pad_value=3),
    _window("all_padding_above", (2, 3), 1, (1, 2), (1, 1), (2, 0, 2, 1), (1, 1), (1,)),
    _window("skips_rows", (7, 3), 2, (1, 1), (3, 2), (0, 0, 0, 0), (1, 1), (2,)),
    _window("single_pixel", (1, 1), 5, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), (2, 5)),
    _window("pad_beyond_the_type", (3, 3), 1, (2, 2), (1, 1), (0, 0, 1, 1), (1, 1), (1,), element=U4, pad_value=-1),
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
) -> Case:
    """``pairs``: (pixels an input beat, windows an output beat)."""
    case = _window(
        name, size, channels, kernel, strides, pads, dilations, (), pad_value=pad_value, element=element, rows=rows
    )
    window = channels * kernel[0] * kernel[1]
    return replace(case, foldings=tuple(Folding(x * channels, p * window) for x, p in pairs))


SAME = (1, 1, 1, 1)

SLIDING_WINDOW += [
    _whole_windows("same", (5, 4), 1, (3, 3), ((1, 1), (2, 2), (4, 4)), pads=SAME, pad_value=-5),
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

# --- matrix-vector units ------------------------------------------------------------------------------------------


def mvu_corners(node: Node) -> IntArray:
    """For each output channel the frames whose every pixel gives its least and its greatest sum."""
    source, weights = node.inputs[0].typed, node.attributes["weights"]
    ranges = source.channel_intervals(1) * node.attributes["pixels_per_vector"]
    low, high = np.array([r.lo for r in ranges]), np.array([r.hi for r in ranges])
    frames = []
    for row in weights:
        frames += [np.where(row > 0, low, high), np.where(row > 0, high, low)]
    vectors = source.shape[0] * source.shape[1] // weights.shape[1]
    return np.stack([np.tile(f, vectors).reshape(source.shape) for f in frames])


def _mvu(
    name: str,
    vectors: int,
    pixels_per_vector: int,
    channels: int,
    outputs: int,
    element: IntType,
    weight: IntType,
    foldings: tuple[Folding, ...],
    *,
    seed: int = 0,
    narrow: bool = False,
    within: int = 1 << 40,
) -> Case:
    """``within``: the greatest magnitude of weights and inputs."""
    rng = np.random.default_rng(seed)
    least, greatest = max(weight.min, -within), min(weight.max, within)
    weights = rng.integers(least, greatest + 1, (outputs, pixels_per_vector * channels))
    weights[0, 0], weights[-1, -1] = least, greatest
    intervals = intervals_within(element, channels, rng) if narrow else ()
    if within < max(-element.min, element.max):
        intervals = (Interval(-within, within),) * channels
    source = stream(vectors * pixels_per_vector, channels, element, intervals)
    attributes = {"weights": weights, "pixels_per_vector": pixels_per_vector}
    return Case(name, "mvu", attributes, source, foldings, mvu_corners)


def _fold(simd: int, pe: int, kind: str) -> Folding:
    return Folding(simd, pe, simd * pe, kind)


MVU = [
    _mvu(
        "conv", 3, 4, 3, 5, U8, I8, (_fold(1, 1, "dsp"), _fold(2, 3, "dsp"), _fold(3, 2, "lut"), _fold(3, 5, "dsp"))
    ),
    _mvu(
        "vectors", 3, 4, 3, 5, U8, I8,
        (_fold(4, 1, "dsp"), _fold(6, 5, "dsp"), _fold(5, 2, "lut"), _fold(12, 1, "lut"), _fold(12, 5, "dsp")),
    ),
    _mvu("vector_of_pixels", 2, 7, 1, 3, I8, I8, (_fold(3, 2, "dsp"), _fold(7, 3, "dsp"))),
    _mvu("one_step", 4, 1, 3, 2, I8, I8, (_fold(3, 2, "dsp"), _fold(3, 2, "lut"))),
    _mvu("one_vector", 1, 1, 7, 5, I4, I4, (_fold(4, 2, "lut"), _fold(7, 1, "lut"), _fold(1, 5, "dsp"))),
    _mvu("scalar", 2, 1, 1, 1, U8, U4, (_fold(1, 1, "dsp"),)),
    _mvu("bits", 3, 2, 5, 3, U1, IntType(2, True), (_fold(5, 3, "lut"), _fold(2, 2, "lut"))),
    _mvu("ternary", 3, 2, 5, 3, I2, I2, (_fold(5, 3, "lut"), _fold(2, 2, "lut")), within=1),
    _mvu("two_bits", 2, 2, 3, 3, U2, I2, (_fold(2, 2, "lut"),)),
    _mvu("two_bits_unsigned", 2, 2, 3, 3, I2, U2, (_fold(3, 1, "lut"),)),
    _mvu("wide", 2, 2, 2, 2, IntType(16, True), I12, (_fold(1, 2, "dsp"),)),
    _mvu("intervals", 2, 2, 4, 3, I8, I8, (_fold(3, 2, "dsp"),), narrow=True),
    _mvu("wide_weights", 2, 2, 3, 2, U8, IntType(40, True), (_fold(2, 1, "dsp"), _fold(3, 2, "lut"))),
    _mvu("wide_products", 2, 1, 3, 2, I16, IntType(38, True), (_fold(3, 1, "dsp"), _fold(1, 2, "lut"))),
    _mvu("wide_inputs", 2, 1, 2, 2, IntType(27, True), IntType(19, False), (_fold(1, 2, "dsp"), _fold(2, 1, "lut"))),
]


def _random_mvu(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    vectors, taps, channels, outputs = (int(n) for n in rng.integers(1, 6, 4))
    x, w = IntType(int(rng.integers(1, 9)), bool(rng.integers(2))), IntType(int(rng.integers(2, 9)), True)
    foldings = tuple(
        _fold(int(rng.integers(1, channels + 1)), int(rng.integers(1, outputs + 1)), kind) for kind in ("dsp", "lut")
    )
    return _mvu(f"random_{seed}", vectors, taps, channels, outputs, x, w, foldings, seed=seed, narrow=seed % 2 == 0)


MVU += [_random_mvu(seed) for seed in range(5)]


def _vectors(case: Case) -> Case:
    """The case with lanes of whole vectors."""
    return replace(case, foldings=tuple(replace(f, whole_vector=True) for f in case.foldings))


MVU += [
    _vectors(_mvu("whole_vectors", 3, 4, 3, 5, U8, I8, (_fold(2, 2, "dsp"), _fold(2, 5, "lut")), seed=31)),
    _vectors(_mvu("whole_vectors_surplus", 2, 3, 7, 4, U4, I8, (_fold(5, 3, "dsp"), _fold(4, 4, "lut")), seed=32)),
]


def _whole(vectors: int, inputs: int, outputs: int, kind: str = "shift_add") -> Folding:
    return Folding(vectors * inputs, vectors * outputs, vectors * inputs * outputs, kind)


MVU += [
    _mvu("shift_add", 6, 1, 4, 5, I8, I8, (_whole(1, 4, 5), _whole(3, 4, 5)), seed=21),
    _mvu("shift_add_windows", 4, 3, 2, 3, U4, I4, (_whole(2, 6, 3), _whole(4, 6, 3)), seed=22, narrow=True),
    _mvu("shift_add_ternary", 2, 1, 9, 3, I2, I2, (_whole(1, 9, 3),), within=1, seed=23),
    _mvu("shift_add_scalar", 2, 1, 1, 1, U8, U4, (_whole(1, 1, 1), _whole(2, 1, 1))),
    _mvu("constant_products", 4, 2, 3, 4, U8, I4, (_whole(2, 6, 4, "dsp"), _whole(4, 6, 4, "dsp")), seed=24),
    _mvu("constant_products_scalar", 2, 1, 1, 1, I8, I8, (_whole(2, 1, 1, "dsp"),), seed=25),
    # wires and zeros, a row and its negative, a row of subtractions, a constant input
    Case(
        "shift_add_rows", "mvu",
        {"weights": np.array([[0, 8, 0], [0, 0, 0], [3, 5, 0], [-6, -10, 0], [-1, -4, -2]]), "pixels_per_vector": 1},
        stream(2, 3, I4, (Interval(-8, 7), Interval(0, 5), Interval(3, 3))), (_whole(1, 3, 5),), mvu_corners,
    ),
]


def _fold2(simd: int, pe: int, width: int = 18) -> Folding:
    """Two products in a multiplier block of so many bits."""
    return Folding(simd, pe, simd * pe, "dsp2", width - 1)


U5, I6 = IntType(5, False), IntType(6, True)

MVU += [
    # sums of two products are split, of one, of all; rows without a partner
    _mvu("pairs", 3, 4, 5, 5, U8, I4, (_fold2(5, 4), _fold2(1, 2), _fold2(3, 5), _fold2(5, 3, 17))),
    _mvu("pairs_one_step", 4, 1, 7, 4, I4, I4, (_fold2(7, 4), _fold2(5, 3), _fold2(1, 2))),
    _mvu("pairs_each", 2, 2, 6, 3, U5, I6, (_fold2(6, 3), _fold2(3, 2))),
    _mvu("pairs_of_sixteen", 2, 2, 5, 4, I4, I4, (_fold2(5, 4, 16),), within=7),
    _mvu("pairs_unsigned", 2, 1, 6, 4, U5, U4, (_fold2(6, 4), _fold2(6, 3, 16))),
    _mvu("pairs_signs", 2, 2, 6, 4, I6, IntType(5, False), (_fold2(6, 4),), narrow=True),
    _mvu("pairs_intervals", 2, 2, 5, 4, I8, IntType(5, True), (_fold2(5, 4),), within=15),
]


def count_corners(node: Node) -> IntArray:
    """For each output channel the frames whose every pixel differs from and equals its weights wherever it can."""
    source, weights = node.inputs[0].typed, node.attributes["weights"]
    ranges = source.channel_intervals(1) * node.attributes["pixels_per_vector"]
    low, high = np.array([r.lo for r in ranges]), np.array([r.hi for r in ranges])
    vectors = source.shape[0] * source.shape[1] // weights.shape[1]
    frames = [np.clip(bits, low, high) for row in weights for bits in (1 - row, row)]
    return np.stack([np.tile(f, vectors).reshape(source.shape) for f in frames])


def _xnor(
    name: str,
    vectors: int,
    pixels_per_vector: int,
    channels: int,
    outputs: int,
    foldings: tuple[tuple[int, int], ...],
    *,
    intervals: tuple[Interval, ...] = (),
) -> Case:
    """Random bits; ``foldings``: (SIMD, PE)."""
    weights = np.random.default_rng(channels).integers(0, 2, (outputs, pixels_per_vector * channels))
    source = stream(vectors * pixels_per_vector, channels, U1, intervals)
    attributes = {"weights": weights, "pixels_per_vector": pixels_per_vector, "binary": True}
    return Case(name, "mvu", attributes, source, tuple(_fold(*f, "xnor") for f in foldings), count_corners)


MVU += [
    # SIMD of 2 in 5 channels: three beats a pixel, of the last a lane that does not count
    _xnor("xnor_conv", 3, 4, 5, 3, ((1, 1), (2, 2), (3, 3), (4, 1), (5, 2))),
    _xnor("xnor_vector", 3, 1, 37, 5, ((37, 5), (37, 2), (19, 3), (10, 5), (8, 1))),
    _xnor("xnor_wide", 2, 1, 200, 2, ((200, 1), (100, 2), (67, 1))),
    _xnor("xnor_single", 3, 1, 1, 1, ((1, 1),)),
    _xnor("xnor_vectors", 3, 2, 3, 2, ((5, 1), (4, 2), (6, 2))),
    _vectors(_xnor("xnor_whole_vectors", 3, 3, 5, 3, ((4, 2), (3, 1)))),
    _xnor(
        "xnor_intervals", 2, 2, 4, 3, ((3, 2),),
        intervals=(Interval(0, 1), Interval(0, 0), Interval(1, 1), Interval(0, 1)),
    ),
]



def _sets(case: Case, sets: int) -> Case:
    """The case with further sets of weights, the first one's rows in other orders, taken in turns."""
    weights = case.attributes["weights"]
    several = np.stack([np.roll(weights, shift, axis=0) for shift in range(sets)])
    return replace(case, name=f"{case.name}_sets", attributes={**case.attributes, "weights": several}, corners=None)


MVU += [
    _sets(_mvu("conv", 6, 2, 5, 3, I8, I8, (_fold(1, 1, "dsp"), _fold(5, 3, "dsp"), _fold(3, 2, "lut"))), 3),
    _sets(_mvu("pairs", 4, 1, 7, 4, I4, I4, (_fold2(7, 4), _fold2(3, 2))), 2),
    _sets(_xnor("xnor", 4, 2, 5, 3, ((5, 3), (2, 2))), 4),
]

# --- maxima -------------------------------------------------------------------------------------------------------


def _max_pool(name: str, pixels: int, channels: int, window: int, element: IntType, lanes: tuple[int, ...]) -> Case:
    attributes = {"window": window}
    return Case(
        name,
        "max_pool",
        attributes,
        stream(pixels, channels, element),
        _pool_foldings(channels, window, lanes),
        constant_corners,
    )


def _pool_foldings(channels: int, window: int, lanes: tuple[int, ...]) -> tuple[Folding, ...]:
    """For input lanes: up to a pixel as many output lanes, beyond all channels of each window that ends in a beat."""
    return tuple(Folding(n, n if n <= channels else max(channels, n // window)) for n in lanes)


MAX_POOL = [
    _max_pool("2x2", 12, 3, 4, I8, (1, 2, 3)),
    _max_pool("in_memory", 6, 7, 3, U8, (1,)),
    _max_pool("copies", 4, 2, 1, I4, (1, 2)),
    _max_pool("one_pixel_left", 9, 5, 9, U1, (3,)),
    _max_pool("2x2_groups", 24, 2, 4, I8, (4, 8, 16, 48)),
    _max_pool("3x3_groups", 18, 2, 9, U4, (6, 18, 36)),
    _max_pool("whole_image", 16, 3, 16, I8, (6, 24, 48)),
    _max_pool("copies_of_groups", 4, 2, 1, I4, (4, 8)),
]



def _sum_pool(name: str, pixels: int, channels: int, window: int, element: IntType, lanes: tuple[int, ...]) -> Case:
    source, foldings = stream(pixels, channels, element), _pool_foldings(channels, window, lanes)
    return Case(name, "sum_pool", {"window": window}, source, foldings, constant_corners)


SUM_POOL = [
    _sum_pool("2x2", 12, 3, 4, I8, (1, 2, 3)),
    _sum_pool("in_memory", 6, 7, 3, U8, (1,)),
    _sum_pool("copies", 4, 2, 1, I4, (1, 2)),
    _sum_pool("whole_frame", 9, 5, 9, U1, (3,)),
    _sum_pool("2x2_groups", 24, 2, 4, I8, (4, 8, 16, 48)),
    _sum_pool("3x3_groups", 18, 2, 9, U4, (6, 18, 36)),
    _sum_pool("whole_image", 16, 3, 16, I8, (6, 24, 48)),
    _sum_pool("copies_of_groups", 4, 2, 1, I4, (4, 8)),
]

# --- requantizers -------------------------------------------------------------------------------------------------


def _requantize(
    name: str,
    pixels: int,
    channels: int,
    element: IntType,
    out: IntType,
    scale: Callable[[int], Fraction],
    lanes: tuple[int, ...],
    *,
    uniform: bool = False,
    narrow: bool = False,
    relu: bool = False,
    zero_point: int = 0,
) -> Case:
    """Channel c: real = scale(c) * x, then a Relu or nothing, then a quantizer of scale 1."""
    stages = tuple(
        (
            QuantizerStage(
                scale(c), Fraction(c % 3 - 1), (Relu(),) if relu else (), Fraction(1), zero_point, out.min, out.max
            ),
        )
        for c in range(1 if uniform else channels)
    )
    intervals = intervals_within(element, channels, np.random.default_rng(channels)) if narrow else ()
    source = stream(pixels, channels, element, intervals)
    return Case(
        name,
        "requantize",
        {"axis": 1, "stages": stages},
        source,
        tuple(Folding(n, n) for n in lanes),
        constant_corners,
    )


I18, I20 = IntType(18, True), IntType(20, True)

REQUANTIZE = [
    _requantize("multiply", 3, 5, I18, I8, lambda c: Fraction(97 + 13 * c, 131071), (1, 2, 3, 5, 15), zero_point=3),
    _requantize(
        "multiply_wide", 2, 3, I20, I8, lambda c: Fraction(1234567 + 34567 * c, (1 << 33) - 1), (2,), relu=True
    ),
    _requantize(  # whose addends do not fit 64 bits
        "multiply_wide", 2, 2, IntType(36, True), I16, lambda c: Fraction(1234567 + 13 * c, 3 << 42), (1, 2),
        zero_point=3,
    ),
    _requantize("multiply_alike", 3, 4, I16, I8, lambda c: Fraction(3, 1001), (1, 3, 12), uniform=True),
    _requantize("search_ties_alike", 3, 4, I16, I8, lambda c: Fraction(3, 1000), (3,), uniform=True),
    _requantize("multiply_intervals", 2, 3, I18, I8, lambda c: Fraction(97 + 13 * c, 131071), (2,), narrow=True),
    _requantize("multiply_ties", 3, 5, I18, I8, lambda c: Fraction(1 + 2 * c, 512), (1, 2, 5)),
    _requantize("multiply_ties_odd", 3, 4, I16, I8, lambda c: Fraction(1, 128), (1, 3), zero_point=3, uniform=True),
    _requantize("thresholds", 4, 5, I12, IntType(2, True), lambda c: Fraction(7 + c, 3000), (1, 2, 5, 10)),
    _requantize("thresholds_alike", 3, 3, I12, IntType(2, False), lambda c: Fraction(7, 3000), (1, 2, 9), uniform=True),
    _requantize("sign", 3, 2, I12, U1, lambda c: Fraction(1, 700 + c), (1, 2)),
    _requantize("table", 4, 3, I4, I8, lambda c: Fraction(31 + 9 * c, 7), (1, 2, 3, 6)),
    _requantize("table_alike", 4, 3, U4, I8, lambda c: Fraction(57, 7), (2, 12), uniform=True),
    _requantize("constant", 2, 3, I8, I8, lambda c: Fraction(1, 100000), (2,)),
]


def _function(
    name: str,
    pixels: int,
    channels: int,
    element: IntType,
    function: Callable[[IntArray, int], npt.NDArray[Any]],
    lanes: tuple[int, ...],
    *,
    uniform: bool = False,
    intervals: tuple[Interval, ...] = (),
) -> Case:
    """Channel c: function(x, c) rounded down."""
    source = stream(pixels, channels, element, intervals)
    stages = []
    for c, interval in enumerate(source.channel_intervals(1)[: 1 if uniform else channels]):
        table = np.floor(function(np.arange(interval.lo, interval.hi + 1), c)).astype(np.int64)
        stages.append((StepStage(StepFunction.of_table(interval.lo, table)),))
    return Case(
        name,
        "requantize",
        {"axis": 1, "stages": tuple(stages)},
        source,
        tuple(Folding(n, n) for n in lanes),
        function_corners,
    )


def function_corners(node: Node) -> IntArray:
    """For each channel an input of its least and of its greatest result."""
    frames = []
    for end in (min, max):
        row = [
            (s.lo, *s.breaks)[s.values.index(end(s.values))] for s in node.attributes["steps"]
        ]
        frames.append(np.broadcast_to(np.array(row, dtype=np.int64), node.inputs[0].typed.shape))
    return np.stack(frames)


def line(x: IntArray, multiplier: int, shift: int, low: int = -128, high: int = 127) -> IntArray:
    return ((multiplier * x + 12345 % (1 << shift)) >> shift).clip(low, high)


def smooth(x: IntArray, center: float, width: float) -> npt.NDArray[Any]:
    """Falls a little below 0 on its way from 0 up to x: neither rising nor falling."""
    return 40 * (x - center) / width / (1 + np.exp(-(x - center) / width))


REQUANTIZE += [
    _function("multiply_falling", 3, 5, I18, lambda x, c: line(x, -97 - 13 * c, 17), (1, 2, 5)),
    _function("multiply_both", 3, 4, I18, lambda x, c: line(x, (97 + 13 * c, -201, 0, 45)[c], 17), (1, 3, 12)),
    _function(
        "multiply_both_intervals",
        2,
        3,
        I16,
        lambda x, c: line(x, (-1 - c, 300, -77)[c], 16),
        (2,),
        intervals=(Interval(-32768, 32767), Interval(-5, 3000), Interval(-20000, -100)),
    ),
    _function("multiply_falling_alike", 3, 4, I16, lambda x, c: line(x, -77, 15), (1, 3), uniform=True),
    _function("multiply_negated_alike", 3, 4, I16, lambda x, c: (-x).clip(-128, 127), (2,), uniform=True),
    _function("multiply_shifted_alike", 3, 4, I16, lambda x, c: -x >> 5, (2,), uniform=True),
    _function(
        "multiply_falling_wide", 2, 3, I20, lambda x, c: line(x, (-1234567, 1034567, -734567)[c], 31), (2,)
    ),
    _function("multiply_falling_ties", 3, 2, I16, lambda x, c: np.rint(x * (-1 if c else 3) / 256), (1, 2)),
    _function("thresholds_both", 4, 5, I12, lambda x, c: (x * (1, -1)[c % 2] // 900).clip(-1, 2), (1, 2, 5, 20)),
    _function("thresholds_falling_alike", 3, 3, I12, lambda x, c: (-x // 900).clip(-1, 1), (2,), uniform=True),
    _function("thresholds_pulse", 3, 3, I12, lambda x, c: (abs(x - 50 * c) < 300) * 1, (1, 3)),
    _function("thresholds_bases", 3, 4, I12, lambda x, c: 60 * c + (x * (1, -1)[c % 2] > 3 * c), (1, 3)),
    _function("thresholds_bases_alike", 3, 2, I12, lambda x, c: 100 + (x > 7), (2,), uniform=True),
    _function("sign_both", 3, 4, I12, lambda x, c: x * (1, -1, 1, -1)[c] >= c, (1, 3)),
    _function("sign_falling_alike", 3, 4, I12, lambda x, c: x < 5, (3,), uniform=True),
    _function("search", 3, 5, I16, lambda x, c: np.sqrt(x.clip(0) * (1 + c / 7)), (1, 2, 5, 15)),
    _function("search_alike", 3, 4, I16, lambda x, c: 127 * np.tanh(x / 9000), (1, 3, 12), uniform=True),
    _function("search_falling", 3, 3, I16, lambda x, c: 100 - np.cbrt(x.clip(0) * (1 + c)), (2,)),
    _function("search_values", 3, 5, I16, lambda x, c: smooth(x, 300 * c, 4000 + 900 * c), (1, 2, 5, 15)),
    _function("search_values_alike", 3, 4, I16, lambda x, c: smooth(x, 0, 4000), (1, 3), uniform=True),
    _function("search_values_both", 3, 3, I16, lambda x, c: (1, -1, 0)[c] * np.sqrt(x.clip(0)) - c, (1, 2)),
    _function("search_one", 2, 3, I16, lambda x, c: np.where(x > 1000 * c, 3000 * c, -7), (2,)),
    _function("table_wave", 4, 3, I8, lambda x, c: 100 * np.sin(x / 9 + c), (2,)),
]



def _constants(case: Case, lanes: int, kind: str) -> Case:
    """The case with constants in every lane."""
    return replace(case, name=f"{case.name}_constants{lanes}{kind}", foldings=(Folding(lanes, lanes, multiplier=kind),))


ADDERS = "shift_add"


def _power(channel: int) -> Fraction:
    return Fraction(1 << channel % 3, 256)


REQUANTIZE += [
    _constants(_requantize("multiply_powers", 3, 5, I12, I8, _power, ()), 5, ""),
    _constants(_requantize("multiply_powers_odd", 4, 3, I12, I4, _power, (), zero_point=1, relu=True), 6, ""),
    _constants(_requantize("multiply_powers_narrow", 2, 5, I12, U4, _power, (), narrow=True), 5, ""),
    _constants(_function("multiply_floor", 3, 3, I12, lambda x, c: line(x, 1 << 2 * c, 5, -9, 100), ()), 3, ""),
    _constants(
        _function("multiply_negated", 3, 4, I12, lambda x, c: line(x, (-4, 0, 1, -1)[c], 4, -127, 90), ()), 4, ""
    ),
    _constants(
        _function("multiply_negated_odd", 2, 2, I12, lambda x, c: np.rint((1 - 2 * c) * x / 64).clip(-7, 6), ()), 2, ""
    ),
    _constants(_requantize("multiply_ties_products", 3, 5, I18, I8, lambda c: Fraction(1 + 2 * c, 512), ()), 5, ADDERS),
    _constants(_requantize("multiply_products", 3, 5, I12, I8, lambda c: Fraction(97 + 13 * c, 8191), ()), 5, ADDERS),
    _constants(
        _function("multiply_products_both", 3, 4, I12, lambda x, c: line(x, (97, -201, 0, 45)[c], 11), ()), 4, ADDERS
    ),
    _constants(
        _requantize("multiply_alike_products", 3, 4, I12, I8, lambda c: Fraction(41, 1001), (), uniform=True), 3, ADDERS
    ),
]

# --- two streams --------------------------------------------------------------------------------------------------


def _scaled_add(
    name: str,
    pixels: int,
    channels: int,
    elements: tuple[IntType, IntType],
    multipliers: tuple[tuple[int, ...], tuple[int, ...]],
    lanes: tuple[int, ...],
    kinds: tuple[str, ...] = ("dsp", "lut"),
    *,
    narrow: bool = False,
) -> Case:
    rng = np.random.default_rng(channels)
    sources = [stream(pixels, channels, e, intervals_within(e, channels, rng) if narrow else ()) for e in elements]
    foldings = tuple(Folding(n, n, 0, kind) for n in lanes for kind in kinds)
    attributes = {"axis": 1, "multipliers": multipliers}
    return Case(name, "scaled_add", attributes, sources[0], foldings, paired_corners, (sources[1],))


SCALED_ADD = [
    _scaled_add("plain", 4, 3, (I8, U8), ((1,), (1,)), (1, 2, 3), ("lut",)),
    _scaled_add("difference", 3, 2, (U8, U8), ((1,), (-1,)), (1, 2), ("lut",)),
    _scaled_add("powers_of_two", 3, 3, (I8, U4), ((4,), (-16,)), (2,), ("lut",)),
    _scaled_add("both_negative", 3, 2, (I8, U4), ((-3,), (-8,)), (2,)),
    _scaled_add("constants", 4, 5, (I8, I8), ((181,), (77,)), (1, 3, 5, 10)),
    _scaled_add("float_scales", 2, 3, (U8, I8), ((11184811,), (-9395241,)), (2,)),
    _scaled_add("a_channel", 3, 5, (I8, I8), ((3, -5, 77, 1, 64), (9,)), (1, 2, 5, 15)),
    _scaled_add("both_a_channel", 3, 4, (I12, U8), ((3, 5, 77, 9), (100, -7, 1, -128)), (1, 3, 12)),
    _scaled_add("bits", 5, 3, (U1, U1), ((5,), (-3,)), (1, 3)),
    _scaled_add("intervals", 3, 4, (I8, U8), ((23,), (-42,)), (2,), ("lut",), narrow=True),
]


def _product(
    name: str,
    pixels: int,
    channels: int,
    elements: tuple[IntType, IntType],
    offsets: tuple[int, int],
    lanes: tuple[int, ...],
    kinds: tuple[str, ...] = ("dsp", "lut"),
    *,
    narrow: bool = False,
) -> Case:
    rng = np.random.default_rng(channels)
    sources = [stream(pixels, channels, e, intervals_within(e, channels, rng) if narrow else ()) for e in elements]
    foldings = tuple(Folding(n, n, 0, kind) for n in lanes for kind in kinds)
    return Case(name, "product", {"offsets": offsets}, sources[0], foldings, paired_corners, (sources[1],))


PRODUCT = [
    _product("bytes", 3, 5, (U8, I8), (0, 0), (1, 2, 5, 15)),
    _product("offsets", 3, 3, (U8, U8), (128, 7), (2,)),
    _product("one_offset", 2, 2, (I8, U4), (-128, 0), (1,)),
    _product("bits", 3, 3, (U1, I4), (0, 0), (3,), ("lut",)),
    _product("sixteen", 2, 1, (I16, IntType(16, False)), (5, 32768), (1,)),
    _product("intervals", 3, 4, (I8, U8), (3, 100), (2,), ("lut",), narrow=True),
]

def _concat(
    name: str,
    streams: tuple[TensorType, ...],
    lanes: tuple[int, ...],
    whole: tuple[int, ...] = (),
    **attributes: int,
) -> Case:
    """``whole``: lanes of whole pixels side by side."""
    foldings = tuple(Folding(n, n) for n in lanes) + tuple(Folding(n, n, whole_vector=True) for n in whole)
    return Case(name, "stream_concat", attributes, streams[0], foldings, paired_corners, streams[1:])


STREAM_CONCAT = [
    _concat("channels", (stream(4, 4, I8), stream(4, 2, U8)), (1, 2, 4), (6, 12, 24), axis=1),
    _concat("three", (stream(2, 6, U4), stream(2, 3, U4), stream(2, 4, I4)), (1, 3), (13, 26), axis=1),
    _concat("scalars", (stream(1, 1, I8), stream(1, 1, I4)), (1,), axis=1),
    _concat("pixels", (stream(4, 3, I8), stream(2, 3, U4)), (1, 2, 3, 6), axis=0, rounds=1),
    _concat("rows", (stream(6, 2, I8), stream(3, 2, U8), stream(9, 2, I8)), (1, 2), axis=0, rounds=3),
    _concat("two_pixels", (stream(8, 2, I8), stream(4, 2, U8)), (4,), axis=0, rounds=2),
    _concat(
        "intervals",
        (stream(2, 2, I8, (Interval(-3, 5), Interval(0, 100))), stream(2, 2, I8, (Interval(-9, 1), Interval(4, 4)))),
        (2,),
        axis=0,
        rounds=2,
    ),
    _concat(
        "channel_intervals",
        (stream(2, 2, I8, (Interval(-3, 5), Interval(0, 100))), stream(2, 1, U4)),
        (1, 2),
        axis=1,
    ),
]

CASES: dict[str, list[Case]] = {
    "elementwise": ELEMENTWISE,
    "fifo": FIFO,
    "fork": FORK,
    "frame_sync": FRAME_SYNC,
    "max_pool": MAX_POOL,
    "mvu": MVU,
    "product": PRODUCT,
    "rearrange": REARRANGE,
    "requantize": REQUANTIZE,
    "scaled_add": SCALED_ADD,
    "sliding_window": SLIDING_WINDOW,
    "stream_concat": STREAM_CONCAT,
    "sum_pool": SUM_POOL,
    "weighted_pool": WEIGHTED_POOL,
    "width_converter": WIDTH_CONVERTER,
}
"""Operator name -> cases. The harness fails for a hardware operator that has none."""
