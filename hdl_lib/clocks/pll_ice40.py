"""The phase-locked loop of Lattice iCE40 parts (SB_PLL40_PAD, SB_PLL40_CORE): dividers and the primitive.

Limits from Lattice FPGA-DS-02008 (iCE40 UltraPlus family data sheet), table "sysCLOCK PLL timing", and FPGA-TN-02052
(sysCLOCK PLL guide): input and phase detector 10 to 133 MHz, VCO 533 to 1066 MHz, output 16 to 275 MHz.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from amaranth import Const, Instance, Module

from hdl_lib.clocks.pll import Pll, check_frequencies, unreachable

INPUT_HZ = (10_000_000, 133_000_000)
DETECTOR_HZ = (10_000_000, 133_000_000)
VCO_HZ = (533_000_000, 1_066_000_000)
OUTPUT_HZ = (16_000_000, 275_000_000)
# The loop filter's setting: the index of the first limit (Hz) above the phase detector's frequency, plus 1.
FILTER_LIMITS_HZ = (17_000_000, 26_000_000, 44_000_000, 66_000_000, 101_000_000)


@dataclass(frozen=True)
class Ice40PllSettings:
    """DIVR, DIVF and DIVQ of the "simple" feedback path: ``output = input * (divf + 1) / ((divr + 1) * 2**divq)``."""

    input_hz: Fraction
    divr: int  # 0 to 15
    divf: int  # 0 to 127
    divq: int  # 1 to 6

    @property
    def detector_hz(self) -> Fraction:
        return self.input_hz / (self.divr + 1)

    @property
    def vco_hz(self) -> Fraction:
        return self.detector_hz * (self.divf + 1)

    @property
    def output_hz(self) -> Fraction:
        """The design's clock, exactly."""
        return self.vco_hz / (1 << self.divq)

    @property
    def filter_range(self) -> int:
        return 1 + sum(self.detector_hz >= limit for limit in FILTER_LIMITS_HZ)


def find_ice40_pll(input_hz: int | Fraction, target_hz: int | Fraction) -> Ice40PllSettings:
    """Find the settings with the highest reachable output not above ``target_hz`` (exhaustive over all dividers).

    Among equals the faster phase detector (less jitter). Raises :class:`ValueError` when input or target is out of the
    part's range.
    """
    input_hz, target_hz = check_frequencies("an iCE40", input_hz, target_hz, INPUT_HZ, OUTPUT_HZ)
    best: Ice40PllSettings | None = None
    for divr in range(16):
        detector = input_hz / (divr + 1)
        if not DETECTOR_HZ[0] <= detector <= DETECTOR_HZ[1]:
            continue
        for divq in range(1, 7):
            divf = min(127, int(target_hz * (1 << divq) // detector) - 1, int(VCO_HZ[1] // detector) - 1)
            if divf < 0:
                continue
            settings = Ice40PllSettings(input_hz, divr, divf, divq)
            if settings.vco_hz < VCO_HZ[0] or settings.output_hz < OUTPUT_HZ[0]:
                continue
            if best is None or settings.output_hz > best.output_hz:
                best = settings
    if best is None:
        raise unreachable("an iCE40", input_hz, target_hz)
    return best


class Ice40Pll(Pll):
    """SB_PLL40_PAD or SB_PLL40_CORE with fixed dividers.

    Parameters
    ----------
    settings : Ice40PllSettings
    pad : amaranth.hdl.IOValue or None
        The clock pin, if it is the PLL's own pad (SB_PLL40_PAD: nothing else may then use the pin, and ``clk_in`` is
        ignored). None: SB_PLL40_CORE, fed from ``clk_in``.

    Members
    -------
    clk_in : In(1)
        At ``settings.input_hz``.
    clk_out : Out(1)
        At ``settings.output_hz``, from the PLL's global buffer.
    lock : Out(1)
        Asynchronous.
    """

    def __init__(self, settings: Ice40PllSettings, pad: Any = None):
        self.pad = pad
        super().__init__(settings)

    def elaborate(self, platform):
        s = self.settings
        m = Module()
        source = {"i_REFERENCECLK": self.clk_in} if self.pad is None else {"io_PACKAGEPIN": self.pad}
        m.submodules.pll40 = Instance(
            "SB_PLL40_CORE" if self.pad is None else "SB_PLL40_PAD",
            p_FEEDBACK_PATH="SIMPLE",
            p_DIVR=Const(s.divr, 4),
            p_DIVF=Const(s.divf, 7),
            p_DIVQ=Const(s.divq, 3),
            p_FILTER_RANGE=Const(s.filter_range, 3),
            i_RESETB=Const(1),
            i_BYPASS=Const(0),
            o_PLLOUTGLOBAL=self.clk_out,
            o_LOCK=self.lock,
            **source,
        )
        return m
