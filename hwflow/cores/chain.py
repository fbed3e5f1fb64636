"""Cores in series that take and give a beat in each step, behind one queue: see :class:`hdl_lib.chain.Chain`.

Scheduling joins them (:mod:`hwflow.schedule.chains`); for schedules a chain is a single core.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hdl_lib.chain import Chain as ChainCore
from hdl_lib.chain import Link
from hwflow.cores import costs
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources, beats_of_view
from hwflow.cores.timing import Timing, beat_by_beat
from hwflow.cores.verilog_names import identifiers
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.types import TensorType

NO_QUEUE = (0,)
"""The depths of a core in a chain."""


@dataclass(frozen=True, eq=False)
class Member:
    """A core of a chain: its node, whose operator is ``operator``."""

    node: Node
    operator: HardwareOperator[Any]


@dataclass(frozen=True, eq=False)
class ChainAttributes(Attributes):
    """``members``: at least two, in order; each reads the output of the one before."""

    op = "chain"
    members: tuple[Member, ...]


@dataclass(frozen=True)
class ChainDecision(Decision):
    """``members``: the decisions of a chain's cores, in order."""

    members: tuple[Decision, ...] = ()


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
        return first.operator.input_view(first.node, shape, lanes, whole_vector=whole_vector)

    def output_view(self, node: Node[ChainAttributes], shape: tuple[int, ...], lanes: int) -> tuple[int, int]:
        last = node.attributes.members[-1]
        return last.operator.output_view(last.node, shape, lanes)

    def cycles(self, node: Node[ChainAttributes], folding: Folding) -> int:
        shape, lanes = node.inputs[0].typed.shape, folding.input_lanes
        view = self.input_view(node, shape, lanes, whole_vector=folding.whole_vector)
        return beats_of_view(view, lanes)

    def timing(self, node: Node[ChainAttributes], decision: Decision) -> Timing:
        each = [member.operator.timing(member.node, own) for member, own in _decided(node, decision)]
        return beat_by_beat(each[0].cycles, sum(timing.latency[0] for timing in each) + 1)

    def resources(self, node: Node[ChainAttributes], decision: Decision, device: Device) -> Resources:
        bits = decision.folding.output_lanes * node.outputs[0].typed.element.bits
        return costs.queue(device.family, bits, decision.depth)

    def build(self, node: Node[ChainAttributes], decision: Decision, name: str) -> Built:
        links, files = [], []
        known = instances(node.attributes)
        for number, (member, own) in enumerate(_decided(node, decision)):
            built = member.operator.build(member.node, own, f"{name}_{number}")
            links.append((known[number], Link(built.component, built.inputs[0], built.outputs[0])))
            files += built.files
        core = ChainCore(links, depth=decision.depth)
        return Built(core, [core.i], [core.o], files)


def _decided(node: Node[ChainAttributes], decision: Decision) -> Iterator[tuple[Member, Decision]]:
    """Yield a chain's cores with their decisions."""
    assert isinstance(decision, ChainDecision), "what a plan has for a chain"
    yield from zip(node.attributes.members, decision.members, strict=True)
