"""Parallel thresholds: a comparator for each, and a count of those reached."""

from __future__ import annotations

import numpy as np

from hdl_lib.requantizers.requantize_thresholds import FALLING, RISING, Thresholds
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, MemoryFile, Resources
from hwflow.cores.requantizers.requantizer_core import Field, RequantizerCore, table
from hwflow.numerics.requantizers.threshold_form import ThresholdForm


class ParallelThresholds(RequantizerCore[ThresholdForm]):
    """Implements :class:`hdl_lib.requantizers.requantize_thresholds.Thresholds`."""

    def latency(self) -> int:
        return Thresholds.latency_of(self.form.levels, own_bases=not self.form.one_base)

    def resources(self, decision: Decision, family: str) -> Resources:
        form = self.form
        known: Resources | None = None
        changing: costs.Changing | None = None
        ones: list[list[int]] = []
        bases: list[list[int]] = []
        complemented = 0
        if self.channels * form.levels * (self.input.bits + 1) <= costs.MOST_KNOWN_BITS:
            fields = self._fields()
            known, alone = self.filled(fields, family), self.filled(fields[: form.levels], family)
            complemented = alone.ff if alone.bram else alone.ff // 2
            ones = np.bitwise_or.reduce(self.padded(form.thresholds), axis=0).tolist()
            bases = [] if form.one_base else self.padded(form.bases).T.tolist()
        elif not decision.provisional and self.words > 1:
            changing = costs.changing_bits(*self.packed(self._fields()))
        return costs.thresholds(
            family, self.input, form.levels, self.output, self.lanes, self.words, decision.depth,
            len(form.direction_bits), known, ones, bases,
            self.queue_bits(family, decision.depth), form.bases[0] if form.one_base else 0, complemented, changing,
        )

    def build(self, depth: int, name: str) -> Built:
        form, files = self.form, list[MemoryFile]()
        core = Thresholds(
            shape_of(self.input), shape_of(self.output), lanes=self.lanes, channels=self.channels, depth=depth,
            turns=self.turns,
            base=self.wrapped(form.bases[0]) if form.one_base else None, levels=form.levels,
            parameters=table(f"{name}_thresholds", *self.packed(self._fields()), files), directions=self._directions(),
        )
        return Built(core, [core.i], [core.o], files)

    def _fields(self) -> list[Field]:
        columns = self.padded(self.form.thresholds)
        fields = [(columns[:, :, level], self.input.bits + 1) for level in range(self.form.levels)]
        fields += [(self.padded(bit), 1) for bit in self.form.direction_bits]
        if not self.form.one_base:
            fields.append((self.padded(self.form.bases), self.output.bits))
        return fields

    def _directions(self) -> list[str | int]:
        """Return the directions that the core needs; none if all thresholds rise."""
        if not any(map(any, self.form.falling)):
            return []
        bits = {column: index for index, column in enumerate(self.form.direction_bits)}
        return [bits.get(column, FALLING if column[0] else RISING) for column in self.form.directions]
