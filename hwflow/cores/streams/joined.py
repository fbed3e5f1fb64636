"""Base of operators with several input streams of equal shape."""

from __future__ import annotations

import numpy as np

from hdl_lib.streams.joined import Joined as Core
from hwflow.cores.operator import A, Folding, HardwareOperator, LoweringContext, beats
from hwflow.cores.timing import Process, Timing, Wait, every, spaced
from hwflow.ir.graph import IntArray, Node, Value


class Joined(HardwareOperator[A]):
    """A core behind :class:`hdl_lib.streams.joined.Joined`, with a step for each beat of all inputs."""

    def cycles(self, node: Node[A], folding: Folding) -> int:
        return beats(node.outputs[0].typed.shape, folding.output_lanes)


def joined_timing(count: int, latency: int, inputs: int = 2, rounds: int = 1) -> Timing:
    """Return the processes of :class:`hdl_lib.streams.joined.Joined` with ``count`` beats per frame: a buffer for each
    input, and the step, of which the first of each ``rounds`` takes a beat."""
    filled = Wait(inputs, (every(count) - Core.buffer_depth) * rounds)
    buffers = (Process(count, {index: spaced(count)}, {}, (filled,)) for index in range(inputs))
    waits = tuple(Wait(index, every(count), Core.buffer_latency, rounds) for index in range(inputs))
    return Timing((*buffers, Process(count * rounds, {}, {0: spaced(count, rounds)}, waits)), (latency,))


def joined_streams(node: Node, context: LoweringContext) -> tuple[list[Value], IntArray]:
    """Return the streams of all inputs in one order, and that order: the one that needs the fewest rearrangements, if
    possible not plain row-major (an image's, for example)."""
    found = [context.stream(value) for value in node.inputs]

    def cost(place: int) -> tuple[int, bool]:
        stream, order = found[place]
        changed = sum(
            not context.is_rearranged(s) and (s.typed.shape != stream.typed.shape or not np.array_equal(o, order))
            for s, o in found
        )
        return changed, bool((order == np.arange(order.size)).all())

    stream, order = found[min(range(len(found)), key=cost)]
    channels = stream.typed.shape[1]
    return [context.arranged(each, own, order, channels) for each, own in found], order
