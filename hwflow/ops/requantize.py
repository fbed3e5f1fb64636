"""Requantize: a step function a channel, from accumulators (or other integers) to a small integer type.

Attributes: ``axis`` (the channel axis), ``stages`` (one entry, or one a channel: a chain of
:class:`hwflow.numerics.stages.Stage`). Derived: ``steps`` (one step function a channel, exact), ``form`` (the hardware
realisation, proved equal to the step functions over their whole intervals).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hdl_lib.requantize_lookup import LookupRequantizer
from hdl_lib.requantize_mas import PART
from hdl_lib.requantize_mas import MultiplyAddShift as MultiplyAddShiftCore
from hdl_lib.requantize_thresholds import Thresholds as ThresholdsCore
from hdl_lib.rom import Table
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.numerics.requantizer import LookupForm, MultiplyAddShift, ThresholdForm, realise
from hwflow.numerics.stages import chain
from hwflow.numerics.step_function import StepFunction
from hwflow.ops import costs
from hwflow.ops.memory import pack_words
from hwflow.ops.operator import (
    Built,
    Device,
    Folding,
    HardwareOperator,
    LogicalOperator,
    LoweringContext,
    MemoryFile,
    Resources,
    beats,
)
from hwflow.ops.shapes import shape_of
from hwflow.ops.timing import Timing, beat_by_beat
from hwflow.types import Interval, IntType, TensorType


class Requantize(LogicalOperator, HardwareOperator):
    name = "requantize"
    stages = frozenset({Stage.QUANTIZED, Stage.DATAFLOW, Stage.SCHEDULED})
    onnx = ("QuantizeLinear", "Relu", "Clip")
    limits = "scales vary along one axis at most"

    def derive(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> Mapping[str, Any]:
        source, axis = inputs[0], attributes["axis"]
        intervals = source.channel_intervals(axis)
        stages = attributes["stages"]
        if len(stages) == 1:
            stages = stages * len(intervals)
        made: dict[Any, StepFunction] = {}
        for stage, interval in zip(stages, intervals, strict=True):
            key = (stage, interval)
            if key not in made:
                made[key] = chain(stage, interval.lo, interval.hi)
        return {"steps": tuple(made[key] for key in zip(stages, intervals, strict=True))}

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        axis = attributes["axis"]
        channels = tuple(Interval(s.low, s.high) for s in attributes["steps"])
        return (TensorType.of(inputs[0].shape, channels, axis),)

    def evaluate(self, attributes: Mapping[str, Any], inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        axis = attributes["axis"] % (inputs[0].ndim - 1) + 1
        steps: tuple[StepFunction, ...] = attributes["steps"]
        if len(set(steps)) == 1:
            return (steps[0].evaluate(inputs[0]),)
        result = np.empty_like(inputs[0])
        source, target = np.moveaxis(inputs[0], axis, 0), np.moveaxis(result, axis, 0)
        for channel, step in enumerate(steps):
            target[channel] = step.evaluate(source[channel])
        return (result,)

    def lower(self, node: Node, context: LoweringContext) -> None:
        stream, order = context.stream(node.inputs[0])
        shape = node.inputs[0].typed.shape
        stages = node.attributes["stages"]
        if len(stages) > 1:
            coordinate = np.unravel_index(order, shape)[node.attributes["axis"]].reshape(stream.typed.shape)
            if (coordinate != coordinate[0]).any():
                context.refuse(
                    "stream-order",
                    "each channel's scale must belong to one channel of the stream, not vary from pixel to pixel",
                    "quantize per tensor after a Reshape",
                )
                return
            stages = tuple(stages[c] for c in coordinate[0])
        result = context.add("requantize", "", [stream], {"axis": 1, "stages": stages})
        context.bind(node.outputs[0], result, order)

    def foldings(self, node: Node, device: Device) -> Sequence[Folding]:
        part = costs.FAMILIES[device.family].dsp_width - 1
        return [Folding(lanes, lanes, part=part) for lanes in costs.useful_lanes(node.inputs[0].typed.shape[1])]

    def cycles(self, node: Node, folding: Folding) -> int:
        return beats(node.inputs[0].typed.shape, folding.input_lanes)

    def timing(self, node: Node, folding: Folding) -> Timing:
        return beat_by_beat(self.cycles(node, folding), _Hardware(node, folding).latency())

    def resources(self, node: Node, folding: Folding, depths: Sequence[int], device: Device) -> Resources:
        return _Hardware(node, folding).resources(device.family, depths[0])

    def build(self, node: Node, folding: Folding, depths: Sequence[int], name: str) -> Built:
        return _Hardware(node, folding).build(depths[0], name)


def form_of(node: Node) -> MultiplyAddShift | ThresholdForm | LookupForm:
    """The realisation of a requantize node of the dataflow stage; found and proved once."""
    if "form" not in node.attributes:
        element = node.inputs[0].typed.element
        node.attributes["form"] = realise(node.attributes["steps"], element.bits, element.signed)
    form: MultiplyAddShift | ThresholdForm | LookupForm = node.attributes["form"]
    return form


class _Hardware:
    """One requantize node at one folding: its tables and core."""

    def __init__(self, node: Node, folding: Folding) -> None:
        self.form = form_of(node)
        self.input: IntType = node.inputs[0].typed.element
        self.output: IntType = node.outputs[0].typed.element
        self.channels: int = node.inputs[0].typed.shape[1]
        self.lanes = folding.input_lanes
        self.part = folding.part or PART
        if len(set(node.attributes["steps"])) == 1:
            self.channels = self.lanes  # every channel alike: one word of parameters serves all
        self.words = -(-self.channels // self.lanes)

    def latency(self) -> int:
        form = self.form
        if isinstance(form, MultiplyAddShift):
            multiplier = shape_of(self._multiplier(form))
            return MultiplyAddShiftCore.latency_of(shape_of(self.input), multiplier, form.rounding, self.part)
        if isinstance(form, ThresholdForm):
            return ThresholdsCore.latency_of(form.levels)
        return LookupRequantizer.latency

    def resources(self, family: str, depth: int) -> Resources:
        form = self.form
        if isinstance(form, MultiplyAddShift):
            dsp = self._multiplier_blocks(form, costs.FAMILIES[family].dsp_product)
            return costs.multiply_add_shift(
                family, self.input, self._multiplier(form), self._addend(form), form.shift,
                form.rounding != "floor", self.output, self.lanes, self.words, dsp, self.part, depth,
            )
        if isinstance(form, ThresholdForm):
            return costs.thresholds(family, self.input, form.levels, self.output, self.lanes, self.words, depth)
        return costs.lookup(family, self.input, [self._span(form) * self.words] * self.lanes, self.output, depth)

    def _multiplier_blocks(self, form: MultiplyAddShift, least: int) -> int:
        """Of all lanes; a product of fewer than ``least`` bits needs none. Constants of which a part is 0 or a power of
        two need none for that part."""
        xs = MultiplyAddShiftCore.part_widths(shape_of(self.input), self.part)
        widths = MultiplyAddShiftCore.part_widths(shape_of(self._multiplier(form)), self.part)
        blocks = [sum(min(x, width) > 1 and x + width >= least for x in xs) for width in widths]
        if self.words > 1:
            return self.lanes * sum(blocks)
        total = 0
        for multiplier in self._padded(form.multipliers).flat:
            for index, count in enumerate(blocks):
                bits = int(multiplier) >> index * self.part & ((1 << self.part) - 1)
                total += count * bool(bits & (bits - 1))
        return total

    def build(self, depth: int, name: str) -> Built:
        common = {"lanes": self.lanes, "channels": self.channels, "depth": depth}
        shapes = shape_of(self.input), shape_of(self.output)
        form = self.form
        files: list[MemoryFile] = []
        core: Any
        if isinstance(form, MultiplyAddShift):
            multiplier, addend = self._multiplier(form), self._addend(form)
            fields = [(self._padded(form.multipliers), multiplier.bits), (self._padded(form.addends), addend.bits)]
            core = MultiplyAddShiftCore(
                *shapes, **common, multiplier_shape=shape_of(multiplier), addend_shape=shape_of(addend),
                shift=form.shift,
                low=form.low, high=form.high, rounding=form.rounding, part=self.part,
                parameters=self._table(f"{name}_parameters", fields, files),
            )
        elif isinstance(form, ThresholdForm):
            columns = self._padded(np.array(form.thresholds, dtype=np.int64))
            fields = [(columns[:, :, level], self.input.bits + 1) for level in range(form.levels)]
            core = ThresholdsCore(
                *shapes, **common, base=form.base, levels=form.levels,
                parameters=self._table(f"{name}_thresholds", fields, files),
            )
        else:
            span = self._span(form)
            rows = np.zeros((self.words * self.lanes, span), dtype=np.int64)
            rows[: self.channels, : form.span] = form.array[: self.channels]
            tables = []
            for lane in range(self.lanes):
                words = pack_words(rows[lane :: self.lanes].reshape(-1, 1), self.output.bits)
                tables.append(_table(f"{name}_table_{lane}", words, self.output.bits, files))
            core = LookupRequantizer(*shapes, **common, low=form.lo, tables=tables, shared=self.words == 1)
        return Built(core, [core.i], [core.o], files)

    def _span(self, form: LookupForm) -> int:
        return 1 << (form.span - 1).bit_length()

    @staticmethod
    def _multiplier(form: MultiplyAddShift) -> IntType:
        return IntType(form.multiplier_bits, False)

    @staticmethod
    def _addend(form: MultiplyAddShift) -> IntType:
        return IntType(*form.addend_type)

    def _padded(self, values: Any) -> IntArray:
        """One row a channel to [words, lanes, ...]; surplus lanes get zeros."""
        array = np.asarray(values, dtype=np.int64)[: self.channels]
        padded = np.zeros((self.words * self.lanes, *array.shape[1:]), dtype=np.int64)
        padded[: len(array)] = array
        return padded.reshape(self.words, self.lanes, *array.shape[1:])

    def _table(self, name: str, fields: list[tuple[IntArray, int]], files: list[MemoryFile]) -> Table:
        """Words of [words, lanes] fields: lane 0 lowest, in each lane the first field lowest."""
        width = self.lanes * sum(bits for _, bits in fields)
        words = [0] * self.words
        offset = 0
        for lane in range(self.lanes):
            for values, bits in fields:
                for word in range(self.words):
                    words[word] |= (int(values[word, lane]) & ((1 << bits) - 1)) << offset
                offset += bits
        return _table(name, words, width, files)


def _table(name: str, words: list[int], width: int, files: list[MemoryFile]) -> Table:
    """One word is a constant of the core; more go to a memory file."""
    if len(words) == 1:
        return Table.of_words(words, width)
    files.append(MemoryFile(name, words, width))
    return Table(None, f"weights/{name}.mem", width, len(words))
