"""The layers of an engine as numbers, and what they compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hdl_lib.engine.engine_program import NARROW
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.operator import exact_matmul
from hwflow.ir.graph import IntArray
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.types import Interval, IntType

BYTE = Interval(-128, 127)
"""Of weights."""

_FEW = IntType(NARROW, True).interval  # the same, of narrow ones


def are_narrow(weights: IntArray) -> bool:
    """Tell whether weights have room in :data:`hdl_lib.engine.engine_program.NARROW` bits."""
    return bool(_FEW.lo <= weights.min() and weights.max() <= _FEW.hi)


@dataclass(frozen=True, eq=False)
class AddedMap:
    """A scaled sum behind a layer's requantizer, and the requantizer of that, one function for all channels. ``map``:
    what is added; ``factors``: of the layer's own result, of the other."""

    map: int
    factors: tuple[int, int]
    form: MultiplyAddShift


@dataclass(frozen=True, eq=False)
class EngineLayer:
    """A convolution and its requantizer. Maps are numbered: 0 is the image, then come those that layers make.

    ``window`` over the map ``source``, with elements of ``pad_value`` outside; ``weights`` [outputs, taps * inputs], or
    (``diagonal``) [taps, channels]; ``sums``: the interval of what is requantized; ``form``: of the requantizer.
    ``maximum``, of a diagonal layer: of each channel the window's greatest element alone is multiplied, by the weight
    of the last tap. ``table``: what becomes of results, last of all: of each byte, an element. ``spread``: each result
    stands in so many rows and columns of the map, as if enlarged to the nearest pixel.
    """

    window: WindowGeometry
    source: int
    pad_value: int
    weights: IntArray
    diagonal: bool
    sums: Interval
    form: MultiplyAddShift
    added: AddedMap | None = None
    maximum: bool = False
    table: tuple[int, ...] | None = None
    spread: tuple[int, int] = (1, 1)

    @property
    def inputs(self) -> int:
        """Return the channels of the source."""
        return int(self.weights.shape[1]) // (1 if self.diagonal else self.window.taps)

    @property
    def size(self) -> tuple[int, int]:
        """Return the rows and columns of the map that this makes."""
        rows, columns = self.window.output
        return rows * self.spread[0], columns * self.spread[1]

    @property
    def outputs(self) -> int:
        """Return the channels of the map that this makes."""
        return int(self.weights.shape[1 if self.diagonal else 0])

    @property
    def limits(self) -> Interval:
        """Return the interval of the elements of the map that this makes."""
        form = self.added.form if self.added else self.form
        if self.table is None:
            return Interval(form.low, form.high)
        found = [self.table[result % len(self.table)] for result in range(form.low, form.high + 1)]
        return Interval(min(found), max(found))


@dataclass(frozen=True)
class JoinedMaps:
    """``maps`` side by side, channel behind channel: no layer, but it is numbered as one. What makes them writes to its
    region."""

    maps: tuple[int, ...]


Layers = Sequence[EngineLayer | JoinedMaps]


def multiplying(layers: Layers) -> Iterator[EngineLayer]:
    """Yield the layers that multiply more than to scale."""
    return (layer for layer in layers if isinstance(layer, EngineLayer) and not layer.maximum)


def macs_of_data(layers: Layers) -> int:
    """Return the multiply-accumulates per frame, without those of padding."""
    return sum(
        int(layer.window.inside().sum()) * layer.weights.size // layer.window.taps for layer in multiplying(layers)
    )


def evaluate(layers: Layers, image: IntArray) -> IntArray:
    """Return the last layer's map [frames, pixels, channels] of an image of such a shape."""
    maps = [image]
    for layer in layers:
        if isinstance(layer, JoinedMaps):
            maps.append(np.concatenate([maps[number] for number in layer.maps], axis=2))
            continue
        window, frames = layer.window, len(image)
        source = maps[layer.source].reshape(frames, window.height, window.width, layer.inputs)
        taps = window.windows(source, layer.pad_value).reshape(frames, -1, window.taps, layer.inputs)
        if layer.maximum:
            sums = taps.max(axis=2) * layer.weights[-1]
        elif layer.diagonal:
            sums = (taps * layer.weights).sum(axis=2)
        else:
            sums = exact_matmul(taps.reshape(*taps.shape[:2], -1), layer.weights)
        result = layer.form.evaluate(sums, np.arange(layer.outputs))
        if layer.added is not None:
            own, other = layer.added.factors
            result = layer.added.form.evaluate(own * result + other * maps[layer.added.map])
        if layer.table is not None:
            result = np.array(layer.table, dtype=np.int64)[result % len(layer.table)]
        rows, columns = layer.spread
        if rows * columns > 1:
            image = result.reshape(frames, *window.output, -1)
            result = image.repeat(rows, axis=1).repeat(columns, axis=2).reshape(frames, -1, layer.outputs)
        maps.append(result)
    return maps[-1]
