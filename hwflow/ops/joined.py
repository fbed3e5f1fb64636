"""What operators with two input streams of equal shape have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdl_lib.joined import Joined as Core
from hwflow.ir.graph import IntArray, Node, Value
from hwflow.ops.operator import Folding, HardwareOperator, LoweringContext, beats
from hwflow.ops.timing import Process, Timing, Wait, every


class Joined(HardwareOperator):
    """A core behind :class:`hdl_lib.joined.Joined`: a step for each pair of beats."""

    def cycles(self, node: Node, folding: Folding) -> int:
        return beats(node.outputs[0].typed.shape, folding.output_lanes)


def joined_timing(count: int, latency: int, inputs: int = 2) -> Timing:
    """The processes of :class:`hdl_lib.joined.Joined` with ``count`` beats a frame: a buffer an input, and the step."""
    filled = Wait(inputs, every(count) - Core.buffer_depth)
    buffers = (Process(count, {index: every(count)}, {}, (filled,)) for index in range(inputs))
    waits = tuple(Wait(index, every(count), Core.buffer_latency) for index in range(inputs))
    return Timing((*buffers, Process(count, {}, {0: every(count)}, waits)), (latency,))


def joined_streams(node: Node, context: LoweringContext) -> tuple[list[Value], IntArray] | None:
    """The streams of both inputs and their common order; None, and a refusal, where they differ."""
    streams, orders = zip(*(context.stream(value) for value in node.inputs), strict=True)
    shapes = [stream.typed.shape for stream in streams]
    if shapes[0] == shapes[1] and np.array_equal(*orders):
        return list(streams), orders[0]
    refuse_orders(context, shapes)
    return None


def refuse_orders(context: LoweringContext, shapes: Sequence[tuple[int, ...]]) -> None:
    """Refuse a node whose inputs' elements come in different orders."""
    found = " and ".join(f"{pixels} pixels of {channels} channels" for pixels, channels in shapes)
    context.refuse(
        "stream-order",
        f"both inputs must arrive in one order of elements, not as {found} in different orders",
        "remove the Reshape or Transpose before one of them, or do the same to both",
    )
