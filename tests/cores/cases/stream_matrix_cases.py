"""Cases of products of vectors with matrices that come as a stream."""

from __future__ import annotations

import itertools

import numpy as np

from hdl_lib.matrices.stream_matrix import Along, MatrixRounds
from hwflow.cores.operator import Folding
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, IntType
from tests.cores.cases.case_parts import I2, I4, I8, I16, U1, U4, U8, intervals_within, paired_corners, stream
from tests.cores.harness import Case


def _case(
    name: str,
    rounds: MatrixRounds,
    lanes: tuple[tuple[int, int], ...],
    kinds: tuple[str, ...] = ("dsp",),
    *,
    frame: int = 1,
    elements: tuple[IntType, IntType] = (I8, I8),
    offsets: tuple[int, int] = (0, 0),
    part: int = 0,
    narrow: bool = False,
) -> Case:
    """``lanes``: rows and columns at a time; ``frame``: rounds of a frame; ``narrow``: with an interval per channel."""
    beat = rounds.inner if rounds.along == Along.INNER else rounds.outer
    shapes = (
        (frame * rounds.vectors, rounds.inner),
        (frame * rounds.sets * rounds.inner * rounds.outer // beat, beat),
    )
    rng = np.random.default_rng(rounds.inner)
    sources = [
        stream(pixels, channels, element, intervals_within(element, channels, rng) if narrow else ())
        for (pixels, channels), element in zip(shapes, elements, strict=True)
    ]
    foldings = tuple(Folding(simd, pe, pe * simd, kind, part) for pe, simd in lanes for kind in kinds)
    attributes = {"rounds": rounds, "offsets": offsets}
    extremes = _corners if narrow else paired_corners
    return Case(name, "stream_matrix", attributes, sources[0], foldings, extremes, (sources[1],))


def _fetched(
    name: str, shape: tuple[int, int], group: int, frame: int, lanes: tuple[tuple[int, int], ...], *, many: bool = False
) -> Case:
    """Weights of ``shape`` for groups of vectors, of which a frame has several; ``many``: rows of them are held."""
    outputs, inputs = shape
    rounds = MatrixRounds(inputs, group, outputs)
    sources = stream(frame * outputs, inputs, I4), stream(frame * group, inputs, U4)
    foldings = tuple(Folding(simd, pe, pe * simd, "lut") for pe, simd in lanes)
    sums = Interval(-8 * 15 * inputs, 7 * 15 * inputs)
    attributes = {"rounds": rounds, "offsets": (0, 0), "sums": sums, "many": many}
    return Case(name, "fetched_matrix", attributes, sources[0], foldings, paired_corners, (sources[1],))


def _fetched_rows(
    name: str, shape: tuple[int, int], segment: int, frame: int, lanes: tuple[int, ...], kinds: tuple[str, ...]
) -> Case:
    """Weights of ``shape`` for segments of windows, of which a frame has several."""
    outputs, inputs = shape
    rounds = MatrixRounds(inputs, 1, segment)
    sources = stream(frame * outputs * segment, inputs, U8), stream(frame * outputs, inputs, I8)
    foldings = tuple(Folding(simd, 1, simd, kind) for simd in lanes for kind in kinds)
    attributes = {"rounds": rounds, "offsets": (0, 0), "sums": Interval(-128 * 255 * inputs, 127 * 255 * inputs)}
    return Case(name, "fetched_row", attributes, sources[0], foldings, paired_corners, (sources[1],))


def _corners(node: Node) -> list[IntArray]:
    """For each channel of the results the factors of the least and of the greatest sum: each product by itself."""
    rounds, offsets = node.attributes.rounds, node.attributes.offsets
    x_ranges, w_ranges = (value.typed.channel_intervals(1) for value in node.inputs)
    xs, ws = [], []
    for outer in range(rounds.outer):
        for best in (min, max):
            pairs = [
                best(
                    itertools.product((x.lo, x.hi), (w.lo, w.hi)),
                    key=lambda pair: (pair[0] - offsets[0]) * (pair[1] - offsets[1]),
                )
                for x, w in zip(
                    x_ranges, w_ranges if rounds.along == Along.INNER else [w_ranges[outer]] * rounds.inner, strict=True
                )
            ]
            x, w = np.array(pairs).T
            xs.append(np.broadcast_to(x, node.inputs[0].typed.shape))
            if rounds.along == Along.INNER:
                ws.append(np.broadcast_to(w, node.inputs[1].typed.shape))
            else:
                ws.append(np.stack([np.clip(w, r.lo, r.hi) for r in w_ranges], axis=1))
    return [np.stack(xs), np.stack(ws)]


INNER, OUTER = Along.INNER, Along.OUTER

STREAM_MATRIX = [
    _case("rows", MatrixRounds(6, 4, 5), ((1, 1), (2, 3), (4, 6), (4, 2), (1, 6)), ("dsp", "lut")),
    _case("columns", MatrixRounds(6, 4, 5, along=OUTER), ((1, 1), (2, 3), (4, 6), (4, 2), (1, 6))),
    _case("uneven_rows", MatrixRounds(7, 5, 3), ((2, 3), (3, 2), (4, 5)), frame=2, offsets=(3, -7)),
    _case("uneven_columns", MatrixRounds(7, 5, 3, along=OUTER), ((2, 3), (3, 2), (4, 5)), frame=2, offsets=(3, -7)),
    _case("heads", MatrixRounds(4, 3, 6, sets=2, interleaved=True), ((1, 2), (2, 3)), elements=(U8, I8)),
    _case("heads_columns", MatrixRounds(3, 4, 6, sets=3, along=OUTER, interleaved=True), ((3, 2), (2, 1), (4, 3))),
    # Memories of several parts, chosen among behind a register: the word takes longer than the vector.
    _case("parts", MatrixRounds(8, 130, 2, sets=2), ((1, 4),), ("dsp", "lut"), frame=2),
    _case("parts_at_once", MatrixRounds(4, 530, 1), ((1, 4),), frame=2),
    _case("sets", MatrixRounds(3, 3, 12, sets=3, repeat=2), ((1, 1), (2, 2), (3, 3)), ("lut",), offsets=(128, 0)),
    _case("sets_columns", MatrixRounds(3, 2, 8, sets=2, repeat=4, along=OUTER), ((1, 1), (2, 3)), frame=3),
    _case("few_vectors", MatrixRounds(5, 6, 1), ((2, 5), (6, 5), (1, 1)), ("dsp", "lut"), elements=(U8, U8)),
    _case("one_product", MatrixRounds(1, 1, 1, along=OUTER), ((1, 1),), ("dsp", "lut"), elements=(U4, I4), frame=2),
    _case("outer_product", MatrixRounds(1, 4, 3), ((1, 1), (4, 1)), elements=(U8, U8), offsets=(128, 255)),
    _case("bits", MatrixRounds(5, 3, 2), ((1, 2), (3, 5)), ("lut",), elements=(U1, U1)),
    _case("signs", MatrixRounds(5, 3, 2, along=OUTER), ((1, 2), (2, 3)), ("lut",), elements=(I2, I2)),
    _case("one_bit_vectors", MatrixRounds(4, 3, 4), ((2, 3),), ("lut",), elements=(U1, I8), offsets=(0, 3)),
    _case("sixteen", MatrixRounds(3, 2, 2), ((1, 2), (2, 3)), elements=(I16, I16), offsets=(5, 0), part=17),
    _case("packed", MatrixRounds(6, 5, 5), ((2, 1), (3, 2), (5, 6)), ("dsp2",), elements=(I4, I4), part=17),
    _case(
        "packed_columns", MatrixRounds(5, 4, 3, along=OUTER), ((2, 2), (4, 5), (3, 1)), ("dsp2",), elements=(U4, I4),
        offsets=(3, -2), part=17,
    ),
    _case("packed_unsigned", MatrixRounds(4, 4, 3), ((4, 2), (2, 4)), ("dsp2",), elements=(I4, U4), part=17),
    _case("intervals", MatrixRounds(4, 3, 3), ((2, 3),), narrow=True, offsets=(9, 100)),
    _case("interval_columns", MatrixRounds(4, 3, 3, along=OUTER), ((2, 3),), ("lut",), narrow=True, offsets=(9, 100)),
]

FETCHED_MATRIX = [
    _fetched("groups", (4, 5), 3, 2, ((1, 2), (3, 5), (2, 3))),
    _fetched("a_vector", (6, 4), 1, 1, ((1, 1), (1, 4))),
    _fetched("whole_rows", (4, 5), 3, 2, ((1, 1), (2, 2), (1, 3), (1, 5), (3, 5)), many=True),
]

FETCHED_ROW = [
    _fetched_rows("segments", (4, 6), 3, 2, (1, 2, 6), ("dsp", "lut")),
    _fetched_rows("uneven", (3, 5), 2, 2, (2, 3), ("lut",)),
    _fetched_rows("a_window", (5, 4), 1, 3, (1, 4), ("lut",)),
]
