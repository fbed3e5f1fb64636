"""Let the rows of line buffers wait in memory outside. Requires: single-consumer. Ensures it, too.

A window over several rows is one over a single row of an image with as many times the channels: those of the row that
the window's last tap lies in, of the one above it, and so on. Each of these is the image itself, cropped by some rows.
So all but the first one wait in a queue, which may lie outside, and what is left of the line buffer holds some pixels.
Windows come column by column, from below: the weights of what reads them are in that order. All work at the image's
even pace: rows are cropped behind the queues, and padding comes where rows meet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hwflow.cores.beat_movers import ForkAttributes
from hwflow.cores.external.rows_side_by_side import SideBySideAttributes
from hwflow.cores.logical.image_windows import Clipping, WindowGeometry
from hwflow.cores.logical.index_map import IndexMap
from hwflow.cores.matrix.depthwise import DepthwiseAttributes
from hwflow.cores.matrix.dot_products import MvuAttributes
from hwflow.cores.registry import OPERATORS
from hwflow.cores.streams.rearrange import RearrangeAttributes
from hwflow.cores.windows.max_pool import MaxPoolAttributes
from hwflow.cores.windows.sliding_window import LineBufferAttributes, SlidingWindowAttributes
from hwflow.cores.windows.sum_pool import SumPoolAttributes
from hwflow.cores.windows.weighted_pool import WeightedPoolAttributes
from hwflow.ir.graph import Attributes, Graph, IntArray, Names, Node, Value

_MORE_ROWS = 1  # that a queue has room for besides those that it must hold


def row_queues(graph: Graph) -> Mapping[str, int]:
    """Return the line buffers whose rows may wait outside, by name, and in how many queues."""
    consumers = graph.consumers()
    found = {}
    for node in graph.nodes:
        given = node.attributes
        if not isinstance(given, LineBufferAttributes):
            continue
        window = given.geometry
        if window.kernel[0] == 1 or window.output[0] == 1:
            continue
        last, *others = [_rows_of(window, tap) for tap in reversed(range(window.kernel[0]))]
        if last is None or last[0].start or None in others:
            continue
        readers = [reader.attributes for reader, _ in consumers[node.outputs[0]]]
        if (isinstance(given, DepthwiseAttributes) and _is_fixed(given)) or (
            isinstance(given, SlidingWindowAttributes) and given.is_plain and not given.clipped and len(readers) == 1
            and _turned(readers[0], window) is not None
        ):
            found[node.name] = window.kernel[0] - 1
    return found


def rows_outside(graph: Graph, names: Collection[str]) -> tuple[Graph, Mapping[str, Fraction]]:
    """Return a copy of a dataflow graph without the line buffers of the nodes in ``names``, of :func:`row_queues`, and
    the values that wait instead, by name, with the share of a frame of each that does."""
    if not names:
        return graph, {}
    graph = graph.copy()
    used = Names([n.name for n in graph.nodes] + [v.name for v in graph.values()])
    consumers = graph.consumers()
    made: list[Node] = []
    held: dict[str, Fraction] = {}
    for node in graph.nodes:
        given = node.attributes
        if node.name not in names or not isinstance(given, LineBufferAttributes):
            made.append(node)
            continue
        side = _side_by_side(node, given, used, made, held)
        if isinstance(given, DepthwiseAttributes):
            pooled = WeightedPoolAttributes(_by_columns(given.weights, given.geometry, 0)[np.newaxis])
            windows = _value(used, f"{node.name}_windows", node)
            made.append(_windows(node, SlidingWindowAttributes(given.geometry, given.pad_value), side, windows))
            made.append(Node(used.fresh(f"{node.name}_taps"), [windows], node.outputs, pooled, node.sources))
        elif isinstance(given, SlidingWindowAttributes):
            ((reader, _),) = consumers[node.outputs[0]]
            turned = _turned(reader.attributes, given.geometry)
            assert turned is not None, "no line buffer that may go"
            reader.attributes, reader.kept = turned, {}
            made.append(_windows(node, given, side, node.outputs[0]))
    graph.nodes = made
    for node in graph.nodes:
        if any(value.type is None for value in node.outputs):
            types = OPERATORS[node.op].infer(node.attributes, [value.typed for value in node.inputs])
            for value, type_ in zip(node.outputs, types, strict=True):
                value.type = type_
    return graph, held


def _is_fixed(given: DepthwiseAttributes | MvuAttributes) -> bool:
    """Tell whether weights are one set that no one loads."""
    return given.weights.ndim == 2 and given.held is None


def _turned(reader: Attributes, window: WindowGeometry) -> Attributes | None:
    """Return what makes the same of windows column by column; None of other readers."""
    match reader:
        case MvuAttributes() if _is_fixed(reader):
            weights = _by_columns(reader.weights, window, 1)
            return replace(reader, weights=weights, windows=None, clipping=Clipping.NONE)
        case WeightedPoolAttributes(held=None):
            return replace(reader, weights=_by_columns(reader.weights, window, 1))
        case MaxPoolAttributes() | SumPoolAttributes():
            return reader
    return None


def _by_columns(weights: IntArray, window: WindowGeometry, axis: int) -> IntArray:
    """Return weights whose ``axis`` are taps row by row, and what is within these, with taps column by column, from
    below."""
    shape = weights.shape
    taps = np.flip(weights.reshape(*shape[:axis], *window.kernel, -1), axis).swapaxes(axis, axis + 1)
    return np.ascontiguousarray(taps.reshape(shape))


def _side_by_side(
    node: Node, given: LineBufferAttributes, used: Names, made: list[Node], held: dict[str, Fraction]
) -> Value:
    """Add to ``made`` what brings the rows that each row of windows sees side by side, and to ``held`` what waits;
    return the stream."""
    source, window, taps = node.inputs[0], given.geometry, given.geometry.kernel[0]
    branches = [Value(used.fresh(f"{node.name}_branch"), source.type, source.origin) for _ in range(taps)]
    made.append(Node(used.fresh(f"{node.name}_fork"), [source], branches, ForkAttributes(taps, 1), node.sources))
    parts, spans = [], []
    for above, part in enumerate(branches):
        found = _rows_of(window, taps - 1 - above)
        assert found is not None, "no line buffer that may go"
        span, taken, cropped = found
        part = _taken(node, used, made, part, taken, window.height)
        if above:
            rows = window.height if taken is None else len(taken)
            late = -(-above * window.dilations[0] // window.strides[0])
            held[part.name] = Fraction(min(rows, late + _MORE_ROWS), rows)
        parts.append(_taken(node, used, made, part, cropped, window.height // window.strides[0]))
        spans.append(span)
    side = _value(used, f"{node.name}_side_by_side", node)
    joined = SideBySideAttributes(window.output[0], window.width, tuple(spans), given.pad_value)
    made.append(Node(used.fresh(f"{node.name}_joined"), parts, [side], joined, node.sources))
    return side


def _windows(node: Node, given: SlidingWindowAttributes, side: Value, result: Value) -> Node[SlidingWindowAttributes]:
    """Return what takes the place of a line buffer: each row is an image of its own, one pixel wide."""
    window = given.geometry
    _, left, _, right = window.pads
    row = WindowGeometry(
        window.width, 1, (window.kernel[1], 1), (window.strides[1], 1), (left, 0, right, 0), (window.dilations[1], 1)
    )
    attributes = replace(
        given, geometry=row, clipping=Clipping.NONE, images=window.output[0], stacked=window.kernel[0]
    )
    return Node(node.name, [side], [result], attributes, node.sources)


def _rows_of(window: WindowGeometry, tap: int) -> tuple[range, IntArray | None, IntArray | None] | None:
    """Return the rows of windows that see something with a row of taps, and what makes these rows of the image: the
    numbers of the rows taken of it, and of these; None for all. None, too, where there is nothing to see, or steps do
    not keep the image's pace."""
    stride, height = window.strides[0], window.height
    row = np.arange(window.output[0]) * stride + tap * window.dilations[0] - window.pads[0]
    seen = np.flatnonzero((row >= 0) & (row < height))
    if not len(seen) or height % stride:
        return None
    span = range(int(seen[0]), int(seen[-1]) + 1)
    (start, phase), count = divmod(int(row[seen[0]]), stride), height // stride
    taken = np.arange(phase, height, stride) if stride > 1 else None
    return span, taken, np.arange(start, start + len(span)) if len(span) < count else None


def _taken(
    node: Node, used: Names, made: list[Node], part: Value, rows: IntArray | None, height: int
) -> Value:
    """Return the stream of these rows of ``part``, which has so many; add to ``made`` what takes them."""
    if rows is None:
        return part
    window, channels = node.attributes.geometry, node.inputs[0].typed.shape[1]
    size = window.width * channels
    index = IndexMap((rows[:, np.newaxis] * size + np.arange(size)).reshape(-1), height * size)
    took = _value(used, f"{node.name}_row", node)
    moved = RearrangeAttributes(index, channels, 0)
    made.append(Node(used.fresh(f"{node.name}_rows"), [part], [took], moved, node.sources))
    return took


def _value(used: Names, name: str, node: Node) -> Value:
    """Return a value whose type is inferred later."""
    return Value(used.fresh(name), None, node.inputs[0].origin)
