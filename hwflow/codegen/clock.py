"""Choose a design's target clock."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING

from hwflow.codegen.board.clock_plan import ClockPlan, output_range, plan_clock
from hwflow.errors import UsageError

if TYPE_CHECKING:
    from hwflow.boards.board import Board

TOLERANCE = Fraction(1, 100)  # how far below what was asked for the clock may be
_STEP = Fraction(1, 200)  # of the search for the next clock above


def clock_for(board: Board, mhz: float | None) -> ClockPlan:
    """Return the board's own clock (None), or the highest up to ``mhz`` that its PLL can generate, at most one percent
    below.

    Raises :class:`UsageError` that names the nearest available clock.
    """
    if mhz is None:
        return plan_clock(board)
    check_positive(mhz, board.clock_mhz)
    target = Fraction(mhz) * 1_000_000
    near = _near(board, target)
    fitting = [plan for plan in near if target * (1 - TOLERANCE) <= plan.frequency_hz <= target]
    if fitting:
        return max(fitting, key=lambda plan: plan.frequency_hz)
    nearest = min(near, key=lambda plan: abs(plan.frequency_hz - target))
    hundredths = -(-nearest.frequency_hz // 10_000)  # rounded up: it is then the highest clock up to that
    raise UsageError.of(
        "clock-reachable", "option --clock",
        f"must be a clock that the PLL of {board.name} makes of {board.clock.hz / 1e6:g} MHz, not {mhz:g} MHz",
        f"the nearest one is --clock {hundredths / 100:g}",
    )


def check_positive(mhz: float | None, example: float = 100) -> None:
    """Raise :class:`UsageError` unless ``mhz`` can be a clock of some board (None: the board's own)."""
    if mhz is not None and not 0 < mhz < float("inf"):
        message = f"must be a number of MHz greater than 0, not {mhz:g}"
        raise UsageError.of("positive-clock", "option --clock", message, f"for example --clock {example:g}")


def _near(board: Board, target: Fraction) -> list[ClockPlan]:
    """Return clocks near ``target``: the oscillator itself, the highest one up to it, a low one above it."""
    low, high = output_range(board)
    plans = [] if board.zynq else [plan_clock(board, board.clock.hz / 1_000_000)]
    wanted = min(max(target, Fraction(low)), Fraction(high))
    while True:
        with suppress(UsageError):  # nothing so low
            plans.append(plan_clock(board, wanted / 1_000_000))
        if (plans and plans[-1].frequency_hz > target) or wanted == high:
            return plans
        wanted = min(wanted * (1 + _STEP), Fraction(high))
