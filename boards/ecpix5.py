"""LambdaConcept ECPIX-5: Lattice ECP5-5G 45F or 85F, 100 MHz oscillator, FT2232H serial port, gigabit
Ethernet (delays as in litex-boards)."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Ethernet, Uart
from .parts import ecp5
from .serial_chips import FT2232H


def _board(size: str) -> Board:
    def platform() -> Any:
        from amaranth_boards import ecpix5

        return getattr(ecpix5, f"ECPIX5{size.removesuffix('F')}Platform")()

    return Board(
        name=f"ecpix5_{size.lower()}",
        title=f"LambdaConcept ECPIX-5, ECP5-5G LFE5UM5G-{size}",
        part=ecp5(size, "CABGA554", "8", series="LFE5UM5G"),
        clock=ClockInput("clk100", 0, 100_000_000, "fabric"),
        clock_mhz=125,
        uart=Uart("uart", 0, FT2232H),
        ethernet=Ethernet("eth_rgmii", 0, "ctrl", tx_delay_ns=2, rx_delay_ns=0),  # KSZ9031
        toolchain="trellis",
        platform=platform,
        program="openFPGALoader -b ecpix5 {bitstream}",
    )


BOARDS = tuple(map(_board, ("45F", "85F")))
