"""What an engine's layers compute and count, by hand."""

from __future__ import annotations

import numpy as np

from hwflow.cores.engine.engine_layers import AddedMap, EngineLayer, evaluate, macs_of_data
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.types import Interval

SUMS = Interval(-1000, 1000)


def test_a_row_of_three_pixels() -> None:
    window = WindowGeometry(1, 3, (1, 3), (1, 1), (0, 1, 0, 1), (1, 1))
    # y = (2 * sum + 1) >> 1, of taps 1, 2, 3 and padding 5: 5 + 2 + 6 = 13, 1 + 4 + 12 = 17, 2 + 8 + 15 = 25.
    first = EngineLayer(window, 0, 5, np.array([[1, 2, 3]]), False, SUMS, MultiplyAddShift((2,), (1,), 1, -128, 127))
    image = np.array([1, 2, 4]).reshape(1, 3, 1)
    np.testing.assert_array_equal(evaluate([first], image).reshape(-1), [13, 17, 25])
    # The image, twice, is added to what a diagonal layer makes of it; over 4, at most 6.
    point = WindowGeometry(1, 3, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))
    form = MultiplyAddShift((1,), (0,), 0, -128, 127)
    added = AddedMap(0, (1, 2), MultiplyAddShift((1,), (0,), 2, 0, 6))
    second = EngineLayer(point, 1, 0, np.array([[1]]), True, SUMS, form, added)
    np.testing.assert_array_equal(evaluate([first, second], image).reshape(-1), [3, 5, 6])  # 15, 21, 33 over 4
    assert macs_of_data([first, second]) == 7 + 3
    assert (second.limits.lo, second.limits.hi) == (0, 6)


def test_a_table() -> None:
    """Squares of -2, -1, 3, up to 7: 4, 1, 7."""
    point = WindowGeometry(1, 3, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))
    table = tuple(min(7, (byte - 256 * (byte > 127)) ** 2) for byte in range(256))
    form = MultiplyAddShift((1,), (0,), 0, -2, 3)
    layer = EngineLayer(point, 0, 0, np.array([[1]]), True, SUMS, form, table=table)
    np.testing.assert_array_equal(evaluate([layer], np.array([-5, -1, 9]).reshape(1, 3, 1)).reshape(-1), [4, 1, 7])
    assert (layer.limits.lo, layer.limits.hi) == (0, 7)


def test_maxima() -> None:
    """Of pairs of 3, -7, -2, -5, -9, -4: 3, -2, -4; four times as much over 4 is the same, and no product counts."""
    window = WindowGeometry(1, 6, (1, 2), (1, 2), (0, 0, 0, 0), (1, 1))
    form = MultiplyAddShift((1,), (0,), 2, -128, 127)
    pool = EngineLayer(window, 0, 0, np.full((2, 1), 4), True, SUMS, form, maximum=True)
    image = np.array([3, -7, -2, -5, -9, -4]).reshape(1, 6, 1)
    np.testing.assert_array_equal(evaluate([pool], image).reshape(-1), [3, -2, -4])
    assert macs_of_data([pool]) == 0
