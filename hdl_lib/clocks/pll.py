"""The common parts of phase-locked loops: the members of the component, and checks of frequencies."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

Range = tuple[int, int]  # Hz


class Pll(wiring.Component):
    """A phase-locked loop with fixed ``settings``.

    Members
    -------
    clk_in : In(1)
        From an input buffer, at ``settings.input_hz``.
    clk_out : Out(1)
        At ``settings.output_hz``.
    lock : Out(1)
        Asynchronous.
    """

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        super().__init__({"clk_in": In(1), "clk_out": Out(1), "lock": Out(1)})


def check_frequencies(
    name: str, input_hz: int | Fraction, target_hz: int | Fraction, input_range: Range, output_range: Range
) -> tuple[Fraction, Fraction]:
    """Return both frequencies; raise :class:`ValueError` if one is out of the range of ``name``, with its article."""
    frequencies = Fraction(input_hz), Fraction(target_hz)
    for what, value, (low, high) in zip(("input", "target"), frequencies, (input_range, output_range), strict=True):
        if not low <= value <= high:
            raise ValueError(
                f"{what} frequency of {name} PLL must be {low / 1e6:g} to {high / 1e6:g} MHz, "
                f"not {float(value) / 1e6:g} MHz"
            )
    return frequencies


def unreachable(name: str, input_hz: Fraction, target_hz: Fraction) -> ValueError:
    """Return the error that no settings of ``name``, with its article, give an output up to the target."""
    return ValueError(
        f"target frequency must be reachable from {float(input_hz) / 1e6:g} MHz with {name} PLL, "
        f"not {float(target_hz) / 1e6:g} MHz"
    )
