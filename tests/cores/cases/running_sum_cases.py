"""Cases of running sums."""

from __future__ import annotations

from hwflow.cores.operator import Folding
from hwflow.types import Interval, IntType
from tests.cores.cases.case_parts import I4, I8, I16, U1, U4, U8, constant_corners, stream
from tests.cores.harness import Case


def _case(
    name: str, pixels: int, channels: int, window: int, element: IntType, lanes: tuple[int, ...], *, inner: int = 0,
    exclusive: bool = False, wrap: IntType | None = None, intervals: tuple[Interval, ...] = (),
) -> Case:
    """A stream (pixels, channels), seen as pixels of ``inner`` elements (0: of its channels)."""
    attributes = {"window": window, "inner": inner or channels, "exclusive": exclusive, "wrap": wrap}
    # Where a channel of the stream has several places of a group, its interval is that of all.
    corners = constant_corners if wrap is None and inner in (0, channels) else None
    foldings = tuple(Folding(n, n) for n in lanes)
    return Case(name, "running_sum", attributes, stream(pixels, channels, element, intervals), foldings, corners)


RUNNING_SUM = [
    _case("rows", 12, 3, 4, I8, (1, 2, 3)),
    _case("exclusive", 12, 3, 4, I8, (1, 2, 3), exclusive=True),
    _case("of_channels", 3, 7, 7, U8, (1,), inner=1),
    _case("of_channels_exclusive", 3, 7, 7, I4, (1,), inner=1, exclusive=True),
    _case("in_memory", 6, 7, 3, U4, (1, 4)),
    _case("in_memory_exclusive", 6, 7, 3, I8, (1,), exclusive=True),
    _case("of_columns", 12, 2, 3, I8, (1, 2, 4, 8), inner=8),
    _case("of_columns_surplus", 12, 3, 3, U4, (1, 2, 3, 6), inner=6),
    _case("of_parts", 3, 12, 3, I4, (1, 2), inner=2),
    _case("alone", 4, 3, 1, I4, (1, 3)),
    _case("alone_exclusive", 4, 3, 1, I4, (1, 3), exclusive=True),
    _case("bits", 14, 2, 7, U1, (1, 2)),
    _case("wrapping", 12, 2, 6, I16, (1, 2), wrap=I16),
    _case("wrapping_exclusive", 12, 2, 6, U8, (1, 2), wrap=U8, exclusive=True),
    _case("intervals", 6, 2, 6, I8, (2,), intervals=(Interval(-3, 5), Interval(2, 100))),
]
