"""Cases of delays within a frame, of which each frame begins anew: of one row and of several, of one beat a row and of
many, with first rows of a single word and of a table."""

from __future__ import annotations

import numpy as np

from hwflow.cores.operator import Folding
from hwflow.types import IntType, TensorType
from tests.cores.cases.case_parts import I4, I8, U1, U8, constant_corners, stream
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
