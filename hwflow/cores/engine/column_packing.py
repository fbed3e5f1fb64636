"""Neighbouring pixels of an image in one word, where a first layer steps over them together.

An image of few channels leaves most lanes of a word empty. A convolution whose windows step by some columns sees the
same products where as many pixels are one, with all of their channels: in windows of fewer, wider columns, with weights
of 0 for pixels beside the old ones. A 7 x 7 window over 3 channels that steps by two is one of 7 x 4 over 6 channels.
The stream of pixels stays as it is (space to depth of the columns alone).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hwflow.cores.engine.engine_layers import EngineLayer
from hwflow.cores.engine.network_part import Network
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.ir.graph import IntArray


def packed(network: Network, lanes: int) -> Network:
    """Return the network with as many pixels of the image in a word as have room in ``lanes``; the same where its first
    layer does not step over several."""
    layer, image = network.layers[0], network.shape
    alone = network.readers[0] == [0] and len(image.parts) == 1
    if not isinstance(layer, EngineLayer) or not alone or layer.diagonal or layer.added is not None:
        return network
    stride = layer.window.strides[1]
    for pixels in range(lanes // image.channels, 1, -1):
        if stride % pixels or image.columns % pixels or layer.window.dilations[1] > 1:
            continue
        found = _wider(layer, pixels)
        if found is not None:
            shape = replace(image, columns=image.columns // pixels, parts=(image.channels * pixels,))
            return replace(network, layers=(found, *network.layers[1:]), shape=shape, packed=pixels)
    return network


def _wider(layer: EngineLayer, pixels: int) -> EngineLayer | None:
    """Return a layer over so many pixels in one; None where its windows do not go to the right edge."""
    window = layer.window
    (rows, columns), (top, left, bottom, _) = window.kernel, window.pads
    before = -(-left // pixels)  # of the new pixels, in front of the one in which a window's own place is
    kernel = before + (columns - 1 - left) // pixels + 1
    width, stride = window.width // pixels, window.strides[1] // pixels
    behind = (window.output[1] - 1) * stride + kernel - before - width
    if behind < 0:
        return None
    weights: IntArray = np.zeros((layer.outputs, rows, kernel * pixels, layer.inputs), dtype=layer.weights.dtype)
    first = before * pixels - left
    weights[:, :, first : first + columns] = layer.weights.reshape(layer.outputs, rows, columns, layer.inputs)
    geometry = WindowGeometry(
        window.height, width, (rows, kernel), (window.strides[0], stride), (top, before, bottom, behind),
        window.dilations,
    )
    return replace(layer, window=geometry, weights=weights.reshape(layer.outputs, -1))
