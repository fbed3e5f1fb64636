"""Running sum over each group of elements of a stream.

The stream is seen as pixels of ``inner`` elements, whatever its own shape: one element of each of ``inner`` interleaved
groups; a group spans ``window`` pixels. Lanes are at most ``inner``: a part of a pixel of the stream, or whole ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from hdl_lib.windows.running_sum import RunningSum as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources, beats
from hwflow.cores.timing import Timing, beat_by_beat
from hwflow.cores.windows.group_pool import divisors
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import RunningSums
from hwflow.ir.wrapping import wrapped, wrapped_interval
from hwflow.types import Interval, IntType, TensorType


@dataclass(frozen=True, eq=False)
class RunningSumAttributes(RunningSums):
    """``window``: pixels of a group; ``inner``: interleaved groups."""

    op = "running_sum"
    window: int
    inner: int


class RunningSum(HardwareOperator[RunningSumAttributes]):
    attributes = RunningSumAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: RunningSumAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        (source,) = inputs
        if source.channels and attributes.inner % source.shape[1] == 0:
            ranges = tuple(sums_interval(attributes, attributes.window, r) for r in source.channel_intervals(1))
            return (TensorType.of(source.shape, ranges, 1),)
        interval = sums_interval(attributes, attributes.window, source.interval)
        return (TensorType(source.shape, IntType.holding(interval), interval),)

    def evaluate(self, attributes: RunningSumAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        (source,) = inputs
        groups = source.reshape(len(source), -1, attributes.window, attributes.inner)
        return (running_sums(attributes, groups, 2).reshape(source.shape),)

    def foldings(self, node: Node[RunningSumAttributes], device: Device) -> Sequence[Folding]:
        _, channels = node.inputs[0].typed.shape
        inner = node.attributes.inner
        lanes = [n for n in divisors(gcd(inner, channels)) if n <= costs.MOST_LANES]
        if inner % channels == 0:
            whole = [n * channels for n in divisors(inner // channels)[1:]]
            lanes = costs.useful_lanes(channels) + [n for n in whole if n <= costs.MOST_LANES]
        return [Folding(n, n) for n in lanes]

    def cycles(self, node: Node[RunningSumAttributes], folding: Folding) -> int:
        return beats(node.inputs[0].typed.shape, folding.input_lanes)

    def timing(self, node: Node[RunningSumAttributes], decision: Decision) -> Timing:
        lanes = decision.folding.input_lanes
        latency = Core.latency_of(_blocks(node, lanes) * lanes, lanes)
        return beat_by_beat(self.cycles(node, decision.folding), latency)

    def resources(self, node: Node[RunningSumAttributes], decision: Decision, device: Device) -> Resources:
        lanes = decision.folding.input_lanes
        return costs.running_sum(
            device.family, lanes, node.inputs[0].typed.element.bits, node.outputs[0].typed.element.bits,
            _blocks(node, lanes), node.attributes.window, node.attributes.exclusive, decision.depth,
        )

    def build(self, node: Node[RunningSumAttributes], decision: Decision, name: str) -> Built:
        source, result = (shape_of(value.typed.element) for value in (node.inputs[0], node.outputs[0]))
        lanes = decision.folding.input_lanes
        core = Core(
            source, result, _blocks(node, lanes) * lanes, lanes, node.attributes.window,
            exclusive=node.attributes.exclusive, depth=decision.depth,
        )
        return Built(core, [core.i], [core.o])


def _blocks(node: Node[RunningSumAttributes], lanes: int) -> int:
    """Return the beats of ``inner`` elements: pixels of the stream, or a part of one that beats divide."""
    _, channels = node.inputs[0].typed.shape
    inner = node.attributes.inner
    return beats((inner // channels, channels), lanes) if inner % channels == 0 else inner // lanes


def sums_interval(attributes: RunningSums, window: int, operand: Interval) -> Interval:
    """Return the interval of all sums over up to ``window`` elements in ``operand``."""
    counts = Interval(0, window - 1) if attributes.exclusive else Interval(1, window)
    exact = counts.times(operand)
    return exact if attributes.wrap is None else wrapped_interval(exact, attributes.wrap)


def running_sums(attributes: RunningSums, values: IntArray, axis: int) -> IntArray:
    """Return the running sums along ``axis``."""
    sums: IntArray = np.cumsum(values, axis=axis, dtype=np.int64)
    if attributes.exclusive:
        sums = sums - values
    return sums if attributes.wrap is None else wrapped(sums, attributes.wrap)
