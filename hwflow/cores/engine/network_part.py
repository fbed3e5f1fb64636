"""A part of a network as layers over maps: their shapes, who reads them, and the widths that all numbers take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hdl_lib.engine.engine_program import NARROW, Forms
from hdl_lib.requantizers.shift_and_clamp import ShiftRounding
from hwflow.cores.engine.engine_layers import BYTE, EngineLayer, JoinedMaps, are_narrow
from hwflow.numerics.accumulator_bounds import width_of
from hwflow.types import Interval, IntType


@dataclass(frozen=True)
class Shape:
    """Of a map: ``rows`` of ``columns`` pixels with the channels of its ``parts``. In memory each part begins with a
    word."""

    rows: int
    columns: int
    parts: tuple[int, ...]

    @property
    def channels(self) -> int:
        """Return the channels of all parts."""
        return sum(self.parts)


@dataclass(frozen=True, eq=False)
class Network:
    """Layers over an image of a ``shape``, whose elements have this ``type``. The image is map 0, layer n makes map
    n + 1. No map is joined to others twice, nor the image; the last one has one part. ``offsets``: what elements of the
    image, and of the last map, are less than what comes and leaves (:mod:`hwflow.cores.engine.signed_maps`).
    ``packed``: pixels that come one after the other and make one of the image's, with the ``overlap`` pixels of the row
    before them (:mod:`hwflow.cores.engine.column_packing`)."""

    layers: tuple[EngineLayer | JoinedMaps, ...]
    shape: Shape
    element: IntType
    offsets: tuple[int, int] = (0, 0)
    packed: int = 1
    overlap: int = 0

    @cached_property
    def shapes(self) -> list[Shape]:
        """Return the shapes of all maps, the image first."""
        found = [self.shape]
        for layer in self.layers:
            if isinstance(layer, JoinedMaps):
                parts = tuple(part for number in layer.maps for part in found[number].parts)
                found.append(replace(found[layer.maps[0]], parts=parts))
            else:
                parts = found[layer.source].parts if layer.diagonal else (layer.outputs,)
                found.append(Shape(*layer.size, parts))
        return found

    @cached_property
    def computed(self) -> list[EngineLayer]:
        """Return the layers that compute something."""
        return [layer for layer in self.layers if isinstance(layer, EngineLayer)]

    def layer(self, number: int) -> EngineLayer:
        """Return the layer that computes a map."""
        found = self.layers[number - 1]
        assert number and isinstance(found, EngineLayer)
        return found

    @property
    def spreads(self) -> bool:
        """Tell whether a layer's results stand in several pixels each."""
        return any(layer.spread != (1, 1) for layer in self.computed)

    @cached_property
    def tables(self) -> list[tuple[int, ...]]:
        """Return the tables of all layers."""
        return list(dict.fromkeys(layer.table for layer in self.computed if layer.table is not None))

    @property
    def weights(self) -> int:
        """Return the weights of all layers."""
        return sum(layer.weights.size for layer in self.computed)

    @cached_property
    def weight_bits(self) -> int:
        """Return the bits of a weight: fewer than 8 where all have room in them."""
        return NARROW if all(are_narrow(layer.weights) for layer in self.computed) else 8

    @cached_property
    def readers(self) -> list[list[int]]:
        """Return for each map the layers that read it."""
        found: list[list[int]] = [[] for _ in self.shapes]
        for number, layer in enumerate(self.layers):
            for source in dict.fromkeys(sources_of(layer)):
                found[source].append(number)
        return found

    @cached_property
    def wholes(self) -> dict[int, tuple[int, tuple[int, ...]]]:
        """Return of each map that is joined to others the map that they make together, which no other one has a part
        of, and the parts in front of it."""
        found: dict[int, tuple[int, tuple[int, ...]]] = {}
        for index in reversed(range(len(self.layers))):
            layer = self.layers[index]
            if isinstance(layer, JoinedMaps):
                whole, parts = found.get(index + 1, (index + 1, ()))
                for number in layer.maps:
                    found[number] = whole, parts
                    parts += self.shapes[number].parts
        return found

    def whole(self, number: int) -> int:
        """Return the map that a map is a part of, in the end; itself if of none."""
        return self.wholes.get(number, (number, ()))[0]

    def ends(self, number: int) -> Interval:
        """Return what the elements of a map are within, those of others that it is joined to, and those outside that
        layers see beside them."""
        return Interval.hull_of(self._ends[self.whole(number)])

    @cached_property
    def _ends(self) -> dict[int, list[Interval]]:
        found: dict[int, list[Interval]] = {0: [self.element.interval]}
        for number, layer in enumerate(self.layers, 1):
            if isinstance(layer, EngineLayer):
                found.setdefault(self.whole(number), []).append(layer.limits)
                if layer.window.touches_padding() or (layer.source == 0 and self.overlap):
                    found[self.whole(layer.source)].append(Interval(layer.pad_value, layer.pad_value))
        return found

    def is_signed(self, number: int) -> bool:
        """Tell whether the elements of a map are stored with a sign."""
        return self.ends(number).lo < 0

    @cached_property
    def cuts(self) -> list[int]:
        """Return the maps, joined to no others, that are there when no other one is read, or leaves, any more."""
        last = [max(readers, default=-1) for readers in self.readers]  # who reads a map
        last[-1] = len(self.layers)
        found, latest = [], -1
        for number, reader in enumerate(last):
            if latest < number and number not in self.wholes:
                found.append(number)
            latest = max(latest, reader)
        return found

    @cached_property
    def groups(self) -> dict[tuple[int, int, int, tuple[bool, bool]], Any]:
        """Return what is kept of groups of layers (:func:`hwflow.cores.engine.strips.group_of`)."""
        return {}

    @property
    def is_of_bytes(self) -> bool:
        """Tell whether all maps are of bytes, with a sign or without one."""
        ends = [self.ends(number) for number in range(len(self.shapes))]
        return all(each.lo >= BYTE.lo and each.hi <= (BYTE.hi if each.lo < 0 else 2 * BYTE.hi + 1) for each in ends)

    @cached_property
    def forms(self) -> Forms:
        """Return the widths that hold every layer's numbers."""
        parts = [layer.form for layer in self.computed]
        multipliers = [number for form in parts for number in form.multipliers]
        addends = [number for form in parts for number in form.addends]
        sums = Interval.hull_of([layer.sums for layer in self.computed])
        forms = Forms(
            _signed(sums.lo, sums.hi), _signed(min(multipliers), max(multipliers)), _signed(min(addends), max(addends)),
            parts[0].shift, ShiftRounding(parts[0].rounding),
        )
        adds = [layer.added for layer in self.computed if layer.added is not None]
        if not adds:
            return forms
        factors = [factor for added in adds for factor in factors_of(added.form.multipliers[0], added.factors)]
        more = [added.form.addends[0] for added in adds]
        return replace(
            forms, factor_bits=_signed(min(factors), max(factors)), added_bits=_signed(min(more), max(more)),
            added_shift=adds[0].form.shift, added_rounding=ShiftRounding(adds[0].form.rounding),
        )


def factors_of(multiplier: int, factors: tuple[int, int]) -> tuple[int, int]:
    """Return what both operands of a sum are multiplied by, whose sum a requantizer multiplies."""
    return multiplier * factors[0], multiplier * factors[1]


def _signed(low: int, high: int) -> int:
    """Return the bits with a sign that hold an interval."""
    return width_of(min(low, -1), high)[0]


def sources_of(layer: EngineLayer | JoinedMaps) -> tuple[int, ...]:
    """Return the maps that a layer reads."""
    if isinstance(layer, JoinedMaps):
        return layer.maps
    return (layer.source,) if layer.added is None else (layer.source, layer.added.map)
