"""The phase-locked loop of AMD 7 series parts (PLLE2_BASE): dividers for a wanted frequency, and the primitive.

Limits from AMD DS181 (Artix-7 data sheet: DC and AC switching characteristics), table "PLL Specification", of the
slowest speed grade: input 19 to 800 MHz, phase detector 19 to 450 MHz, VCO 800 to 1600 MHz, output 6.25 to 464 MHz (a
global clock buffer's limit there). Dividers from AMD UG472 (7 series clocking resources).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from amaranth import Const, Instance, Module, Signal

from hdl_lib.clocks.pll import Pll, check_frequencies, unreachable

INPUT_HZ = (19_000_000, 800_000_000)
DETECTOR_HZ = (19_000_000, 450_000_000)
VCO_HZ = (800_000_000, 1_600_000_000)
OUTPUT_HZ = (6_250_000, 464_000_000)
LARGEST_REFERENCE, LARGEST_FEEDBACK, LARGEST_OUTPUT = 56, 64, 128


@dataclass(frozen=True)
class Xilinx7PllSettings:
    """``output = input / reference_divider * feedback_multiplier / output_divider``."""

    input_hz: Fraction
    reference_divider: int  # 1 to 56
    feedback_multiplier: int  # 2 to 64
    output_divider: int  # 1 to 128

    @property
    def detector_hz(self) -> Fraction:
        return self.input_hz / self.reference_divider

    @property
    def vco_hz(self) -> Fraction:
        return self.detector_hz * self.feedback_multiplier

    @property
    def output_hz(self) -> Fraction:
        """The design's clock, exactly."""
        return self.vco_hz / self.output_divider


def find_xilinx7_pll(input_hz: int | Fraction, target_hz: int | Fraction) -> Xilinx7PllSettings:
    """Find the settings with the highest reachable output not above ``target_hz`` (exhaustive over all dividers).

    Among equals the faster phase detector, then the faster VCO (less jitter). Raises :class:`ValueError` when input or
    target is out of the part's range.
    """
    input_hz, target_hz = check_frequencies("a 7 series", input_hz, target_hz, INPUT_HZ, OUTPUT_HZ)
    found = []
    for reference in range(1, LARGEST_REFERENCE + 1):
        detector = input_hz / reference
        if not DETECTOR_HZ[0] <= detector <= DETECTOR_HZ[1]:
            continue
        for feedback in range(2, LARGEST_FEEDBACK + 1):
            vco = detector * feedback
            divider = int(-(-vco // target_hz))
            if VCO_HZ[0] <= vco <= VCO_HZ[1] and divider <= LARGEST_OUTPUT and vco / divider >= OUTPUT_HZ[0]:
                found.append(Xilinx7PllSettings(input_hz, reference, feedback, divider))
    if not found:
        raise unreachable("a 7 series", input_hz, target_hz)
    return max(found, key=lambda s: (s.output_hz, s.detector_hz, s.vco_hz))


class Xilinx7Pll(Pll):
    """PLLE2_BASE with fixed dividers, and a global clock buffer (BUFG) behind it.

    Parameters
    ----------
    settings : Xilinx7PllSettings

    Members
    -------
    As of :class:`hdl_lib.clocks.pll.Pll`.
    """

    def elaborate(self, platform):
        s = self.settings
        m = Module()
        feedback, made = Signal(), Signal()
        m.submodules.plle2 = Instance(
            "PLLE2_BASE",
            p_BANDWIDTH="OPTIMIZED",
            p_CLKIN1_PERIOD=float(1_000_000_000 / s.input_hz),
            p_DIVCLK_DIVIDE=s.reference_divider,
            p_CLKFBOUT_MULT=s.feedback_multiplier,
            p_CLKOUT0_DIVIDE=s.output_divider,
            p_STARTUP_WAIT="FALSE",
            i_CLKIN1=self.clk_in,
            i_CLKFBIN=feedback,
            i_RST=Const(0),
            i_PWRDWN=Const(0),
            o_CLKFBOUT=feedback,
            o_CLKOUT0=made,
            o_LOCKED=self.lock,
        )
        m.submodules.bufg = Instance("BUFG", i_I=made, o_O=self.clk_out)
        return m
