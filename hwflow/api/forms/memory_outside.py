"""Compile what fits a part only with a board's memory outside (option ``--memory``): as little lies there as must."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf
from types import MappingProxyType

from hwflow.api.budget import SHARED_CELLS, budgets_for
from hwflow.api.far_beyond import FarBeyond
from hwflow.api.request import ALL, NONE, Request
from hwflow.api.scheduled import Progress, Scheduled, scheduled
from hwflow.boards.board import Part
from hwflow.cores.external.weight_memory import MemoryTiming
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Graph
from hwflow.passes.outside.fetch_weights import Known, fetch_weights, may_be_fetched
from hwflow.passes.outside.queue_outside import queue_outside
from hwflow.passes.outside.rows_outside import row_queues, rows_outside
from hwflow.processes import forget_refused
from hwflow.schedule.engine_choices import engine_choices
from hwflow.schedule.queues_outside import deep_delays, deep_queues
from hwflow.schedule.schedule import Schedule, schedule
from hwflow.schedule.search.bounds import Bounds, block_bits
from hwflow.schedule.search.folding_search import Budget, FoldingSearch
from hwflow.schedule.weights_outside import choices, exceeds_block_ram, fewest_words

_BOUNDLESS = 1 << 20  # block RAMs
_ENDS = 2  # block RAMs of a queue's words on their way to memory outside, and from there
_ENGINES = 3  # that are tried
_UNSURE = 1.2  # times what it comes out as: estimates of engines are no more too high
_AS_FAST, _SMALL = 1.1, 0.5  # times as slow as cores for each layer, in so many of their look-up tables: as good
_SLOWER = 1.25  # times as slow as its cores need be: a design that waits for block RAM of its queues


@dataclass(frozen=True)
class MemoryOutside:
    """Compiles the dataflow graph ``streams`` for a board with a memory of this ``timing``, and perhaps a ``flash``
    besides. ``rows``: the values that wait in the memory in any case, in place of line buffers; ``limit``: designs with
    more cycles a frame are of no use, since there is a faster one."""

    streams: Graph
    timing: MemoryTiming
    flash: MemoryTiming | None
    request: Request
    say: Progress
    executor: Executor | None
    rows: Mapping[str, Fraction] = field(default_factory=dict)
    limit: int | None = None
    _queues: list[Mapping[str, Fraction]] = field(default_factory=list)  # of the first graph that was asked for them
    _known: Known = field(default_factory=dict)  # of layers that are fetched: the same with rows outside
    _searches: list[FoldingSearch] = field(default_factory=list)  # the latest, which knows what width converters cost

    def best(self) -> Scheduled:
        """Return the design with the least outside: nothing; states; the deep queues, too; weights, of as few words as
        must be; the rows of line buffers. Where not even states suffice, an engine for layers in turn may be faster
        than all of these. Raises :class:`ModelRefused`."""
        refused = None
        if self.request.memory != ALL:
            try:
                return self._with_states()
            except ModelRefused as why:
                if self.request.memory == NONE:
                    raise
                refused = why
        engine = self._with_engine() if self.request.memory != ALL else None
        if engine is None:
            return self._without_engine(refused)
        cores = replace(self, limit=engine.schedule.initiation_interval)
        if cores._fetch_too_long():
            return engine
        try:
            other = cores._without_engine(refused)
        except ModelRefused:
            return engine
        return engine if _is_better(engine.schedule, other.schedule) else other

    def _scheduled(self, graph: Graph) -> Scheduled:
        return scheduled(graph, self.request, self.say, self.executor)

    def _with_engine(self) -> Scheduled | None:
        """Return the fastest design in which an engine computes layers in turn; None where there is none."""
        best: Scheduled | None = None
        least = inf
        within = self._within(self.streams, whole=False)[0]  # as the design is scheduled
        if self._part.family in SHARED_CELLS:
            within = replace(within, bram=self._budgets[0].bram)
        tried = 0
        for choice in engine_choices(self.streams, self._part, within, self.timing, self.flash):
            if tried == _ENGINES or choice.estimate >= _UNSURE * least:
                break
            with suppress(ModelRefused):
                graph, cycles = choice.applied()
                tried += 1
                queued = self._queued(graph)
                budget = self._within(queued, whole=not self.request.budget)
                if choice.cost(cycles) < least and self._is_feasible(queued, budget):
                    self.say("scheduling with layers in turn on one engine")
                    made = self._scheduled(queued)
                    cost = choice.cost(made.schedule.initiation_interval)
                    if cost < least:
                        best, least = made, cost
        return best

    def _without_engine(self, refused: ModelRefused | None) -> Scheduled:
        """Return the design with each layer on cores of its own; ``refused``: why not with less outside."""
        try:
            return self._with_line_buffers(refused)
        except ModelRefused:
            if self.request.memory == NONE or not self._lacks_block_ram:
                raise
            for names in self._line_buffers():
                self.say(f"scheduling with the rows of {len(names)} line buffers in memory outside")
                streams, rows = rows_outside(self.streams, names)
                try:
                    return replace(self, streams=streams, rows=rows, _queues=[])._with_rows()
                except ModelRefused:  # what the memory does not help with is said of the network as it is
                    forget_refused()
            raise

    def _with_rows(self) -> Scheduled:
        """Return the design with the rows in memory that :attr:`rows` has."""
        refused = None
        if self.request.memory != ALL:
            try:
                return self._with_states()
            except ModelRefused as why:
                refused = why
        return self._with_line_buffers(refused)

    def _with_states(self) -> Scheduled:
        """Return the design with nothing outside but :attr:`rows`, or with states as well."""
        try:
            return self._inside()
        except ModelRefused:
            if self.request.memory == NONE or not self._states:
                raise
        self.say(f"scheduling with {len(self._states)} states in memory outside")
        return self._scheduled(self._waiting)

    def _with_line_buffers(self, refused: ModelRefused | None) -> Scheduled:
        """Return the design with the line buffers that :attr:`streams` has, and queues or weights outside."""
        if refused is not None and not exceeds_block_ram(self.streams, self._part):
            try:
                return self._with_queues(self.streams, refused)
            except ModelRefused as why:
                if not self._lacks_block_ram:
                    raise
                refused = why
            try:
                return self._with_weights(refused)
            except ModelRefused:  # what the memory does not help with is said of the network as it is
                raise refused from None
        return self._with_weights(refused)

    def _inside(self) -> Scheduled:
        """Compile with no more outside than the rows that must be. Where there are some, what does not fit is not
        looked at any closer: the refusal is of the network as it is."""
        graph = queue_outside(self.streams, self.rows, self.timing)
        if self.rows and not self._is_feasible(graph, self._budgets):
            raise ModelRefused([])
        return self._scheduled(graph)

    def _line_buffers(self) -> Iterator[list[str]]:
        """Yield line buffers whose rows may wait outside: those that save most block RAM, of which as many as leave
        room for the rest at the best; then more and more."""
        bounds = Bounds(self.streams, self._part, self.executor)
        bits, block = bounds.least_bits(), block_bits(self._part)
        queues = row_queues(self.streams)
        least = {
            node.name: bits[node] // block if node.name in queues else bounds.least_of(node, "bram")
            for node in self.streams.nodes
        }
        saved = {name: least[name] - _ENDS * count for name, count in queues.items() if least[name] > _ENDS * count}
        names = sorted(saved, key=lambda name: -saved[name])
        width = self.timing.chip.width
        left = sum(least[node.name] for node in self.streams.nodes if not may_be_fetched(node, width))
        count = 1
        while count < len(names) and left - sum(saved[name] for name in names[:count]) > self._budgets[0].bram:
            count += 1
        for more in dict.fromkeys(min(count << k, len(names)) for k in range(len(names))):
            yield names[:more]

    def _either(self, graph: Graph) -> Scheduled:
        """Compile with the deep queues inside; or in memory, where that is refused, or where they leave so little block
        RAM that the design is much slower than its cores need be, and it is faster so."""
        try:
            made = self._scheduled(self._queued(graph))
        except ModelRefused as refused:
            try:
                return self._with_queues(graph, refused)
            except ModelRefused:
                raise refused from None
        search = made.schedule.search
        if self.request.asks_rate or search is None or made.schedule.initiation_interval <= _SLOWER * search.least():
            return made
        try:
            other = self._with_queues(graph, ModelRefused([]))
        except ModelRefused:
            return made
        return min(made, other, key=lambda design: design.schedule.initiation_interval)

    def _with_queues(self, graph: Graph, refused: ModelRefused) -> Scheduled:
        """Compile with the deep queues in memory, too; raise as without them where there are none."""
        if isinstance(refused, FarBeyond):
            raise refused
        if not self._queues:
            self._queues.append(self._deep_queues(self._queued(graph)))
        (held,) = self._queues
        if not held:
            raise refused
        self.say(f"scheduling with {len(held)} queues in memory outside")
        return self._scheduled(self._queued(graph, held))

    def _with_weights(self, refused: ModelRefused | None) -> Scheduled:
        """Compile with weights in memory, more and more, and with the deep queues where these alone do not do."""
        if self._fetch_too_long():
            raise refused or ModelRefused([])
        tried: ModelRefused | None = None
        for groups in choices(
            self._waiting, self._part, self._budgets, self.timing, everything=self.request.memory == ALL,
            interval=self._interval, fastest=self.request.interval is None, executor=self.executor, known=self._known,
        ):
            self.say(f"scheduling with the weights of {len(groups)} layers in memory outside")
            try:
                fetched = fetch_weights(self.streams, groups, self.timing, self._known)
                queued = self._queued(fetched)
            except ModelRefused as why:  # the memory is too small
                tried = tried or why
                continue
            if (self.rows or self.limit is not None) and not self._is_feasible(queued, self._budgets):
                continue
            try:
                return self._either(fetched)
            except ModelRefused as why:
                tried = tried or why  # of the choice that is nearest to fitting
        if tried is None and refused is None:
            return self._scheduled(self._waiting)  # no layer has weights that may lie there
        raise tried or refused or AssertionError("one of them")

    def _fetch_too_long(self) -> bool:
        """Tell whether the weights that must lie in memory alone take as long as :attr:`limit`."""
        if self.limit is None:
            return False
        return fewest_words(self._waiting, self._part, self._budgets, self.timing) >= self.limit

    @property
    def _lacks_block_ram(self) -> bool:
        """Tell whether there are foldings with any number of block RAMs."""
        return self._is_feasible(self._waiting, [replace(budget, bram=_BOUNDLESS) for budget in self._budgets])

    def _is_feasible(self, graph: Graph, budgets: Sequence[Budget]) -> bool:
        """Tell whether there are foldings within one of the budgets that are as fast as asked."""
        like = self._searches[0] if self._searches else None
        self._searches[:] = [search := FoldingSearch(graph, self._part, budgets[0], self.executor, like)]
        return any(search.within(budget).is_feasible(self._interval) for budget in budgets)

    @property
    def _interval(self) -> int | None:
        """The most cycles a frame that a design may have."""
        return min((most for most in (self.request.interval, self.limit) if most is not None), default=None)

    @cached_property
    def _part(self) -> Part:
        clock = self.request.clock.frequency_hz
        return replace(self.request.board.part, clock_mhz=float(clock / 1_000_000))

    @cached_property
    def _budgets(self) -> list[Budget]:
        return self._within(self.streams, whole=not self.request.budget)

    def _within(self, graph: Graph, *, whole: bool) -> list[Budget]:
        """Return the budgets of a graph that are asked for, or the default ones; ``whole``: or all of the part."""
        found = budgets_for(
            self.request.board, graph, self.request.budget, for_rate=True, carrier=self.request.carrier,
            whole=whole,
        )
        return [budget.of_whole_designs for budget in found]

    @cached_property
    def _states(self) -> Mapping[str, Fraction]:
        return deep_delays(self.streams, block_bits(self._part))

    @cached_property
    def _waiting(self) -> Graph:
        """The graph with its states outside."""
        return self._queued(self.streams)

    def _queued(self, graph: Graph, more: Mapping[str, Fraction] = MappingProxyType({})) -> Graph:
        """Return a graph with its states outside, and the rows and ``more`` values that wait there."""
        return queue_outside(graph, {**self.rows, **self._states, **more}, self.timing)

    def _deep_queues(self, graph: Graph) -> Mapping[str, Fraction]:
        """Return the values whose queues are deep, and the share of a frame that waits there; none where cores alone do
        not fit."""
        if not self._is_feasible(graph, self._budgets):
            return {}
        first, *others = [replace(budget, bram=_BOUNDLESS) for budget in self._budgets]
        try:
            made = schedule(graph, self._part, first, self.request.interval, others, self.executor)
        except ModelRefused:
            return {}
        return {queue.value: queue.share for queue in deep_queues(graph, made)}


def _is_better(engine: Schedule, other: Schedule) -> bool:
    """Tell whether an engine is faster than cores for each layer, or about as fast and much smaller."""
    small = engine.resources.lut <= _SMALL * other.resources.lut
    return engine.initiation_interval < (_AS_FAST if small else 1) * other.initiation_interval
