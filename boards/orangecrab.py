"""OrangeCrab r0.2: Lattice ECP5 25F or 85F, 48 MHz oscillator. Its USB socket is wired to the FPGA itself (the boot
loader uses it, too); a serial port can be made of the two pins that a Feather board has for it."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Uart, Usb
from .parts import ecp5
from .serial_chips import ADAPTER


def _board(size: str) -> Board:
    def platform() -> Any:
        from amaranth.build import Attrs
        from amaranth_boards import orangecrab_r0_2
        from amaranth_boards.resources import UARTResource

        made = getattr(orangecrab_r0_2, f"OrangeCrabR0_2_{size}Platform")()
        made.add_resources([UARTResource(0, rx="0", tx="1", conn=("io", 0), attrs=Attrs(IO_TYPE="LVCMOS33"))])
        return made

    return Board(
        name=f"orangecrab_{size.lower()}",
        title=f"OrangeCrab r0.2, ECP5 LFE5U-{size}",
        part=ecp5(size, "CSFBGA285", "8"),
        clock=ClockInput("clk", 0, 48_000_000, "fabric"),
        clock_mhz=120,
        uart=Uart("uart", 0, ADAPTER, "receive 0 (RX), transmit 1 (TX)"),
        usb=Usb("usb", 0, default=True),
        toolchain="trellis",
        platform=platform,
        program="dfu-suffix -v 1209 -p 5af0 -a {bitstream} && dfu-util -a 0 -D {bitstream}",
        other_programs=("openFPGALoader -b orangeCrab {bitstream}",),
    )


BOARDS = tuple(map(_board, ("25F", "85F")))
