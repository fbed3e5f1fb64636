"""Multiply-add-shift with one product per cycle in every lane: in multiplier blocks, or in look-up tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from amaranth.hdl import Shape

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.multiplier import PART, ProductForm
from hdl_lib.arithmetic.wide_product import parts_of
from hdl_lib.requantizers.requantize_mas import MultiplyAddShift as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Folding, MemoryFile, Resources
from hwflow.cores.requantizers.constant_requantize import ConstantLanes
from hwflow.cores.requantizers.requantize_parameters import ChannelParameters
from hwflow.cores.requantizers.requantizer_core import Field, RequantizerCore, table
from hwflow.ir.graph import Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.types import Interval, IntType


class _Products(RequantizerCore[MultiplyAddShift]):
    """Implements :class:`hdl_lib.requantizers.requantize_mas.MultiplyAddShift`."""

    tabled = True

    def __init__(self, node: Node[RequantizeAttributes], folding: Folding, form: MultiplyAddShift) -> None:
        super().__init__(node, folding, form)
        self.part = folding.part or PART
        self.parameters = node.once(ChannelParameters)
        self.multiplier, self.addend = self.parameters.multiplier, self.parameters.addend

    @property
    @abstractmethod
    def digits(self) -> Digits | None:
        """Return the digits of multipliers, if tables hold them."""

    @abstractmethod
    def blocks(self, family: str) -> int:
        """Return the multiplier blocks of all lanes."""

    @abstractmethod
    def rows(self, family: str) -> costs.Rows | None:
        """Return the products in look-up tables, if any."""

    def latency(self) -> int:
        held = self.lanes * (self.multiplier.bits + self.addend.bits), self.words
        return Core.latency_of(
            shape_of(self.input), shape_of(self.multiplier), self.form.rounding, self.part, self.digits, held
        )

    def resources(self, decision: Decision, family: str) -> Resources:
        form = self.form
        looked_at = self.words > 1 and not decision.provisional and not self.changeable
        changing = costs.changing_bits(*self.packed(self._fields())) if looked_at else None
        width = self.lanes * (self.multiplier.bits + self.addend.bits)
        return (costs.table_writer(self.words, width) if self._loadable else Resources()) + costs.multiply_add_shift(
            family, self.input, self.multiplier, self.addend, form.shift, form.rounding != ShiftRounding.FLOOR,
            self.output, self.lanes, self.words, self.blocks(family), self.part, decision.depth,
            limits=(form.low, form.high), known=self._known(family), rows=self.rows(family), changing=changing,
            held=self.changeable,
        )

    def build(self, depth: int, name: str) -> Built:
        form, files = self.form, list[MemoryFile]()
        core = Core(
            shape_of(self.input), shape_of(self.output), lanes=self.lanes, channels=self.channels, depth=depth,
            turns=self.turns,
            multiplier_shape=shape_of(self.multiplier), addend_shape=shape_of(self.addend), shift=form.shift,
            low=form.low, high=form.high, rounding=form.rounding, part=self.part,
            parameters=table(
                f"{name}_parameters", *self.packed(self._fields()), files, held=self.changeable,
                loadable=self._loadable,
            ),
            digits=self.digits,
        )
        return Built(core, [core.i], [core.o], files)

    @property
    def _loadable(self) -> bool:
        held = self.node.attributes.held
        return held is not None and held.loadable

    def _fields(self) -> list[Field]:
        factors, bits = self.padded(self.form.multipliers), self.multiplier.bits
        if self.digits is not None:
            factors, bits = self.digits.stored(factors), self.digits.bits
        return [(factors, bits), (self.padded(self.form.addends), self.addend.bits)]

    def _known(self, family: str) -> costs.Parameters | None:
        """Return the table if it is so small that its values matter."""
        own, lanes = self._alike
        bits = max(own, self.channels) * (self.multiplier.bits + self.addend.bits)
        if not own or self.changeable or bits > costs.MOST_KNOWN_BITS:
            return None
        if self.words == 1 and self.digits is None:
            constants = tuple(zip(self.form.multipliers[:own], self.form.addends[:own], strict=True))
            return costs.Parameters(Resources(), constants=constants, pixels=self.lanes // own)
        held = self.parameters.bits(own, digits=self.digits is not None)
        filled = costs.filled_table(family, held.table(lanes))
        if filled.bram:
            return None
        addends = costs.filled_table(family, held.addends_table(lanes))
        zeros = tuple(held.addend_zeros(lanes))
        return costs.Parameters(filled, addends.ff // 2, zeros=zeros, pixels=self.lanes // lanes)

    @property
    def _alike(self) -> tuple[int, int]:
        """Return the channels of a table, and the lanes that read different words of it: of rows all lanes read the
        same ones. No channels, where rounds have several."""
        if self.turns[0] == 1:
            return self.own, min(self.lanes, self.own)
        return (self.all, 1) if self.own == 1 else (0, 1)


class LookupTableProducts(_Products):
    """Products in look-up tables, a row for each digit of the multiplier."""

    kind: ClassVar[ProductForm] = ProductForm.LUT

    @classmethod
    def foldings(
        cls, node: Node[RequantizeAttributes], form: MultiplyAddShift, options: Sequence[Folding]
    ) -> list[Folding]:
        """Return foldings where no lane's parameters are constant, or where adders are no alternative."""
        constant = {each.input_lanes for each in ConstantLanes.foldings(node, form, options)}
        return cls.in_lanes(each for each in options if each.input_lanes not in constant)

    @property
    def digits(self) -> Digits:
        return self.parameters.digits

    def blocks(self, family: str) -> int:
        return 0

    def rows(self, family: str) -> costs.Rows:
        own, lanes = self._alike
        if self.words > costs.FEW or not own or self.changeable:
            return costs.Rows(self.digits)
        made = self.parameters.row_products(family, own, lanes)
        return costs.Rows(self.digits, made.times(self.lanes // lanes))


class BlockProducts(_Products):
    """Products in multiplier blocks."""

    @property
    def digits(self) -> None:
        return None

    def rows(self, family: str) -> None:
        return None

    def blocks(self, family: str) -> int:
        """Return the multiplier blocks; a part of a constant that is 0 or plus or minus a power of two needs none."""
        shape = shape_of(self.multiplier)
        xs, factors = (
            [(IntType(part.shape.width, part.shape.signed), self.lanes) for part in parts_of(operand, self.part)]
            for operand in (shape_of(self.input), shape)
        )
        if costs.FAMILIES[family].dsp_pair:
            return self._half_blocks(family, [x for x, _ in xs], [factor for factor, _ in factors])
        if self.words == 1:
            fixed, times = self.parameters.fixed_factors(self.own, self.part), self.channels // self.own
            factors = [(factor, count * times) for factor, count in fixed.items()]
        return costs.multiplier_blocks(family, [(x, factor, count) for x, _ in xs for factor, count in factors])

    def _half_blocks(self, family: str, xs: Sequence[IntType], factors: Sequence[IntType]) -> int:
        """Return the multiplier blocks if a block holds two narrow products: by the values of each lane's multipliers.
        """
        if self.changeable:
            return costs.blocks_of_tables(family, ((x, factor, factor, self.lanes) for factor in factors for x in xs))
        shape = shape_of(self.multiplier)
        lanes = min(self.lanes, self.own)
        times = self.lanes // lanes  # lanes of several pixels are alike
        parts = [
            (factor, values) for column in zip(*map(tuple, self.padded(self.form.multipliers)[:, :lanes]), strict=True)
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


@lru_cache(maxsize=1 << 12)
def _part_constants(multiplier: int, shape: Shape, part: int) -> list[int]:
    """Cache :meth:`hdl_lib.requantizers.requantize_mas.MultiplyAddShift.part_constants`, the same for all foldings."""
    return Core.part_constants(multiplier, shape, part)


@lru_cache(maxsize=1 << 12)
def _holding_zero(low: int, high: int) -> IntType:
    return IntType.holding(Interval(min(0, low), max(0, high)))
