"""Requantize: a step function for each channel, from accumulators (or other integers) to a small integer type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hwflow.cores import costs
from hwflow.cores.logical.images import along_axis
from hwflow.cores.operator import (
    Decision,
    Device,
    Folding,
    ImplementedOperator,
    LogicalOperator,
    LoweringContext,
    Resources,
)
from hwflow.cores.requantizers.binary_search import BinarySearch
from hwflow.cores.requantizers.constant_requantize import ConstantLanes, WiredLanes
from hwflow.cores.requantizers.constant_thresholds import ThresholdGates
from hwflow.cores.requantizers.multiples import TabledProducts
from hwflow.cores.requantizers.parallel_thresholds import ParallelThresholds
from hwflow.cores.requantizers.products import BlockProducts, LookupTableProducts
from hwflow.cores.requantizers.quadratic_segments import LookupTableSegments, QuadraticSegments
from hwflow.cores.requantizers.requantizer_core import RequantizerCore, form_of
from hwflow.cores.requantizers.result_table import ResultTable
from hwflow.cores.requantizers.serial_requantize import SerialProducts
from hwflow.cores.requantizers.serial_search import OneComparator
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.form import Form
from hwflow.numerics.requantizers.lookup_form import LookupForm
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.quadratics import QuadraticForm
from hwflow.numerics.requantizers.search_form import SearchForm
from hwflow.numerics.requantizers.stages import NoSteps, StepStage, chain
from hwflow.numerics.requantizers.stages import Stage as StepsStage
from hwflow.numerics.requantizers.step_function import StepFunction, all_alike
from hwflow.numerics.requantizers.threshold_form import ThresholdForm
from hwflow.types import Interval, IntType, TensorType


class Requantize(LogicalOperator[RequantizeAttributes], ImplementedOperator[RequantizeAttributes]):
    attributes = RequantizeAttributes
    stages = frozenset({Stage.QUANTIZED, Stage.DATAFLOW, Stage.SCHEDULED})
    keeps_order = True

    def channel_axis(self, node: Node[RequantizeAttributes]) -> int | None:
        return node.attributes.axis if len(node.attributes.stages) > 1 else None

    def derive(self, attributes: RequantizeAttributes, inputs: Sequence[TensorType]) -> RequantizeAttributes:
        source, axis = inputs[0], attributes.axis
        intervals = source.channel_intervals(axis)
        stages = attributes.stages
        if attributes.row:
            intervals = (source.interval,) * len(stages)
        if len(stages) == 1:
            stages = stages * len(intervals)
        pairs = {(id(s), id(i)): (s, i) for s, i in zip(stages, intervals, strict=True)}  # a million share objects
        reached: dict[tuple[StepsStage, ...], dict[Interval, None]] = {}
        for stage, interval in pairs.values():
            reached.setdefault(stage, {})[interval] = None
        made = {stage: _steps(stage, list(found)) for stage, found in reached.items()}
        same = {key: made[stage][interval] for key, (stage, interval) in pairs.items()}
        return replace(attributes, steps=tuple([same[id(s), id(i)] for s, i in zip(stages, intervals, strict=True)]))

    def infer(self, attributes: RequantizeAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        axis = attributes.axis
        steps: tuple[StepFunction, ...] = attributes.steps
        intervals = inputs[0].channel_intervals(axis)
        if attributes.row:
            reached = Interval.hull_of([Interval(*step.reach(step.lo, step.hi)) for step in steps])
            return (TensorType(inputs[0].shape, IntType.holding(reached), reached),)
        if attributes.held is not None:
            whole = Interval(attributes.held.low, attributes.held.high)
            return (TensorType.of(inputs[0].shape, (whole,) * len(intervals), axis),)
        pairs = {(id(s), id(i)): (s, i) for s, i in zip(steps, intervals, strict=True)}
        known = {key: Interval(*step.reach(interval.lo, interval.hi)) for key, (step, interval) in pairs.items()}
        channels = tuple([known[id(step), id(interval)] for step, interval in zip(steps, intervals, strict=True)])
        return (TensorType.of(inputs[0].shape, channels, axis),)

    def evaluate(self, attributes: RequantizeAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        axis = attributes.axis % (inputs[0].ndim - 1) + 1
        steps: tuple[StepFunction, ...] = attributes.steps
        if all_alike(steps):
            return (steps[0].evaluate(inputs[0]),)
        if attributes.row:
            rows = inputs[0].reshape(-1, len(steps), attributes.row)
            made = [step.evaluate(rows[:, row]) for row, step in enumerate(steps)]
            return (np.stack(made, axis=1).reshape(inputs[0].shape),)
        result = np.empty_like(inputs[0])
        source, target = np.moveaxis(inputs[0], axis, 0), np.moveaxis(result, axis, 0)
        for channel, step in enumerate(steps):
            target[channel] = step.evaluate(source[channel])
        return (result,)

    def alike(self, attributes: RequantizeAttributes) -> RequantizeAttributes:
        return replace(attributes, stages=(), steps=(), epsilon=Fraction(0))

    def of_rounds(self, each: Sequence[RequantizeAttributes]) -> list[RequantizeAttributes]:
        """Return the same functions, for all integers, and for each channel if some round has such."""
        most, found = max(len(own.stages) for own in each), list[RequantizeAttributes]()
        for own in each:
            stages = {id(chain_): tuple(map(_extended, chain_)) for chain_ in own.stages}  # channels share them
            of_channels = tuple([stages[id(chain_)] for chain_ in own.stages])
            found.append(replace(own, stages=of_channels * (most // len(of_channels))))
        return found

    def in_turns(self, each: Sequence[RequantizeAttributes]) -> RequantizeAttributes:
        """Return the attributes of all rounds: their step functions get hardware of one form."""
        stages = tuple([stage for own in each for stage in _per_channel(own)])
        steps = tuple([step for own in each for step in own.steps])
        return replace(each[0], stages=stages, steps=steps, epsilon=max(own.epsilon for own in each), rounds=len(each))

    def lower(self, node: Node[RequantizeAttributes], context: LoweringContext) -> None:
        stream, order = context.stream(node.inputs[0])
        shape = node.inputs[0].typed.shape
        stages = node.attributes.stages
        if len(stages) > 1:
            (stream,), order, indices = along_axis(context, [stream], order, shape, node.attributes.axis)
            stages = tuple(stages[i] for i in indices)
        of_node = node.attributes
        result = context.add("", [stream], RequantizeAttributes(1, stages, epsilon=of_node.epsilon, held=of_node.held))
        context.bind(node.outputs[0], result, order)

    def foldings(self, node: Node[RequantizeAttributes], device: Device) -> Sequence[Folding]:
        part = costs.FAMILIES[device.family].dsp_width - 1
        shape, row = node.inputs[0].typed.shape, node.attributes.row
        options = [Folding(lanes, lanes, part=part) for lanes in costs.stream_lanes(shape)]
        if row:  # beats of a row alone
            options = [each for each in options if each.input_lanes <= shape[1] or row % each.input_lanes == 0]
        form = form_of(node)
        if node.attributes.held is not None:  # whose table is of several words
            several = [each for each in options if each.input_lanes < max(2, shape[1])]
            return several + LookupTableProducts.in_lanes(several)
        if form.shifts_only:
            return options
        return [folding for core in CORES[type(form)] for folding in core.foldings(node, form, options)]

    def between_registers(self, node: Node[RequantizeAttributes], folding: Folding, device: Device) -> Folding:
        core = self.implementation(node, folding)
        small = isinstance(core, ConstantLanes) and core.form.shifts_only
        if small and costs.FAMILIES[device.family].adder_levels(device.clock_mhz) > 1:
            return replace(folding, multiplier=WiredLanes.kind)
        return folding

    def resources(self, node: Node[RequantizeAttributes], decision: Decision, device: Device) -> Resources:
        core = self.implementation(node, decision.folding)
        turns = costs.taking_turns(core.words // core.turns[0], core.turns)
        return core.resources(decision, device.family) + turns

    def implementation(self, node: Node[RequantizeAttributes], folding: Folding) -> RequantizerCore[Any]:
        form = form_of(node)
        kind = next(core for core in CORES[type(form)] if core.kind == folding.multiplier)
        core = kind(node, folding, form)
        if kind is BlockProducts and core.words == 1 and form.shifts_only:
            return ConstantLanes(node, folding, core.form)
        return core


def _extended(stage: StepsStage) -> StepsStage:
    return replace(stage, extended=True) if isinstance(stage, StepStage) else stage


def _per_channel(attributes: RequantizeAttributes) -> tuple[tuple[StepsStage, ...], ...]:
    return attributes.stages if len(attributes.stages) > 1 else attributes.stages * len(attributes.steps)


def _steps(stages: tuple[StepsStage, ...], intervals: Sequence[Interval]) -> dict[Interval, StepFunction]:
    """Return the step function of channels by their interval: the same for all where it is defined from the least
    integer to the greatest, so that they share what hardware holds for it."""
    hull = intervals[0]
    for interval in intervals:
        hull = hull.hull(interval)
    try:
        return dict.fromkeys(intervals, chain(stages, hull.lo, hull.hi))
    except NoSteps:
        if len(intervals) == 1:
            raise
        return {interval: chain(stages, interval.lo, interval.hi) for interval in intervals}


CORES: dict[type[Form], tuple[type[RequantizerCore[Any]], ...]] = {
    MultiplyAddShift: (
        BlockProducts, ConstantLanes, WiredLanes, LookupTableProducts, TabledProducts, SerialProducts, OneComparator,
    ),
    ThresholdForm: (ParallelThresholds, ThresholdGates),
    SearchForm: (BinarySearch, OneComparator, ThresholdGates),
    LookupForm: (ResultTable,),
    QuadraticForm: (QuadraticSegments, LookupTableSegments),
}
"""Of each form, one core for each kind of multiplier that a folding may have. Of several that cost the same in the same
number of lanes, the first is taken."""
