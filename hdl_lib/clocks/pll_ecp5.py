"""The phase-locked loop of Lattice ECP5 parts (EHXPLLL): dividers for a wanted frequency, and the primitive.

Limits from Lattice FPGA-DS-02012 (ECP5 family data sheet), table "sysCLOCK PLL timing": input 8 to 400 MHz, phase
detector 10 to 400 MHz, VCO 400 to 800 MHz, output 3.125 to 400 MHz. Dividers 1 to 128.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from amaranth import Const, Instance, Module, Signal

from hdl_lib.clocks.pll import Pll, check_frequencies, unreachable

INPUT_HZ = (8_000_000, 400_000_000)
DETECTOR_HZ = (10_000_000, 400_000_000)
VCO_HZ = (400_000_000, 800_000_000)
OUTPUT_HZ = (3_125_000, 400_000_000)
LARGEST_DIVIDER = 128


@dataclass(frozen=True)
class Ecp5PllSettings:
    """Dividers of an EHXPLLL whose feedback comes from its primary output (CLKOP).

    ``vco = input / reference_divider * feedback_divider * primary_divider``; the primary output is
    ``vco / primary_divider``. The design's clock is the primary output, or, with ``secondary_divider`` set, the
    secondary output (CLKOS) at ``vco / secondary_divider``.
    """

    input_hz: Fraction
    reference_divider: int
    feedback_divider: int
    primary_divider: int
    secondary_divider: int | None

    @property
    def detector_hz(self) -> Fraction:
        return self.input_hz / self.reference_divider

    @property
    def primary_hz(self) -> Fraction:
        return self.detector_hz * self.feedback_divider

    @property
    def vco_hz(self) -> Fraction:
        return self.primary_hz * self.primary_divider

    @property
    def output_hz(self) -> Fraction:
        """The design's clock, exactly."""
        return self.vco_hz / self.secondary_divider if self.secondary_divider else self.primary_hz


def find_ecp5_pll(input_hz: int | Fraction, target_hz: int | Fraction) -> Ecp5PllSettings:
    """Find the settings with the highest reachable output not above ``target_hz`` (exhaustive over all dividers).

    Among equals: the primary output before the secondary, the faster phase detector (less jitter), the VCO nearest
    to the middle of its range. Raises :class:`ValueError` when input or target is out of the part's range.
    """
    input_hz, target_hz = check_frequencies("an ECP5", input_hz, target_hz, INPUT_HZ, OUTPUT_HZ)
    best: tuple[tuple[Fraction, bool, Fraction, Fraction], Ecp5PllSettings] | None = None
    middle = Fraction(sum(VCO_HZ), 2)
    for reference in range(1, LARGEST_DIVIDER + 1):
        detector = input_hz / reference
        if not DETECTOR_HZ[0] <= detector <= DETECTOR_HZ[1]:
            continue
        for feedback in range(1, LARGEST_DIVIDER + 1):
            primary = detector * feedback
            if not OUTPUT_HZ[0] <= primary <= OUTPUT_HZ[1]:
                continue
            first = -(-VCO_HZ[0] // primary)
            for divider in range(int(first), min(LARGEST_DIVIDER, int(VCO_HZ[1] // primary)) + 1):
                vco = primary * divider
                secondary = None if primary == target_hz else int(-(-vco // target_hz))
                if secondary is not None and secondary > LARGEST_DIVIDER:
                    continue
                settings = Ecp5PllSettings(input_hz, reference, feedback, divider, secondary)
                if settings.output_hz < OUTPUT_HZ[0]:
                    continue
                key = (settings.output_hz, secondary is None, detector, -abs(vco - middle))
                if best is None or key > best[0]:
                    best = (key, settings)
    if best is None:
        raise unreachable("an ECP5", input_hz, target_hz)
    return best[1]


class Ecp5Pll(Pll):
    """EHXPLLL with fixed dividers.

    Parameters
    ----------
    settings : Ecp5PllSettings
    ratio : int or None
        Of ``clk_out`` to a second clock, ``clk_divided``, whose rising edges are some of its.

    Members
    -------
    As of :class:`hdl_lib.clocks.pll.Pll`, and:

    clk_divided : Signal(1)
        Output; only with ``ratio``.
    """

    def __init__(self, settings: Ecp5PllSettings, ratio: int | None = None):
        self.ratio = ratio
        self.clk_divided = Signal()
        super().__init__(settings)

    def elaborate(self, platform):
        s = self.settings
        m = Module()
        primary = Signal()
        secondary = Signal()
        dividers = {
            "p_CLKI_DIV": s.reference_divider,
            "p_CLKFB_DIV": s.feedback_divider,
            "p_CLKOP_ENABLE": "ENABLED",
            "p_CLKOP_DIV": s.primary_divider,
            "p_CLKOP_CPHASE": s.primary_divider - 1,
            "p_CLKOP_FPHASE": 0,
            "p_FEEDBK_PATH": "CLKOP",
        }
        if s.secondary_divider:
            dividers |= {
                "p_CLKOS_ENABLE": "ENABLED",
                "p_CLKOS_DIV": s.secondary_divider,
                "p_CLKOS_CPHASE": s.secondary_divider - 1,
                "p_CLKOS_FPHASE": 0,
                "o_CLKOS": secondary,
            }
        if self.ratio is not None:
            divider = self.ratio * (s.secondary_divider or s.primary_divider)
            if divider > LARGEST_DIVIDER:
                raise ValueError(f"the second clock must have a divider of at most {LARGEST_DIVIDER}, not {divider}")
            dividers |= {
                "p_CLKOS2_ENABLE": "ENABLED",
                "p_CLKOS2_DIV": divider,
                "p_CLKOS2_CPHASE": divider - 1,
                "p_CLKOS2_FPHASE": 0,
                "o_CLKOS2": self.clk_divided,
            }
        m.submodules.ehxplll = Instance(
            "EHXPLLL",
            # the loop filter, as the vendor's tool sets it
            a_ICP_CURRENT="12",
            a_LPF_RESISTOR="8",
            a_MFG_ENABLE_FILTEROPAMP="1",
            a_MFG_GMCREF_SEL="2",
            p_PLLRST_ENA="DISABLED",
            p_INTFB_WAKE="DISABLED",
            p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED",
            p_OUTDIVIDER_MUXA="DIVA",
            p_OUTDIVIDER_MUXB="DIVB",
            p_OUTDIVIDER_MUXC="DIVC",
            p_OUTDIVIDER_MUXD="DIVD",
            i_CLKI=self.clk_in,
            i_CLKFB=primary,
            i_RST=Const(0),
            i_STDBY=Const(0),
            i_PHASESEL0=Const(0),
            i_PHASESEL1=Const(0),
            i_PHASEDIR=Const(1),
            i_PHASESTEP=Const(1),
            i_PHASELOADREG=Const(1),
            i_PLLWAKESYNC=Const(0),
            i_ENCLKOP=Const(0),
            o_CLKOP=primary,
            o_LOCK=self.lock,
            **dividers,
        )
        m.d.comb += self.clk_out.eq(secondary if s.secondary_divider else primary)
        return m
