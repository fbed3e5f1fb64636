"""Sipeed Tang Nano 9K: Gowin GW1NR-9C, 27 MHz oscillator, serial port of the BL702 debugger."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Part, Uart
from .serial_chips import BL702


def _platform() -> Any:
    from amaranth_boards.tang_nano_9k import TangNano9kPlatform

    return TangNano9kPlatform()


BOARDS = (
    Board(
        name="tang_nano_9k",
        title="Sipeed Tang Nano 9K, GW1NR-9C",
        part=Part(
            family="gowin", device="GW1NR-LV9QN88PC6/I5", package="", speed_grade="", database="GW1N-9C",
            lut=8640, ff=6480, dsp=20, dsp_width=18, bram=26, bram_bits=18432,
            source="Gowin DS117E, GW1NR family data sheet: multipliers of 18 x 18 bits",
        ),
        clock=ClockInput("clk27", 0, 27_000_000, "fabric"),
        clock_mhz=27,
        uart=Uart("uart", 0, BL702),
        toolchain="apicula",
        platform=_platform,
        program="openFPGALoader -b tangnano9k {bitstream}",
    ),
)
