"""SideBySide: the rows of several inputs side by side, padding where one has none, at a beat a cycle."""

from __future__ import annotations

import re

import pytest
from amaranth.hdl import signed, unsigned

from hdl_lib.external.rows_side_by_side import SideBySide
from tests.hdl_lib.bench import STALLS, drive

FRAMES = 3
FILL = -3
FORMS = [
    {"blocks": 1, "width": 3, "rows": 2, "spans": [range(2), range(2)]},
    {"blocks": 1, "width": 2, "rows": 3, "spans": [range(2), range(3), range(1, 3)]},
    {"blocks": 2, "width": 3, "rows": 4, "spans": [range(3), range(1, 4)]},
    {"blocks": 3, "width": 1, "rows": 4, "spans": [range(1), range(1, 2), range(3, 4), range(4)]},
    {"blocks": 1, "width": 1, "rows": 1, "spans": [range(1), range(1)]},
]


def dut(depth: int = 3, **form) -> SideBySide:
    return SideBySide(unsigned(6), lanes=1, output_shape=signed(7), fill=FILL, depth=depth, **form)


def offered(form) -> list[list[int]]:
    """The beats of each input, all different."""
    sizes = [FRAMES * len(span) * form["width"] * form["blocks"] for span in form["spans"]]
    return [[(17 * k + 5 * n) % 64 for n in range(size)] for k, size in enumerate(sizes)]


def expected(form, beats: list[list[int]]) -> list[int]:
    """What the definition says, beat by beat."""
    left, results = [iter(own) for own in beats], []
    for row in list(range(form["rows"])) * FRAMES:
        for _ in range(form["width"]):
            for span, own in zip(form["spans"], left, strict=True):
                results += [next(own) if row in span else FILL % 128 for _ in range(form["blocks"])]
    return results


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("gap", "stall"), STALLS)
def test_beats(form, gap: float, stall: float) -> None:
    core, beats = dut(**form), offered(form)
    wanted = expected(form, beats)
    more = list(zip(core.i[1:], beats[1:], strict=True))
    trace = drive(core, beats[0], len(wanted), gap=gap, stall=stall, i=core.i[0], more=more)
    assert trace.beats == wanted
    if not gap and not stall:
        start = trace.out_cycles[0]
        assert start == SideBySide.latency
        assert trace.out_cycles == list(range(start, start + len(wanted)))


@pytest.mark.parametrize(
    ("spans", "fill", "message"),
    [
        ([range(3)], 0, "spans must be two or more of 3 rows"),
        ([range(3), range(1, 1)], 0, "spans must be two or more of 3 rows, not empty"),
        ([range(3), range(1, 4)], 0, "spans must be two or more of 3 rows"),
        ([range(1, 3), range(3)], 0, "spans must be two or more of 3 rows, not empty, the first one from row 0 on"),
        ([range(3), range(3)], 64, "fill must be in -64..63, the range of signed(7), not 64"),
    ],
)
def test_what_it_cannot_be(spans, fill: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        SideBySide(
            unsigned(6), lanes=1, blocks=1, width=1, rows=3, spans=spans, output_shape=signed(7), fill=fill, depth=3
        )
