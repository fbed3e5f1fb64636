"""The phase-locked loop of Intel Cyclone V parts (altera_pll): its output frequencies, and the primitive.

The primitive takes frequencies and works out the dividers itself; :func:`find_cyclonev_pll` asks only for frequencies
that integer dividers give exactly. Limits from Intel CV-51002 (Cyclone V device data sheet), table "PLL
Specifications", of the slowest speed grade: input and phase detector 5 to 325 MHz, VCO 600 to 1300 MHz, output up to
460 MHz. Counters: 1 to 512.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from amaranth import Const, Instance, Module

from hdl_lib.clocks.pll import Pll, check_frequencies, unreachable

INPUT_HZ = (5_000_000, 325_000_000)
DETECTOR_HZ = (5_000_000, 325_000_000)
VCO_HZ = (600_000_000, 1_300_000_000)
OUTPUT_HZ = (5_000_000, 460_000_000)
LARGEST_DIVIDER = 512


@dataclass(frozen=True)
class CycloneVPllSettings:
    """``output = input / n * m / c``, a whole number of Hz."""

    input_hz: Fraction
    n: int
    m: int
    c: int

    @property
    def vco_hz(self) -> Fraction:
        return self.input_hz / self.n * self.m

    @property
    def output_hz(self) -> Fraction:
        """The design's clock, exactly."""
        return self.vco_hz / self.c


def find_cyclonev_pll(input_hz: int | Fraction, target_hz: int | Fraction) -> CycloneVPllSettings:
    """Find the settings with the highest reachable output not above ``target_hz`` (exhaustive over all dividers).

    Among equals the faster phase detector, then the faster VCO (less jitter). Raises :class:`ValueError` when input or
    target is out of the part's range.
    """
    input_hz, target_hz = check_frequencies("a Cyclone V", input_hz, target_hz, INPUT_HZ, OUTPUT_HZ)
    found = []
    for n in range(1, LARGEST_DIVIDER + 1):
        if not DETECTOR_HZ[0] <= input_hz / n <= DETECTOR_HZ[1]:
            continue
        for m in range(1, LARGEST_DIVIDER + 1):
            vco = input_hz / n * m
            c = int(-(-vco // target_hz))
            settings = CycloneVPllSettings(input_hz, n, m, c)
            whole = settings.output_hz.denominator == 1
            if VCO_HZ[0] <= vco <= VCO_HZ[1] and c <= LARGEST_DIVIDER and whole:
                found.append(settings)
    if not found:
        raise unreachable("a Cyclone V", input_hz, target_hz)
    return max(found, key=lambda s: (s.output_hz, -s.n, s.vco_hz))


def _mhz(hz: Fraction) -> str:
    return f"{hz.numerator // 1_000_000}.{hz.numerator % 1_000_000:06d} MHz"


class CycloneVPll(Pll):
    """altera_pll in integer mode with one output.

    Parameters
    ----------
    settings : CycloneVPllSettings

    Members
    -------
    As of :class:`hdl_lib.clocks.pll.Pll`.
    """

    def elaborate(self, platform):
        m = Module()
        m.submodules.altera_pll = Instance(
            "altera_pll",
            p_fractional_vco_multiplier="false",
            p_reference_clock_frequency=_mhz(self.settings.input_hz),
            p_operation_mode="direct",
            p_number_of_clocks=1,
            p_output_clock_frequency0=_mhz(self.settings.output_hz),
            p_phase_shift0="0 ps",
            p_duty_cycle0=50,
            i_refclk=self.clk_in,
            i_rst=Const(0),
            o_outclk=self.clk_out,
            o_locked=self.lock,
        )
        return m
