"""What a design in an output folder falls short of, from report.json's contents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hwflow.display import show
from hwflow.errors import Finding, Severity


def shortfalls(table: Mapping[str, Any], fps: float | str | None = None) -> list[Finding]:
    """Return a warning for each clock that was missed, and for a rate: ``fps`` frames per second that were asked for,
    if any."""
    timing, clock, board = table["timing"], table["clock"], table["board"]
    result = []
    if clock["fmax_mhz"] is not None and clock["fmax_mhz"] < clock["target_mhz"]:
        message = (
            f"the clock must reach {clock['target_mhz']:g} MHz, not {clock['fmax_mhz']:.1f} MHz: the bitstream may fail"
        )
        remedy = f"ask for less: --clock {clock['fmax_mhz']:.0f}"
        result.append(Finding("reached-clock", f"board {show(board)}", message, remedy, Severity.WARNING))
    for other in table["link"].get("clocks", ()):
        if other["fmax_mhz"] < other["target_mhz"]:
            message = (
                f"the link's clock {show(other['name'])} must reach {other['target_mhz']:g} MHz, not "
                f"{other['fmax_mhz']:.1f} MHz: the link may fail"
            )
            remedy = "ask for a smaller design (--budget or --fps), or for another link ('hwflow boards' lists them)"
            result.append(Finding("reached-clock", f"board {show(board)}", message, remedy, Severity.WARNING))
    if isinstance(fps, float) and timing["frames_per_second"] < fps:
        message = (
            f"--fps {fps:g} not met: {timing['frames_per_second']:,.0f} frames/s at the achieved clock, "
            f"{clock['target_mhz']:g} MHz"
        )
        remedy = "ask for a higher rate to get more multipliers"
        result.append(Finding("reachable-rate", "option --fps", message, remedy, Severity.WARNING))
    return result
