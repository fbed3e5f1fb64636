"""Cases of what takes two streams: sums, products, concatenations."""

from __future__ import annotations

import numpy as np

from hwflow.cores.operator import Folding
from hwflow.types import Interval, IntType, TensorType
from tests.cores.cases.case_parts import I4, I8, I12, I16, U1, U4, U8, intervals_within, paired_corners, stream
from tests.cores.harness import Case

U32 = IntType(32, False)


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
    wrap: IntType | None = None,
    part: int = 0,
) -> Case:
    rng = np.random.default_rng(channels)
    sources = [stream(pixels, channels, e, intervals_within(e, channels, rng) if narrow else ()) for e in elements]
    foldings = tuple(Folding(n, n, 0, kind, part if kind == "dsp" else 0) for n in lanes for kind in kinds)
    attributes = {"offsets": offsets, "wrap": wrap}
    corners = paired_corners if wrap is None else None
    return Case(name, "product", attributes, sources[0], foldings, corners, (sources[1],))


PRODUCT = [
    _product("wrapped", 2, 3, (I8, I8), (0, 0), (3,), wrap=I8),
    _product("wrapped_wide", 2, 2, (U32, U32), (0, 0), (1,), wrap=U32, part=17),
    _product("bytes", 3, 5, (U8, I8), (0, 0), (1, 2, 5, 15)),
    _product("offsets", 3, 3, (U8, U8), (128, 7), (2,)),
    _product("one_offset", 2, 2, (I8, U4), (-128, 0), (1,)),
    _product("bits", 3, 3, (U1, I4), (0, 0), (3,), ("lut",)),
    _product("sixteen", 2, 1, (I16, IntType(16, False)), (5, 32768), (1,)),
    _product("parts", 2, 2, (IntType(40, False), IntType(20, False)), (0, 0), (2,), ("dsp",), part=17),
    _product("signed_parts", 2, 1, (IntType(30, True), IntType(15, True)), (5, -3), (1,), ("dsp",), part=17),
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


def _side_by_side(
    name: str, rows: int, width: int, channels: int, spans: tuple[range, ...], lanes: tuple[int, ...],
    element: IntType = I8, fill: int = 0,
) -> Case:
    attributes = {"rows": rows, "width": width, "spans": spans, "fill": fill}
    streams = [stream(len(span) * width, channels, element) for span in spans]
    foldings = tuple(Folding(n, n) for n in lanes)
    return Case(name, "side_by_side", attributes, streams[0], foldings, None, tuple(streams[1:]))


SIDE_BY_SIDE = [
    _side_by_side("same", 5, 4, 2, (range(4), range(5), range(1, 5)), (1, 2), fill=-5),
    _side_by_side("same_of_many_channels", 4, 3, 12, (range(3), range(4), range(1, 4)), (1, 4, 12), fill=-128),
    _side_by_side("valid", 3, 5, 2, (range(3), range(3), range(3)), (2,)),
    _side_by_side("two", 4, 3, 3, (range(4), range(1, 4)), (1, 3), U4, 3),
    _side_by_side("beyond_the_type", 4, 2, 2, (range(3), range(4)), (2,), U4, -1),
    _side_by_side("some_rows", 6, 2, 1, (range(2), range(1, 6), range(3, 5), range(6), range(5, 6)), (1,), fill=7),
    _side_by_side("a_row", 1, 4, 2, (range(1), range(1)), (1, 2)),
    _side_by_side("a_large_image", 24, 40, 4, (range(23), range(24), range(1, 24)), (1, 4), fill=-128),
]
