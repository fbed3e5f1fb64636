"""Cores in series that take and give a beat in each step, behind one queue: see :class:`hdl_lib.chain.Chain`.

Scheduling joins them (:mod:`hwflow.schedule.chains`); for schedules a chain is a single core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hdl_lib.chain import Chain as ChainCore
from hdl_lib.chain import Link
from hwflow.cores import costs
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources
from hwflow.cores.timing import Timing, beat_by_beat
from hwflow.cores.verilog_names import identifiers
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.types import TensorType

NO_QUEUE = (0,)
"""The depths of a core in a chain."""


@dataclass(frozen=True, eq=False)
class Member:
    """A core of a chain: its node, whose operator is ``operator``, and folding."""

    node: Node
    operator: HardwareOperator[Any]
    folding: Folding

    @property
    def decision(self) -> Decision:
        return Decision(self.folding, NO_QUEUE)


@dataclass(frozen=True, eq=False)
class ChainAttributes(Attributes):
    """``members``: at least two, in order; each reads the output of the one before."""

    op = "chain"
    members: tuple[Member, ...]


def instances(attributes: ChainAttributes) -> list[str]:
    """Return the names of a chain's cores inside of it."""
    names = [member.node.name for member in attributes.members]
    known = identifiers(names)
    return [known[name] for name in names]


class Chain(HardwareOperator[ChainAttributes]):
    """Cores in series behind one queue. Its resources are those of the queue: the cores have their own."""

    attributes = ChainAttributes
    stages = frozenset({Stage.SCHEDULED})

    def infer(self, attributes: ChainAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return (attributes.members[-1].node.outputs[0].typed,)

    def evaluate(self, attributes: ChainAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        values = tuple(inputs)
        for member in attributes.members:
            values = member.operator.evaluate(member.node.attributes, values)
        return values

    def foldings(self, node: Node[ChainAttributes], device: Device) -> Sequence[Folding]:
        return []

    def input_view(
        self, node: Node[ChainAttributes], shape: tuple[int, ...], lanes: int, *, whole_vector: bool = False,
        index: int = 0,
    ) -> tuple[int, int]:
        first = node.attributes.members[0]
        return first.operator.input_view(first.node, shape, lanes, whole_vector=first.folding.whole_vector)

    def output_view(self, node: Node[ChainAttributes], shape: tuple[int, ...], lanes: int) -> tuple[int, int]:
        last = node.attributes.members[-1]
        return last.operator.output_view(last.node, shape, lanes)

    def cycles(self, node: Node[ChainAttributes], folding: Folding) -> int:
        first = node.attributes.members[0]
        return first.operator.cycles(first.node, first.folding)

    def timing(self, node: Node[ChainAttributes], decision: Decision) -> Timing:
        each = [member.operator.timing(member.node, member.decision) for member in node.attributes.members]
        return beat_by_beat(each[0].cycles, sum(timing.latency[0] for timing in each) + 1)

    def resources(self, node: Node[ChainAttributes], decision: Decision, device: Device) -> Resources:
        bits = decision.folding.output_lanes * node.outputs[0].typed.element.bits
        return costs.queue(device.family, bits, decision.depth)

    def build(self, node: Node[ChainAttributes], decision: Decision, name: str) -> Built:
        links, files = [], []
        for number, (member, own) in enumerate(zip(node.attributes.members, instances(node.attributes), strict=True)):
            built = member.operator.build(member.node, member.decision, f"{name}_{number}")
            links.append((own, Link(built.component, built.inputs[0], built.outputs[0])))
            files += built.files
        core = ChainCore(links, depth=decision.depth)
        return Built(core, [core.i], [core.o], files)
