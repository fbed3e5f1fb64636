"""Terasic DE10-Nano: Intel Cyclone V 5CSEBA6, 50 MHz oscillator. The serial port of its USB socket belongs to the ARM
processors, so the design's is on two pins of the Arduino header."""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Part, Uart
from .serial_chips import ADAPTER


def _platform() -> Any:
    from amaranth_boards.de10_nano import DE10NanoPlatform

    from .rtlil_platform import RtlilPlatform

    class Platform(RtlilPlatform, DE10NanoPlatform):
        pass

    return Platform()


BOARDS = (
    Board(
        name="de10_nano",
        title="Terasic DE10-Nano, Cyclone V 5CSEBA6",
        part=Part(
            family="cyclonev", device="5CSEBA6U23I7", package="", speed_grade="",
            lut=83_820, ff=166_036, dsp=224, dsp_width=18, bram=553, bram_bits=10_240,
            source="Intel CV-51001, Cyclone V device overview: two 4-input functions to an adaptive logic module; "
            "multipliers of 18 x 18 bits, two to a block",
        ),
        clock=ClockInput("clk50", 0, 50_000_000, "fabric"),
        clock_mhz=100,
        uart=Uart("uart", 0, ADAPTER, "receive Arduino IO0, transmit Arduino IO1"),
        toolchain="quartus",
        platform=_platform,
        program="quartus_pgm -m jtag -o 'P;{bitstream}@2'",
    ),
)
