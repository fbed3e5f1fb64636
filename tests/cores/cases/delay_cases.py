"""Cases of what is in circuits within a frame.

Delays of which each frame begins anew: of one row and of several, of one beat a row and of many, with first rows of a
single word and of a table. First rows followed by others, of types that are narrower and wider than the result's. Cores
that are repeated: with processes that wait for each other, with several inputs, with weights.
"""

from __future__ import annotations

import numpy as np

from hwflow.cores.loops.repeated import tiled
from hwflow.cores.operator import Folding
from hwflow.cores.registry import hardware
from hwflow.types import Interval, IntType, TensorType
from tests.cores.cases.case_parts import I4, I8, U1, U4, U8, constant_corners, stream
from tests.cores.cases.rearrange_cases import REARRANGE
from tests.cores.cases.requantize_cases import REQUANTIZE
from tests.cores.cases.two_stream_cases import PRODUCT
from tests.cores.harness import Case


def _case(
    name: str, rows: int, pixels: int, channels: int, element: IntType, lanes: tuple[int, ...], *, delay: int = 1,
    constant: int | None = None,
) -> Case:
    """``rows`` of so many ``pixels``; all of the first row are ``constant``, or random (None)."""
    type_: TensorType = stream(rows * pixels, channels, element)
    rng = np.random.default_rng(rows * pixels * channels)
    initial = rng.integers(element.min, element.max + 1, (pixels, channels))
    if constant is not None:
        initial[:] = constant
    attributes = {"type": type_, "initial": initial, "delay": delay, "rows": rows, "anew": True}
    foldings = tuple(Folding(n, n) for n in lanes)
    return Case(name, "stream_delay", attributes, type_, foldings, None if rows == delay else constant_corners)


STREAM_DELAY = [
    _case("rows", 4, 2, 3, I8, (1, 2, 3, 6)),
    _case("zeros", 4, 2, 3, I8, (1, 3, 6), constant=0),
    _case("single_beats", 5, 1, 4, I4, (4,)),
    _case("single_constant", 3, 1, 2, U8, (2,), constant=200),
    _case("two_rows", 6, 1, 3, U8, (1, 2, 3), delay=2),
    _case("all_rows", 2, 3, 2, I8, (1, 2), delay=2),
    _case("bits", 3, 5, 1, U1, (1, 5)),
    _case("in_block_ram", 2, 40, 12, I8, (1, 12)),
]


def _followed(
    name: str, rows: int, pixels: int, channels: int, elements: tuple[IntType, IntType, IntType],
    lanes: tuple[int, ...], *, constant: int | None = None,
) -> Case:
    """``elements``: of the first row, of those behind it, and of the result, whose integers all of them have.
    ``constant``: all of the first row."""
    first, rest, result = elements
    held = stream(pixels, channels, first)
    least, most = max(rest.min, result.min), min(rest.max, result.max)
    back = TensorType((rows * pixels, channels), rest, Interval(least, most))
    attributes = {"type": stream(rows * pixels, channels, result), "rounds": rows, "first": constant}
    foldings = tuple(Folding(n, n) for n in lanes)
    if constant is not None:
        return Case(name, "followed_by", attributes, back, foldings)
    return Case(name, "followed_by", attributes, held, foldings, None, (back,))


FOLLOWED_BY = [
    _followed("rows", 4, 2, 3, (I8, I8, I8), (1, 2, 3, 6)),
    _followed("two", 2, 1, 1, (U8, U8, U8), (1,)),
    _followed("single_beats", 5, 1, 4, (I4, I8, I8), (4,)),
    _followed("cut", 3, 2, 2, (U4, IntType(12, True), I8), (1, 2, 4)),
    _followed("unsigned_cut", 3, 3, 2, (U4, I8, U4), (2,)),
    _followed("constant", 4, 2, 3, (I8, I8, I8), (1, 3, 6), constant=-77),
]


def _repeated(case: Case, rounds: int, foldings: int = 2) -> Case:
    attributes = {"node": case.node(), "operator": hardware(case.op), "rounds": rounds}
    source, *others = (tiled(each, rounds) for each in case.sources)
    chosen = tuple(f for f in case.foldings if not f.clipped)[:foldings]
    return Case(f"{case.op}_{case.name}", "repeated", attributes, source, chosen, None, tuple(others))


REPEATED = [
    _repeated(PRODUCT[0], 3),
    _repeated(next(case for case in REQUANTIZE if case.name == "search_ties_alike"), 4),
    _repeated(next(case for case in REQUANTIZE if case.name == "search_values_in_steps"), 3, 1),
    *(_repeated(case, 3, 1) for case in REARRANGE[:4]),
]
