"""MuseLab iCESugar: Lattice iCE40 UP5K, 12 MHz oscillator, serial port of the iCELink debugger."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Flash, Uart
from .flash_chips import W25Q64JV
from .parts import ICE40_UP5K
from .serial_chips import ICELINK


def _platform() -> Any:
    from amaranth_boards.icesugar import ICESugarPlatform

    return ICESugarPlatform()


BOARDS = (
    Board(
        name="icesugar",
        title="MuseLab iCESugar, iCE40 UP5K",
        part=ICE40_UP5K,
        clock=ClockInput("clk12", 0, 12_000_000, "pad"),
        clock_mhz=42,
        uart=Uart("uart", 0, ICELINK),
        toolchain="icestorm",
        platform=_platform,
        program="icesprog {bitstream}",
        flash=Flash("spi_flash_4x", 0, W25Q64JV, ("icesprog -o {offset:#x} {image}",)),
    ),
)
