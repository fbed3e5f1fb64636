"""The schedule of whole windows by hand, and what the cores refuse. Values and cycles: tests/ops."""

import pytest
from amaranth.hdl import signed, unsigned

from hdl_lib.windows.pool_tree import MaxPoolTree, SumPoolTree
from hdl_lib.windows.window_geometry import WindowGeometry
from hdl_lib.windows.window_image import WindowImage
from hdl_lib.windows.window_rows import WindowRows
from hdl_lib.windows.window_steps import WindowSteps


def geometry(height=8, width=8, kernel=(3, 3), stride=(1, 1), pads=(1, 1, 1, 1), dilation=(1, 1)):
    return WindowGeometry(height, width, kernel, stride, pads, dilation)


def test_a_pixel_a_beat():
    """The last column of a window comes a step after its middle one: the last window leaves after the last pixel."""
    steps = WindowSteps(geometry(), 1, 1)
    assert (steps.words, steps.row_steps, steps.beats, steps.period, steps.delay) == (8, 8, 8, 1, 1)
    assert (steps.tail, steps.steps) == (1, 65)
    assert [steps.sends(0, 0), steps.sends(0, 7), steps.sends(1, 0), steps.sends(7, 7)] == [1, 8, 9, 64]
    # The left column is outside for the first window, the right one for the last.
    assert steps.columns == {-1: (1, 7), 0: (0, 7), 1: (0, 6)}
    assert steps.kernel_rows == {0: (1, 7), 1: (0, 7), 2: (0, 6)}
    assert steps.ages == {0: 2}


def test_two_pixels_a_beat():
    """Windows 2b and 2b + 1 take columns 2b - 1 to 2b + 2: of words b - 1, b and b + 1."""
    steps = WindowSteps(geometry(), 2, 2)
    assert (steps.row_steps, steps.beats, steps.delay, steps.tail, steps.steps) == (4, 4, 1, 1, 33)
    assert steps.columns == {-1: (1, 3), 0: (0, 3), 1: (0, 3), 2: (0, 2)}
    assert steps.ages == {0: 1, 1: 2}


def test_whole_rows():
    """The columns beyond the image are never there: no waiting for them."""
    steps = WindowSteps(geometry(), 8, 8)
    assert (steps.row_steps, steps.beats, steps.delay, steps.tail, steps.steps) == (1, 1, 0, 0, 8)
    assert steps.columns == dict.fromkeys(range(8), (0, 0))


def test_without_pads():
    """6 of 8 columns have a window: the first leaves with the third pixel, the last with the last one."""
    steps = WindowSteps(geometry(pads=(0, 0, 0, 0)), 1, 1)
    assert (steps.delay, steps.tail, steps.steps) == (2, 0, 48)
    assert [steps.sends(0, 0), steps.sends(0, 5), steps.sends(1, 0)] == [2, 7, 10]


def test_every_other_pixel():
    """2 x 2 at stride 2: a window for two pixels, in every other step; or one a word of two."""
    pool = geometry(kernel=(2, 2), stride=(2, 2), pads=(0, 0, 0, 0))
    assert [WindowSteps(pool, 1, 1).sends(0, b) for b in range(4)] == [1, 3, 5, 7]
    assert [WindowSteps(pool, 2, 1).sends(1, b) for b in range(4)] == [4, 5, 6, 7]


def test_more_windows_than_pixels():
    """2 columns and 5 to their right, windows of 3: 5 of them in a row, though there are but 2 words."""
    steps = WindowSteps(geometry(height=3, width=2, kernel=(1, 3), pads=(0, 0, 0, 5)), 1, 1)
    assert (steps.words, steps.beats, steps.row_steps, steps.delay, steps.tail) == (2, 5, 5, 1, 1)


@pytest.mark.parametrize(
    ("pixels", "windows", "message"),
    [
        (3, 1, "^pixels must divide the width of 8, not 3$"),
        (0, 1, "^pixels must divide the width of 8, not 0$"),
        (1, 3, "^windows must divide the width of 8, not 3$"),
        (4, 2, "^windows must be a multiple of 4 pixels apart from beat to beat, not 2$"),
    ],
)
def test_what_a_schedule_refuses(pixels, windows, message):
    with pytest.raises(ValueError, match=message):
        WindowSteps(geometry(), pixels, windows)


def test_what_the_window_cores_refuse():
    steps = WindowSteps(geometry(), 2, 2)
    with pytest.raises(ValueError, match=r"^rows must be at least 3, not 2: "):
        WindowRows(signed(4), signed(4), 1, steps, rows=2, depth=3)
    with pytest.raises(ValueError, match=r"^channels must be at least 1, not 0$"):
        WindowRows(signed(4), signed(4), 0, steps, rows=3, depth=3)
    with pytest.raises(ValueError, match=r"^pad_value must be in -8\.\.7, the range of signed\(4\), not 8$"):
        WindowRows(signed(4), signed(4), 1, steps, pad_value=8, rows=3, depth=3)
    with pytest.raises(ValueError, match=r"^depth must be an integer of at least 1, not 0$"):
        WindowImage(signed(4), signed(4), 1, geometry(), depth=0)
    with pytest.raises(ValueError, match=r"^channels must be at least 1, not 0$"):
        WindowImage(signed(4), signed(4), 0, geometry(), depth=1)


def test_latencies():
    """Rows in memories are read two cycles after they came in and four before they leave; those in registers one and
    two. Columns that only some beats have cost one more."""
    assert (WindowRows.lag_of(4), WindowRows.lag_of(1)) == (2, 1)
    assert WindowRows.latency_of(WindowSteps(geometry(pads=(1, 0, 1, 0)), 2, 2)) == 4
    assert WindowRows.latency_of(WindowSteps(geometry(), 2, 2)) == 5
    assert WindowRows.latency_of(WindowSteps(geometry(), 8, 8)) == 2
    # a column image, a window for each of the two pads: the pixel is in the right place of the second one only
    column = geometry(width=1, kernel=(3, 2), pads=(1, 1, 1, 1))
    assert WindowRows.latency_of(WindowSteps(column, 1, 1)) == 3
    # 9 pixels: 5, 3, 2, 1 are left level by level; with 4 of 64 per beat two levels and the running result
    assert MaxPoolTree.latency_of(9, 9) == 5
    assert SumPoolTree.latency_of(4, 64) == 4
    assert MaxPoolTree.latency_of(8, 1) == 1


@pytest.mark.parametrize(("pixels", "window"), [(3, 4), (6, 4), (0, 4), (1, 0)])
def test_what_pools_refuse(pixels, window):
    with pytest.raises(ValueError, match=rf"^pixels must divide the window of {window} or be a multiple of it, not"):
        MaxPoolTree(unsigned(4), 1, pixels, window, depth=1)
    with pytest.raises(ValueError, match=r"^channels must be at least 1, not 0$"):
        SumPoolTree(unsigned(4), unsigned(8), 0, 1, 4, depth=1)
