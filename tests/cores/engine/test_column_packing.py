"""Images with several pixels in a word: what their layers make is the same, in fewer taps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hwflow.cores.engine.column_packing import packed
from hwflow.cores.engine.engine_layers import AddedMap, EngineLayer, evaluate
from hwflow.cores.engine.network_part import Network, Shape
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.ir.graph import IntArray
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.types import Interval, IntType

BYTE = Interval(-128, 127)


def network(
    columns: int, kernel: int, stride: int, left: int, right: int, channels: int = 3, *, dilation: int = 1,
    diagonal: bool = False, pad_value: int = 7,
) -> Network:
    """A convolution of two rows over six ones, with padding of 7."""
    rng = np.random.default_rng(columns)
    window = WindowGeometry(6, columns, (2, kernel), (1, stride), (0, left, 1, right), (1, dilation))
    outputs = channels if diagonal else 4
    form = MultiplyAddShift((3,) * outputs, (17,) * outputs, 7, -128, 127)
    weights = rng.integers(-128, 128, (2 * kernel, channels) if diagonal else (outputs, 2 * kernel * channels))
    layer = EngineLayer(window, 0, pad_value, weights, diagonal, Interval(-(1 << 20), 1 << 20), form)
    return Network((layer,), Shape(6, columns, (channels,)), IntType(8, True))


def words_of(image: IntArray, found: Network, pad_value: int) -> IntArray:
    """The words of images [frames, rows, columns, channels]: pixels before the new ones, of the same row, then these.
    """
    words: list[IntArray] = []
    for end in range(found.packed, image.shape[2] + 1, found.packed):
        pixels = range(end - found.packed - found.overlap, end)
        each = [image[:, :, n] if n >= 0 else np.full_like(image[:, :, 0], pad_value) for n in pixels]
        words.append(np.concatenate(each, axis=2))
    return np.stack(words, axis=2)


def check_the_same(of: Network, found: Network) -> None:
    """Compare what both make of an image."""
    layer, rows = of.computed[0], of.shape.rows
    image = np.random.default_rng(1).integers(-128, 128, (2, rows, of.shape.columns, of.shape.channels))
    wide = words_of(image, found, layer.pad_value)
    assert found.shape == Shape(rows, wide.shape[2], (wide.shape[3],))
    assert found.shapes[1] == of.shapes[1]
    images = (each.reshape(2, -1, each.shape[3]) for each in (image, wide))
    ours, theirs = (evaluate(each.layers, part) for each, part in zip((of, found), images, strict=True))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("of", "lanes", "packing", "words"),
    [
        (network(16, 7, 2, 3, 3), 6, (2, 0), range(-2, 2)),
        (network(16, 7, 2, 2, 3), 6, (2, 0), range(-1, 3)),
        (network(16, 3, 2, 1, 1), 6, (2, 0), range(-1, 1)),
        (network(16, 3, 2, 0, 1), 16, (2, 0), range(2)),  # the word of the last column is beyond the edge
        (network(16, 2, 2, 0, 0), 6, (2, 0), range(1)),
        (network(16, 1, 2, 0, 0), 6, (2, 0), range(1)),
        (network(24, 11, 4, 2, 2), 12, (4, 0), range(-1, 3)),  # columns -2 to 8
        (network(24, 11, 4, 2, 2), 10, (2, 0), range(-1, 5)),
        (network(24, 16, 8, 0, 0, 1), 8, (8, 0), range(2)),
        (network(24, 5, 6, 3, 3, 1), 4, (3, 0), range(-1, 1)),
        (network(16, 1, 6, 0, 0), 7, (2, 0), range(1)),
        # Words that overlap.
        (network(16, 3, 2, 1, 1), 12, (2, 1), range(1)),  # word 0 has -1 to 1
        (network(16, 7, 2, 3, 3), 12, (2, 1), range(-1, 2)),  # -3 to -1, to 1; 2 and 3 are the new ones of word 1
        (network(16, 7, 2, 3, 3), 16, (2, 3), range(2)),  # -3 to 1, 2 and 3
        (network(16, 3, 1, 1, 1), 12, (1, 1), range(2)),  # -1 and 0, 1
        (network(16, 3, 1, 0, 0), 7, (1, 1), range(0, 3, 2)),  # -1 and 0, 1 and 2: word 2 is there for all windows
        (network(15, 3, 2, 1, 1), 6, (1, 1), range(0, 2)),  # a row has no whole words of two pixels
        (network(15, 3, 2, 1, 2), 6, (1, 1), range(0, 2)),
        (network(16, 5, 2, 2, 2, 1), 8, (2, 2), range(2)),  # -2 to 1, 2
        (network(16, 3, 2, 2, 2, dilation=2), 9, (2, 0), range(-1, 2)),
        (network(16, 3, 2, 2, 2, dilation=2), 12, (2, 2), range(2)),  # -2 and 0, 2
    ],
)
def test_it_computes_the_same(of: Network, lanes: int, packing: tuple[int, int], words: range) -> None:
    found = packed(of, lanes)
    (layer,) = found.computed
    assert (found.packed, found.overlap) == packing
    window = layer.window
    assert range(-window.pads[1], window.kernel[1] * window.dilations[1] - window.pads[1], window.dilations[1]) == words
    check_the_same(of, found)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_windows(seed: int) -> None:
    """The same, and of no more words than there are new pixels to see."""
    rng = np.random.default_rng(seed)
    overlaps = narrower = 0
    for _ in range(30):
        kernel, stride, left, right, dilation = (int(each) for each in rng.integers([1, 1, 0, 0, 1], [8, 5, 5, 5, 3]))
        columns, channels, lanes = (int(each) for each in rng.integers([1, 1, 2], [30, 5, 20]))
        reach = (kernel - 1) * dilation + 1
        if columns + left + right < reach:
            continue
        pad_value = int(rng.integers(-128, 128))
        of = network(columns, kernel, stride, left, right, channels, dilation=dilation, pad_value=pad_value)
        found = packed(of, lanes)
        assert found.shape.channels <= lanes or found is of
        if found is of:
            continue
        check_the_same(of, found)
        assert found.is_signed(0)
        (layer,) = found.computed
        assert layer.window.kernel[1] <= (kernel if found.packed == 1 else (reach - 2) // found.packed + 2)
        overlaps += found.overlap > 0
        narrower += layer.window.kernel[1] < kernel
    assert overlaps > 3
    assert narrower > 3


def test_padding_in_words_is_an_element() -> None:
    """An image without a sign, whose words have padding of -1 where its rows begin."""
    of = network(16, 3, 2, 1, 0, pad_value=-1)
    (layer,) = of.computed
    window = replace(layer.window, kernel=(1, 3), pads=(0, 1, 0, 0))
    layer = replace(layer, window=window, weights=layer.weights[:, :9])
    of = replace(of, layers=(layer,), element=IntType(7, False))
    found = packed(of, 9)
    assert found.overlap and not any(found.computed[0].window.pads)
    assert of.ends(0) == found.ends(0) == Interval(-1, 127)


@pytest.mark.parametrize(
    "of",
    [
        network(16, 1, 1, 0, 0),  # a window sees one pixel
        network(16, 2, 1, 0, 1),  # words of two pixels: the last one is beyond the right edge
        network(15, 2, 3, 0, 0, 4),  # two pixels have more channels than lanes
        network(16, 3, 2, 1, 1, 8),  # and so has one
        network(16, 3, 2, 1, 1, diagonal=True),
    ],
    ids=["point", "edge", "channels", "blocks", "diagonal"],
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
