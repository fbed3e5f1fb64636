"""The phase-locked loop of Gowin GW1N and GW2A parts (rPLL): dividers for a wanted frequency, and the primitive.

Limits from Gowin DS117E (GW1NR family data sheet) and DS102E (GW2A family data sheet), tables of the PLL's switching
characteristics; dividers from UG286E (Gowin clock user guide).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from amaranth import Const, Instance, Module

from hdl_lib.clocks.pll import Pll, check_frequencies, unreachable

OUTPUT_DIVIDERS = (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128)
LARGEST_DIVIDER = 64


@dataclass(frozen=True)
class GowinPllLimits:
    """Limits of a device and speed grade, in Hz: input (and phase detector), VCO, output."""

    device: str  # as the primitive calls it
    detector_hz: tuple[int, int]
    vco_hz: tuple[int, int]
    output_hz: tuple[int, int]


LIMITS = {
    "GW1N-9C": GowinPllLimits(  # C6/I5
        "GW1NR-9C", (3_000_000, 400_000_000), (400_000_000, 1_200_000_000), (3_125_000, 600_000_000)
    ),
    "GW2A-18C": GowinPllLimits(  # C8/I7
        "GW2A-18C", (3_000_000, 500_000_000), (500_000_000, 1_250_000_000), (3_906_250, 625_000_000)
    ),
}


@dataclass(frozen=True)
class GowinPllSettings:
    """``output = input * (fbdiv + 1) / (idiv + 1)``; the VCO runs at ``output * odiv``."""

    device: str
    input_hz: Fraction
    idiv: int  # 0 to 63
    fbdiv: int  # 0 to 63
    odiv: int  # of OUTPUT_DIVIDERS

    @property
    def detector_hz(self) -> Fraction:
        return self.input_hz / (self.idiv + 1)

    @property
    def output_hz(self) -> Fraction:
        """The design's clock, exactly."""
        return self.detector_hz * (self.fbdiv + 1)

    @property
    def vco_hz(self) -> Fraction:
        return self.output_hz * self.odiv


def find_gowin_pll(limits: GowinPllLimits, input_hz: int | Fraction, target_hz: int | Fraction) -> GowinPllSettings:
    """Find the settings with the highest reachable output not above ``target_hz`` (exhaustive over all dividers).

    Among equals the faster phase detector (less jitter), then the VCO nearest to the middle of its range. Raises
    :class:`ValueError` when input or target is out of the part's range.
    """
    name = f"a {limits.device}"
    input_hz, target_hz = check_frequencies(name, input_hz, target_hz, limits.detector_hz, limits.output_hz)
    middle = Fraction(sum(limits.vco_hz), 2)
    found = []
    for idiv in range(LARGEST_DIVIDER):
        detector = input_hz / (idiv + 1)
        if not limits.detector_hz[0] <= detector <= limits.detector_hz[1]:
            continue
        for fbdiv in range(min(LARGEST_DIVIDER, int(target_hz // detector))):
            if detector * (fbdiv + 1) < limits.output_hz[0]:
                continue
            for odiv in OUTPUT_DIVIDERS:
                settings = GowinPllSettings(limits.device, input_hz, idiv, fbdiv, odiv)
                if limits.vco_hz[0] <= settings.vco_hz <= limits.vco_hz[1]:
                    found.append(settings)
    if not found:
        raise unreachable(name, input_hz, target_hz)
    return max(found, key=lambda s: (s.output_hz, s.detector_hz, -abs(s.vco_hz - middle)))


class GowinPll(Pll):
    """rPLL with fixed dividers.

    Parameters
    ----------
    settings : GowinPllSettings

    Members
    -------
    As of :class:`hdl_lib.clocks.pll.Pll`.
    """

    def elaborate(self, platform):
        s = self.settings
        m = Module()
        m.submodules.rpll = Instance(
            "rPLL",
            p_FCLKIN=f"{float(s.input_hz) / 1e6:g}",
            p_DEVICE=s.device,
            p_DYN_IDIV_SEL="false",
            p_IDIV_SEL=s.idiv,
            p_DYN_FBDIV_SEL="false",
            p_FBDIV_SEL=s.fbdiv,
            p_DYN_ODIV_SEL="false",
            p_ODIV_SEL=s.odiv,
            p_PSDA_SEL="0000",
            p_DYN_DA_EN="false",
            p_DUTYDA_SEL="1000",
            p_CLKFB_SEL="internal",
            p_CLKOUT_BYPASS="false",
            p_CLKOUTP_BYPASS="false",
            p_CLKOUTD_BYPASS="false",
            i_CLKIN=self.clk_in,
            i_CLKFB=Const(0),
            i_RESET=Const(0),
            i_RESET_P=Const(0),
            i_IDSEL=Const(0, 6),
            i_FBDSEL=Const(0, 6),
            i_ODSEL=Const(0, 6),
            i_PSDA=Const(0, 4),
            i_DUTYDA=Const(0, 4),
            i_FDLY=Const(0, 4),
            o_CLKOUT=self.clk_out,
            o_LOCK=self.lock,
        )
        return m
