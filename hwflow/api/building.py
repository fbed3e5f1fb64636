"""Build a design's folder to a netlist or a bitstream. Where place and route fails or misses the clock, fall back to a
smaller design or a lower clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from hwflow.api.request import Request
from hwflow.api.scheduled import ScheduledModel
from hwflow.codegen.board.board_files import write_board
from hwflow.errors import UsageError
from hwflow.schedule.schedule import Schedule
from hwflow.toolchain import build as toolchain_build
from hwflow.toolchain.build import BuildResult
from hwflow.toolchain.routing import NEARLY, NEARLY_ASKED, Heard, NotRouted

CLOCK_MARGIN = 0.92  # of the clock that a first place and route reached, where it missed its target


@dataclass(frozen=True)
class Built:
    """What was built. ``seconds``: of all attempts, by step."""

    result: BuildResult
    seconds: Mapping[str, float]


Rewrite = Callable[[ScheduledModel, Mapping[str, Any]], None]


class Buildable(Protocol):
    """What building needs of a scheduled model, most of it only if place and route fails."""

    @property
    def request(self) -> Request: ...

    @property
    def schedule(self) -> Schedule: ...

    def smaller(self, executor: Executor | None = None) -> ScheduledModel | None: ...


def build_design(
    design: Buildable, out: Path, until: Literal["netlist", "bitstream"], progress: Callable[[str], None],
    rewrite: Rewrite, executor: Executor | None = None, heard: Heard | None = None, seeds: Sequence[int] = (),
    settle: bool = True,
) -> Built:
    """Build what is in ``out``. ``rewrite``: called with a smaller design, which it puts into ``out`` instead, and with
    report.json's ``larger_design``, what that replaces. ``heard``: called with the progress of place and route;
    ``seeds``: as :func:`hwflow.toolchain.build.build` takes them. ``settle`` False: a missed clock is only reported.

    A smaller design is built if routing does not converge, or misses the board's own clock by so much that the smaller
    one gives more frames per second. Else the clock is lowered, also where the smaller design misses its clock; if a
    clock or a rate was asked for, only after more ways to place and route. Raises :class:`~hwflow.errors.ToolError` as
    :func:`hwflow.toolchain.build.build`.
    """
    smaller: list[ScheduledModel] = []

    def another() -> bool:
        progress("looking for a smaller design")
        smaller.extend(filter(None, [design.smaller(executor)]))
        return bool(smaller)

    try:
        nearly = NEARLY_ASKED if settle and design.request.asks_speed else NEARLY
        first = toolchain_build.build(out, until, progress, heard, another if settle else None, seeds, nearly)
    except NotRouted as error:
        if not smaller:
            raise
        spent, reason = error.seconds, error.findings[0].message.partition(" (log: ")[0]
    else:
        missed = first.timing_met is False and first.fmax_mhz is not None and not design.request.board.tools.vendor
        if not missed or not settle:  # a vendor's tool takes long: its miss is only reported
            return Built(first, first.seconds)
        if design.request.asks_speed or not another() or _slower(smaller[0], design, first):
            return _at_lower_clock(design, out, until, progress, first, heard, seeds)
        spent = first.seconds
        reason = first.miss
    now, before = smaller[0].schedule, design.schedule
    progress(
        f"{reason}: retrying with a smaller design, initiation interval {now.initiation_interval} instead of "
        f"{before.initiation_interval} cycles"
    )
    rewrite(smaller[0], {
        "reason": reason, "initiation_interval": before.initiation_interval, "latency": before.latency,
        "resources": {name: getattr(before.resources, name) for name in ("lut", "ff", "dsp", "bram")},
    })  # fmt: skip
    built = _at_lower_clock(
        smaller[0], out, until, progress, toolchain_build.build(out, until, progress, heard, seeds=seeds), heard, seeds
    )
    return Built(built.result, _sum(spent, built.seconds))


def _slower(smaller: Buildable, design: Buildable, result: BuildResult) -> bool:
    """Tell whether a smaller design would give fewer frames per second at its clock than ``design`` at a lower one."""
    assert result.fmax_mhz is not None, "it was missed"
    lower = CLOCK_MARGIN * result.fmax_mhz
    return smaller.schedule.initiation_interval * lower > design.schedule.initiation_interval * result.design_clock_mhz


def _at_lower_clock(
    design: Buildable, out: Path, until: Literal["netlist", "bitstream"], progress: Callable[[str], None],
    result: BuildResult, heard: Heard | None, seeds: Sequence[int],
) -> Built:
    """Return ``result``, or if it misses its clock, what is built for a lower one.

    A bitstream clocked faster than its slowest path is not exact. The second build places and routes differently (the
    serial port's divider changes), hence the margin.
    """
    if result.timing_met is not False or result.fmax_mhz is None:
        return Built(result, result.seconds)
    lower = CLOCK_MARGIN * min(result.fmax_mhz, result.design_clock_mhz)
    progress(f"{result.miss}: retrying at {lower:.1f} MHz")
    try:
        asked = design.request
        write_board(out, asked.board, lower, asked.link)
    except UsageError:  # no PLL setting or baud rate down there: the caller reports the clock that was missed
        return Built(result, result.seconds)
    toolchain_build.write_top_verilog(out)
    again = toolchain_build.build(out, until, progress, heard, seeds=seeds)
    return Built(again, _sum(result.seconds, again.seconds))


def _sum(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {step: first.get(step, 0.0) + second.get(step, 0.0) for step in {**first, **second}}
