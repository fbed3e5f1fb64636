"""Pixels that windows need and release, against the pixels that each window covers."""

from __future__ import annotations

import random

import pytest

from hdl_lib.windows.pixel_steps import PixelSteps
from hdl_lib.windows.window_geometry import WindowGeometry


def _geometries(seed: int, count: int) -> list[WindowGeometry]:
    rng, found = random.Random(seed), []
    while len(found) < count:
        numbers = [rng.randint(1, high) for high in (7, 7, 4, 4, 4, 4, 3, 3)]
        pads = tuple(rng.randint(0, 4) for _ in range(4))
        height, width, *rest = numbers
        kernel, stride, dilation = zip(rest[::2], rest[1::2], strict=True)
        try:
            found.append(WindowGeometry(height, width, kernel, stride, pads, dilation))
        except ValueError:  # no window fits
            continue
    return found


def _covered(g: WindowGeometry, row: int, column: int) -> list[int]:
    """The pixels of a window inside the image."""
    rows = [row * g.stride[0] - g.pads[0] + k * g.dilation[0] for k in range(g.kernel[0])]
    columns = [column * g.stride[1] - g.pads[1] + k * g.dilation[1] for k in range(g.kernel[1])]
    return [y * g.width + x for y in rows if 0 <= y < g.height for x in columns if 0 <= x < g.width]


@pytest.mark.parametrize("seed", range(4))
def test_no_window_lacks_a_pixel(seed: int) -> None:
    """What is released is not covered by a later window; what is needed is there, and no more than the frame has."""
    for g in _geometries(seed, 100):
        steps, needed, released = PixelSteps(g), 0, 0
        for row in range(g.out_height):
            for column in range(g.out_width):
                covered = _covered(g, row, column)
                assert max([0, *covered]) < steps.needed(row, column) <= g.height * g.width, g
                assert min([released, *covered]) >= released, g
                assert steps.needed(row, column) >= needed and steps.released(row, column) >= released, g
                needed, released = steps.needed(row, column), steps.released(row, column)
        assert released == g.height * g.width


@pytest.mark.parametrize("seed", range(4, 8))
def test_changes_add_up_frame_after_frame(seed: int) -> None:
    """The changes that hardware adds give the same numbers, and what bounds its counts bounds them."""
    for g in _geometries(seed, 100):
        steps = PixelSteps(g)
        columns, rows, moving = (
            [(step.needed, step.released) for step in some for _ in range(step.count)]
            for some in (steps.column_steps, steps.row_steps, steps.moving_rows)
        )
        assert (len(columns), len(rows), len(moving)) == (g.out_width, g.out_height, g.out_height)
        needed, released = steps.needed(0, 0), 0
        held, surplus, lead = [], [], []
        for frame in range(2):
            for row in range(g.out_height):
                for column in range(g.out_width):
                    before = frame * g.height * g.width
                    assert needed == before + steps.needed(row, column), g
                    held.append(needed - released)
                    lead.append(released - needed)
                    change = tuple(a * b for a, b in zip(columns[column], moving[row], strict=True))
                    change = rows[row] if column == g.out_width - 1 else change
                    assert min(change) >= 0 and change[0] <= steps.most_needed
                    released += change[1]
                    assert released == before + steps.released(row, column), g
                    surplus.append(released - needed)
                    needed += change[0]
        assert (max(1, *held), max(surplus), max(lead)) == (
            steps.minimum, steps.greatest_surplus, steps.greatest_lead
        ), g


def test_by_hand() -> None:
    """Of 3 x 3 with pads over 4 x 5: two rows and three pixels; with stride 2 and no pads on top, the same."""
    same = PixelSteps(WindowGeometry(4, 5, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)))
    assert [same.needed(0, x) for x in range(5)] == [7, 8, 9, 10, 10]
    assert [same.released(1, x) for x in range(5)] == [0, 1, 2, 3, 5]
    assert [same.released(0, x) for x in range(5)] == [0] * 5
    assert same.minimum == 13
    strided = PixelSteps(WindowGeometry(5, 5, (3, 3), (2, 2), (0, 0, 0, 0), (1, 1)))
    assert [strided.needed(1, x) for x in range(2)] == [23, 25]
    assert [strided.released(0, x) for x in range(2)] == [2, 10]
    assert strided.minimum == 13
