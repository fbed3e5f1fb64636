"""``sim --layers``: the output of every core of an emitted design, against the golden model's values.

The expected stream of a core comes from the golden model on the dataflow graph; that of a stream that carries a
quantized value of the ONNX model, from the quantized graph, in which nothing is fused or rescaled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hwflow.cores.engine.layer_engine import Made
from hwflow.cores.windows.sliding_window import SlidingWindowAttributes
from hwflow.display import show
from hwflow.errors import Finding
from hwflow.ir.graph import Graph, IntArray, Node, Value, identity_order
from hwflow.passes import pipeline
from hwflow.passes.hold_layers import HeldLayer, Holding
from hwflow.passes.outside.fetch_weights import ANY_TIMING, fetch_weights
from hwflow.passes.outside.layers_in_turn import layers_as_made
from hwflow.passes.outside.queue_outside import queue_outside
from hwflow.passes.outside.rows_outside import rows_outside
from hwflow.sim.sim_errors import ManifestError
from hwflow.sim.taps import Tap, files
from hwflow.verify import golden
from hwflow.verify.evaluators.known_values import Known, known_values

if TYPE_CHECKING:
    from hwflow.loaded_model import Model

BATCH_ELEMENTS = 1 << 22
"""Batch size: about how many elements of all values are held at once."""


@dataclass(frozen=True)
class Difference:
    """An element that came out wrong; ``index``: in one frame of the layer's tensor."""

    frame: int
    index: tuple[int, ...]
    expected: int
    found: int


@dataclass
class Layer:
    """One core's output. ``core`` is the instance, ``op`` its operator, ``nodes`` the ONNX nodes it works for; it only
    passes elements on (a queue, a fork) if ``moved``. ``value`` is the tensor that the stream carries, by its name in
    the ONNX model where it has one, and ``shape`` that of a frame of it; a stream inside an operator (windows, say) has
    its own name, and shape (pixels, channels).

    ``elements`` were expected, ``missing`` of them never came, ``differing`` ones are wrong. ``first``: in the first
    frame with such elements, the first in the tensor.
    """

    core: str
    op: str
    nodes: tuple[str, ...]
    moved: bool
    value: str
    shape: tuple[int, ...]
    elements: int = 0
    differing: int = 0
    missing: int = 0
    first: Difference | None = None

    def table(self) -> dict[str, Any]:
        """Return it for ``--format json``."""
        first = self.first
        return {
            "core": self.core, "op": self.op, "nodes": list(self.nodes), "value": self.value,
            "shape": list(self.shape), "elements": self.elements, "differing": self.differing,
            "missing": self.missing, "first": None if first is None else {
                "frame": first.frame, "index": list(first.index), "expected": first.expected, "found": first.found,
            },
        }

    def finding(self) -> Finding:
        """Make the finding of the first layer that differs."""
        first = self.first
        assert first is not None
        nodes = ", ".join(show(node) for node in self.nodes)
        where = f"layer {show(self.core)} ({self.op}{f', ONNX node {nodes}' if nodes else ''})"
        return Finding(
            "first-layer", where,
            f"all layers before it are equal to the golden model; of {show(self.value)}, frame {first.frame}, element "
            f"{list(first.index)} must be {first.expected}, not {first.found} ({self.differing} of {self.elements} "
            f"elements differ)",
            "inspect this core: its module in design.v and its files in weights/",
        )


@dataclass(frozen=True)
class Layers:
    """Every core's output, in the order of the graph: what a layer reads comes before it."""

    rows: tuple[Layer, ...]

    @property
    def first(self) -> Layer | None:
        """The first layer that differs."""
        return next((row for row in self.rows if row.first is not None), None)

    @property
    def shown(self) -> tuple[Layer, ...]:
        """The layers to print: correct cores that only pass elements on are left out."""
        return tuple(row for row in self.rows if not row.moved or row.first is not None)

    def table(self) -> dict[str, Any]:
        """Return what ``sim --layers --format json`` prints beside the verdict."""
        first = self.first
        return {
            "layers": [row.table() for row in self.rows],
            "first_difference": None if first is None else first.table(),
        }

    def lines(self) -> Iterator[str]:
        """Yield the verdict below :attr:`shown` as text."""
        first = self.first
        if first is None:
            yield f"all {len(self.rows)} layers equal the golden model"
        else:
            assert first.first is not None
            yield (
                f"the first layer that differs: {show(first.core)}, value {show(first.value)}, "
                f"frame {first.first.frame}, element {list(first.first.index)}: "
                f"must be {first.first.expected}, not {first.first.found}"
            )


@dataclass
class _Stream:
    """A tap with its expected values. ``order``: the flat index in the layer's tensor of each of a frame's elements;
    ``sent``: those of the dataflow graph's stream that the design sends (None: all)."""

    tap: Tap
    path: Path
    layer: Layer
    order: IntArray
    value: Value
    known: Known | None
    sent: IntArray | None = None


def judge(
    model: Model, taps: tuple[Tap, ...], records: Path, inputs: Mapping[str, IntArray], frames: int, *,
    loops: str = pipeline.UNROLLED, fetched: Mapping[str, int] | None = None, waiting: Sequence[str] = (),
    rows: Sequence[str] = (), engine: Made | None = None, held: Mapping[str, HeldLayer] | None = None,
) -> Layers:
    """Compare what was recorded in folder ``records`` while the design worked on ``inputs`` (integers by port name).
    ``loops``: the form of its loops, of :data:`hwflow.passes.pipeline.FORMS`. ``fetched``: the nodes with weights in
    memory outside (:func:`hwflow.passes.outside.fetch_weights.fetch_weights`); ``waiting``: the values that wait there;
    ``rows``: the line buffers whose rows do (:func:`hwflow.passes.outside.rows_outside.rows_outside`); ``engine``: that
    computes layers in turn; ``held``: the layers with room for other weights: sums have other factors there.

    Raises :class:`ManifestError` if the design has streams that the model, compiled again, has not.
    """
    quantized = model.quantized
    scaled = any(layer.factors is not None for layer in (held or {}).values())
    passes = pipeline.holding(Holding(known=held).hold) if scaled else pipeline.FORMS[loops]
    inside = pipeline.run(quantized, passes)
    dataflow = layers_as_made(rows_outside(inside, rows)[0], engine, fetched or {})
    dataflow = fetch_weights(dataflow, fetched or {}, ANY_TIMING)
    dataflow = queue_outside(dataflow, dict.fromkeys(waiting, Fraction(1)), ANY_TIMING)
    streams = _streams(model, dataflow, taps, records)
    per_frame = sum(prod(v.typed.shape) for graph in (quantized, dataflow) for v in graph.values())
    step = max(1, BATCH_ELEMENTS // max(1, per_frame))
    for start in range(0, frames, step):
        part = {name: array[start : start + step] for name, array in inputs.items()}
        values, own = golden.trace(dataflow, part), golden.trace(quantized, part)
        count = min(step, frames - start)
        for stream in streams:
            found = stream.tap.read(stream.path, start, count)
            if stream.known is None:
                expected = values[stream.value].reshape(count, -1)
                if stream.sent is not None:
                    expected = expected[:, stream.sent]
            else:
                expected = own[stream.known.value].reshape(count, -1)[:, stream.order]
            _compare(stream, start, expected, found)
    return Layers(tuple(stream.layer for stream in streams))


def _streams(model: Model, dataflow: Graph, taps: tuple[Tap, ...], records: Path) -> list[_Stream]:
    there, producers = {value.name: value for value in dataflow.values()}, dataflow.producers()
    known = {k.value.name: k for k in known_values(model.quantized, model.resolved).values()}
    result = []
    for tap, path in files(taps, records):
        value = there.get(tap.stream)
        clipped = None if value is None else _inside(producers.get(value), tap.elements)
        if value is None or (clipped is None and prod(value.typed.shape) != tap.elements):
            raise ManifestError(f"stream {show(tap.stream)} must be in the recompiled model")
        carried = value.carried
        onnx = None if carried is None else known.get(carried.name)
        if carried is None:
            name, shape = value.name, value.typed.shape
            order = identity_order(shape) if clipped is None else clipped
        else:
            name, shape, order = carried.name, carried.shape, carried.order
        if onnx is not None:
            name, shape = onnx.name, onnx.shape
        layer = Layer(tap.instance, tap.op, tap.nodes, tap.moved, name, tuple(shape))
        result.append(_Stream(tap, path, layer, order, value, onnx, clipped))
    return result


def _inside(producer: Node | None, elements: int) -> IntArray | None:
    """Return the elements of windows without their padding, if that is what the design sends: so many."""
    if producer is None or not isinstance(producer.attributes, SlidingWindowAttributes):
        return None
    if prod(producer.outputs[0].typed.shape) == elements:
        return None
    channels = producer.outputs[0].typed.shape[1]
    inside = np.flatnonzero(np.repeat(producer.attributes.geometry.inside(), channels))
    return inside if len(inside) == elements else None


def _compare(stream: _Stream, start: int, expected: IntArray, found: IntArray) -> None:
    """Compare ``expected``, [frames, elements] in the stream's order, with ``found``, as many as came, in sequence."""
    layer = stream.layer
    layer.elements += expected.size
    layer.missing += expected.size - found.size
    flat = expected.reshape(-1)
    places = np.flatnonzero(flat[: found.size] != found)
    layer.differing += places.size
    if places.size and layer.first is None:
        frame, element = np.divmod(places, expected.shape[1])
        here = places[frame == frame[0]]
        tensor = stream.order[element[frame == frame[0]]]
        least = int(tensor.argmin())
        index = tuple(int(i) for i in np.unravel_index(int(tensor[least]), layer.shape))
        place = int(here[least])
        layer.first = Difference(start + int(frame[0]), index, int(flat[place]), int(found[place]))
