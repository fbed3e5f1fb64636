"""Plan a design's clock on a board: the oscillator itself, or the PLL of the family (:data:`FAMILIES`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hdl_lib.clocks import pll_cyclonev, pll_ecp5, pll_gowin, pll_ice40, pll_xilinx7
from hwflow.display import show
from hwflow.errors import UsageError

if TYPE_CHECKING:
    from hwflow.boards.board import Board, Part


@dataclass(frozen=True)
class ZynqDividers:
    """Two dividers in series, 1 to 63 each, from the processors' PLL to the logic (AMD UG585, FPGA0_CLK_CTRL)."""

    input_hz: Fraction
    first: int
    second: int

    @property
    def output_hz(self) -> Fraction:
        """Return the design's clock, exactly."""
        return self.input_hz / (self.first * self.second)


ZYNQ_OUTPUT_HZ = (1_000_000, 250_000_000)  # UG585 and DS187: what FCLK is good for in the slowest speed grade
_ZYNQ_LARGEST = 63


@dataclass(frozen=True)
class ClockPlan:
    """The design's clock: its exact frequency, and the settings of its PLL (None: the oscillator itself).

    ``settings``: of the family, as ``find`` in :data:`FAMILIES` returns them. ``ratio``: cycles of the design in one of
    the link's, whose clock the PLL divides from the design's.
    """

    frequency_hz: Fraction
    settings: Any = None
    ratio: int = 1

    @property
    def link_hz(self) -> Fraction:
        """Return the clock of link and carrier."""
        return self.frequency_hz / self.ratio


@dataclass(frozen=True)
class ClockFamily:
    """The clocking of a family: how to find settings for a frequency (:class:`ValueError` out of range), a PLL core
    with ``clk_in``, ``clk_out`` and ``lock`` for these settings, and the output range.

    ``link_most_hz``: up to here the link has the design's clock, above half of it: ``pll`` takes the ratio of both and
    has ``clk_divided``. None: it always has the design's.
    """

    find: Callable[[Part, int, Fraction], Any]
    pll: Callable[..., Any]
    output_hz: Callable[[Part], tuple[int, int]]
    link_most_hz: int | None = None


def _find_gowin(part: Part, input_hz: int, target_hz: Fraction) -> Any:
    return pll_gowin.find_gowin_pll(pll_gowin.LIMITS[part.database], input_hz, target_hz)


FAMILIES: Mapping[str, ClockFamily] = {
    "ecp5": ClockFamily(
        lambda part, hz, target: pll_ecp5.find_ecp5_pll(hz, target), pll_ecp5.Ecp5Pll, lambda part: pll_ecp5.OUTPUT_HZ,
        link_most_hz=130_000_000,  # nextpnr reached 120 to 157 MHz with the link's logic
    ),
    "ice40": ClockFamily(
        lambda part, hz, target: pll_ice40.find_ice40_pll(hz, target), pll_ice40.Ice40Pll,
        lambda part: pll_ice40.OUTPUT_HZ,
    ),
    "gowin": ClockFamily(_find_gowin, pll_gowin.GowinPll, lambda part: pll_gowin.LIMITS[part.database].output_hz),
    "xilinx7": ClockFamily(
        lambda part, hz, target: pll_xilinx7.find_xilinx7_pll(hz, target), pll_xilinx7.Xilinx7Pll,
        lambda part: pll_xilinx7.OUTPUT_HZ,
    ),
    "cyclonev": ClockFamily(
        lambda part, hz, target: pll_cyclonev.find_cyclonev_pll(hz, target), pll_cyclonev.CycloneVPll,
        lambda part: pll_cyclonev.OUTPUT_HZ,
    ),
}


def output_range(board: Board) -> tuple[int, int]:
    """Return the output range of the board's PLL in Hz."""
    return ZYNQ_OUTPUT_HZ if board.zynq else FAMILIES[board.part.family].output_hz(board.part)


def plan_clock(board: Board, target_mhz: float | Fraction | None = None) -> ClockPlan:
    """Return the highest clock not above ``target_mhz`` (default: the board's) that the board can generate, exactly.

    Raises :class:`UsageError` if it is out of the PLL's range.
    """
    target = Fraction(board.clock_mhz if target_mhz is None else target_mhz) * 1_000_000
    if target == board.clock.hz and not board.zynq:
        return ClockPlan(target)
    try:
        if board.zynq:
            settings = _zynq_dividers(board.clock.hz, target)
        else:
            settings = FAMILIES[board.part.family].find(board.part, board.clock.hz, target)
    except ValueError as error:
        raise UsageError.of(
            "clock-reachable", f"board {show(board.name)}", str(error),
            f"choose another clock, such as {board.clock_mhz:g} MHz",
        ) from error
    most = None if board.zynq else FAMILIES[board.part.family].link_most_hz
    return ClockPlan(settings.output_hz, settings, 2 if most and settings.output_hz > most else 1)


def _zynq_dividers(input_hz: int, target_hz: Fraction) -> ZynqDividers:
    """Find the highest clock not above ``target_hz``; of equal ones the larger first divider."""
    low, high = ZYNQ_OUTPUT_HZ
    if not low <= target_hz <= high:
        raise ValueError(
            f"target frequency of a Zynq's clock for the logic must be {low / 1e6:g} to {high / 1e6:g} MHz, "
            f"not {float(target_hz) / 1e6:g} MHz"
        )
    dividers = range(1, _ZYNQ_LARGEST + 1)
    made = [ZynqDividers(Fraction(input_hz), first, second) for first in dividers for second in dividers]
    return max((s for s in made if s.output_hz <= target_hz), key=lambda s: (s.output_hz, s.first))
