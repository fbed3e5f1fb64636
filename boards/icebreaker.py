"""1BitSquared iCEBreaker: Lattice iCE40 UP5K, 12 MHz oscillator, FT2232H serial port."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Flash, Uart
from .flash_chips import W25Q128JV
from .parts import ICE40_UP5K
from .serial_chips import FT2232H


def _platform() -> Any:
    from amaranth_boards.icebreaker import ICEBreakerPlatform

    return ICEBreakerPlatform()


BOARDS = (
    Board(
        name="icebreaker",
        title="1BitSquared iCEBreaker, iCE40 UP5K",
        part=ICE40_UP5K,
        clock=ClockInput("clk12", 0, 12_000_000, "pad"),
        clock_mhz=42,
        uart=Uart("uart", 0, FT2232H),
        toolchain="icestorm",
        platform=_platform,
        program="iceprog {bitstream}",
        other_programs=("openFPGALoader -b ice40_generic {bitstream}",),
        flash=Flash(
            "spi_flash_4x", 0, W25Q128JV,
            ("iceprog -o {offset} {image}", "openFPGALoader -b ice40_generic -o {offset} {image}"),
        ),
    ),
)
