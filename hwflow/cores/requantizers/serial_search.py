"""Binary search among sorted thresholds with one comparator, for slow streams. The folding's kind is "search"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.requantizers.serial_search import SerialSearch
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Folding, MemoryFile, Resources
from hwflow.cores.requantizers.lane_tables import LaneTable, LaneTables
from hwflow.cores.requantizers.requantizer_core import form_of
from hwflow.cores.timing import Process, Timing, spaced
from hwflow.ir.graph import Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.form import Form
from hwflow.numerics.requantizers.search_form import SearchForm, search_form
from hwflow.numerics.requantizers.step_function import all_alike
from hwflow.types import IntType

MOST_STAGES = 8  # of a function that has another form: the table of 8-bit results


class OneComparator(LaneTables[SearchForm]):
    """Implements :class:`hdl_lib.requantizers.serial_search.SerialSearch`. Tables: the bounds as a tree, then the
    results unless they are a plain count; ``x >= threshold`` is ``x > threshold - 1``. ``form``: the node's, or one
    found for channels that are all alike, whose table serves them all."""

    kind: ClassVar[ProductForm] = ProductForm.SEARCH
    steady = False

    def __init__(self, node: Node[RequantizeAttributes], folding: Folding, form: Form) -> None:
        own = node.once(_search_form)
        assert own is not None, "offered where there is one"
        super().__init__(node, folding, own)

    @classmethod
    def foldings(cls, node: Node[RequantizeAttributes], form: Form, options: Sequence[Folding]) -> list[Folding]:
        """Return the folding of one element at a time, if there is a search."""
        return [] if node.once(_search_form) is None else [Folding(1, 1, multiplier=cls.kind)]

    def latency(self) -> int:
        return SerialSearch.serial_latency_of(self.form.stages, self.words, self._value_bits)

    def cycles(self) -> int:
        return super().cycles() * self._steps

    def timing(self) -> Timing:
        """Return the timing: the first step of a beat consumes, the last one produces."""
        count, each = super().cycles(), self._steps
        process = Process(self.cycles(), {0: spaced(count, each)}, {0: spaced(count, each, each - 1)})
        return Timing((process,), (self.latency(),))

    def resources(self, decision: Decision, family: str) -> Resources:
        form = self.form
        return costs.serial_search(
            family, self.input, IntType(*form.bound_type), form.stages, self.output, self.words,
            self.tables_cost(family)[0], self._value_bits, form.base, self.queue_bits(family, decision.depth),
            decision.depth,
        )

    def build(self, depth: int, name: str) -> Built:
        form, files = self.form, list[MemoryFile]()
        (bounds,), *values = self.lane_tables(name, files)
        core = SerialSearch(
            shape_of(self.input), shape_of(self.output), channels=self.channels, depth=depth, turns=self.turns,
            bound_shape=shape_of(IntType(*form.bound_type)), stages=form.stages, bounds=bounds,
            values=values[0][0] if values else None, base=self.wrapped(form.base), falling=form.falling,
        )
        return Built(core, [core.i], [core.o], files)

    def tables(self) -> list[LaneTable]:
        form, bounds = self.form, self.form.bounds[: self.all]
        root = bounds.shape[1] // 2
        levels = [bounds[:, (root >> stage) :: bounds.shape[1] + 1 >> stage] for stage in range(form.stages)]
        # Word 0 is not read: the root's.
        found = [LaneTable("bounds", np.hstack([levels[0], *levels]), form.bound_type[0])]
        if form.values is not None:
            found.append(LaneTable("values", form.values[: self.all], self.output.bits))
        return found

    def registered(self, words: int) -> bool:
        return True

    @property
    def _value_bits(self) -> int:
        """Return the bits of a result that is read from a table, 0 if none is."""
        return 0 if self.form.values is None else self.output.bits

    @property
    def _steps(self) -> int:
        return SerialSearch.steps_of(self.form.stages, self.form.bound_type[0], self.words)


def _search_form(node: Node[RequantizeAttributes]) -> SearchForm | None:
    """Return a search for a node, proved; None if there is none, or only one with too large tables."""
    form, steps = form_of(node), node.attributes.steps
    if isinstance(form, SearchForm):
        return form
    if not all_alike(steps):
        return None
    found = search_form(steps[:1], with_values=False)
    return found if found is not None and found.stages <= MOST_STAGES and found.proves(steps[:1]) else None
