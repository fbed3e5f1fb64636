"""Sipeed Tang Primer 20K with its dock: Gowin GW2A-18C, 27 MHz oscillator, serial port of the BL616 debugger."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Part, Uart
from .serial_chips import BL616


def _platform() -> Any:
    from amaranth_boards.tang_primer_20k import TangPrimer20kDockPlatform

    return TangPrimer20kDockPlatform()


BOARDS = (
    Board(
        name="tang_primer_20k",
        title="Sipeed Tang Primer 20K with dock, GW2A-18C",
        part=Part(
            family="gowin", device="GW2A-LV18PG256C8/I7", package="", speed_grade="", database="GW2A-18C",
            lut=20_736, ff=15_552, dsp=48, dsp_width=18, bram=46, bram_bits=18432,
            source="Gowin DS102E, GW2A family data sheet: multipliers of 18 x 18 bits",
        ),
        clock=ClockInput("clk27", 0, 27_000_000, "fabric"),
        clock_mhz=54,
        uart=Uart("uart", 0, BL616),
        toolchain="apicula",
        platform=_platform,
        program="openFPGALoader -b tangprimer20k {bitstream}",
    ),
)
