"""A dataflow graph scheduled for a board as requested: its budgets, a link's rate, and what a refusal says."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hwflow.api.budget import beyond_part, budgets_for, free_on, queued_bytes
from hwflow.api.far_beyond import refuse_far_beyond
from hwflow.api.link_rate import link_rate
from hwflow.api.request import LINK, TOO_FAST, Request
from hwflow.boards import Board
from hwflow.codegen.board.clock_plan import ClockPlan
from hwflow.codegen.converted.conversion import Conversion
from hwflow.codegen.report import Seconds
from hwflow.errors import Finding, ModelRefused
from hwflow.ir.graph import Graph
from hwflow.loaded_model import Model
from hwflow.passes import pipeline
from hwflow.schedule.queues import MOST_BEATS, streamed_beats
from hwflow.schedule.schedule import OutOfReach, Schedule, schedule
from hwflow.schedule.search.folding_search import Budget, free_text

Progress = Callable[[str], None]

_MOST_TABLES = 0.7  # share of the look-up tables


@dataclass(frozen=True)
class Scheduled:
    """A ``schedule`` that does what the ``request`` says, whose rate is a number where a link's was asked for.
    ``seconds``: how long that took; the rest: as in :class:`ScheduledModel`."""

    request: Request
    schedule: Schedule
    seconds: float
    beyond: tuple[Finding, ...]
    budgets: Sequence[Budget]
    conversion: Conversion | None = field(default=None, repr=False)


@dataclass
class ScheduledModel(ABC):
    """A model scheduled as requested. ``beyond``: findings on what its budget has beyond the board; ``conversion``:
    that of its cores, if begun; ``loops``: the form of its loops; ``budgets``: what it was first tried within."""

    model: Model
    request: Request
    schedule: Schedule
    seconds: Seconds
    beyond: tuple[Finding, ...] = ()
    conversion: Conversion | None = field(default=None, repr=False)
    loops: str = pipeline.UNROLLED
    budgets: Sequence[Budget] = ()

    @property
    def is_crowded(self) -> bool:
        """Tell whether cores, not multiplier blocks, keep it from being faster: most look-up tables are taken, and less
        than half of the blocks. Not of frames of so many beats that their schedule is an even one: layers that share
        cores have circuits, which such schedules do not know."""
        used = self.schedule.resources
        if streamed_beats(self.schedule.plan) > MOST_BEATS:
            return False
        return any(used.lut > _MOST_TABLES * most.lut and used.dsp < most.dsp / 2 for most in self.budgets)

    @property
    def board(self) -> Board:
        return self.request.board

    @property
    def clock(self) -> ClockPlan:
        """The target clock and what makes it."""
        return self.request.clock

    @abstractmethod
    def smaller(self, executor: Executor | None = None) -> ScheduledModel | None:
        """Return one that is smaller, for the same clock; None where there is none."""

    @property
    def clock_mhz(self) -> float:
        """The target clock."""
        return float(self.clock.frequency_hz / 1_000_000)

    @property
    def frames_per_second(self) -> float:
        """The throughput at the target clock, in frames of the model."""
        return float(self.clock.frequency_hz * self.model.interleave / self.schedule.initiation_interval)


def scheduled(streams: Graph, request: Request, say: Progress, executor: Executor | None) -> Scheduled:
    """Schedule a dataflow graph. Raises :class:`ModelRefused`, and :class:`UsageError` where the budget is beyond the
    part."""
    if request.fps != LINK:
        return _at_rate(streams, request, say, executor)
    rate = (request.interleave or 1) * link_rate(request, streams)
    with suppress(ModelRefused):  # the link is faster than what fits
        return _at_rate(streams, replace(request, fps=rate), say, executor)
    return _at_rate(streams, replace(request, fps=None), say, executor)


def _at_rate(streams: Graph, request: Request, say: Progress, executor: Executor | None) -> Scheduled:
    """Schedule a graph for a rate that is a number, or as fast as it can be."""
    board = request.board
    beyond = beyond_part(
        board, request.budget, queued_bytes(streams), carrier=request.carrier, what_if=request.what_if
    )
    say("scheduling")
    begin = time.perf_counter()
    clock_hz = float(request.clock.frequency_hz)
    part = replace(board.part, clock_mhz=clock_hz / 1e6)
    conversion = None if executor is None else Conversion(executor)
    begin_conversion = None if conversion is None else conversion.begin
    free = free_on(board, streams, request.carrier)
    stages = [(request.fps is not None, False)]
    if request.budget and not request.keep_defaults:  # half of the part, then all of it
        stages += [(True, False), (True, True)]
    limits = [
        budgets_for(board, streams, request.budget, for_rate=for_rate, carrier=request.carrier, whole=whole)
        for for_rate, whole in dict.fromkeys(stages)
    ]

    def within(budgets: Sequence[Budget]) -> Schedule:
        refuse_far_beyond(streams, part, budgets, request.interval, clock_hz, free, executor)
        first, *others = budgets
        return schedule(streams, part, first, request.interval, others, executor, begin_conversion, free)

    try:
        made = _first_that_holds(limits, within)
    except OutOfReach as refused:
        raise ModelRefused([_too_fast(request, refused.best, limits[-1][0], free), *refused.findings]) from None
    return Scheduled(request, made, time.perf_counter() - begin, tuple(beyond), limits[0], conversion)


def _first_that_holds(limits: Sequence[list[Budget]], within: Callable[[list[Budget]], Schedule]) -> Schedule:
    """Return the design within the first of ``limits`` that has one. Raises :class:`ModelRefused` as the last does."""
    *preferred, last = (limit for limit, before in zip(limits, [None, *limits], strict=False) if limit != before)
    for budgets in preferred:
        try:
            return within(budgets)
        except ModelRefused:
            continue
    return within(last)


def _too_fast(request: Request, best: int, limits: Budget, free: Budget) -> Finding:
    """Refuse a rate that does not fit. ``best``: the least interval that fits; ``limits`` of ``free``: the budget."""
    more = free_text(limits.of_whole_designs, free)
    most = int(request.clock.frequency_hz * (request.interleave or 1) / best)
    mhz = float(request.clock.frequency_hz) / 1e6
    return Finding(
        TOO_FAST, "option --fps",
        f"--fps {request.fps:g} not met: {most} frames/s on {request.board.name} at {mhz:g} MHz ({best} cycles per "
        "frame)",
        f"ask for '--fps {most}' or less, "
        + (f"for up to '--budget {more}', " if more else "")
        + "for a higher --clock, or choose a larger board",
    )
