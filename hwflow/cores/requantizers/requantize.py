"""Requantize: a step function a channel, from accumulators (or other integers) to a small integer type.

Attributes: ``axis`` (the channel axis), ``stages`` (one entry, or one a channel: a chain of
:class:`hwflow.numerics.requantizers.stages.Stage`). Derived: ``steps`` (one step function a channel, exact), ``form``
(the hardware realisation, proved equal to the step functions over their whole intervals).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from amaranth.hdl import Shape

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.multiplier import PART
from hdl_lib.arithmetic.wide_product import parts_of
from hdl_lib.memories.rom import Table
from hdl_lib.memories.storage import REGISTER_DEPTH
from hdl_lib.requantizers.requantize_lookup import LookupRequantizer
from hdl_lib.requantizers.requantize_mas import MultiplyAddShift as MultiplyAddShiftCore
from hdl_lib.requantizers.requantize_search import SearchRequantizer, read_latency
from hdl_lib.requantizers.requantize_thresholds import FALLING, RISING
from hdl_lib.requantizers.requantize_thresholds import Thresholds as ThresholdsCore
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.logical.images import along_axis
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import (
    Built,
    Device,
    Folding,
    HardwareOperator,
    LogicalOperator,
    LoweringContext,
    MemoryFile,
    Resources,
    beats,
    grouped,
)
from hwflow.cores.requantizers import constant_requantize, serial_requantize
from hwflow.cores.requantizers.requantize_knowledge import changing_bits, comparisons
from hwflow.cores.requantizers.requantize_parameters import lane_columns, parameter_bits, row_products
from hwflow.cores.timing import Timing, beat_by_beat
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.numerics.requantizers.requantizer import (
    Form,
    LookupForm,
    MultiplyAddShift,
    SearchForm,
    ThresholdForm,
    realise,
)
from hwflow.numerics.requantizers.stages import chain
from hwflow.numerics.requantizers.step_function import StepFunction, all_alike
from hwflow.types import Interval, IntType, TensorType


class Requantize(LogicalOperator, HardwareOperator):
    name = "requantize"
    stages = frozenset({Stage.QUANTIZED, Stage.DATAFLOW, Stage.SCHEDULED})

    def derive(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> Mapping[str, Any]:
        source, axis = inputs[0], attributes["axis"]
        intervals = source.channel_intervals(axis)
        stages = attributes["stages"]
        if len(stages) == 1:
            stages = stages * len(intervals)
        made: dict[Any, StepFunction] = {}
        same: dict[tuple[int, int], StepFunction] = {}  # by identity: a million channels share objects
        for stage, interval in zip(stages, intervals, strict=True):
            if (id(stage), id(interval)) not in same:
                steps = made.get((stage, interval))
                if steps is None:
                    steps = made[stage, interval] = chain(stage, interval.lo, interval.hi)
                same[id(stage), id(interval)] = steps
        return {"steps": tuple([same[id(s), id(i)] for s, i in zip(stages, intervals, strict=True)])}

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        axis = attributes["axis"]
        steps: tuple[StepFunction, ...] = attributes["steps"]
        known = {id(step): Interval(step.low, step.high) for step in {id(step): step for step in steps}.values()}
        channels = tuple([known[id(step)] for step in steps])
        return (TensorType.of(inputs[0].shape, channels, axis),)

    def evaluate(self, attributes: Mapping[str, Any], inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        axis = attributes["axis"] % (inputs[0].ndim - 1) + 1
        steps: tuple[StepFunction, ...] = attributes["steps"]
        if all_alike(steps):
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
            (stream,), order, indices = along_axis(context, [stream], order, shape, node.attributes["axis"])
            stages = tuple(stages[i] for i in indices)
        result = context.add("requantize", "", [stream], {"axis": 1, "stages": stages})
        context.bind(node.outputs[0], result, order)

    def foldings(self, node: Node, device: Device) -> Sequence[Folding]:
        part = costs.FAMILIES[device.family].dsp_width - 1
        options = [Folding(lanes, lanes, part=part) for lanes in costs.stream_lanes(node.inputs[0].typed.shape)]
        form = form_of(node)
        if not isinstance(form, MultiplyAddShift) or constant_requantize.shifts_only(form):
            return options
        others, worth_offering = [], constant_requantize.worth_offering(form)
        for lanes in (folding.input_lanes for folding in options):
            constant = worth_offering and _Hardware(node, Folding(lanes, lanes)).words == 1
            others.append(Folding(lanes, lanes, multiplier=constant_requantize.KIND if constant else "lut"))
        return options + others + serial_requantize.foldings(node, form)

    def cycles(self, node: Node, folding: Folding) -> int:
        if folding.multiplier == serial_requantize.KIND:
            return serial_requantize.cycles(node, folding)
        return beats(node.inputs[0].typed.shape, folding.input_lanes)

    def timing(self, node: Node, folding: Folding) -> Timing:
        if folding.multiplier == serial_requantize.KIND:
            return serial_requantize.timing(node, folding)
        return beat_by_beat(self.cycles(node, folding), _Hardware(node, folding).latency())

    def resources(self, node: Node, folding: Folding, depths: Sequence[int], device: Device) -> Resources:
        return _Hardware(node, folding).resources(device.family, depths[0])

    def build(self, node: Node, folding: Folding, depths: Sequence[int], name: str) -> Built:
        return _Hardware(node, folding).build(depths[0], name)


def form_of(node: Node) -> Form:
    """The realisation of a requantize node of the dataflow stage; found and proved once."""
    if "form" not in node.attributes:
        element = node.inputs[0].typed.element
        node.attributes["form"] = realise(node.attributes["steps"], element.bits, element.signed)
    form: Form = node.attributes["form"]
    return form


_TABLES_COST: dict[tuple[Form, int, int, IntType, str], tuple[Resources, bool]] = {}
"""What has been computed: a schedule asks for the same again and again."""
MAX_TABLES_COST = 1000  # entries


class _Numbers(NamedTuple):
    """What the parameters of a form have in common: types that hold them, whether no multiplier needs more than a
    shift, and the digits that hold any of the multipliers."""

    multiplier: IntType
    addend: IntType
    shifts_only: bool
    digits: Digits


Field = tuple[IntArray, int]  # of a table, [words, lanes], and its bits


class _Hardware:
    """One requantize node at one folding: its tables and core."""

    def __init__(self, node: Node, folding: Folding) -> None:
        self.node = node
        self.folding = folding
        self.form = form_of(node)
        self.serial = folding.multiplier == serial_requantize.KIND
        if self.serial and isinstance(self.form, MultiplyAddShift):
            own = serial_requantize.form_for(node, self.form, folding.part)
            assert own is not None, "offered where there are parameters"
            self.form = own
        self.input: IntType = node.inputs[0].typed.element
        self.output: IntType = node.outputs[0].typed.element
        self.lanes = folding.input_lanes
        self.part = folding.part or PART
        self.own: int = node.inputs[0].typed.shape[1]  # channels with parameters of their own, again in each pixel
        self.channels = grouped(node.inputs[0].typed.shape, self.lanes)[1]
        if all_alike(node.attributes["steps"]):
            self.own, self.channels = 1, self.lanes  # every channel alike: one word of parameters serves all
        self.words = -(-self.channels // self.lanes)
        shifts = isinstance(self.form, MultiplyAddShift) and self._numbers(self.form).shifts_only
        # Every lane's parameters are constants, and its product is made of shifts.
        self.constant = self.words == 1 and (shifts or folding.multiplier == constant_requantize.KIND)
        self.digits: Digits | None = None
        """Of the multipliers, where products are made of look-up tables."""
        if isinstance(self.form, MultiplyAddShift) and folding.multiplier == "lut":
            self.digits = self._numbers(self.form).digits

    def latency(self) -> int:
        form = self.form
        if isinstance(form, MultiplyAddShift):
            if self.constant:
                return constant_requantize.latency(self.node, form)
            multiplier = self._multiplier(form)
            table = self.lanes * (multiplier.bits + self._addend(form).bits), self.words
            return MultiplyAddShiftCore.latency_of(
                shape_of(self.input), shape_of(multiplier), form.rounding, self.part, self.digits, table
            )
        if isinstance(form, ThresholdForm):
            return ThresholdsCore.latency_of(form.levels, own_bases=not form.one_base)
        if isinstance(form, SearchForm):
            values = 0 if form.values is None else self.output.bits
            return SearchRequantizer.latency_of(form.stages, self.words, values=values)
        return LookupRequantizer.latency

    def resources(self, family: str, depth: int) -> Resources:
        form = self.form
        if isinstance(form, MultiplyAddShift):
            if self.serial:
                parameters = self._padded(form.multipliers), self._padded(form.addends)
                return serial_requantize.resources(self.node, self.folding, form, parameters, family, depth)
            if self.constant:
                pixels = self.lanes // self.own
                return constant_requantize.resources(self.node, self.folding, form, self.own, pixels, family, depth)
            dsp = 0 if self.digits is not None else self._multiplier_blocks(form, family)
            return costs.multiply_add_shift(
                family, self.input, self._multiplier(form), self._addend(form), form.shift,
                form.rounding != "floor", self.output, self.lanes, self.words, dsp, self.part, depth,
                limits=(form.low, form.high), known=self._known_parameters(form, family), rows=self._rows(form, family),
                changing=self._changing(lambda: self._product_fields(form)),
            )
        if isinstance(form, ThresholdForm):
            known: Resources | None = None
            ones: list[list[int]] = []
            bases: list[list[int]] = []
            complemented = 0
            if self.channels * form.levels * (self.input.bits + 1) <= costs.MOST_KNOWN_BITS:
                fields = self._threshold_fields(form)
                known, alone = self._known(fields, family), self._known(fields[: form.levels], family)
                complemented = alone.ff if alone.bram else alone.ff // 2
                ones = np.bitwise_or.reduce(self._padded(form.thresholds), axis=0).tolist()
                bases = [] if form.one_base else self._padded(form.bases).T.tolist()
            return costs.thresholds(
                family, self.input, form.levels, self.output, self.lanes, self.words, depth,
                len(form.direction_bits), sum(d in form.direction_bits for d in form.directions), not form.one_base,
                known, ones, bases, self._queue_bits(family, depth), form.bases[0] if form.one_base else 0,
                complemented, self._changing(lambda: self._threshold_fields(form)) if known is None else None,
            )
        if isinstance(form, SearchForm):
            return costs.search(
                family, self.input, IntType(*form.bound_type), form.stages, self.output, self.lanes, self.words,
                form.values is not None, self._tables_cost(family)[0], depth, form.base,
                *comparisons(form, [self._channels_of(lane) for lane in range(self.lanes)], self.input),
                self._queue_bits(family, depth),
            )
        words = [self._span(form) * self.words] * self.lanes
        if self.words == 1:  # results that never change
            words = [0 if len(set(form.tables[k % len(form.tables)])) == 1 else words[k] for k in range(self.lanes)]
        return costs.lookup(
            family, self.input, words, self._tables_cost(family)[0], self._queue_bits(family, depth), depth
        )

    def _tables_cost(self, family: str) -> tuple[Resources, bool]:
        """Of a search's or a lookup's tables, by their words; and whether those of results are in block RAMs."""
        key = self.form, self.lanes, self.channels, self.output, family
        if key not in _TABLES_COST:
            total, last = Resources(), Resources()
            known: dict[tuple[str, str, bytes], Resources] = self.node.attributes.setdefault("lane_tables_cost", {})
            for part, rows, bits in self._tables():
                for lane in range(self.lanes):
                    alike = family, part, self._channels_of(lane).tobytes()
                    if alike not in known:
                        words = self._lane_words(rows, lane)
                        registered = isinstance(self.form, LookupForm) or read_latency(len(words)) > 1
                        known[alike] = costs.filled_numbers(family, words, bits, output_register=registered)
                    last = known[alike]
                    total += last
            while len(_TABLES_COST) >= MAX_TABLES_COST:
                del _TABLES_COST[next(iter(_TABLES_COST))]
            only_bounds = isinstance(self.form, SearchForm) and self.form.values is None
            _TABLES_COST[key] = total, last.bram > 0 and not only_bounds
        return _TABLES_COST[key]

    def _multiplier_blocks(self, form: MultiplyAddShift, family: str) -> int:
        """Of all lanes. Constants of which a part is 0, or plus or minus a power of two, need none for that part."""
        shape = shape_of(self._multiplier(form))
        xs, factors = (
            [(IntType(part.shape.width, part.shape.signed), self.lanes) for part in parts_of(operand, self.part)]
            for operand in (shape_of(self.input), shape)
        )
        if costs.FAMILIES[family].dsp_pair:
            return self._half_blocks(form, family, [x for x, _ in xs], [factor for factor, _ in factors])
        if self.words == 1:
            times = self.channels // self.own
            factors = [(factor, count * times) for factor, count in self._fixed_factors(form, shape).items()]
        return costs.multiplier_blocks(family, [(x, factor, count) for x, _ in xs for factor, count in factors])

    def _fixed_factors(self, form: MultiplyAddShift, shape: Shape) -> Counter[IntType]:
        """Parts of the channels' multipliers that are neither 0 nor plus or minus a power of two."""
        known: dict[tuple[int, int], Counter[IntType]] = self.node.attributes.setdefault("fixed_factors", {})
        if (self.own, self.part) not in known:
            parts = parts_of(shape, self.part)
            constants = [part.of_number(multiplier) for multiplier in form.multipliers[: self.own] for part in parts]
            ends = Counter((c < 0, (~c if c < 0 else c).bit_length()) for c in constants if abs(c) & (abs(c) - 1))
            kinds = {IntType(bits + signed, signed): count for (signed, bits), count in ends.items()}
            known[self.own, self.part] = Counter(kinds)
        return known[self.own, self.part]

    def _half_blocks(
        self, form: MultiplyAddShift, family: str, xs: Sequence[IntType], factors: Sequence[IntType]
    ) -> int:
        """The same where blocks take two narrow products: by what each lane's multipliers are."""
        shape = shape_of(self._multiplier(form))
        lanes = min(self.lanes, self.own)
        times = self.lanes // lanes  # lanes of several pixels are alike
        parts = [
            (factor, values) for column in lane_columns(form.multipliers[: self.own], lanes)
            for factor, values in zip(
                factors, zip(*(_part_constants(number, shape, self.part) for number in column), strict=True),
                strict=True,
            )
        ]
        if self.words == 1:
            made = [costs.FixedFactor(x, factor, values[0]) for factor, values in parts if values[0] for x in xs]
            return costs.blocks_of(family, ((factor, times) for factor in made))
        within = [(factor, _holding_zero(min(values), max(values))) for factor, values in parts]
        return costs.blocks_of_tables(family, ((x, *types, times) for types in within for x in xs))

    def build(self, depth: int, name: str) -> Built:
        common = {"lanes": self.lanes, "channels": self.channels, "depth": depth}
        shapes = shape_of(self.input), shape_of(self.output)
        form = self.form
        files: list[MemoryFile] = []
        core: Any
        if isinstance(form, MultiplyAddShift) and self.serial:
            fields = self._padded(form.multipliers), self._padded(form.addends)
            return serial_requantize.build(self.node, self.folding, form, fields, self.channels, depth, name)
        if isinstance(form, MultiplyAddShift) and self.constant:
            core = constant_requantize.core(self.node, form, [k % self.own for k in range(self.lanes)], depth)
        elif isinstance(form, MultiplyAddShift):
            multiplier, addend = self._multiplier(form), self._addend(form)
            core = MultiplyAddShiftCore(
                *shapes, **common, multiplier_shape=shape_of(multiplier), addend_shape=shape_of(addend),
                shift=form.shift,
                low=form.low, high=form.high, rounding=form.rounding, part=self.part,
                parameters=self._table(f"{name}_parameters", self._product_fields(form), files), digits=self.digits,
            )
        elif isinstance(form, ThresholdForm):
            core = ThresholdsCore(
                *shapes, **common, base=self._wrapped(form.bases[0]) if form.one_base else None, levels=form.levels,
                parameters=self._table(f"{name}_thresholds", self._threshold_fields(form), files),
                directions=self._directions(form),
            )
        elif isinstance(form, SearchForm):
            tables = self._lane_tables(name, files)
            core = SearchRequantizer(
                *shapes, **common, bound_shape=shape_of(IntType(*form.bound_type)), stages=form.stages,
                bounds=[table for lane in zip(*tables[: form.stages], strict=True) for table in lane],
                values=None if form.values is None else tables[-1],
                base=self._wrapped(form.base), falling=form.falling, shared=self.words == 1,
            )
        else:
            (words,) = self._lane_tables(name, files)
            core = LookupRequantizer(*shapes, **common, low=form.lo, tables=words, shared=self.words == 1)
        return Built(core, [core.i], [core.o], files)

    def _product_fields(self, form: MultiplyAddShift) -> list[Field]:
        """Return the fields of a multiply-add-shift's table."""
        multiplier, addend = self._multiplier(form), self._addend(form)
        factors, bits = self._padded(form.multipliers), multiplier.bits
        if self.digits is not None:
            factors, bits = self.digits.stored(factors), self.digits.bits
        return [(factors, bits), (self._padded(form.addends), addend.bits)]

    def _threshold_fields(self, form: ThresholdForm) -> list[Field]:
        """Return the fields of a table of thresholds."""
        columns = self._padded(form.thresholds)
        fields = [(columns[:, :, level], self.input.bits + 1) for level in range(form.levels)]
        fields += [(self._padded(bit), 1) for bit in form.direction_bits]
        if not form.one_base:
            fields.append((self._padded(form.bases), self.output.bits))
        return fields

    def _rows(self, form: MultiplyAddShift, family: str) -> costs.Rows | None:
        """Of products of look-up tables: the digits, and what the products take where tables have few words."""
        if self.digits is None:
            return None
        if self.words > costs.FEW:
            return costs.Rows(self.digits)
        lanes = min(self.lanes, self.own)
        made = row_products(self.node, form, self.digits, family, self.input, self.own, lanes)
        return costs.Rows(self.digits, made.times(self.lanes // lanes))

    def _queue_bits(self, family: str, depth: int) -> int:
        """Of a beat in the queue. A memory made of flip-flops has none for bits that never change and those that are
        alike, as far as synthesis sees it: of a limited sum none."""
        flat = costs.FAMILIES[family].lutram is None and depth > REGISTER_DEPTH
        values = sum(step.count + 1 for step in self.node.attributes["steps"][: self.own])
        if not flat or isinstance(self.form, MultiplyAddShift) or values > costs.MOST_KNOWN_BITS:
            return self.lanes * self.output.bits
        if not isinstance(self.form, ThresholdForm) and self._tables_cost(family)[1]:
            return self.lanes * self.output.bits
        return changing_bits(self.node.attributes["steps"][: self.own], self.lanes, self.output.bits)

    def _known(self, fields: list[Field], family: str) -> Resources:
        """Return the cost of the table of these fields, by its words."""
        files: list[MemoryFile] = []
        self._table("", fields, files)
        return costs.filled_rom(family, files[0].words, files[0].width) if files else Resources()

    def _changing(self, fields: Callable[[], list[Field]]) -> costs.Changing | None:
        """Of the bits of a table of these fields; None for all, as long as a search asks for every folding."""
        files: list[MemoryFile] = []
        if self.node.attributes.get("folding") == self.folding:
            self._table("", fields(), files)
        return costs.changing_bits(files[0].words, files[0].width) if files else None

    def _known_parameters(self, form: MultiplyAddShift, family: str) -> costs.Parameters | None:
        """The table, where it is so small that the numbers in it matter."""
        multiplier, addend = self._multiplier(form), self._addend(form)
        if self.channels * (multiplier.bits + addend.bits) > costs.MOST_KNOWN_BITS:
            return None
        if self.words == 1 and self.digits is None:
            constants = tuple(zip(form.multipliers[: self.own], form.addends[: self.own], strict=True))
            return costs.Parameters(Resources(), constants=constants, pixels=self.lanes // self.own)
        held = parameter_bits(self.node, form, self.digits, self.own)
        lanes = min(self.lanes, self.own)
        table = costs.filled_table(family, held.table(lanes))
        if table.bram:
            return None
        addends = costs.filled_table(family, held.addends_table(lanes))
        zeros = tuple(held.addend_zeros(lanes))
        return costs.Parameters(table, (table.ff // 2, addends.ff // 2), zeros=zeros, pixels=self.lanes // lanes)

    @staticmethod
    def _directions(form: ThresholdForm) -> list[str | int]:
        """Return the directions that the core needs; none where all thresholds rise."""
        if not any(map(any, form.falling)):
            return []
        bits = {column: index for index, column in enumerate(form.direction_bits)}
        return [bits.get(column, FALLING if column[0] else RISING) for column in form.directions]

    def _wrapped(self, base: int) -> int:
        """The value of the output type that is ``base`` modulo its number of values."""
        return (base - self.output.min) % (1 << self.output.bits) + self.output.min

    def _tables(self) -> list[tuple[str, IntArray, int]]:
        """Of a search or a lookup: the tables that every lane has, each with its name, a row a channel, and the bits of
        an entry. Of a search the bounds of each stage first; ``x >= threshold`` is ``x > threshold - 1``."""
        form = self.form
        if isinstance(form, LookupForm):
            rows = np.zeros((self.own, self._span(form)), dtype=np.int64)
            rows[:, : form.span] = form.array[: self.own]
            return [("table", rows, self.output.bits)]
        assert isinstance(form, SearchForm), "the others have no such tables"
        bounds, found = form.bounds[: self.own], []
        for stage in range(form.stages):
            apart = 1 << (form.stages - stage)
            found.append((f"bounds_{stage}", bounds[:, apart // 2 - 1 :: apart], form.bound_type[0]))
        if form.values is not None:
            found.append(("values", form.values[: self.own], self.output.bits))
        return found

    def _channels_of(self, lane: int) -> IntArray:
        """Whose results a lane computes, one after the other: of channels with parameters of their own."""
        return np.arange(lane, self.channels, self.lanes) % self.own

    def _lane_words(self, rows: IntArray, lane: int) -> IntArray:
        """Of :meth:`_tables` the rows of a lane's channels one after the other; for those that it lacks zeros."""
        own = rows[self._channels_of(lane)].reshape(-1)
        return np.pad(own, (0, self.words * rows.shape[1] - len(own)))

    def _lane_tables(self, name: str, files: list[MemoryFile]) -> list[list[Table]]:
        """Those of :meth:`_tables`, lane by lane."""
        return [
            [
                _table(
                    f"{name}_{part}_{lane}", pack_words(self._lane_words(rows, lane)[:, np.newaxis], bits), bits, files
                )
                for lane in range(self.lanes)
            ]
            for part, rows, bits in self._tables()
        ]

    def _span(self, form: LookupForm) -> int:
        return 1 << (form.span - 1).bit_length()

    def _multiplier(self, form: MultiplyAddShift) -> IntType:
        return self._numbers(form).multiplier

    def _addend(self, form: MultiplyAddShift) -> IntType:
        return self._numbers(form).addend

    def _numbers(self, form: MultiplyAddShift) -> _Numbers:
        """Of a form, looked at once."""
        known: dict[int, _Numbers] = self.node.attributes.setdefault("form_numbers", {})
        key = self.folding.part if self.serial else 0  # serial foldings have forms of their own
        if key not in known:
            known[key] = _Numbers(
                IntType(*form.multiplier_type), IntType(*form.addend_type), constant_requantize.shifts_only(form),
                Digits.of((min(0, *form.multipliers), max(0, *form.multipliers))),
            )
        return known[key]

    def _of_each(self, values: Any, dtype: Any) -> IntArray:
        """One row a channel, of each pixel that a beat holds."""
        array = np.array(values[: self.own], dtype=dtype)
        return np.tile(array, (self.channels // self.own, *(1,) * (array.ndim - 1)))

    def _padded(self, values: Any) -> IntArray:
        """One row a channel to [words, lanes, ...]; surplus lanes get zeros."""
        array = self._of_each(values, object)  # addends of 16-bit levels pass 64 bits
        padded = np.zeros((self.words * self.lanes, *array.shape[1:]), dtype=object)
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


@lru_cache(maxsize=1 << 12)
def _part_constants(multiplier: int, shape: Shape, part: int) -> list[int]:
    """See :meth:`hdl_lib.requantizers.requantize_mas.MultiplyAddShift.part_constants`: each folding asks for the
    same."""
    return MultiplyAddShiftCore.part_constants(multiplier, shape, part)


@lru_cache(maxsize=1 << 12)
def _holding_zero(low: int, high: int) -> IntType:
    return IntType.holding(Interval(min(0, low), max(0, high)))


def _table(name: str, words: Sequence[int], width: int, files: list[MemoryFile]) -> Table:
    """One word is a constant of the core; more go to a memory file."""
    if len(words) == 1:
        return Table.of_words(words, width)
    files.append(MemoryFile(name, words, width))
    return Table(None, f"weights/{name}.mem", width, len(words))
