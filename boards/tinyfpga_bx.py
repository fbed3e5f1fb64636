"""TinyFPGA BX: Lattice iCE40 LP8K, 16 MHz oscillator. Its USB socket is wired to the FPGA itself (the boot
loader uses it, too); a serial port can be made of two pins of the header."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Part, Uart, Usb
from .serial_chips import ADAPTER


def _platform() -> Any:
    from amaranth.build import Attrs
    from amaranth_boards.resources import UARTResource
    from amaranth_boards.tinyfpga_bx import TinyFPGABXPlatform

    made = TinyFPGABXPlatform()
    made.add_resources([UARTResource(0, rx="1", tx="2", conn=("gpio", 0), attrs=Attrs(IO_STANDARD="SB_LVCMOS"))])
    return made


BOARDS = (
    Board(
        name="tinyfpga_bx",
        title="TinyFPGA BX, iCE40 LP8K",
        part=Part(
            family="ice40", device="iCE40LP8K", package="cm81", speed_grade="",
            lut=7680, ff=7680, dsp=0, dsp_width=16, bram=32, bram_bits=4096,
            source="Lattice FPGA-DS-02029, iCE40 LP/HX family data sheet; agrees with nextpnr-ice40",
        ),
        clock=ClockInput("clk16", 0, 16_000_000, "fabric"),
        clock_mhz=48,
        uart=Uart("uart", 0, ADAPTER, "receive 1, transmit 2"),
        usb=Usb("usb", 0, default=True),
        toolchain="icestorm",
        platform=_platform,
        program="tinyprog -p {bitstream}",
    ),
)
