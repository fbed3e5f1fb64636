"""A core of a loop's body, which has several frames of its own in a frame of the model, one a round.

Cores count their beats themselves, and nothing marks the ends of frames in a stream. So ``rounds`` frames of [pixels,
channels] are one frame of [rounds * pixels, channels], and a core needs nothing to be part of a loop: only its numbers
per frame are other ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hwflow.cores.loops.followed_by import FollowedByAttributes
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources
from hwflow.cores.timing import Beats, Process, Steps, Timing, Wait
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.types import TensorType


@dataclass(frozen=True, eq=False)
class RepeatedAttributes(Attributes):
    """``node``: a hardware node whose streams are those of one round, of this ``operator``. ``each``: its attributes in
    each round, where it has constants that its frames take in turns."""

    op = "repeated"
    node: Node
    operator: HardwareOperator[Any]
    rounds: int
    each: tuple[Attributes, ...] = ()

    def of_round(self, number: int) -> RepeatedAttributes:
        """Return these as they are for frames of a single round."""
        return replace(self, each=self.each[number : number + 1])


def tiled(type_: TensorType, rounds: int) -> TensorType:
    """Return the type of a stream of ``rounds`` frames of a stream's type."""
    pixels, channels = type_.shape
    known = type_.channels if type_.channel_axis % 2 else type_.channels * rounds
    return replace(type_, shape=(rounds * pixels, channels), channels=known)


def core_of(node: Node) -> Node:
    """Return the node of one round, of a node that is repeated; another one as it is."""
    return node.attributes.node if isinstance(node.attributes, RepeatedAttributes) else node


def rounds_of(node: Node) -> int:
    """Return how many frames of its own a node has in a frame of the model."""
    return node.attributes.rounds if isinstance(node.attributes, FollowedByAttributes | RepeatedAttributes) else 1


class Repeated(HardwareOperator[RepeatedAttributes]):
    attributes = RepeatedAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: RepeatedAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return tuple(tiled(value.typed, attributes.rounds) for value in attributes.node.outputs)

    def evaluate(self, attributes: RepeatedAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        """Evaluate any number of rounds: those that there are of each frame."""
        inner = attributes.node
        rows = inputs[0].shape[1] // inner.inputs[0].typed.shape[0]
        frames = len(inputs[0])
        single = [x.reshape(frames * rows, *v.typed.shape) for x, v in zip(inputs, inner.inputs, strict=True)]
        if not attributes.each:
            results = attributes.operator.evaluate(inner.attributes, single)
            return tuple(x.reshape(frames, rows * x.shape[1], x.shape[2]) for x in results)
        turns = [
            attributes.operator.evaluate(own, [x[turn::rows] for x in single])
            for turn, own in enumerate(attributes.each[:rows])
        ]
        return tuple(np.concatenate(row, axis=1) for row in zip(*turns, strict=True))

    def macs(self, node: Node[RepeatedAttributes]) -> int:
        return node.attributes.rounds * node.attributes.operator.macs(node.attributes.node)

    def foldings(self, node: Node[RepeatedAttributes], device: Device) -> Sequence[Folding]:
        given = node.attributes
        # Clipped streams would have to be those of all rounds.
        return [folding for folding in given.operator.foldings(given.node, device) if not folding.clipped]

    def input_view(
        self, node: Node[RepeatedAttributes], shape: tuple[int, ...], lanes: int, *, whole_vector: bool = False,
        index: int = 0,
    ) -> tuple[int, int]:
        given, (pixels, channels) = node.attributes, shape
        single = pixels // given.rounds, channels
        pixels, channels = given.operator.input_view(
            given.node, single, lanes, whole_vector=whole_vector, index=index
        )
        return given.rounds * pixels, channels

    def output_view(self, node: Node[RepeatedAttributes], shape: tuple[int, ...], lanes: int) -> tuple[int, int]:
        given, (pixels, channels) = node.attributes, shape
        pixels, channels = given.operator.output_view(given.node, (pixels // given.rounds, channels), lanes)
        return given.rounds * pixels, channels

    def lanes_of(self, node: Node[RepeatedAttributes], index: int, folding: Folding) -> int:
        return node.attributes.operator.lanes_of(node.attributes.node, index, folding)

    def cycles(self, node: Node[RepeatedAttributes], folding: Folding) -> int:
        return node.attributes.rounds * node.attributes.operator.cycles(node.attributes.node, folding)

    def timing(self, node: Node[RepeatedAttributes], decision: Decision) -> Timing:
        given = node.attributes
        return repeated(given.operator.timing(given.node, decision), given.rounds)

    def resources(self, node: Node[RepeatedAttributes], decision: Decision, device: Device) -> Resources:
        return node.attributes.operator.resources(node.attributes.node, decision, device)

    def build(self, node: Node[RepeatedAttributes], decision: Decision, name: str) -> Built:
        return node.attributes.operator.build(node.attributes.node, decision, name)


def repeated(timing: Timing, rounds: int) -> Timing:
    """Return the schedule of a frame that is ``rounds`` frames of a core's own."""
    sizes = [process.steps for process in timing.processes]

    def over(steps: Beats, size: int) -> Steps:
        """Repeat numbers of steps of a process of ``size`` per round."""
        starts = size * np.arange(rounds, dtype=np.int64)
        found: Steps = (starts[:, np.newaxis] + np.asarray(steps)).reshape(-1)
        return found

    processes = tuple(
        Process(
            rounds * process.steps,
            {index: over(steps, process.steps) for index, steps in process.consumes.items()},
            {index: over(steps, process.steps) for index, steps in process.produces.items()},
            tuple(Wait(w.process, over(w.need, sizes[w.process]), w.lag, w.steps) for w in process.waits),
        )
        for process in timing.processes
    )
    return Timing(processes, timing.latency, rounds * timing.circuit)
