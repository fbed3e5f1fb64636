"""Radiona ULX3S: Lattice ECP5 in four sizes, 25 MHz oscillator, FT231X serial port."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Part, Uart

_SOURCE = "Lattice FPGA-DS-02012, ECP5 family data sheet; LUTs and flip-flops as nextpnr-ecp5 counts them"


def _board(size: str, lut: int, bram: int, dsp: int, source: str = _SOURCE) -> Board:
    def platform() -> Any:
        from amaranth_boards import ulx3s

        return getattr(ulx3s, f"ULX3S_{size}_Platform")()

    return Board(
        name=f"ulx3s_{size.lower()}",
        title=f"Radiona ULX3S, ECP5 LFE5U-{size}",
        part=Part(
            family="ecp5", device=f"LFE5U-{size}", package="CABGA381", speed_grade="6",
            lut=lut, ff=lut, dsp=dsp, dsp_width=18, bram=bram, bram_bits=18432, source=source,
        ),
        clock=ClockInput("clk25", 0, 25_000_000, "fabric"),
        clock_mhz=125,  # reached with all multipliers of the 85F in use; benchmarks/route.py
        uart=Uart("uart", 0, 1_000_000),
        toolchain="trellis",
        platform=platform,
        program="openFPGALoader -b ulx3s {bitstream}",
    )


# The 12F is the 25F's die with half of it guaranteed; the budget is the guaranteed half.
BOARDS = (
    _board("12F", 12_144, 32, 28, "Lattice FPGA-DS-02012; LUTs and flip-flops: half of the 25F's"),
    _board("25F", 24_288, 56, 28),
    _board("45F", 43_848, 108, 72),
    _board("85F", 83_640, 208, 156),
)
