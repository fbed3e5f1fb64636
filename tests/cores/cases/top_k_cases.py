"""Cases of the greatest of groups of pixels: serial, trees of several pixels, several results, all that is taken."""

from __future__ import annotations

from hwflow.cores.operator import Folding
from hwflow.types import IntType
from tests.cores.cases.case_parts import I4, I8, I16, U1, U4, U8, stream
from tests.cores.harness import Case


def _case(
    name: str, pixels: int, channels: int, window: int, element: IntType, lanes: tuple[int, ...], *, inner: int = 0,
    k: int = 1, least: bool = False, last: bool = False, take: str = "index",
) -> Case:
    """A stream (pixels, channels), seen as pixels of ``inner`` elements (0: of its channels)."""
    inner = inner or channels
    foldings = tuple(Folding(n, n * k if n <= inner else max(inner, n // window)) for n in lanes)
    attributes = {"window": window, "inner": inner, "k": k, "least": least, "last": last, "take": take}
    return Case(name, "stream_top_k", attributes, stream(pixels, channels, element), foldings)


STREAM_TOP_K = [
    _case("classes", 1, 10, 10, I8, (1, 2, 5, 10), inner=1),
    _case("classes_of_sums", 1, 12, 12, IntType(21, True), (1, 3, 4, 12), inner=1),
    _case("classes_of_pixels", 6, 4, 4, U8, (1, 2, 4, 8, 24), inner=1),
    _case("pixels_of_channels", 8, 3, 4, I4, (1, 2, 3, 6, 12, 24)),
    _case("in_memory", 6, 7, 3, U4, (1, 3)),
    _case("bits", 14, 2, 7, U1, (1, 2, 14, 28)),
    _case("last_of_equal", 12, 2, 6, IntType(2, True), (1, 2, 4, 6, 12), last=True),
    _case("least", 12, 2, 6, U4, (1, 2, 4, 12), least=True),
    _case("least_last", 12, 1, 6, IntType(2, False), (1, 2, 3, 12), least=True, last=True),
    _case("alone", 4, 3, 1, I4, (1, 3, 6), take="value"),
    _case("values", 6, 2, 3, I8, (1, 2, 6), take="value"),
    _case("both", 8, 2, 4, I8, (1, 2, 4, 8), take="both"),
    _case("three", 1, 20, 20, I8, (1,), inner=1, k=3),
    _case("three_side_by_side", 10, 4, 5, U4, (1, 3, 4), k=3, take="both"),
    _case("two_in_memory", 6, 6, 3, U4, (1,), k=2, take="both"),
    _case("all_sorted", 4, 2, 4, I4, (1, 2), k=4, take="value"),
    _case("least_three", 7, 1, 7, I16, (1,), k=3, least=True, take="both"),
]
