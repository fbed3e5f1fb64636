"""Find what an engine can compute: a part of a graph with one stream in and one out, as layers.

Windows, sums of products over them, and requantizers of these with a multiplication, an addition and a shift are
layers; a sum with another map behind one, and its requantizer, belong to it. So are maxima over windows, and
requantizers of maps as they are, and functions of a map's elements, the same for all channels. Maps may be joined,
channel behind channel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from hwflow.cores.beat_movers import ForkAttributes
from hwflow.cores.engine.engine_layers import BYTE, AddedMap, EngineLayer, JoinedMaps, are_narrow
from hwflow.cores.engine.network_part import Network, Shape
from hwflow.cores.logical.image_windows import Clipping, WindowGeometry
from hwflow.cores.matrix.depthwise import DepthwiseAttributes
from hwflow.cores.matrix.dot_products import MvuAttributes
from hwflow.cores.streams.concat import StreamConcatAttributes
from hwflow.cores.streams.rearrange import RearrangeAttributes
from hwflow.cores.windows.max_pool import MaxPoolAttributes
from hwflow.cores.windows.sliding_window import SlidingWindowAttributes
from hwflow.cores.windows.sum_pool import SumPoolAttributes
from hwflow.cores.windows.weighted_pool import WeightedPoolAttributes
from hwflow.ir.graph import Graph, IntArray, Node, Value
from hwflow.ir.node_attributes import RequantizeAttributes, ScaledAddAttributes
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.passes.outside.engine_forms import Requantizer, alike, spread_of, table_of, unchanged
from hwflow.types import Interval

MOST_BITS = 8  # of an element of a map


@dataclass
class _Windows:
    """Windows over a map: ``centred``: elements count from ``pad_value`` on."""

    map: int
    geometry: WindowGeometry
    pad_value: int
    centred: bool = False


@dataclass
class _Sums:
    """A layer without its requantizer."""

    windows: _Windows
    weights: IntArray
    diagonal: bool
    value: Value


@dataclass
class _Layer:
    """``requantizer``: None of maxima, which stay as they are. ``table``: what becomes of results, last of all;
    ``spread``: in how many rows and columns each stands."""

    sums: _Sums
    requantizer: Requantizer | None
    value: Value
    added: tuple[int, tuple[int, int], Requantizer] | None = None
    table: tuple[int, ...] | None = None
    spread: tuple[int, int] = (1, 1)


@dataclass
class EnginePart:
    """``nodes`` of a graph between the streams ``source`` and ``result``, as ``network``."""

    source: Value
    result: Value
    nodes: frozenset[Node]
    network: Network


def engine_part(graph: Graph, source: Value) -> EnginePart | None:
    """Return the greatest part behind a stream that everything behind it depends on; None where there is none."""
    return next(iter(engine_parts(graph, source)), None)


def engine_parts(graph: Graph, source: Value) -> list[EnginePart]:
    """Return the greatest part behind a stream that everything behind it depends on, and, if that ends in layers of a
    single pixel, the one that ends in front of them: these would wait for their weights."""
    if source.typed.element.bits > MOST_BITS or len(source.typed.shape) != 2:
        return []
    found = _Reader(graph, source)
    found.read()
    return [part for end in found.ends() if (part := found.part(end)) is not None]


def sources(graph: Graph) -> list[Value]:
    """Return the streams that everything behind them depends on, alone."""
    consumers = graph.consumers()
    left = {value: len(users) for value, users in consumers.items()}
    for port in graph.outputs:
        left[port.value] = left.get(port.value, 0) + 1
    live = {port.value for port in graph.inputs}
    found = list(live) if len(live) == 1 else []
    for node in graph.nodes:
        for value in node.inputs:
            left[value] -= 1
            if not left[value]:
                live.discard(value)
        live.update(value for value in node.outputs if left.get(value))
        if len(live) == 1 and (only := next(iter(live))) not in found:
            found.append(only)
    return found


_End = tuple[Value, int, int]
"""Of a part: its result, its layers, its nodes."""


@dataclass
class _Reader:
    """Reads the nodes behind ``source``, as far as they are layers."""

    graph: Graph
    source: Value
    layers: list[_Layer | JoinedMaps] = field(default_factory=list)
    maps: dict[Value, int] = field(default_factory=dict)
    shapes: list[Shape | None] = field(default_factory=list)
    windows: dict[Value, _Windows] = field(default_factory=dict)
    sums: dict[Value, _Sums] = field(default_factory=dict)
    added: dict[Value, tuple[int, int, tuple[int, int]]] = field(default_factory=dict)
    taken: list[Node] = field(default_factory=list)
    known: list[_End] = field(default_factory=list)  # of parts

    def read(self) -> None:
        consumers = self.graph.consumers()
        self.left = {value: len(users) for value, users in consumers.items()}
        for port in self.graph.outputs:
            self.left[port.value] = self.left.get(port.value, 0) + 1
        self.readers = dict(self.left)
        self.maps[self.source] = 0
        self.shapes.append(None)
        live = {self.source}
        for node in self.graph.nodes:
            if not any(value in live for value in node.inputs):
                if self.taken:
                    return  # something else has begun
                continue
            if not all(value in live for value in node.inputs) or not self._takes(node):
                return
            self.taken.append(node)
            for value in node.inputs:
                self.left[value] -= 1
                if not self.left[value]:
                    live.discard(value)
            live.update(value for value in node.outputs if self.left.get(value))
            only = next(iter(live)) if len(live) == 1 else None
            number = None if only is None else self.maps.get(only)
            if only is not None and number == len(self.layers) and len(self._shape(number).parts) == 1:
                self.known.append((only, number, len(self.taken)))

    def ends(self) -> list[_End]:
        """Return the end of what was read, and one in front of its last layers that multiply vectors by matrices."""
        ends = [end for end in self.known if end[1]]
        if not ends:
            return []
        first = ends[-1][1]
        while first and self._is_dense(self.layers[first - 1]):
            first -= 1
        return [ends[-1], *(end for end in ends[-2::-1] if end[1] == first < ends[-1][1])][:2]

    def _is_dense(self, layer: _Layer | JoinedMaps) -> bool:
        if isinstance(layer, JoinedMaps):
            return False
        return not layer.sums.diagonal and layer.sums.windows.geometry.output == (1, 1)

    def part(self, end: _End) -> EnginePart | None:
        """Return what was read, up to an ``end``."""
        result, count, nodes = end
        layers = self.layers[:count]
        computed = [layer for layer in layers if isinstance(layer, _Layer)]
        found = alike([layer.requantizer for layer in computed if layer.requantizer is not None])
        adds = [layer.added for layer in computed if layer.added is not None]
        later = alike([requantizer for _, _, requantizer in adds])
        if not found or later is None:
            return None
        forms, left = iter(found), iter(later)
        narrow = all(are_narrow(layer.sums.weights) for layer in computed)
        made = tuple(
            layer if isinstance(layer, JoinedMaps) else self._layer(
                layer, found[0] if layer.requantizer is None else next(forms), next(left) if layer.added else None,
                narrow,
            )
            for layer in layers
        )
        shape = self._shape(0)
        network = Network(made, shape, self.source.typed.element)
        if not network.is_of_bytes:
            return None
        return EnginePart(self.source, result, frozenset(self.taken[:nodes]), network)

    def _layer(
        self, layer: _Layer, form: MultiplyAddShift, later: MultiplyAddShift | None, narrow: bool
    ) -> EngineLayer:
        """Return a layer with its requantizer's ``form``; that of maxima is like this one. ``narrow``: all weights are.
        """
        sums = layer.sums
        windows = sums.windows
        interval = sums.value.typed.interval
        if windows.centred:  # elements as they are: sums are greater by pad_value times all weights
            axis = 0 if sums.diagonal else 1
            more = windows.pad_value * sums.weights.sum(axis=axis)
            addends = [addend - m * int(n) for addend, m, n in zip(form.addends, form.multipliers, more, strict=True)]
            form = replace(form, addends=tuple(addends))
            interval = interval.hull(interval.plus(int(more.min()))).hull(interval.plus(int(more.max())))
        added = None
        if layer.added is not None and later is not None:
            other, factors, _ = layer.added
            added = AddedMap(other, factors, later)
        weights, maximum = sums.weights, layer.requantizer is None
        if maximum:
            form, factor = unchanged(interval, sums.value.typed.shape[1], form, narrow)
            weights, interval = weights * factor, Interval(min(0, factor * interval.lo), factor * interval.hi)
        return EngineLayer(
            windows.geometry, windows.map, windows.pad_value, weights, sums.diagonal, interval, form, added, maximum,
            layer.table, layer.spread,
        )

    def _shape(self, number: int) -> Shape:
        """Return a map's shape; an image whose rows nobody has asked for is one column."""
        found = self.shapes[number]
        if found is None:
            pixels, channels = self.source.typed.shape
            found = self.shapes[number] = Shape(pixels, 1, (channels,))
        return found

    def _takes(self, node: Node) -> bool:
        """Take a node, if it is part of a layer."""
        first = node.inputs[0] if node.inputs else None
        match node.attributes:
            case ForkAttributes() if first in self.maps:
                self.maps.update(dict.fromkeys(node.outputs, self.maps[first]))
                return True
            case SlidingWindowAttributes() as given if first in self.maps and given.is_plain:
                if given.clipping == Clipping.CLIPPED or not self._fits(self.maps[first], given.geometry):
                    return False
                self.windows[node.outputs[0]] = _Windows(
                    self.maps[first], given.geometry, given.pad_value, given.centred
                )
                return True
            case MaxPoolAttributes() as given if not given.least:
                return self._maxima(node, given.window)
            case MvuAttributes() | DepthwiseAttributes() | SumPoolAttributes() | WeightedPoolAttributes():
                found = self._sums(node)
                if found is None or not (BYTE.lo <= found.weights.min() and found.weights.max() <= BYTE.hi):
                    return False
                self.sums[node.outputs[0]] = found
                return True
            case RequantizeAttributes() as given:
                return self._requantizer(node, given)
            case ScaledAddAttributes() as given:
                return self._sum(node, given)
            case StreamConcatAttributes(axis=1):
                return self._joined(node)
            case RearrangeAttributes() as given if first in self.maps:
                return self._enlarged(node, given)
        return False

    def _fits(self, number: int, geometry: WindowGeometry) -> bool:
        """Tell whether windows are over a map as it is; an image whose rows are not known has theirs."""
        if self.shapes[number] is None:
            self.shapes[number] = Shape(geometry.height, geometry.width, (self.source.typed.shape[1],))
        shape = self._shape(number)
        return (shape.rows, shape.columns) == (geometry.height, geometry.width)

    def _sums(self, node: Node) -> _Sums | None:
        given, source = node.attributes, node.inputs[0]
        if isinstance(given, DepthwiseAttributes):
            if source not in self.maps or given.weights.ndim > 2 or given.held is not None:
                return None
            if not self._fits(self.maps[source], given.geometry):
                return None
            windows = _Windows(self.maps[source], given.geometry, given.pad_value)
            return _Sums(windows, given.weights, True, node.outputs[0])
        channels = source.typed.shape[1]
        if isinstance(given, MvuAttributes):
            if given.binary or given.held is not None or given.weights.ndim > 2 or given.clipped is not None:
                return None
            weights, diagonal, taps = given.weights, False, given.weights.shape[1] // channels
        elif isinstance(given, WeightedPoolAttributes):
            if len(given.weights) > 1 or given.held is not None:
                return None
            weights, diagonal, taps = given.weights[0], True, given.weights.shape[1]
        else:
            weights, diagonal, taps = np.ones((given.window, channels), dtype=np.int64), True, given.window
        found = self._over(source, taps)
        return None if found is None else _Sums(found, weights, diagonal, node.outputs[0])

    def _over(self, source: Value, taps: int) -> _Windows | None:
        """Return windows of so many taps that a stream has, or whose pixels or whole map it is; None: of other ones."""
        if source in self.windows:
            found = self.windows[source]
            return found if taps == found.geometry.taps else None
        if source not in self.maps:
            return None
        shape = self._shape(self.maps[source])
        kernel = (1, 1) if taps == 1 else (shape.rows, shape.columns)
        if taps != kernel[0] * kernel[1]:
            return None
        geometry = WindowGeometry(shape.rows, shape.columns, kernel, (1, 1), (0, 0, 0, 0), (1, 1))
        return _Windows(self.maps[source], geometry, 0)

    def _maxima(self, node: Node, taps: int) -> bool:
        """Take maxima over windows, or over all of a map."""
        found = self._over(node.inputs[0], taps)
        if found is None or found.centred:
            return False
        channels = node.outputs[0].typed.shape[1]
        weights = np.ones((taps, channels), dtype=np.int64)
        self._append(_Layer(_Sums(found, weights, True, node.outputs[0]), None, node.outputs[0]))
        return True

    def _enlarged(self, node: Node, given: RearrangeAttributes) -> bool:
        """Take a map whose pixels stand in several rows and columns: Resize to the nearest one."""
        (source,), (result,) = node.inputs, node.outputs
        shape = self._shape(self.maps[source])
        spread = spread_of(given.map, shape.rows, shape.columns, shape.channels)
        if spread is None:
            return False
        self._as_it_is(source, result, spread)
        return True

    def _as_it_is(self, source: Value, result: Value, spread: tuple[int, int] = (1, 1)) -> None:
        """Take a layer that makes a map of what another one has: of the maxima of single elements."""
        windows = self._over(source, 1)
        assert windows is not None, "a map has pixels"
        weights = np.ones((1, source.typed.shape[1]), dtype=np.int64)
        self._append(_Layer(_Sums(windows, weights, True, source), None, result, spread=spread))

    def _append(self, layer: _Layer) -> None:
        windows, channels = layer.sums.windows, layer.value.typed.shape[1]
        parts = self._shape(windows.map).parts if layer.sums.diagonal else (channels,)
        self.layers.append(layer)
        rows, columns = windows.geometry.output
        self.shapes.append(Shape(rows * layer.spread[0], columns * layer.spread[1], parts))
        self.maps[layer.value] = len(self.layers)

    def _joined(self, node: Node) -> bool:
        """Take maps that are joined, if each is so once, and elements of all have a place in the same bits."""
        numbers = tuple(self.maps.get(value, 0) for value in node.inputs)
        before = [number for layer in self.layers if isinstance(layer, JoinedMaps) for number in layer.maps]
        if not all(numbers) or len({*numbers, *before}) < len(numbers) + len(before):
            return False
        if node.outputs[0].typed.element.bits > MOST_BITS:
            return False
        shapes = [self._shape(number) for number in numbers]
        parts = tuple(part for shape in shapes for part in shape.parts)
        if any((shape.rows, shape.columns) != (shapes[0].rows, shapes[0].columns) for shape in shapes):
            return False
        self.layers.append(JoinedMaps(numbers))
        self.shapes.append(replace(shapes[0], parts=parts))
        self.maps[node.outputs[0]] = len(self.layers)
        return True

    def _requantizer(self, node: Node, given: RequantizeAttributes) -> bool:
        (source,), (result,) = node.inputs, node.outputs
        if given.axis != 1 or given.rounds > 1 or given.held is not None or result.typed.element.bits > MOST_BITS:
            return False
        if source in self.added:
            number, other, factors = self.added[source]
            layer = self.layers[number]
            if len(set(given.steps)) > 1 or isinstance(layer, JoinedMaps) or layer.added or layer.table:
                return False
            first = replace(given, steps=given.steps[:1], stages=given.stages[:1])
            if (requantizer := Requantizer.of(first, 1)) is None:
                return False
            layer.added, layer.table, layer.value = (other, factors, requantizer), requantizer.table, result
            self.maps[result] = number + 1
            return True
        channels = source.typed.shape[1]
        if source in self.maps and source not in self.sums:
            if len(set(given.steps)) == 1 and Requantizer.of(given, len(given.steps)) is None:
                return self._function(node, given.steps[0])
            windows = self._over(source, 1)
            assert windows is not None, "a map has pixels"
            self.sums[source] = _Sums(windows, np.ones((1, channels), dtype=np.int64), True, source)
        if source not in self.sums:
            return False
        requantizer = Requantizer.of(given, channels)
        if requantizer is None:
            return False
        self._append(_Layer(self.sums[source], requantizer, result, table=requantizer.table))
        return True

    def _function(self, node: Node, step: StepFunction) -> bool:
        """Take a function of a map's elements: as a table behind the layer that makes the map for it alone, or else as
        a layer of its own, of the maxima of single elements."""
        (source,), (result,) = node.inputs, node.outputs
        last = self.layers[-1] if self.layers else None
        alone = self.readers[source] == 1
        if isinstance(last, _Layer) and last.value is source and alone and last.table is None:
            last.table, last.value = table_of(step), result
            self.maps[result] = len(self.layers)
            return True
        windows = self._over(source, 1)
        assert windows is not None, "a map has pixels"
        weights = np.ones((1, source.typed.shape[1]), dtype=np.int64)
        self._append(_Layer(_Sums(windows, weights, True, source), None, result, table=table_of(step)))
        return True

    def _sum(self, node: Node, given: ScaledAddAttributes) -> bool:
        """Take a sum, if one of its operands is what a layer makes for it alone."""
        if given.held is not None or not all(value in self.maps for value in node.inputs):
            return False
        if any(len(set(each)) > 1 for each in given.multipliers):
            return False
        own, other = sorted(range(2), key=lambda place: -self.maps[node.inputs[place]])
        number = self.maps[node.inputs[own]]
        if number == self.maps[node.inputs[other]] or number != len(self.layers):
            return False
        last = self.layers[-1]
        if self.readers[node.inputs[own]] > 1 or isinstance(last, JoinedMaps) or last.value is not node.inputs[own]:
            return False
        shapes = [self._shape(self.maps[value]) for value in node.inputs]
        if shapes[0] != shapes[1]:
            return False
        factors = int(given.multipliers[own][0]), int(given.multipliers[other][0])
        if last.spread != (1, 1):  # its results leave in another order
            self._as_it_is(node.inputs[own], node.inputs[own])
            number = len(self.layers)
        self.added[node.outputs[0]] = number - 1, self.maps[node.inputs[other]], factors
        return True
