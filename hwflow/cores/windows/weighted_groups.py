"""Weighted sums over each group of ``window`` consecutive pixels of a stream: the base of weights by channel and by
position.

Lanes are a part of a pixel, with a multiplier each.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from hdl_lib.arithmetic.multiplier import PART
from hdl_lib.windows.weighted_pool import WeightedPool as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.matrix.dot_products import WeightAttributes, weight_type
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, MemoryFile, beats
from hwflow.cores.timing import Timing
from hwflow.cores.windows.group_pool import group_process
from hwflow.ir.graph import Node, Stage

W = TypeVar("W", bound=WeightAttributes)


class WeightedGroups(HardwareOperator[W]):
    """A core behind :class:`hdl_lib.windows.weighted_pool.WeightedPool`; weights are [sets or positions, window,
    ...]."""

    stages: ClassVar[frozenset[Stage]] = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    @abstractmethod
    def table(self, node: Node[W], lanes: int) -> tuple[int, int]:
        """Return the bits of a word of the weights' table, and its words."""

    @abstractmethod
    def words(self, node: Node[W], lanes: int) -> Sequence[int]:
        """Return the words of the table."""

    @abstractmethod
    def core(self, node: Node[W], *parameters: Any, **more: Any) -> Core:
        """Build the core with its own parameters and these."""

    def macs(self, node: Node[W]) -> int:
        pixels, channels = node.inputs[0].typed.shape
        return int(pixels * channels)

    def foldings(self, node: Node[W], device: Device) -> Sequence[Folding]:
        kinds = costs.product_kinds(device.family, node.inputs[0].typed.element, weight_type(node))
        lanes = costs.useful_lanes(node.inputs[0].typed.shape[1])
        return [Folding(n, n, n, kind, part) for n in lanes for kind, part in kinds]

    def cycles(self, node: Node[W], folding: Folding) -> int:
        return beats(node.inputs[0].typed.shape, folding.input_lanes)

    def timing(self, node: Node[W], decision: Decision) -> Timing:
        folding = decision.folding
        process = group_process(node.inputs[0].typed.shape, node.attributes.weights.shape[1], folding.input_lanes)
        latency = Core.weighted_latency_of(
            shape_of(node.inputs[0].typed.element), shape_of(weight_type(node)), folding.multiplier,
            folding.part or PART, table=self.table(node, folding.input_lanes),
        )
        return Timing((process,), (latency,))

    def build(self, node: Node[W], decision: Decision, name: str) -> Built:
        folding = decision.folding
        width, _ = self.table(node, folding.input_lanes)
        file = MemoryFile(f"{name}_weights", self.words(node, folding.input_lanes), width)
        source, result = node.inputs[0].typed, node.outputs[0].typed
        core = self.core(
            node, shape_of(source.element), shape_of(weight_type(node)), shape_of(result.element), source.shape[1],
            folding.input_lanes, node.attributes.weights.shape[1],
            weights=file.table, multiplier=folding.multiplier, part=folding.part or PART, depth=decision.depth,
        )
        return Built(core, [core.i], [core.o], [file])
