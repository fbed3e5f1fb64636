"""Digilent Basys 3: AMD Artix-7 35T, 100 MHz oscillator, FT2232HQ serial port.

Pins, which amaranth-boards does not have: oscillator W5, serial port B18 (receive) and A18 (transmit), as Digilent's
master constraints file (github.com/Digilent/digilent-xdc, Basys-3-Master.xdc) documents them.
"""

from __future__ import annotations

from typing import Any

from .board import Board, ClockInput, Uart
from .parts import artix7
from .serial_chips import FT2232H


def _platform() -> Any:
    from amaranth.build import Attrs, Clock, Pins, Resource
    from amaranth.vendor import XilinxPlatform
    from amaranth_boards.resources import UARTResource

    from .rtlil_platform import RtlilPlatform

    class Basys3Platform(RtlilPlatform, XilinxPlatform):
        device = "xc7a35t"
        package = "cpg236"
        speed = "1"
        default_clk = "clk100"
        resources = (
            Resource("clk100", 0, Pins("W5", dir="i"), Clock(100e6), Attrs(IOSTANDARD="LVCMOS33")),
            UARTResource(0, rx="B18", tx="A18", attrs=Attrs(IOSTANDARD="LVCMOS33")),
        )
        connectors = ()

        def toolchain_prepare(self, fragment: Any, name: str, **kwargs: Any) -> Any:
            voltage = "set_property CFGBVS VCCO [current_design]\nset_property CONFIG_VOLTAGE 3.3 [current_design]"
            return super().toolchain_prepare(fragment, name, add_constraints=voltage, **kwargs)

    return Basys3Platform()


BOARDS = (
    Board(
        name="basys3",
        title="Digilent Basys 3, XC7A35T",
        part=artix7("35t", "xc7a35tcpg236-1"),
        clock=ClockInput("clk100", 0, 100_000_000, "fabric"),
        clock_mhz=100,
        uart=Uart("uart", 0, FT2232H),
        toolchain="vivado",
        platform=_platform,
        program="openFPGALoader -b basys3 {bitstream}",
    ),
)
