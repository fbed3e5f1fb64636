"""A table of results, addressed by the input."""

from __future__ import annotations

import numpy as np

from hdl_lib.requantizers.requantize_lookup import LookupRequantizer
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, MemoryFile, Resources
from hwflow.cores.requantizers.lane_tables import LaneTable, LaneTables
from hwflow.numerics.requantizers.lookup_form import LookupForm


class ResultTable(LaneTables[LookupForm]):
    """Implements :class:`hdl_lib.requantizers.requantize_lookup.LookupRequantizer`."""

    def latency(self) -> int:
        return LookupRequantizer.latency

    def resources(self, decision: Decision, family: str) -> Resources:
        words, tables = [self._span * self.words] * self.lanes, self.form.tables
        if self.words == 1:  # results that never change
            words = [0 if len(set(tables[k % len(tables)])) == 1 else words[k] for k in range(self.lanes)]
        cost, _ = self.tables_cost(family)
        return costs.lookup(family, self.input, words, cost, self.queue_bits(family, decision.depth), decision.depth)

    def queue_bits(self, family: str, depth: int) -> int:
        if self.tables_cost(family)[1].bram:
            return self.lanes * self.output.bits
        return super().queue_bits(family, depth)

    def build(self, depth: int, name: str) -> Built:
        files: list[MemoryFile] = []
        (words,) = self.lane_tables(name, files)
        core = LookupRequantizer(
            shape_of(self.input), shape_of(self.output), lanes=self.lanes, channels=self.channels, depth=depth,
            turns=self.turns,
            low=self.form.lo, tables=words, shared=self.words == 1,
        )
        return Built(core, [core.i], [core.o], files)

    def tables(self) -> list[LaneTable]:
        rows = np.zeros((self.all, self._span), dtype=np.int64)
        rows[:, : self.form.span] = self.form.array[: self.all]
        return [LaneTable("table", rows, self.output.bits)]

    def registered(self, words: int) -> bool:
        return True

    @property
    def _span(self) -> int:
        """Return the words per channel: a power of two."""
        return 1 << (self.form.span - 1).bit_length()
