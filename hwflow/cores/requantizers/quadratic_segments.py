"""Piecewise quadratics: a table of each segment's coefficients, and two products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from hdl_lib.arithmetic.multiplier import PART, ProductForm
from hdl_lib.requantizers.requantize_quadratic import Coefficients, QuadraticRequantizer
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Folding, MemoryFile, Resources
from hwflow.cores.requantizers.lane_tables import LaneTable, LaneTables
from hwflow.ir.graph import Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.quadratics import QuadraticForm
from hwflow.types import IntType


class QuadraticSegments(LaneTables[QuadraticForm]):
    """Implements :class:`hdl_lib.requantizers.requantize_quadratic.QuadraticRequantizer`, with products in
    multiplier blocks."""

    products: ClassVar[ProductForm] = ProductForm.DSP

    def __init__(self, node: Node[RequantizeAttributes], folding: Folding, form: QuadraticForm) -> None:
        super().__init__(node, folding, form)
        self.part = folding.part or PART

    @cached_property
    def coefficients(self) -> Coefficients:
        constant, slope, curvature = (shape_of(IntType(*each)) for each in self.form.types)
        moved = shape_of(IntType(*self.form.moved_type))
        return Coefficients(constant, slope, curvature, moved, self.form.offset_bits)

    def latency(self) -> int:
        return QuadraticRequantizer.latency_of(self.coefficients, self.products, self.part)

    def resources(self, decision: Decision, family: str) -> Resources:
        form = self.form
        return costs.quadratics(
            family, self.input, (form.first, form.last), self.coefficients, form.shift, self.output, self.lanes,
            self.products, self.part, self.tables_cost(family)[0],
        ) + costs.queue(family, self.lanes * self.output.bits, decision.depth)

    def build(self, depth: int, name: str) -> Built:
        files: list[MemoryFile] = []
        (words,) = self.lane_tables(name, files)
        form = self.form
        core = QuadraticRequantizer(
            shape_of(self.input), shape_of(self.output), lanes=self.lanes, first=form.first, last=form.last,
            coefficients=self.coefficients, shift=form.shift, tables=words, multiplier=self.products, depth=depth,
            part=self.part,
        )
        return Built(core, [core.i], [core.o], files)

    def tables(self) -> list[LaneTable]:
        return [LaneTable("coefficients", self.form.words[np.newaxis], self.form.width)]

    def registered(self, words: int) -> bool:
        return True


class LookupTableSegments(QuadraticSegments):
    """The same with products in look-up tables."""

    kind = products = ProductForm.LUT

    @classmethod
    def foldings(
        cls, node: Node[RequantizeAttributes], form: QuadraticForm, options: Sequence[Folding]
    ) -> list[Folding]:
        return cls.in_lanes(options)
