"""Binary search among sorted thresholds, one comparator per stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hdl_lib.requantizers.requantize_search import SearchRequantizer, read_latency
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, MemoryFile, Resources
from hwflow.cores.requantizers.lane_tables import LaneTable, LaneTables
from hwflow.ir.graph import IntArray
from hwflow.numerics.requantizers.search_form import SearchForm
from hwflow.types import IntType


class BinarySearch(LaneTables[SearchForm]):
    """Implements :class:`hdl_lib.requantizers.requantize_search.SearchRequantizer`. Tables: the bounds of each stage,
    then the results unless they are a plain count; ``x >= threshold`` is ``x > threshold - 1``."""

    def latency(self) -> int:
        values = 0 if self.form.values is None else self.output.bits
        return SearchRequantizer.latency_of(self.form.stages, self.words, values=values)

    def resources(self, decision: Decision, family: str) -> Resources:
        form = self.form
        return costs.search(
            family, self.input, IntType(*form.bound_type), form.stages, self.output, self.lanes, self.words,
            self.tables_cost(family)[0], decision.depth, form.base if form.values is None else 0,
            *comparisons(form, [self.channels_of(lane) for lane in range(self.lanes)], self.input),
            self.queue_bits(family, decision.depth),
        )

    def queue_bits(self, family: str, depth: int) -> int:
        if self.form.values is not None and self.tables_cost(family)[1].bram:
            return self.lanes * self.output.bits
        return super().queue_bits(family, depth)

    def build(self, depth: int, name: str) -> Built:
        form, files = self.form, list[MemoryFile]()
        tables = self.lane_tables(name, files)
        core = SearchRequantizer(
            shape_of(self.input), shape_of(self.output), lanes=self.lanes, channels=self.channels, depth=depth,
            turns=self.turns,
            bound_shape=shape_of(IntType(*form.bound_type)), stages=form.stages,
            bounds=[each for lane in zip(*tables[: form.stages], strict=True) for each in lane],
            values=None if form.values is None else tables[-1],
            base=self.wrapped(form.base), falling=form.falling, shared=self.words == 1,
        )
        return Built(core, [core.i], [core.o], files)

    def tables(self) -> list[LaneTable]:
        form, bounds = self.form, self.form.bounds[: self.all]
        found = []
        for stage in range(form.stages):
            apart = 1 << (form.stages - stage)
            found.append(LaneTable(f"bounds_{stage}", bounds[:, apart // 2 - 1 :: apart], form.bound_type[0]))
        if form.values is not None:
            found.append(LaneTable("values", form.values[: self.all], self.output.bits))
        return found

    def registered(self, words: int) -> bool:
        return read_latency(words) > 1


def comparisons(form: SearchForm, lanes: Sequence[IntArray], x: IntType) -> tuple[list[int], int]:
    """Return the stages whose comparison has the same result for all inputs, and the total number of trailing bits that
    are 1 in all words of a compared bound (threshold less 1), where the input's bits are not read. ``lanes``: the
    channels that each serves; ``x``: the type of inputs. A lane with fewer channels than others has zeros in its last
    words."""
    words, idle, ones = max(map(len, lanes)), list[int](), 0
    alike = Counter(channels.tobytes() for channels in lanes)
    for channels in {lane.tobytes(): lane for lane in lanes}.values():
        times, full = alike[channels.tobytes()], len(channels) == words
        for stage, (low, high, common) in enumerate(_compared(form)):
            if full and (high[channels].max() < x.min or low[channels].min() >= x.max):
                idle += [stage] * times
                continue
            together = int(np.bitwise_and.reduce(common[channels])) if full else 0
            ones += times * ((~together & together + 1).bit_length() - 1 if together != -1 else x.bits - 1)
    return idle, ones


@lru_cache(maxsize=8)
def _compared(form: SearchForm) -> list[tuple[IntArray, IntArray, IntArray]]:
    """Return for each stage the bounds of each channel: the least, the greatest, and the bits that are 1 in all."""
    found = []
    for stage in range(form.stages):
        bounds = form.bounds[:, (1 << (form.stages - stage - 1)) - 1 :: 1 << (form.stages - stage)]
        found.append((bounds.min(axis=1), bounds.max(axis=1), np.bitwise_and.reduce(bounds, axis=1)))
    return found
