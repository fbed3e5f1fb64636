"""The golden model: evaluate a graph operator by operator, at any integer stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from hwflow.cores.loops.followed_by import FollowedByAttributes
from hwflow.cores.loops.repeated import RepeatedAttributes
from hwflow.cores.registry import OPERATORS
from hwflow.display import show
from hwflow.errors import Finding, ModelRefused
from hwflow.ir.graph import Delaying, Graph, IntArray, Node, Port, Value


def evaluate(graph: Graph, inputs: Mapping[str, IntArray]) -> dict[str, IntArray]:
    """Return outputs by port name for ``inputs`` by port name, both int64[frames, *logical shape].

    Raises :class:`ModelRefused` for an input that is missing, not of integers, of the wrong shape or outside its type.
    """
    _check(graph, inputs)
    frames = len(inputs[graph.inputs[0].name]) if graph.inputs else 1
    last_use = {value: place for place, node in enumerate(graph.nodes) for value in node.inputs}
    kept = {port.value for port in graph.outputs}
    elements = [sum(prod(v.typed.shape) for v in (*node.inputs, *node.outputs)) for node in graph.nodes]
    step = max(1, _ELEMENTS // max(elements, default=1))
    state = State(graph)
    step = min(step, state.frames or step)
    parts: dict[str, list[IntArray]] = {port.name: [] for port in graph.outputs}
    for first in range(0, max(1, frames), step):
        values = _inputs(graph, {name: array[first : first + step] for name, array in inputs.items()})
        state.begin(values, min(step, frames - first) if inputs else frames)
        for node, place in _in_order(graph, values):
            for value in node.inputs:
                if last_use[value] == place and value not in kept and value not in state.kept:
                    values.pop(value, None)
        state.end(values)
        for port in graph.outputs:
            parts[port.name].append(_to_logical(port, values[port.value]))
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


_ELEMENTS = 1 << 22  # of a node's operands and results, for the frames that are evaluated together


def trace(graph: Graph, inputs: Mapping[str, IntArray], state: State | None = None) -> dict[Value, IntArray]:
    """Return every value of the graph, [frames, *its shape]. ``state``: what frames before these left; it goes on."""
    _check(graph, inputs)
    state = state or State(graph)
    frames = len(inputs[graph.inputs[0].name]) if graph.inputs else 1
    step = state.frames or max(1, frames)
    parts: dict[Value, list[IntArray]] = {value: [] for value in graph.values()}
    for first in range(0, max(1, frames), step):
        values = _inputs(graph, {name: array[first : first + step] for name, array in inputs.items()})
        state.begin(values, min(step, frames - first))
        for _ in _in_order(graph, values):
            pass
        state.end(values)
        for value, arrays in parts.items():
            arrays.append(values[value])
    return {value: arrays[0] if len(arrays) == 1 else np.concatenate(arrays) for value, arrays in parts.items()}


class State:
    """What delays hold between frames. ``frames``: that can be evaluated together, since none of them reads what
    another leaves; 0: any number. ``kept``: what they delay."""

    def __init__(self, graph: Graph) -> None:
        delays = [node for node in graph.nodes if isinstance(node.attributes, Delaying)]
        self._held = {node: node.attributes.first_frames for node in delays}
        self.frames = min(map(len, self._held.values()), default=0)
        self.kept = frozenset(value for node in delays for value in node.inputs)

    def begin(self, values: dict[Value, IntArray], frames: int) -> None:
        """Give what is held to the next ``frames``."""
        values.update((node.outputs[0], held[:frames]) for node, held in self._held.items())

    def end(self, values: Mapping[Value, IntArray]) -> None:
        """Hold what these frames leave."""
        for node, held in self._held.items():
            left = values[node.inputs[0]]
            self._held[node] = np.concatenate([held[len(left) :], left])


def _inputs(graph: Graph, inputs: Mapping[str, IntArray]) -> dict[Value, IntArray]:
    return {p.value: _to_stream(p, np.asarray(inputs[p.name], dtype=np.int64)) for p in graph.inputs}


def _in_order(graph: Graph, values: dict[Value, IntArray]) -> Iterator[tuple[Node, int]]:
    """Evaluate a graph whose delays have their results; yield each node, with its place, once its results are there."""
    place = 0
    while place < len(graph.nodes):
        node, end = graph.nodes[place], place + 1
        if isinstance(node.attributes, FollowedByAttributes):
            end = _end_of_circuit(graph, place)
            _evaluate_rounds(graph.nodes[place:end], node.attributes.rounds, values)
        elif not isinstance(node.attributes, Delaying):
            _evaluate(node, values)
        for done in range(place, end):
            yield graph.nodes[done], done
        place = end


def _end_of_circuit(graph: Graph, place: int) -> int:
    """Return the place behind the circuits within a frame that begin at ``place``: where all that goes back is made."""
    back: set[Value] = set()
    made: set[Value] = set()
    while True:
        node = graph.nodes[place]
        if isinstance(node.attributes, FollowedByAttributes):
            back.add(node.inputs[-1])
        made.update(node.outputs)
        place += 1
        if back <= made:
            return place


def _evaluate_rounds(nodes: Sequence[Node], rounds: int, values: dict[Value, IntArray]) -> None:
    """Evaluate nodes with circuits within a frame, of which each round needs the one before."""
    results: dict[Value, list[IntArray]] = {value: [] for node in nodes for value in node.outputs}
    frames = len(next(values[value] for node in nodes for value in node.inputs if value not in results))

    def row(value: Value, number: int) -> IntArray:
        if value in results:
            return results[value][number]
        size = values[value].shape[1] // rounds
        return values[value][:, number * size : (number + 1) * size]

    for number in range(rounds):
        for node in nodes:
            if isinstance(node.attributes, FollowedByAttributes):
                *first, rest = node.inputs
                found: tuple[IntArray, ...] = (
                    row(rest, number - 1) if number
                    else node.attributes.first_row([values[value] for value in first], frames),
                )
            else:
                given = node.attributes
                given = given.of_round(number) if isinstance(given, RepeatedAttributes) else given
                found = OPERATORS[node.op].evaluate(given, [row(value, number) for value in node.inputs])
            for value, array in zip(node.outputs, found, strict=True):
                results[value].append(array)
    values.update((value, np.concatenate(rows, axis=1)) for value, rows in results.items())


def _evaluate(node: Node, values: dict[Value, IntArray]) -> None:
    results = OPERATORS[node.op].evaluate(node.attributes, [values[v] for v in node.inputs])
    if not node.inputs:  # of one frame, which is every frame's
        frames = len(next(iter(values.values()), results[0]))
        results = tuple(np.broadcast_to(result, (frames, *result.shape[1:])) for result in results)
    values.update(zip(node.outputs, results, strict=True))


def _to_stream(port: Port, array: IntArray) -> IntArray:
    flat = array.reshape(len(array), len(port.order))
    return flat[:, port.order].reshape(len(array), *port.value.typed.shape)


def _to_logical(port: Port, array: IntArray) -> IntArray:
    result = np.empty((len(array), len(port.order)), dtype=np.int64)
    result[:, port.order] = array.reshape(result.shape)
    return result.reshape(len(array), *port.shape)


def _check(graph: Graph, inputs: Mapping[str, IntArray]) -> None:
    findings = []
    for port in graph.inputs:
        where, interval = f"input {show(port.name)}", port.value.typed.interval
        if port.name not in inputs:
            there = ", ".join(show(n) for n in inputs) or "nothing"
            message = f"must be given, not missing (there is {there})"
            findings.append(Finding("input-present", where, message, "add it to the .npz"))
            continue
        array = np.asarray(inputs[port.name])
        if array.ndim == 0 or array.shape[1:] != port.shape:
            wanted = ", ".join(map(str, ("frames", *port.shape)))
            message = f"shape must be [{wanted}], not {list(array.shape)}"
            findings.append(Finding("input-shape", where, message, "reshape it"))
        elif array.dtype.kind not in "iub":
            message = f"elements must be integers, not {array.dtype}"
            findings.append(Finding("input-type", where, message, "quantize them first"))
        elif array.size and not (interval.includes(int(array.min())) and interval.includes(int(array.max()))):
            message = f"integers must lie in {interval}, not in [{array.min()}, {array.max()}]"
            findings.append(Finding("input-range", where, message, "clip them"))
    if findings:
        raise ModelRefused(findings)
