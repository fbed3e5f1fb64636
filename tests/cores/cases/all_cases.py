"""The table of cases: every hardware operator with the shapes and foldings the harness runs it with.

Lanes that do not divide the channels, single pixels, single channels, windows in the padding: the awkward ones are
written out; the rest are random from fixed seeds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hwflow.cores.logical.image_windows import Clipping, WindowGeometry
from hwflow.cores.operator import Folding
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, IntType
from tests.cores.cases.case_parts import (
    I2,
    I4,
    I8,
    I12,
    I16,
    U1,
    U2,
    U4,
    U8,
    constant_corners,
    intervals_within,
    stream,
)
from tests.cores.cases.delay_cases import FOLLOWED_BY, REPEATED, STREAM_DELAY
from tests.cores.cases.depthwise_cases import DEPTHWISE
from tests.cores.cases.digit_recurrence_cases import QUOTIENT, ROOT
from tests.cores.cases.elementwise_cases import ELEMENTWISE
from tests.cores.cases.position_sum_cases import POSITION_SUM
from tests.cores.cases.rearrange_cases import REARRANGE
from tests.cores.cases.requantize_cases import REQUANTIZE
from tests.cores.cases.running_sum_cases import RUNNING_SUM
from tests.cores.cases.softmax_row_cases import SOFTMAX_ROW
from tests.cores.cases.stream_matrix_cases import FETCHED_MATRIX, FETCHED_ROW, STREAM_MATRIX
from tests.cores.cases.table_rows_cases import TABLE_ROWS
from tests.cores.cases.top_k_cases import STREAM_TOP_K
from tests.cores.cases.tree_cases import TREE_ENSEMBLES
from tests.cores.cases.two_stream_cases import PRODUCT, SCALED_ADD, SIDE_BY_SIDE, STREAM_CONCAT
from tests.cores.cases.weighted_pool_cases import WEIGHTED_POOL
from tests.cores.cases.window_cases import SLIDING_WINDOW
from tests.cores.harness import Case

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
        {"outputs": 2},
        stream(5, 3, I8),
        (Folding(2, 2),),
        constant_corners,
        styles=("auto", "block"),
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

RELAY = [
    Case("image", "relay", {}, stream(6, 3, I8), (Folding(1, 1), Folding(2, 2)), constant_corners),
    Case("pixels", "relay", {}, stream(6, 3, I8), (Folding(6, 6), Folding(18, 18)), constant_corners),
    Case("vectors", "relay", {"view": (2, 9)}, stream(6, 3, I8), (Folding(4, 4),), constant_corners),
    Case("single_beat", "relay", {}, stream(1, 1, U4), (Folding(1, 1),), constant_corners),
]

# --- matrix-vector units ------------------------------------------------------------------------------------------


def mvu_corners(node: Node) -> IntArray:
    """For each output channel the frames whose every pixel gives its least and its greatest sum."""
    source, weights = node.inputs[0].typed, node.attributes.weights
    ranges = source.channel_intervals(1) * node.attributes.pixels_per_vector
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


# Weights in several banks (:func:`hdl_lib.memories.rom.banks_of`).
MVU += [_mvu("deep", 1, 9, 128, 4, U8, I8, (_fold(2, 2, "dsp"),), seed=41), *(_random_mvu(seed) for seed in range(5))]


def _with_small_weights(case: Case) -> Case:
    """The case with weights of 0 to 15 at every other input: four bits of theirs never change."""
    weights = case.attributes["weights"].copy()
    weights[:, 1::2] &= 15
    return replace(case, attributes={**case.attributes, "weights": weights})


# A table of one block RAM.
MVU.append(_mvu("middle", 2, 1, 64, 8, U8, I8, (_fold(1, 4, "dsp"), _fold(1, 4, "lut")), seed=43))
MVU.append(_with_small_weights(_mvu("deep_small_weights", 1, 9, 128, 4, U8, I8, (_fold(2, 2, "dsp"),), seed=42)))


def _vectors(case: Case) -> Case:
    """The case with lanes of whole vectors."""
    return replace(case, foldings=tuple(replace(f, whole_vector=True) for f in case.foldings))


MVU += [
    _vectors(_mvu("whole_vectors", 3, 4, 3, 5, U8, I8, (_fold(2, 2, "dsp"), _fold(2, 5, "lut")), seed=31)),
    _vectors(_mvu("whole_vectors_surplus", 2, 3, 7, 4, U4, I8, (_fold(5, 3, "dsp"), _fold(4, 4, "lut")), seed=32)),
]


def _clipped(
    name: str, windows: WindowGeometry, channels: int, outputs: int, foldings: tuple[Folding, ...],
    weight: IntType = I8, seed: int = 0,
) -> Case:
    """Products with windows of which only the taps inside the image come."""
    case = _mvu(name, windows.output[0] * windows.output[1], windows.taps, channels, outputs, I8, weight, (), seed=seed)
    attributes = case.attributes | {"windows": windows, "clipping": Clipping.CLIPPED}
    source = stream(int(windows.inside().sum()), channels, I8)
    return replace(case, attributes=attributes, source=source, foldings=foldings, corners=None)


MVU += [
    _clipped(
        "clipped", WindowGeometry(4, 4, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)), 4, 6,
        (_fold(4, 6, "dsp"), _fold(2, 2, "dsp"), _fold(3, 4, "lut")),
    ),
    _clipped(
        "clipped_strided", WindowGeometry(6, 5, (3, 3), (2, 2), (0, 0, 1, 1), (1, 1)), 2, 3,
        (_fold(1, 2, "dsp"), _fold(2, 3, "lut")), I4, 1,
    ),
    _clipped(
        "clipped_dilated", WindowGeometry(6, 7, (2, 3), (1, 2), (1, 2, 1, 2), (2, 2)), 3, 4, (_fold(2, 4, "dsp"),), I4,
        2,
    ),
    _clipped(
        "clipped_8x8", WindowGeometry(9, 10, (8, 8), (1, 1), (3, 3, 4, 4), (1, 1)), 1, 8, (_fold(1, 4, "dsp"),), I8, 3
    ),
]


def _whole(vectors: int, inputs: int, outputs: int, kind: str = "shift_add") -> Folding:
    return Folding(vectors * inputs, vectors * outputs, vectors * inputs * outputs, kind)


MVU += [
    _mvu("shift_add", 6, 1, 4, 5, I8, I8, (_whole(1, 4, 5), _whole(3, 4, 5)), seed=21),
    _mvu("shift_add_windows", 4, 3, 2, 3, U4, I4, (_whole(2, 6, 3), _whole(4, 6, 3)), seed=22, narrow=True),
    _mvu(
        "shift_add_levels", 6, 1, 4, 5, I8, I8,
        (replace(_whole(1, 4, 5), levels=2), replace(_whole(3, 4, 5), levels=4)), seed=21,
    ),
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
    _mvu("pairs_of_int8", 2, 2, 5, 5, U8, I8, (_fold2(5, 4, 25), _fold2(3, 5, 25)), narrow=True),
    _mvu("pairs_middle", 2, 1, 64, 8, U4, I4, (_fold2(1, 4),), seed=44),
    _mvu("pairs_intervals", 2, 2, 5, 4, I8, IntType(5, True), (_fold2(5, 4),), within=15),
]


def count_corners(node: Node) -> IntArray:
    """For each output channel the frames whose every pixel differs from and equals its weights wherever it can."""
    source, weights = node.inputs[0].typed, node.attributes.weights
    ranges = source.channel_intervals(1) * node.attributes.pixels_per_vector
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
    # SIMD of 2 in 5 channels: three beats per pixel, of the last a lane that does not count
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



MAX_POOL += [
    replace(_max_pool(name, *sizes), attributes={"window": sizes[2], "least": True})
    for name, *sizes in (("least", 12, 3, 4, I8, (1, 2, 3)), ("least_groups", 24, 2, 4, U8, (4, 8, 16)))
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

CASES: dict[str, list[Case]] = {
    "depthwise": DEPTHWISE,
    "elementwise": ELEMENTWISE,
    "fetched_matrix": FETCHED_MATRIX,
    "fetched_row": FETCHED_ROW,
    "fifo": FIFO,
    "relay": RELAY,
    "followed_by": FOLLOWED_BY,
    "fork": FORK,
    "frame_sync": FRAME_SYNC,
    "max_pool": MAX_POOL,
    "mvu": MVU,
    "position_sum": POSITION_SUM,
    "product": PRODUCT,
    "quotient": QUOTIENT,
    "root": ROOT,
    "rearrange": REARRANGE,
    "repeated": REPEATED,
    "requantize": REQUANTIZE,
    "running_sum": RUNNING_SUM,
    "scaled_add": SCALED_ADD,
    "side_by_side": SIDE_BY_SIDE,
    "sliding_window": SLIDING_WINDOW,
    "softmax_row": SOFTMAX_ROW,
    "stream_concat": STREAM_CONCAT,
    "stream_delay": STREAM_DELAY,
    "stream_matrix": STREAM_MATRIX,
    "stream_top_k": STREAM_TOP_K,
    "table_rows": TABLE_ROWS,
    "tree_ensemble": TREE_ENSEMBLES,
    "sum_pool": SUM_POOL,
    "weighted_pool": WEIGHTED_POOL,
    "width_converter": WIDTH_CONVERTER,
}
"""Operator name -> cases. The harness fails for a hardware operator that has none."""
