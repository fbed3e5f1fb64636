"""Neighbouring pixels of an image in one word, where this makes the windows of a first layer narrower.

An image of few channels leaves most lanes of a word empty. Where windows step over some columns, as many pixels of a
row that come one after the other make a word (space to depth of the columns alone). A word may have some pixels more:
the last ones before these, so that words overlap. Word n of a row has the pixels before pixel ``(n + 1) * packed``; in
front of the first one there is padding. Convolutions see the same products in windows of fewer, wider columns, with
weights of 0 for pixels that they do not see there: a 7 x 7 window over 3 channels that steps by two is one of 7 x 4
over words of two pixels, of 7 x 3 over words of three, of 7 x 2 over words of five.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from hwflow.cores.engine.engine_layers import EngineLayer
from hwflow.cores.engine.network_part import Network
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.ir.graph import IntArray


def packed(network: Network, lanes: int) -> Network:
    """Return the network with as many pixels of the image in a word as its first layer steps over, and as many before
    these as make its windows narrowest, within ``lanes``; the same where this changes nothing."""
    layer, image = network.layers[0], network.shape
    alone = network.readers[0] == [0] and len(image.parts) == 1
    if not isinstance(layer, EngineLayer) or not alone or layer.diagonal or layer.added is not None:
        return network
    most, steps = lanes // image.channels, gcd(layer.window.strides[1], image.columns)
    new = max((pixels for pixels in range(1, most + 1) if steps % pixels == 0), default=1)
    found = next(_coverings(layer.window, new, most), None)
    if found is None or found.pixels == 1:
        return network
    shape = replace(image, columns=image.columns // new, parts=(image.channels * found.pixels,))
    layers = (found.layer(layer), *network.layers[1:])
    return replace(network, layers=layers, shape=shape, packed=new, overlap=found.pixels - new)


@dataclass(frozen=True)
class _Covering:
    """``words`` of ``pixels`` pixels, ``new`` of which come with each, that have all columns of a window, relative to
    the word of the window's own place; ``places``: of each column the number of one of them, and its pixel there."""

    words: range
    new: int
    pixels: int
    places: Sequence[tuple[int, int]]

    def layer(self, layer: EngineLayer) -> EngineLayer:
        """Return a layer over such words that makes the same."""
        window, old = layer.window, layer.weights.reshape(layer.outputs, layer.window.kernel[0], -1, layer.inputs)
        weights: IntArray = np.zeros((*old.shape[:2], len(self.words), self.pixels, layer.inputs), dtype=old.dtype)
        for column, (number, place) in enumerate(self.places):
            weights[:, :, number, place] = old[:, :, column]
        width = window.width // self.new
        right = max(0, _last_place(window, self.new) + self.words[-1] - width + 1)
        geometry = WindowGeometry(
            window.height, width, (window.kernel[0], len(self.words)),
            (window.strides[0], window.strides[1] // self.new),
            (window.pads[0], -self.words[0], window.pads[2], right), (window.dilations[0], self.words.step),
        )
        return replace(layer, window=geometry, weights=weights.reshape(layer.outputs, -1))


def _last_place(window: WindowGeometry, new: int) -> int:
    """Return the word of a row in which the last window's own place is, of words with so many new pixels."""
    return (window.output[1] - 1) * window.strides[1] // new


def _coverings(window: WindowGeometry, new: int, most: int) -> Iterator[_Covering]:
    """Yield what covers the columns of a window in equal distances: the fewest words first, of the fewest pixels."""
    columns = [column * window.dilations[1] - window.pads[1] for column in range(window.kernel[1])]
    # The last column is in no word before this one, and in later ones with no others than here.
    first, last = columns[0] // new, columns[-1] // new
    # Beyond the right edge a word is all padding, as are its new pixels, but not the others.
    whole = window.width // new - _last_place(window, new)
    for count in range(1, last - first + 2):
        for pixels in range(new, most + 1):
            for apart in range(1, (last - first) // max(1, count - 1) + 1 if count > 1 else 2):
                words = range(last - (count - 1) * apart, last + 1, apart)
                places = [_place(column, words, new, pixels, whole) for column in columns]
                if words[0] <= 0 and None not in places:
                    yield _Covering(words, new, pixels, [place for place in places if place])


def _place(column: int, words: Sequence[int], new: int, pixels: int, whole: int) -> tuple[int, int] | None:
    """Return the first of some words that has a column, and its pixel there; of words from ``whole`` on only the new
    pixels count."""
    for number, word in enumerate(words):
        place = column - ((word + 1) * new - pixels)
        if (0 if word < whole else pixels - new) <= place < pixels:
            return number, place
    return None
