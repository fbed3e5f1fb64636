"""Lower the quantized graph to the dataflow graph, one logical operator at a time. Requires: types. Ensures:
stream-shape.

Every stream is (pixels, channels); an explicit order maps its elements to the logical tensor, so that no operator
assumes a layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from copy import copy
from dataclasses import replace
from math import prod

import numpy as np

from hwflow.cores.logical.index_map import IndexMap
from hwflow.cores.loops.by_round import hull_of_types, of_round
from hwflow.cores.operator import Axes
from hwflow.cores.registry import OPERATORS, hardware, logical
from hwflow.cores.streams.rearrange import RearrangeAttributes
from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.ir.graph import (
    Attributes,
    Carried,
    Delaying,
    Graph,
    IntArray,
    Names,
    Node,
    Port,
    Stage,
    Value,
    identity_order,
)
from hwflow.ir.structure import Structures
from hwflow.passes.parts_together import orders_of_parts
from hwflow.types import TensorType


class _Context:
    def __init__(self, graph: Graph, around: _Context | None = None) -> None:
        self.nodes: list[Node] = []
        self.findings: list[Finding] = [] if around is None else around.findings
        self._graph = graph
        plain = graph if around is None else _of_first_round(graph)
        self._consumers = plain.consumers()
        self._images = _in_image_order(plain, self._consumers)
        self._parts = orders_of_parts(plain)
        self._streams: dict[Value, tuple[Value, IntArray]] = {}
        self._node_names: Names = Names() if around is None else around._node_names
        self._value_names: Names = Names() if around is None else around._value_names
        self._current: Node | None = None
        self._producers: dict[Value, Node] = {}
        self._open: list[tuple[Node, Value, Value, IntArray]] = []
        self._constants: dict[Node, tuple[Attributes, ...]] = {}

    def begin(self, node: Node) -> None:
        self._current = node

    def is_bound(self, value: Value) -> bool:
        return value in self._streams

    def inside(self, body: Graph) -> _Context:
        return _Context(body, self)

    def take(self, value: Value, type_: TensorType, order: IntArray) -> Value:
        stream = Value(self._value_names.fresh(value.name), type_)
        self._streams[value] = (stream, order)
        return stream

    def lower_nodes(self) -> None:
        for node in self._graph.nodes:
            # Of an unbound input the finding about its producer is enough.
            if isinstance(node.attributes, Delaying) or all(map(self.is_bound, node.inputs)):
                self.begin(node)
                logical(node.op).lower(node, self)

    def lower_each(self, each: Sequence[Node]) -> None:
        made, streams, producers = len(self.nodes), dict(self._streams), dict(self._producers)
        logical(each[0].op).lower(each[0], self)
        rounds = [self.nodes[made:]]
        for node in each[1:]:
            other = copy(self)
            other.nodes, other._streams, other._producers = [], dict(streams), dict(producers)
            other._node_names, other._value_names = Names(), Names()
            other.begin(node)
            logical(node.op).lower(node, other)
            rounds.append(other.nodes)
        if not all(self.is_bound(value) for value in each[0].outputs):
            return
        structures = Structures()
        for row in zip(*rounds, strict=True):
            own = tuple([node.attributes for node in row])
            if len(set(map(structures.of_attributes, own))) == 1:
                continue
            operator = hardware(row[0].op)
            together = operator.in_turns(own) if len({node.op for node in row}) == 1 else None
            if together is None:
                self.refuse(
                    "shared-layers", f"constants that differ from round to round have no core of kind {row[0].op}",
                    "compile with --loops unrolled",
                )
                return
            if together is own[0]:
                continue
            row[0].attributes = together
            self._constants[row[0]] = own
            for index, value in enumerate(row[0].outputs):
                value.type = hull_of_types([node.outputs[index].typed for node in row])

    def constants_of(self, node: Node) -> tuple[Attributes, ...]:
        return self._constants.get(node, ())

    def lowered(self, read: Sequence[Value]) -> Sequence[Node]:
        self.drop_unread(read)
        return self.nodes

    def repeat(self, inner: Node, inputs: list[Value], attributes: Attributes) -> Value:
        (type_,) = OPERATORS[attributes.op].infer(attributes, [v.typed for v in inputs])
        value = Value(inner.outputs[0].name, type_)
        self.nodes.append(Node(inner.name, inputs, [value], attributes, inner.sources))
        self._producers[value] = self.nodes[-1]
        return value

    def feed(self, stream: Value, source: Value) -> None:
        self._producers[stream].inputs.append(source)

    def stream(self, value: Value) -> tuple[Value, IntArray]:
        return self._streams[value]

    def add(self, suffix: str, inputs: list[Value], attributes: Attributes) -> Value:
        node = self._current
        assert node is not None
        name = self._node_names.fresh(f"{node.name}_{suffix}" if suffix else node.name)
        operator = OPERATORS[attributes.op]
        types = [v.typed for v in inputs]
        attributes = operator.derive(attributes, types)
        (type_,) = operator.infer(attributes, types)
        value = Value(self._value_names.fresh(name), type_, node.outputs[0].origin)
        self.nodes.append(Node(name, inputs, [value], attributes, node.sources))
        self._producers[value] = self.nodes[-1]
        return value

    def preferred_channels(self, value: Value) -> int | None:
        rank = len(value.typed.shape)
        pixels = self._preferred_pixels(value)
        others = [] if pixels is None else [axis for axis in range(rank) if axis not in pixels]
        return others[0] if len(others) == 1 else None

    def preferred_order(self, value: Value) -> tuple[int, IntArray]:
        shape, pixel_axes = value.typed.shape, self._pixel_axes(value)
        channel_axes = [a for a in range(len(shape)) if a not in pixel_axes]
        flat = identity_order(shape).reshape(shape)
        return prod(shape[a] for a in channel_axes), flat.transpose(*pixel_axes, *channel_axes).reshape(-1)

    def order_of_parts(self, value: Value) -> IntArray:
        found = self._parts.get(value)
        return np.arange(value.typed.shape[-1]) if found is None else found

    def close(self, stream: Value, value: Value, order: IntArray) -> None:
        assert self._current is not None
        self._open.append((self._current, stream, value, order))

    def close_circuits(self) -> None:
        """Connect the delays, which come before what they delay."""
        for node, stream, value, order in self._open:
            if self.is_bound(value):
                self.begin(node)
                self.feed(stream, self.arranged(*self.stream(value), order, stream.typed.shape[1]))

    def _pixel_axes(self, value: Value) -> tuple[int, ...]:
        """Return the axes of a tensor that run over pixels, such that the first layout-sensitive operator gets the
        order it needs.

        The search follows a Transpose or a Reshape (of channels-last inputs, or of images given as vectors). Where two
        streams meet, both need the order of their reader, or else the order that an image operator gave one of them.
        """
        preferred = self._preferred_pixels(value)
        return tuple(range(len(value.typed.shape) - 1)) if preferred is None else preferred

    def _preferred_pixels(self, value: Value) -> tuple[int, ...] | None:
        return _preferred_pixels(self._consumers, self._images, value, tuple(range(len(value.typed.shape))))

    def arranged(self, stream: Value, order: IntArray, wanted: IntArray, channels: int) -> Value:
        if stream.typed.shape[1] == channels and np.array_equal(order, wanted):
            return stream
        position = np.empty(order.size, dtype=np.int64)
        position[order] = np.arange(order.size)
        moved, fill = IndexMap(position[wanted], order.size), 0
        producer = self._producers.get(stream)
        if producer is not None and isinstance(producer.attributes, RearrangeAttributes):  # one does the work of both
            before = producer.attributes
            moved, fill = IndexMap(before.map.index[moved.index], before.map.elements), before.fill
            stream = producer.inputs[0]
            if moved.is_identity and stream.typed.shape[1] == channels:
                return stream
        return self.add("arranged", [stream], RearrangeAttributes(moved, channels, fill))

    def is_rearranged(self, stream: Value) -> bool:
        producer = self._producers.get(stream)
        return producer is not None and isinstance(producer.attributes, RearrangeAttributes)

    def drop_unread(self, outputs: Sequence[Value]) -> None:
        """Remove the rearrangers that others have replaced."""
        read = {v for node in self.nodes for v in node.inputs} | {*outputs}
        self.nodes = [
            n for n in self.nodes if not isinstance(n.attributes, RearrangeAttributes) or n.outputs[0] in read
        ]

    def bind(self, value: Value, stream: Value, order: IntArray) -> None:
        self._streams[value] = (stream, order)
        if stream.carried is None:  # later bindings name the same elements
            stream.carried = Carried(value.name, value.typed.shape, order)

    def refuse(self, rule: str, message: str, remedy: str) -> None:
        node = self._current
        assert node is not None
        names = ", ".join(show(s) for s in node.sources) or show(node.name)
        self.findings.append(Finding(rule, f"node {names} ({node.op})", message, remedy))

    def input_port(self, port: Port) -> Port:
        """Return the input as a stream, with channels (the axis that is no pixel axis) fastest."""
        type_ = port.value.typed
        channels, order = self.preferred_order(port.value)
        stream_type = TensorType((len(order) // channels, channels), type_.element, type_.interval)
        stream = Value(self._value_names.fresh(port.value.name), stream_type, port.value.origin)
        self.bind(port.value, stream, order)
        return Port(port.name, stream, port.shape, order, port.scale, port.zero_point, port.axis)


def _of_first_round(body: Graph) -> Graph:
    """Return a loop's body as it is in the first round."""
    nodes = [of_round(node, 0) for node in body.nodes]
    return Graph(body.name, body.stage, body.inputs, body.outputs, nodes)


def _preferred_pixels(
    consumers: Mapping[Value, list[tuple[Node, int]]], images: Set[Value], value: Value, axes: Axes
) -> tuple[int, ...] | None:
    """Return the pixel axes that the readers of ``value`` prefer; None if they have no preference. ``axes`` maps each
    axis of ``value`` to the input's; None for a new one of length 1."""
    while consumers[value]:
        node, _ = consumers[value][0]
        operator = logical(node.op)
        in_image_order = operator.joins and not images.isdisjoint(node.inputs)
        channels = 0 if in_image_order else operator.channel_axis(node)
        if channels is not None:
            return _all_but(axes, channels)
        followed = operator.axes_of_result(node, axes)
        if followed is None:
            break
        axes, value = followed, node.outputs[0]
    return None


def _all_but(axes: Axes, channel: int) -> tuple[int, ...] | None:
    """Return every input axis but that of axis ``channel``; None where part of that one is a pixel axis."""
    others = [axis for place, axis in enumerate(axes) if axis is not None and place != channel]
    return None if axes[channel] in others else tuple(dict.fromkeys(others))


def _in_image_order(graph: Graph, consumers: Mapping[Value, list[tuple[Node, int]]]) -> frozenset[Value]:
    """Return the values in an image operator's order: its outputs, the graph inputs and delays that it reads, and what
    follows either without a change of order."""
    sources = [port.value for port in graph.inputs]
    sources += [value for node in graph.nodes if isinstance(node.attributes, Delaying) for value in node.outputs]
    readers = {value: [reader for reader, _ in consumers[value]] for value in sources}
    found = {
        value for value, nodes in readers.items() if any(logical(reader.op).takes_images(reader) for reader in nodes)
    }
    for node in graph.nodes:
        operator = logical(node.op)
        if operator.takes_images(node) or (operator.keeps_order and not found.isdisjoint(node.inputs)):
            found.update(node.outputs)
    return frozenset(found)


def to_dataflow(graph: Graph) -> Graph:
    """Return the dataflow graph. Raises :class:`ModelRefused` with every node whose stream order cannot be met."""
    context = _Context(graph)
    inputs = [context.input_port(port) for port in graph.inputs]
    context.lower_nodes()
    context.close_circuits()
    if context.findings:
        raise ModelRefused(context.findings)
    outputs = []
    for port in graph.outputs:
        stream, order = context.stream(port.value)
        outputs.append(replace(port, value=stream, order=order))
    context.drop_unread([port.value for port in outputs])
    return Graph(
        graph.name, Stage.DATAFLOW, inputs, outputs, context.nodes, graph.prefix, graph.suffix, graph.deferred
    )
