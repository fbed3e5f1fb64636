"""The state of a loop that is hardware once: its first value, followed by what each round leaves to the next.

``a fby b``, "a followed by b", of the language Lucid (Wadge, Ashcroft: Lucid, the dataflow programming language, 1985):
the first element of a, then the elements of b. The stream b comes from the loop's body, which reads the result, so that
both are a circuit within a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdl_lib.memories.followed_by import FollowedBy as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources, beats
from hwflow.cores.timing import Process, Timing, every
from hwflow.ir.graph import IntArray, Node, Recurring, Stage
from hwflow.types import TensorType


@dataclass(frozen=True, eq=False)
class FollowedByAttributes(Recurring):
    """Of a result of this ``type``, a frame of which has ``rounds`` rows: the first is the first operand's frame; row n
    is row n - 1 of the last operand, whose last row counts for nothing. Its others lie within ``type``, even where its
    own is wider. ``first``: what all elements of the first row are; there is one operand then (None: two)."""

    op = "followed_by"
    type: TensorType
    rounds: int
    first: int | None = None

    def first_row(self, inputs: Sequence[IntArray], frames: int) -> IntArray:
        """Return the first row of so many frames. ``inputs``: the operands."""
        pixels, channels = self.type.shape
        if self.first is None:
            return inputs[0]
        return np.full((frames, pixels // self.rounds, channels), self.first, dtype=np.int64)


class FollowedBy(HardwareOperator[FollowedByAttributes]):
    attributes = FollowedByAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: FollowedByAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return (attributes.type,)

    def evaluate(self, attributes: FollowedByAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        rest = inputs[-1]
        first = attributes.first_row(inputs, len(rest))
        return (np.concatenate([first, rest[:, : -first.shape[1]]], axis=1),)

    def foldings(self, node: Node[FollowedByAttributes], device: Device) -> Sequence[Folding]:
        return [Folding(lanes, lanes) for lanes in costs.stream_lanes(_row(node))]

    def cycles(self, node: Node[FollowedByAttributes], folding: Folding) -> int:
        return (node.attributes.rounds + 1) * beats(_row(node), folding.input_lanes)

    def timing(self, node: Node[FollowedByAttributes], decision: Decision) -> Timing:
        rounds, row = node.attributes.rounds, beats(_row(node), decision.folding.input_lanes)
        kept = every(rounds * row)
        consumes = {1: row + kept, 0: every(row)} if node.attributes.first is None else {0: row + kept}
        process = Process((rounds + 1) * row, consumes, {0: kept})
        return Timing((process,), (Core.latency,))

    def resources(self, node: Node[FollowedByAttributes], decision: Decision, device: Device) -> Resources:
        lanes = decision.folding.output_lanes
        longest = (node.attributes.rounds - 1) * beats(_row(node), lanes)
        width = lanes * node.outputs[0].typed.element.bits
        return costs.concat(device.family, width, 2, longest, decision.depth)

    def build(self, node: Node[FollowedByAttributes], decision: Decision, name: str) -> Built:
        lanes, given = decision.folding.output_lanes, node.attributes
        *first, rest = (shape_of(value.typed.element) for value in node.inputs)
        core = Core(
            first[0] if given.first is None else given.first, rest, shape_of(given.type.element), lanes=lanes,
            beats=beats(_row(node), lanes), rows=given.rounds, depth=decision.depth,
        )
        return Built(core, [*([core.first] if first else []), core.rest], [core.o])


def _row(node: Node[FollowedByAttributes]) -> tuple[int, int]:
    """Return (pixels, channels) of a row."""
    pixels, channels = node.attributes.type.shape
    return pixels // node.attributes.rounds, channels
