"""1BitSquared iCEBreaker: Lattice iCE40 UP5K, 12 MHz oscillator, FT2232H serial port."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Part, Uart


def _platform() -> Any:
    from amaranth_boards.icebreaker import ICEBreakerPlatform

    return ICEBreakerPlatform()


BOARDS = (
    Board(
        name="icebreaker",
        title="1BitSquared iCEBreaker, iCE40 UP5K",
        part=Part(
            family="ice40", device="iCE40UP5K", package="sg48", speed_grade="",
            lut=5280, ff=5280, dsp=8, dsp_width=16, bram=30, bram_bits=4096, spram=4, spram_bits=262_144,
            source="Lattice FPGA-DS-02008, iCE40 UltraPlus family data sheet; agrees with nextpnr-ice40",
        ),
        clock=ClockInput("clk12", 0, 12_000_000, "pad"),
        clock_mhz=42,
        uart=Uart("uart", 0, 1_000_000),
        toolchain="icestorm",
        platform=_platform,
        program="iceprog {bitstream}",
    ),
)
