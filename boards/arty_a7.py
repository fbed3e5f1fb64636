"""Digilent Arty A7: AMD Artix-7 35T or 100T, 100 MHz oscillator, FT2232HQ serial port."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Uart
from .parts import artix7
from .serial_chips import FT2232H


def _board(size: str) -> Board:
    def platform() -> Any:
        from amaranth_boards import arty_a7

        from .rtlil_platform import RtlilPlatform

        class Platform(RtlilPlatform, getattr(arty_a7, f"ArtyA7_{size}Platform")):  # type: ignore[misc]  # no annotations there
            pass

        return Platform()

    return Board(
        name=f"arty_a7_{size}",
        title=f"Digilent Arty A7-{size}, XC7A{size}T",
        part=artix7(f"{size}t", f"xc7a{size}ticsg324-1L"),
        clock=ClockInput("clk100", 0, 100_000_000, "fabric"),
        clock_mhz=100,
        uart=Uart("uart", 0, FT2232H),
        toolchain="vivado",
        platform=platform,
        program=f"openFPGALoader -b arty_a7_{size}t {{bitstream}}",
    )


BOARDS = tuple(map(_board, ("35", "100")))
