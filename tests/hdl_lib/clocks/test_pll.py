"""PLL dividers: values worked out by hand from the parts' limits, and a brute force written another way."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hdl_lib.clocks.pll_cyclonev import CycloneVPllSettings, find_cyclonev_pll
from hdl_lib.clocks.pll_ecp5 import Ecp5PllSettings, find_ecp5_pll
from hdl_lib.clocks.pll_gowin import LIMITS, OUTPUT_DIVIDERS, GowinPllSettings, find_gowin_pll
from hdl_lib.clocks.pll_ice40 import Ice40PllSettings, find_ice40_pll
from hdl_lib.clocks.pll_xilinx7 import Xilinx7PllSettings, find_xilinx7_pll

MHZ = 1_000_000


def test_ecp5_dividers_by_hand():
    # 25 MHz * 4 = 100 MHz; VCO 100 MHz * 6 = 600 MHz, the middle of 400 to 800
    assert find_ecp5_pll(25 * MHZ, 100 * MHZ) == Ecp5PllSettings(Fraction(25 * MHZ), 1, 4, 6, None)
    # 62.5 = 25 / 2 * 5; VCO at 562.5, 625, ...: 625 is 25 from the middle, 562.5 is 37.5
    assert find_ecp5_pll(25 * MHZ, Fraction(125 * MHZ, 2)) == Ecp5PllSettings(Fraction(25 * MHZ), 2, 5, 10, None)
    # 60 MHz is no multiple of 12.5 or 25 MHz: from the second output, 600 / 10
    settings = find_ecp5_pll(25 * MHZ, 60 * MHZ)
    assert settings.secondary_divider == 10 and settings.vco_hz == 600 * MHZ and settings.output_hz == 60 * MHZ


@pytest.mark.parametrize("target", [133.333, 99.9, 87, 71.3, 12.1])
def test_ecp5_is_the_best_below_the_target(target):
    # every VCO frequency is a multiple of 12.5 MHz (25 MHz / 1 or / 2) from 400 to 800; every output one 1/n of it
    target_hz = Fraction(round(target * 1000) * 1000)
    reachable = {Fraction(k * 12_500_000, n) for k in range(32, 65) for n in range(1, 129)}
    settings = find_ecp5_pll(25 * MHZ, target_hz)
    assert settings.output_hz == max(f for f in reachable if f <= target_hz)
    assert 400 * MHZ <= settings.vco_hz <= 800 * MHZ
    assert settings.detector_hz >= 10 * MHZ


def test_ice40_dividers_by_hand():
    # 12 MHz * 64 = 768 MHz VCO, / 32 = 24 MHz; phase detector 12 MHz: filter range 1
    settings = find_ice40_pll(12 * MHZ, 24 * MHZ)
    assert settings == Ice40PllSettings(Fraction(12 * MHZ), 0, 63, 5)
    assert settings.output_hz == 24 * MHZ and settings.filter_range == 1
    # 20 MHz: VCO 640 MHz is no multiple of 12; the next below is 636 = 12 * 53, / 32 = 19.875 MHz
    settings = find_ice40_pll(12 * MHZ, 20 * MHZ)
    assert settings == Ice40PllSettings(Fraction(12 * MHZ), 0, 52, 5)
    assert settings.output_hz == Fraction(19_875_000)
    assert [Ice40PllSettings(Fraction(f * MHZ), 0, 0, 1).filter_range for f in (12, 17, 25, 26, 44, 66, 100, 101)] == [
        1, 2, 2, 3, 4, 5, 5, 6,
    ]


@pytest.mark.parametrize("source, target", [(12, 33), (12, 47.5), (100, 133), (48, 21.7)])
def test_ice40_is_the_best_below_the_target(source, target):
    reachable = {
        Fraction(source * MHZ * f, r << q)
        for r in range(1, 17) if source / r >= 10
        for f in range(1, 129) if 533 * r <= source * f <= 1066 * r
        for q in range(1, 7)
    }
    settings = find_ice40_pll(source * MHZ, Fraction(round(target * 10), 10) * MHZ)
    assert settings.output_hz == max(f for f in reachable if f <= Fraction(round(target * 10), 10) * MHZ)


def test_gowin_dividers_by_hand():
    # 27 MHz * 2 = 54 MHz; VCO 54 * 16 = 864 MHz is nearest to 800, the middle of 400 to 1200 (432 and 1728 are others)
    settings = find_gowin_pll(LIMITS["GW1N-9C"], 27 * MHZ, 54 * MHZ)
    assert settings == GowinPllSettings("GW1NR-9C", Fraction(27 * MHZ), 0, 1, 16)
    # 67.5 = 27 / 2 * 5; VCO 67.5 * 16 = 1080 is 205 from 875, the middle of 500 to 1250; 540 is 335
    settings = find_gowin_pll(LIMITS["GW2A-18C"], 27 * MHZ, Fraction(135 * MHZ, 2))
    assert settings == GowinPllSettings("GW2A-18C", Fraction(27 * MHZ), 1, 4, 16)
    assert settings.vco_hz == 1080 * MHZ and settings.output_hz == Fraction(135 * MHZ, 2)


@pytest.mark.parametrize("die, target", [("GW1N-9C", 61.3), ("GW2A-18C", 99.9), ("GW1N-9C", 13.1)])
def test_gowin_is_the_best_below_the_target(die, target):
    target_hz, limits = Fraction(round(target * 10), 10) * MHZ, LIMITS[die]
    reachable = {
        Fraction(27 * MHZ * f, d)
        for d in range(1, 65) if 27 / d >= 3
        for f in range(1, 65)
        if any(limits.vco_hz[0] <= Fraction(27 * MHZ * f, d) * o <= limits.vco_hz[1] for o in OUTPUT_DIVIDERS)
    }
    settings = find_gowin_pll(limits, 27 * MHZ, target_hz)
    assert settings.output_hz == max(f for f in reachable if f <= target_hz)


def test_xilinx7_dividers_by_hand():
    # 100 MHz: the fastest VCO that gives 80 MHz is 1600 = 100 * 16, / 20
    assert find_xilinx7_pll(100 * MHZ, 80 * MHZ) == Xilinx7PllSettings(Fraction(100 * MHZ), 1, 16, 20)
    # 12.5 MHz = 1600 / 128, the least that 1600 MHz give
    assert find_xilinx7_pll(100 * MHZ, Fraction(25 * MHZ, 2)).output_divider == 128


@pytest.mark.parametrize("target", [133.3, 71.7, 19.9])
def test_xilinx7_is_the_best_below_the_target(target):
    target_hz = Fraction(round(target * 10), 10) * MHZ
    reachable = {
        Fraction(100 * MHZ * m, d * o)
        for d in range(1, 6)  # the phase detector wants 19 MHz
        for m in range(2, 65) if 800 <= 100 * m / d <= 1600
        for o in range(1, 129)
    }
    settings = find_xilinx7_pll(100 * MHZ, target_hz)
    assert settings.output_hz == max(f for f in reachable if f <= target_hz)
    assert 800 * MHZ <= settings.vco_hz <= 1600 * MHZ and settings.detector_hz >= 19 * MHZ


def test_cyclonev_dividers_by_hand():
    # 50 MHz: the fastest VCO up to 1300 that gives 100 MHz is 1300 = 50 * 26, / 13
    assert find_cyclonev_pll(50 * MHZ, 100 * MHZ) == CycloneVPllSettings(Fraction(50 * MHZ), 1, 26, 13)
    # 1300 / 9 = 144.4... MHz is no whole number of Hz; the PLL is asked for whole ones only
    settings = find_cyclonev_pll(50 * MHZ, 145 * MHZ)
    assert settings.output_hz == 145 * MHZ and settings.output_hz.denominator == 1
    assert 600 * MHZ <= settings.vco_hz <= 1300 * MHZ


def test_other_parts_out_of_range_are_refused():
    with pytest.raises(ValueError) as error:
        find_gowin_pll(LIMITS["GW1N-9C"], 27 * MHZ, 700 * MHZ)
    assert str(error.value) == "target frequency of a GW1NR-9C PLL must be 3.125 to 600 MHz, not 700 MHz"
    with pytest.raises(ValueError) as error:
        find_xilinx7_pll(12 * MHZ, 100 * MHZ)
    assert str(error.value) == "input frequency of a 7 series PLL must be 19 to 800 MHz, not 12 MHz"
    with pytest.raises(ValueError) as error:
        find_cyclonev_pll(50 * MHZ, 500 * MHZ)
    assert str(error.value) == "target frequency of a Cyclone V PLL must be 5 to 460 MHz, not 500 MHz"


def test_out_of_range_is_refused():
    with pytest.raises(ValueError) as error:
        find_ecp5_pll(25 * MHZ, 500 * MHZ)
    assert str(error.value) == "target frequency of an ECP5 PLL must be 3.125 to 400 MHz, not 500 MHz"
    with pytest.raises(ValueError) as error:
        find_ice40_pll(8 * MHZ, 24 * MHZ)
    assert str(error.value) == "input frequency of an iCE40 PLL must be 10 to 133 MHz, not 8 MHz"
    with pytest.raises(ValueError) as error:
        find_ice40_pll(12 * MHZ, 16 * MHZ)  # 16 needs a multiple of 12 / 64 MHz in [16, 16]
    assert str(error.value) == "target frequency must be reachable from 12 MHz with an iCE40 PLL, not 16 MHz"
