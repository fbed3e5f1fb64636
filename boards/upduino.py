"""tinyVision.ai UPduino 3: Lattice iCE40 UP5K, 12 MHz oscillator (its jumper OSC has to be closed: the oscillator
inside the FPGA is too coarse for a serial line). The USB bridge is wired to the flash, so the serial port is on two
pins."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Uart
from .parts import ICE40_UP5K
from .serial_chips import ADAPTER


def _platform() -> Any:
    from amaranth.build import Attrs
    from amaranth_boards.resources import UARTResource
    from amaranth_boards.upduino_v3 import UpduinoV3Platform

    made = UpduinoV3Platform()
    made.add_resources([UARTResource(0, rx="28", tx="38", attrs=Attrs(IO_STANDARD="SB_LVCMOS"))])
    return made


BOARDS = (
    Board(
        name="upduino_3",
        title="tinyVision.ai UPduino 3, iCE40 UP5K",
        part=ICE40_UP5K,
        clock=ClockInput("clk12", 0, 12_000_000, "fabric"),
        clock_mhz=42,
        uart=Uart("uart", 0, ADAPTER, "receive 28, transmit 38; jumper OSC closed"),
        toolchain="icestorm",
        platform=_platform,
        program="iceprog {bitstream}",
        other_programs=("openFPGALoader -b ice40_generic {bitstream}",),
    ),
)
