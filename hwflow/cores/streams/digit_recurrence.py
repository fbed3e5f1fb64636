"""Functions of streams that digit recurrences compute, rounded to odd: quotients and roots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import isqrt

import numpy as np

from hdl_lib.arithmetic.digit_recurrence import DigitRecurrence as Core
from hdl_lib.arithmetic.recurrence import Quotient as QuotientForm
from hdl_lib.arithmetic.recurrence import Recurrence
from hdl_lib.arithmetic.recurrence import Root as RootForm
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import (
    A,
    Built,
    Decision,
    Device,
    Folding,
    LogicalOperator,
    LoweringContext,
    Resources,
)
from hwflow.cores.streams.joined import Joined, joined_streams, joined_timing
from hwflow.cores.timing import Timing
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import QuotientAttributes, RootAttributes
from hwflow.types import Interval, IntType, TensorType


class DigitRecurrence(LogicalOperator[A], Joined[A]):
    """Base of such functions. Folding: ``rounds`` are the cycles per beat."""

    stages = frozenset({Stage.QUANTIZED, Stage.DATAFLOW, Stage.SCHEDULED})

    @abstractmethod
    def form(self, attributes: A, inputs: Sequence[TensorType]) -> Recurrence:
        """Return the recurrence, with as many bits as results have."""

    def lower(self, node: Node[A], context: LoweringContext) -> None:
        streams, order = joined_streams(node, context)
        context.bind(node.outputs[0], context.add("", streams, node.attributes), order)

    def foldings(self, node: Node[A], device: Device) -> Sequence[Folding]:
        bits = self._form(node).bits
        rounds = sorted({-(-bits // units) for units in range(1, bits + 1)}, reverse=True)
        lanes = costs.stream_lanes(node.outputs[0].typed.shape)
        # More lanes than one of several cycles each do the same work with more registers than fewer, faster ones.
        return [Folding(1, 1, rounds=each) for each in rounds] + [Folding(count, count) for count in lanes[1:]]

    def cycles(self, node: Node[A], folding: Folding) -> int:
        return super().cycles(node, folding) * folding.rounds

    def timing(self, node: Node[A], decision: Decision) -> Timing:
        beats = super().cycles(node, decision.folding)
        latency = Core.latency_of(self._form(node, decision.folding), decision.folding.rounds)
        return joined_timing(beats, latency, len(node.inputs), decision.folding.rounds)

    def resources(self, node: Node[A], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        return costs.digit_recurrence(
            device.family, self._form(node, folding), folding.rounds, folding.output_lanes,
            node.outputs[0].typed.element.bits, decision.depth,
        )

    def build(self, node: Node[A], decision: Decision, name: str) -> Built:
        folding = decision.folding
        core = Core(
            self._form(node, folding), folding.rounds, lanes=folding.output_lanes,
            output_shape=shape_of(node.outputs[0].typed.element), depth=decision.depth,
        )
        return Built(core, core.sources, [core.o])

    def _form(self, node: Node[A], folding: Folding | None = None) -> Recurrence:
        """Return the recurrence, in a ``folding`` with a multiple of its cycles of bits."""
        form = self.form(node.attributes, [value.typed for value in node.inputs])
        rounds = 1 if folding is None else folding.rounds
        return form.with_bits(-(-form.bits // rounds) * rounds)


class Quotient(DigitRecurrence[QuotientAttributes]):
    """``a * 2**fraction / b`` towards zero, and below it a bit that says that something is left."""

    attributes = QuotientAttributes

    def form(self, attributes: QuotientAttributes, inputs: Sequence[TensorType]) -> QuotientForm:
        a, b = (shape_of(each.element) for each in inputs)
        return QuotientForm((a, b), attributes.fraction, attributes.bits)

    def infer(self, attributes: QuotientAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        a, b = inputs
        interval = quotients(a.interval, b.interval, attributes)
        return (TensorType(a.shape, IntType.holding(interval), interval),)

    def evaluate(self, attributes: QuotientAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        a, b = inputs
        whole, rest = np.divmod(np.abs(a), b)
        for _ in range(attributes.fraction):  # bit by bit: a dividend with all of them may have more than 64
            rest = 2 * rest
            enough = rest >= b
            whole, rest = 2 * whole + enough, rest - b * enough
        return (np.sign(a) * (2 * whole + (rest != 0)),)


class Root(DigitRecurrence[RootAttributes]):
    """``sqrt(a * 4**fraction + addend)`` down, and below it a bit that says that something is left."""

    attributes = RootAttributes

    def form(self, attributes: RootAttributes, inputs: Sequence[TensorType]) -> RootForm:
        (a,) = inputs
        bits = max(1, isqrt((a.interval.hi << 2 * attributes.fraction) + attributes.addend).bit_length())
        return RootForm((shape_of(a.element),), attributes.fraction, bits, attributes.addend)

    def infer(self, attributes: RootAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        (a,) = inputs
        interval = Interval(_root(_least(a, attributes), attributes), _root(a.interval.hi, attributes))
        return (TensorType(a.shape, IntType.holding(interval), interval),)

    def evaluate(self, attributes: RootAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        (a,) = inputs
        roots = [_root(number, attributes) for number in a.reshape(-1).tolist()]  # of long integers
        return (np.array(roots, dtype=np.int64).reshape(a.shape),)


def _least(a: TensorType, attributes: RootAttributes) -> int:
    """Return the least operand in the type's interval with a root."""
    return max(a.interval.lo, -(attributes.addend >> 2 * attributes.fraction))


def _root(number: int, attributes: RootAttributes) -> int:
    radicand = (number << 2 * attributes.fraction) + attributes.addend
    root = isqrt(radicand)
    return 2 * root + (root * root != radicand)


def quotients(a: Interval, b: Interval, attributes: QuotientAttributes) -> Interval:
    """Return the results for operands in these intervals, within the limit that the attributes promise."""
    most = (2 << attributes.bits) - 1

    def end(bound: int) -> int:
        divisor = max(1, b.lo) if bound else 1
        whole, rest = divmod(abs(bound) << attributes.fraction, divisor)
        return min(most, 2 * whole + (rest != 0))

    return Interval(-end(a.lo) if a.lo < 0 else 0, end(a.hi) if a.hi > 0 else 0)
