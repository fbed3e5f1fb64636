"""Parallel thresholds that are constants in every lane: gates instead of carry chains.

Possible if a beat holds whole pixels, or if all channels are alike, and functions rise level by level; the folding's
kind is "lut".
"""

from __future__ import annotations

from collections.abc import Sequence

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.requantizers.constant_thresholds import ConstantThresholds
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Folding, Resources
from hwflow.cores.requantizers.requantizer_core import RequantizerCore
from hwflow.ir.graph import Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.search_form import SearchForm
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.numerics.requantizers.threshold_form import ThresholdForm

MOST_THRESHOLDS = 20_000  # of a beat: some hundred thousand look-up tables
LEAST_BITS = 17
"""Of an input. Shorter comparisons are mapped for the least delay, to more look-up tables than a carry chain has."""


class ThresholdGates(RequantizerCore[SearchForm | ThresholdForm]):
    """Implements :class:`hdl_lib.requantizers.constant_thresholds.ConstantThresholds`, from the step functions
    themselves."""

    kind = ProductForm.LUT

    @classmethod
    def foldings(
        cls, node: Node[RequantizeAttributes], form: SearchForm | ThresholdForm, options: Sequence[Folding]
    ) -> list[Folding]:
        """Return foldings whose lanes are constant, if they take fewer gates than memories."""
        if node.attributes.rounds > 1 or node.inputs[0].typed.element.bits < LEAST_BITS:
            return []
        steps = node.attributes.steps
        if not all(_rises(step) for step in {id(step): step for step in steps}.values()):
            return []
        found = []
        for folding in cls.in_lanes(options):
            core = cls(node, folding, form)
            if core.words == 1 and sum(step.count for step in core.lane_steps) <= MOST_THRESHOLDS:
                found.append(core.folding)
        return found

    @property
    def lane_steps(self) -> list[StepFunction]:
        """Return each lane's function."""
        own = self.steps[: self.own]
        return [own[lane % self.own] for lane in range(self.lanes)]

    def latency(self) -> int:
        return ConstantThresholds.latency_of(self.input.bits)

    def resources(self, decision: Decision, family: str) -> Resources:
        return costs.constant_thresholds(
            family, self.input, [step.breaks for step in self.lane_steps], self.queue_bits(family, decision.depth),
            decision.depth,
        )

    def build(self, depth: int, name: str) -> Built:
        core = ConstantThresholds(
            shape_of(self.input), shape_of(self.output), thresholds=[step.breaks for step in self.lane_steps],
            firsts=[step.first for step in self.lane_steps], depth=depth,
        )
        return Built(core, [core.i], [core.o])


def _rises(step: StepFunction) -> bool:
    """Tell whether a function rises level by level."""
    return step.last - step.first == step.count and step.direction >= 0
