"""FPGAs that several boards have, with their resources."""

from __future__ import annotations

from hdl_lib.external.spram import SpramChip

from .board import Part

_ECP5_SOURCE = "Lattice FPGA-DS-02012, ECP5 family data sheet; LUTs and flip-flops as nextpnr-ecp5 counts them"
_ECP5 = {  # LUTs (and as many flip-flops), block RAMs, multipliers
    "12F": (12_144, 32, 28),
    "25F": (24_288, 56, 28),
    "45F": (43_848, 108, 72),
    "85F": (83_640, 208, 156),
}


def ecp5(size: str, package: str, speed_grade: str, series: str = "LFE5U") -> Part:
    """Return a Lattice ECP5, ``size`` "12F" to "85F"; ``series`` "LFE5UM5G" with transceivers."""
    lut, bram, dsp = _ECP5[size]
    source = _ECP5_SOURCE
    if size == "12F":  # the 25F's die with half of it guaranteed; the budget is the guaranteed half
        source = "Lattice FPGA-DS-02012; LUTs and flip-flops: half of the 25F's"
    return Part(
        family="ecp5", device=f"{series}-{size}", package=package, speed_grade=speed_grade,
        lut=lut, ff=lut, dsp=dsp, dsp_width=18, bram=bram, bram_bits=18432, source=source,
    )


ICE40_UP5K = Part(
    family="ice40", device="iCE40UP5K", package="sg48", speed_grade="",
    lut=5280, ff=5280, dsp=8, dsp_width=16, bram=30, bram_bits=4096,
    spram=SpramChip("UP5K SPRAM", width=16, words=65_536),
    source="Lattice FPGA-DS-02008, iCE40 UltraPlus family data sheet; agrees with nextpnr-ice40",
)

_ARTIX7 = {  # 6-input LUTs, flip-flops, DSP48E1, block RAMs of 36 kbit
    "35t": (20_800, 41_600, 90, 50),
    "100t": (63_400, 126_800, 240, 135),
}


def artix7(size: str, device: str) -> Part:
    """Return an AMD Artix-7, ``size`` "35t" or "100t"; ``device``: with package and speed. A block RAM is half a
    RAMB36E1."""
    lut, ff, dsp, bram = _ARTIX7[size]
    return Part(
        family="xilinx7", device=device, package="", speed_grade="",
        lut=lut, ff=ff, dsp=dsp, dsp_width=18, bram=2 * bram, bram_bits=18432,
        source="AMD DS180, 7 series overview: 6-input LUTs; block RAMs counted as RAMB18E1, two to a block",
    )


XC7Z020 = Part(
    family="xilinx7", device="xc7z020clg400-1", package="", speed_grade="",
    lut=53_200, ff=106_400, dsp=220, dsp_width=18, bram=280, bram_bits=18432,
    source="AMD DS190, Zynq-7000 overview: 6-input LUTs; block RAMs counted as RAMB18E1, two to a block",
)
