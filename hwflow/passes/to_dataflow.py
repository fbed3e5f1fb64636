"""Quantized graph to dataflow graph: each logical operator lowers itself. Requires: types. Ensures: stream-shape.

Every stream is (pixels, channels); how its elements relate to the logical tensor is an explicit order, so that no
operator guesses at a layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from hwflow.cores.logical.index_map import IndexMap
from hwflow.cores.registry import OPERATORS, logical
from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.ir.graph import Carried, Graph, IntArray, Names, Node, Port, Stage, Value, identity_order
from hwflow.types import TensorType


class _Context:
    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self.findings: list[Finding] = []
        self._consumers = graph.consumers()
        self._images = _of_images(graph, self._consumers)
        self._streams: dict[Value, tuple[Value, IntArray]] = {}
        self._node_names = Names()
        self._value_names = Names()
        self._current: Node | None = None
        self._makers: dict[Value, Node] = {}

    def begin(self, node: Node) -> None:
        self._current = node

    def is_bound(self, value: Value) -> bool:
        """Whether there is a stream for ``value``: not for the results of refused nodes and what is made of them."""
        return value in self._streams

    def stream(self, value: Value) -> tuple[Value, IntArray]:
        return self._streams[value]

    def add(self, op: str, suffix: str, inputs: list[Value], attributes: dict[str, Any]) -> Value:
        node = self._current
        assert node is not None
        name = self._node_names.fresh(f"{node.name}_{suffix}" if suffix else node.name)
        operator = OPERATORS[op]
        types = [v.typed for v in inputs]
        attributes = {**attributes, **operator.derive(attributes, types)}
        (type_,) = operator.infer(attributes, types)
        value = Value(self._value_names.fresh(name), type_, node.outputs[0].origin)
        self.nodes.append(Node(name, op, inputs, [value], attributes, node.sources))
        self._makers[value] = self.nodes[-1]
        return value

    def wished_channels(self, value: Value) -> int | None:
        rank = len(value.typed.shape)
        pixels = self._wish(value)
        others = [] if pixels is None else [axis for axis in range(rank) if axis not in pixels]
        return others[0] if len(others) == 1 else None

    def pixel_axes(self, value: Value) -> tuple[int, ...]:
        """Which axes of an input run over pixels: so that the first operator that cares finds the order it needs.

        Channels-last inputs are common with a Transpose in front, or a Reshape that moves axes of length 1, and images
        as vectors with a Reshape that splits them: all are followed. Where two streams meet, both need the order of
        what follows, or else the one that an image operator has given the other.
        """
        wished = self._wish(value)
        return tuple(range(len(value.typed.shape) - 1)) if wished is None else wished

    def _wish(self, value: Value) -> tuple[int, ...] | None:
        return _wish(self._consumers, self._images, value, tuple(range(len(value.typed.shape))))

    def arranged(self, stream: Value, order: IntArray, wanted: IntArray, channels: int) -> Value:
        if stream.typed.shape[1] == channels and np.array_equal(order, wanted):
            return stream
        position = np.empty(order.size, dtype=np.int64)
        position[order] = np.arange(order.size)
        moved, fill = IndexMap(position[wanted], order.size), 0
        maker = self._makers.get(stream)
        if maker is not None and maker.op == "rearrange":  # one does the work of both
            first: IndexMap = maker.attributes["map"]
            moved, fill = IndexMap(first.index[moved.index], first.elements), maker.attributes["fill"]
            stream = maker.inputs[0]
            if moved.is_identity and stream.typed.shape[1] == channels:
                return stream
        return self.add("rearrange", "arranged", [stream], {"map": moved, "channels": channels, "fill": fill})

    def is_rearranged(self, stream: Value) -> bool:
        maker = self._makers.get(stream)
        return maker is not None and maker.op == "rearrange"

    def drop_unread(self, outputs: list[Port]) -> None:
        """Leave out the rearrangers that others have taken the place of."""
        read = {v for node in self.nodes for v in node.inputs} | {port.value for port in outputs}
        self.nodes = [n for n in self.nodes if n.op != "rearrange" or n.outputs[0] in read]

    def bind(self, value: Value, stream: Value, order: IntArray) -> None:
        self._streams[value] = (stream, order)
        if stream.carried is None:  # later ones are the same elements under another name
            stream.carried = Carried(value.name, value.typed.shape, order)

    def refuse(self, rule: str, message: str, remedy: str) -> None:
        node = self._current
        assert node is not None
        names = ", ".join(show(s) for s in node.sources) or show(node.name)
        self.findings.append(Finding(rule, f"node {names} ({node.op})", message, remedy))

    def input_port(self, port: Port, pixel_axes: tuple[int, ...]) -> Port:
        """The input as a stream, channels (the axis that is no pixel axis) fastest."""
        type_ = port.value.typed
        axes = range(len(type_.shape))
        channel_axes = [a for a in axes if a not in pixel_axes]
        flat = identity_order(type_.shape).reshape(type_.shape)
        order = flat.transpose(*pixel_axes, *channel_axes).reshape(-1)
        pixels = int(np.prod([type_.shape[a] for a in pixel_axes], dtype=np.int64))
        stream = Value(self._value_names.fresh(port.value.name), _stream_type(type_, pixels), port.value.origin)
        self.bind(port.value, stream, order)
        return Port(port.name, stream, port.shape, order, port.scale, port.zero_point, port.axis)


def _stream_type(type_: TensorType, pixels: int) -> TensorType:
    elements = int(np.prod(type_.shape, dtype=np.int64))
    return TensorType((pixels, elements // pixels), type_.element, type_.interval)


_Axes = tuple[int | None, ...]
_IMAGE = frozenset({"conv2d", "max_pool2d", "pixel_product", "sum_pool2d"})
_JOIN = frozenset({"concat", "elementwise", "product", "scaled_add"})


def _wish(
    consumers: Mapping[Value, list[tuple[Node, int]]], images: Set[Value], value: Value, axes: _Axes
) -> tuple[int, ...] | None:
    """The pixel axes that the readers of ``value`` ask for; None if they have no wish. ``axes`` holds the input's axis
    behind each axis of ``value``; None for one of length 1 that is new."""
    while consumers[value]:
        node, _ = consumers[value][0]
        if node.op in _IMAGE:
            return _all_but(axes, 0)
        if node.op == "transpose":
            axes = tuple(axes[a] for a in node.attributes["perm"])
        elif node.op == "reshape":
            split = _split(axes, value.typed.shape, node.attributes["shape"])
            if split is None:
                break
            axes = split
        elif node.op == "reindex":
            if len(node.attributes["index"].shape) != len(axes):
                break
        elif node.op in _JOIN:
            if not images.isdisjoint(node.inputs):
                return _all_but(axes, 0)
            if any(len(m) > 1 for m in node.attributes.get("multipliers", ())):
                return _all_but(axes, node.attributes["axis"])
        elif node.op == "interpolate":
            if node.attributes["axis"] == 0:
                break
            return _all_but(axes, 0)
        elif node.op != "requantize":
            break
        elif len(node.attributes["stages"]) > 1:
            return _all_but(axes, node.attributes["axis"])
        value = node.outputs[0]
    return None


def _split(axes: _Axes, source: tuple[int, ...], target: tuple[int, ...]) -> _Axes | None:
    """The input's axis behind each axis of a Reshape's result, where that keeps or splits the axes of its operand; None
    where it joins some."""
    long = iter([(axis, size) for axis, size in zip(axes, source, strict=True) if size != 1])
    result: list[int | None] = []
    axis, rest = None, 1
    for size in target:
        if size == 1:
            result.append(None)
            continue
        if rest == 1:
            axis, rest = next(long)
        if rest % size:
            return None
        rest //= size
        result.append(axis)
    return tuple(result)


def _all_but(axes: _Axes, channel: int) -> tuple[int, ...] | None:
    """Every axis but the one behind axis ``channel``; None where part of that is no channel."""
    others = [axis for place, axis in enumerate(axes) if axis is not None and place != channel]
    return None if axes[channel] in others else tuple(dict.fromkeys(others))


def _of_images(graph: Graph, consumers: Mapping[Value, list[tuple[Node, int]]]) -> frozenset[Value]:
    """The values that an image operator made, and nothing behind it changed the order, and the inputs that one reads,
    with what is made of these likewise."""
    found = {p.value for p in graph.inputs if any(reader.op in _IMAGE for reader, _ in consumers[p.value])}
    for node in graph.nodes:
        joins = node.op in _JOIN or node.op == "requantize"
        if node.op in _IMAGE or (joins and not found.isdisjoint(node.inputs)):
            found.update(node.outputs)
    return frozenset(found)


def to_dataflow(graph: Graph) -> Graph:
    """The dataflow graph. Raises :class:`ModelRefused` with every node whose stream order cannot be met."""
    context = _Context(graph)
    inputs = [context.input_port(port, context.pixel_axes(port.value)) for port in graph.inputs]
    for node in graph.nodes:
        if all(context.is_bound(value) for value in node.inputs):  # else the finding about its source is enough
            context.begin(node)
            logical(node.op).lower(node, context)
    if context.findings:
        raise ModelRefused(context.findings)
    outputs = []
    for port in graph.outputs:
        stream, order = context.stream(port.value)
        outputs.append(Port(port.name, stream, port.shape, order, port.scale, port.zero_point, port.axis))
    context.drop_unread(outputs)
    return Graph(
        graph.name, Stage.DATAFLOW, inputs, outputs, context.nodes, graph.prefix, graph.suffix, graph.deferred
    )
