"""Images with several pixels in a word: what their layers make is the same, in fewer taps."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.cores.engine.column_packing import packed
from hwflow.cores.engine.engine_layers import AddedMap, EngineLayer, evaluate
from hwflow.cores.engine.network_part import Network, Shape
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.types import Interval, IntType

BYTE = Interval(-128, 127)


def network(
    columns: int, kernel: int, stride: int, left: int, right: int, channels: int = 3, *, dilation: int = 1,
    diagonal: bool = False,
) -> Network:
    """A convolution of two rows over six ones, with padding of 7."""
    rng = np.random.default_rng(columns)
    window = WindowGeometry(6, columns, (2, kernel), (1, stride), (0, left, 1, right), (1, dilation))
    outputs = channels if diagonal else 4
    form = MultiplyAddShift((3,) * outputs, (17,) * outputs, 7, -128, 127)
    weights = rng.integers(-128, 128, (2 * kernel, channels) if diagonal else (outputs, 2 * kernel * channels))
    layer = EngineLayer(window, 0, 7, weights, diagonal, Interval(-(1 << 20), 1 << 20), form)
    return Network((layer,), Shape(6, columns, (channels,)), IntType(8, True))


@pytest.mark.parametrize(
    ("of", "lanes", "pixels", "taps"),
    [
        (network(16, 7, 2, 3, 3), 12, 2, 2 * 4),
        (network(16, 7, 2, 2, 3), 12, 2, 2 * 4),
        (network(16, 3, 2, 1, 1), 6, 2, 2 * 2),
        (network(16, 3, 2, 0, 1), 16, 2, 2 * 2),
        (network(16, 2, 2, 0, 0), 6, 2, 2 * 1),
        (network(16, 1, 2, 0, 0), 6, 2, 2 * 1),
        (network(24, 11, 4, 2, 2), 12, 4, 2 * 4),  # columns -2 to 8 are words -1 to 2
        (network(24, 11, 4, 2, 2), 10, 2, 2 * 6),  # words of two from -1 to 4, with a step of two
        (network(24, 16, 8, 0, 0, 1), 8, 8, 2 * 2),
        (network(24, 5, 6, 3, 3, 1), 4, 3, 2 * 2),
    ],
)
def test_it_computes_the_same(of: Network, lanes: int, pixels: int, taps: int) -> None:
    found = packed(of, lanes)
    (layer,) = found.layers
    assert isinstance(layer, EngineLayer) and (found.packed, layer.window.taps) == (pixels, taps)
    assert found.shape == Shape(6, of.shape.columns // pixels, (of.shape.channels * pixels,))
    assert found.shapes[1] == of.shapes[1]
    image = np.random.default_rng(1).integers(-128, 128, (2, 6 * of.shape.columns, of.shape.channels))
    wide = image.reshape(2, 6 * found.shape.columns, found.shape.channels)
    np.testing.assert_array_equal(evaluate(found.layers, wide), evaluate(of.layers, image))


@pytest.mark.parametrize(
    "of",
    [
        network(16, 3, 1, 1, 1),  # it steps by one
        network(15, 3, 2, 1, 1),  # a row has no whole words
        network(16, 3, 2, 1, 1, 4),  # two pixels have more channels than lanes
        network(16, 3, 2, 1, 1, dilation=2),
        network(16, 3, 2, 1, 1, diagonal=True),
        network(16, 1, 6, 0, 0),  # the last windows begin in front of a word that none sees
    ],
    ids=["step", "columns", "channels", "dilated", "diagonal", "edge"],
)
def test_where_it_may_not(of: Network) -> None:
    assert packed(of, 7) is of


def test_an_image_that_others_read_stays() -> None:
    base = network(16, 3, 2, 1, 1)
    (layer,) = base.layers
    assert isinstance(layer, EngineLayer)
    twice = Network((layer, layer), base.shape, base.element)
    assert packed(twice, 12) is twice
    point = WindowGeometry(6, 16, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))
    form = MultiplyAddShift((1,) * 3, (0,) * 3, 0, -128, 127)
    one = MultiplyAddShift((1,), (0,), 1, -128, 127)
    added = EngineLayer(point, 0, 0, np.eye(3, dtype=np.int64), False, BYTE, form, AddedMap(0, (1, 1), one))
    first = Network((added,), base.shape, base.element)
    assert packed(first, 12) is first
