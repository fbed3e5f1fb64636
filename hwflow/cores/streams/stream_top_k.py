"""The ``k`` greatest elements of each group of a stream: their positions in the group, their values, or both.

The stream is seen as pixels of ``inner`` elements, whatever its own shape: one element of each of ``inner`` interleaved
groups; a group spans ``window`` pixels. The result has one pixel of ``inner * k`` elements for each ``window`` pixels.

Lanes are a part of a pixel; with ``k`` = 1 also several pixels of a group (which they divide), with all of ``inner`` an
output beat, or several whole groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdl_lib.streams.top_k import TopK as Core
from hdl_lib.streams.top_k import TopTree as TreeCore
from hdl_lib.streams.top_k import index_bits
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources, beats, grouped
from hwflow.cores.timing import Timing
from hwflow.cores.windows.group_pool import group_foldings, group_timing
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import Ranking, Take
from hwflow.types import Interval, TensorType


@dataclass(frozen=True, eq=False)
class StreamTopKAttributes(Ranking):
    """``window``: pixels of a group; ``inner``: interleaved groups."""

    op = "stream_top_k"
    window: int
    inner: int


class StreamTopK(HardwareOperator[StreamTopKAttributes]):
    attributes = StreamTopKAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: StreamTopKAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        pixels, inner = _view(attributes, inputs[0].shape)
        interval = result_interval(attributes.take, attributes.window, inputs[0].interval)
        channels = inner * attributes.k
        return (TensorType.of((pixels // attributes.window, channels), (interval,) * channels, 1),)

    def evaluate(self, attributes: StreamTopKAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        frames, window, inner = len(inputs[0]), attributes.window, attributes.inner
        groups = inputs[0].reshape(frames, -1, window, inner).swapaxes(2, 3)
        best = greatest(groups, attributes)
        return (best.reshape(frames, -1, inner * attributes.k),)

    def foldings(self, node: Node[StreamTopKAttributes], device: Device) -> Sequence[Folding]:
        attributes = node.attributes
        return group_foldings(_view(attributes, node.inputs[0].typed.shape), attributes.window, attributes.k)

    def input_view(
        self, node: Node[StreamTopKAttributes], shape: tuple[int, ...], lanes: int, *, whole_vector: bool = False,
        index: int = 0,
    ) -> tuple[int, int]:
        return grouped(_view(node.attributes, shape), lanes)

    def cycles(self, node: Node[StreamTopKAttributes], folding: Folding) -> int:
        return beats(_view(node.attributes, node.inputs[0].typed.shape), folding.input_lanes)

    def timing(self, node: Node[StreamTopKAttributes], decision: Decision) -> Timing:
        view, lanes = _view(node.attributes, node.inputs[0].typed.shape), decision.folding.input_lanes
        return group_timing(view, node.attributes.window, lanes, Core, TreeCore)

    def resources(self, node: Node[StreamTopKAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        attributes, element = node.attributes, node.inputs[0].typed.element
        window, inner = attributes.window, attributes.inner
        together = folding.input_lanes // inner
        if together > 1:
            take, depth = attributes.take, decision.depth
            return costs.top_tree(device.family, inner, element.bits, together, window, take, depth)
        return costs.top_k(
            device.family, folding.input_lanes, element.bits, -(-inner // folding.input_lanes), window,
            attributes.k, attributes.take, decision.depth,
        )

    def build(self, node: Node[StreamTopKAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        attributes, shape = node.attributes, shape_of(node.inputs[0].typed.element)
        inner, window = attributes.inner, attributes.window
        least, last, take = attributes.least, attributes.last, attributes.take
        together = folding.input_lanes // inner
        core: Core | TreeCore
        if together > 1:
            core = TreeCore(shape, inner, together, window, least=least, last=last, take=take, depth=decision.depth)
        else:
            core = Core(
                shape, inner, folding.input_lanes, window, k=attributes.k, least=least, last=last, take=take,
                depth=decision.depth,
            )
        return Built(core, [core.i], [core.o])


def result_interval(take: Take, window: int, values: Interval) -> Interval:
    """Return the interval of the result's elements."""
    if take == Take.VALUE:
        return values
    if take == Take.INDEX:
        return Interval(0, window - 1)
    bits = index_bits(window)
    return Interval(values.lo << bits, (values.hi << bits) + window - 1)


def greatest(groups: IntArray, attributes: Ranking) -> IntArray:
    """Select the greatest: [..., window] to [..., k]."""
    keys = groups if attributes.least else -groups
    window = groups.shape[-1]
    if attributes.last:
        order = window - 1 - np.argsort(keys[..., ::-1], axis=-1, kind="stable")
    else:
        order = np.argsort(keys, axis=-1, kind="stable")
    best: IntArray = order[..., : attributes.k].astype(np.int64)
    if attributes.take == Take.INDEX:
        return best
    values: IntArray = np.take_along_axis(groups, best, axis=-1)
    return values if attributes.take == Take.VALUE else (values << index_bits(window)) + best


def _view(attributes: StreamTopKAttributes, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (pixels, channels) of the stream as pixels of ``inner`` elements."""
    return shape[0] * shape[1] // attributes.inner, attributes.inner
