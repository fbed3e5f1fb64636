"""Radiona ULX3S: Lattice ECP5 in four sizes, 25 MHz oscillator, FT231X serial port, a second USB socket
that is wired to the FPGA itself, 32 MB of SDRAM."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Memory, Uart, Usb
from .parts import ecp5
from .sdram_chips import IS42S16160
from .serial_chips import FT231X


def _board(size: str) -> Board:
    def platform() -> Any:
        from amaranth_boards import ulx3s

        return getattr(ulx3s, f"ULX3S_{size}_Platform")()

    return Board(
        name=f"ulx3s_{size.lower()}",
        title=f"Radiona ULX3S, ECP5 LFE5U-{size}",
        part=ecp5(size, "CABGA381", "6"),
        clock=ClockInput("clk25", 0, 25_000_000, "fabric"),
        clock_mhz=125,  # reached with all multipliers of the 85F in use; benchmarks/route.py
        uart=Uart("uart", 0, FT231X),
        usb=Usb("usb", 0, default=False),
        memory=Memory("sdram", 0, IS42S16160),
        toolchain="trellis",
        platform=platform,
        program="openFPGALoader -b ulx3s {bitstream}",
    )


BOARDS = tuple(map(_board, ("12F", "25F", "45F", "85F")))
