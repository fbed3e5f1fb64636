"""A loop whose body is hardware once, for all of its rounds.

The streams of the body have as many frames of their own in a frame of the model as there are rounds
(:mod:`hwflow.cores.loops.repeated`): a region of another rate, in the words of synchronous dataflow. States go round in
it (:mod:`hwflow.cores.loops.followed_by`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hwflow.cores.loops.by_round import in_round
from hwflow.cores.loops.followed_by import FollowedByAttributes
from hwflow.cores.loops.repeated import RepeatedAttributes, tiled
from hwflow.cores.operator import OPERATORS, HardwareOperator, LogicalOperator, LoweringContext
from hwflow.ir.graph import Graph, IntArray, Node, Stage, Value
from hwflow.ir.node_attributes import LoopAttributes
from hwflow.numerics.requantizers.stages import NoSteps
from hwflow.numerics.requantizers.staircase import LIMIT
from hwflow.types import Interval, IntType, TensorType


class Loop(LogicalOperator[LoopAttributes]):
    attributes = LoopAttributes
    stages = frozenset({Stage.QUANTIZED})

    def derive(self, attributes: LoopAttributes, inputs: Sequence[TensorType]) -> LoopAttributes:
        """Infer the body's types: a state has the integers that it may have in any round, by induction."""
        body, given = attributes.body.copy(), attributes
        states = range(given.scanned, given.scanned + len(given.states))
        left = iter(inputs)
        for place, port in enumerate(body.inputs):
            first = given.first[place - given.scanned] if place in states else None
            if first is not None:
                interval = Interval(first, first)
                port.value.type = TensorType(port.shape, IntType.holding(interval), interval)
                continue
            type_ = next(left)
            port.value.type = _row_type(type_) if place < given.scanned else type_
            if place in states:
                port.value.type = TensorType(type_.shape, type_.element, type_.interval)
        for _ in range(given.rounds - 1):
            _infer(body)
            settled = True
            for place, output in zip(states, given.states, strict=True):
                before, after = body.inputs[place].value.typed, body.outputs[output].value.typed
                interval = before.interval.hull(after.interval)
                if interval != before.interval:
                    settled = False
                    body.inputs[place].value.type = TensorType(before.shape, IntType.holding(interval), interval)
            if settled:
                break
        else:
            _infer(body)
        return replace(attributes, body=body)

    def infer(self, attributes: LoopAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        found = []
        for port in attributes.body.outputs:
            row = port.value.typed
            axis = row.channel_axis % len(row.shape) + 1 if row.channels else 0
            found.append(replace(row, shape=(attributes.rounds, *row.shape), channel_axis=axis))
        return tuple(found)

    def evaluate(self, attributes: LoopAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        given, body = attributes, attributes.body
        left = iter(inputs[given.scanned :])
        ports = body.inputs[given.scanned :]
        states = [
            next(left) if first is None else np.full((len(inputs[0]), *port.shape), first, dtype=np.int64)
            for first, port in zip(given.first, ports, strict=False)
        ]
        rest = [*left]
        rows: list[list[IntArray]] = [[] for _ in body.outputs]
        for number in range(given.rounds):
            taken = [*(x[:, number] for x in inputs[: given.scanned]), *states, *rest]
            values = {port.value: x for port, x in zip(body.inputs, taken, strict=True)}
            for node in body.nodes:
                own = in_round(node.attributes, number)
                results = OPERATORS[own.op].evaluate(own, [values[v] for v in node.inputs])
                values.update(zip(node.outputs, results, strict=True))
            for row, port in zip(rows, body.outputs, strict=True):
                row.append(values[port.value])
            states = [rows[output][-1] for output in given.states]
        return tuple(np.stack(row, axis=1) for row in rows)

    def macs(self, node: Node[LoopAttributes]) -> int:
        body = node.attributes.body
        return node.attributes.rounds * sum(OPERATORS[inner.op].macs(inner) for inner in body.nodes)

    def lower(self, node: Node[LoopAttributes], context: LoweringContext) -> None:
        """Lower the body to cores on streams of one round; then put each, repeated, and the states around them into the
        graph. All that reorders between rounds is outside of the body."""
        given, rounds = node.attributes, node.attributes.rounds
        inside = context.inside(given.body)
        outer: dict[Value, Value] = {}  # the streams of all rounds, by those of one
        begun: list[tuple[Value, list[Value], IntArray]] = []  # of each state: its streams in one round and at first
        left = iter(node.inputs)
        for place, port in enumerate(given.body.inputs):
            is_scanned, is_state = place < given.scanned, 0 <= place - given.scanned < len(given.states)
            channels, order = inside.preferred_order(port.value)
            if is_scanned:
                order = _with_parts(order, inside.order_of_parts(port.value))
            if is_state and given.first[place - given.scanned] is not None:
                held = port.value.typed
                type_ = TensorType((order.size // channels, channels), held.element, held.interval)
                begun.append((inside.take(port.value, type_, order), [], order))
                continue
            value = next(left)
            wanted = order if is_state else _of_rounds(order, rounds, order.size if is_scanned else 0)
            stream = context.arranged(*context.stream(value), wanted, channels)
            source = port.value.typed if is_state else stream.typed
            type_ = TensorType((order.size // channels, channels), source.element, source.interval)
            own = inside.take(port.value, type_, order)
            if is_state:
                begun.append((own, [stream], order))
            else:
                outer[own] = stream
        inside.lower_nodes()
        results = [port.value for port in given.body.outputs]
        if not all(map(inside.is_bound, results)):
            return
        back = [
            inside.arranged(*inside.stream(results[output]), order, own.typed.shape[1])
            for output, (own, _, order) in zip(given.states, begun, strict=True)
        ]
        for number, ((own, streams, _), first) in enumerate(zip(begun, given.first, strict=True)):
            attributes = FollowedByAttributes(tiled(own.typed, rounds), rounds, first)
            outer[own] = context.add(f"state_{number}", streams, attributes)
        for inner in inside.lowered([*back, *(inside.stream(value)[0] for value in results)]):
            operator = OPERATORS[inner.op]
            assert isinstance(operator, HardwareOperator)
            repeated = RepeatedAttributes(inner, operator, rounds, inside.constants_of(inner))
            outer[inner.outputs[0]] = context.repeat(inner, [outer[v] for v in inner.inputs], repeated)
        for stream, (own, _, _) in zip(back, begun, strict=True):
            context.feed(outer[own], outer[stream])
        for value, result in zip(node.outputs, results, strict=True):
            stream, order = inside.stream(result)
            context.bind(value, outer[stream], _of_rounds(order, rounds, order.size))


def _with_parts(order: IntArray, parts: IntArray) -> IntArray:
    """Return an order of elements in which those of each row along the last axis come in the order ``parts``; the same
    where rows do not come one after the other."""
    rows = order.reshape(-1, parts.size)
    found: IntArray = rows[:, parts].reshape(-1) if (np.diff(rows, axis=1) == 1).all() else order
    return found


def _of_rounds(order: IntArray, rounds: int, apart: int) -> IntArray:
    """Return the order of a stream of all rounds, of which each is the stream of one, ``apart`` elements from the one
    before."""
    found: IntArray = (apart * np.arange(rounds, dtype=np.int64)[:, np.newaxis] + order).reshape(-1)
    return found


def _row_type(type_: TensorType) -> TensorType:
    """Return the type of any row of a tensor."""
    shape, axis = type_.shape[1:], type_.channel_axis % len(type_.shape)
    if type_.channels and axis:
        return TensorType(shape, type_.element, type_.interval, type_.channels, axis - 1)
    return TensorType(shape, type_.element, type_.interval)


def _infer(body: Graph) -> None:
    """Infer the types of a body whose inputs have some. Raises :class:`NoSteps` where a function has no steps, or
    integers become too long."""
    for node in body.nodes:
        types = [value.typed for value in node.inputs]
        node.attributes = OPERATORS[node.op].derive(node.attributes, types)
        for value, type_ in zip(node.outputs, OPERATORS[node.op].infer(node.attributes, types), strict=True):
            if max(-type_.interval.lo, type_.interval.hi) > LIMIT:
                raise NoSteps(f"have integers of at most 62 bits, not in {type_.interval}")
            value.type = type_
