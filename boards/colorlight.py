"""Colorlight receiver cards: i5 v7.0 and i9 v7.2 (Lattice ECP5 25F and 45F on a SODIMM, on the extension board of
wuxx/Colorlight-FPGA-Projects with its serial port), 5A-75B v7.0 (25F). 25 MHz oscillator.

Pins of i5 and i9, which amaranth-boards does not have: oscillator P3, serial port J17 (transmit) and H18 (receive),
as github.com/wuxx/Colorlight-FPGA-Projects documents them; Ethernet's (its eth 0), with the delays, and those of the
SDRAM as in litex-boards: 8 MB; the 5A-75B v7.0 has 4 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .board import Board, ClockInput, Ethernet, Memory, Uart
from .parts import ecp5
from .sdram_chips import M12L16161A, M12L64322A
from .serial_chips import ADAPTER, DAPLINK


def _module(size: str) -> Callable[[], Any]:
    def platform() -> Any:
        from amaranth.build import Attrs, Clock, Pins, PinsN, Resource, Subsignal
        from amaranth.vendor import LatticeECP5Platform
        from amaranth_boards.resources import SDRAMResource, UARTResource

        class ColorlightModulePlatform(LatticeECP5Platform):
            device = f"LFE5U-{size}"
            package = "BG381"
            speed = "6"
            default_clk = "clk25"
            resources = (
                Resource("clk25", 0, Pins("P3", dir="i"), Clock(25e6), Attrs(IO_TYPE="LVCMOS33")),
                UARTResource(0, rx="H18", tx="J17", attrs=Attrs(IO_TYPE="LVCMOS33")),
                SDRAMResource(
                    0, clk="B9", we_n="A10", ras_n="B10", cas_n="A9", ba="B11 C8",
                    a="B13 C14 A16 A17 B16 B15 A14 A13 A12 A11 B12",
                    dq="D15 E14 E13 D12 E12 D11 C10 B17 B8 A8 C7 A7 A6 B6 A5 B5 "
                       "D5 C5 D6 C6 E7 D7 E8 D8 E9 D9 E11 C11 C12 D13 D14 C15",
                    attrs=Attrs(IO_TYPE="LVCMOS33", SLEWRATE="FAST"),
                ),
                Resource(
                    "eth_rgmii", 0,
                    Subsignal("rst", PinsN("P4", dir="o")),
                    Subsignal("tx_clk", Pins("G1", dir="o")),
                    Subsignal("tx_ctl", Pins("K1", dir="o")),
                    Subsignal("tx_data", Pins("G2 H1 J1 J3", dir="o")),
                    Subsignal("rx_clk", Pins("H2", dir="i")),
                    Subsignal("rx_ctl", Pins("P2", dir="i")),
                    Subsignal("rx_data", Pins("K2 L1 N1 P1", dir="i")),
                    Attrs(IO_TYPE="LVCMOS33"),
                ),
            )
            connectors = ()

        return ColorlightModulePlatform()

    return platform


def _card() -> Any:
    from amaranth_boards.colorlight_5a75b_r7_0 import Colorlight_5A75B_R70Platform

    return Colorlight_5A75B_R70Platform()


def _board(
    name: str, title: str, size: str, package: str, uart: Uart, memory: Memory, platform: Callable[[], Any],
    *programs: str,
) -> Board:
    return Board(
        name=name,
        title=f"{title}, ECP5 LFE5U-{size}",
        part=ecp5(size, package, "6"),
        clock=ClockInput("clk25", 0, 25_000_000, "fabric"),
        clock_mhz=125,
        uart=uart,
        ethernet=Ethernet("eth_rgmii", 0, "ctl", tx_delay_ns=0, rx_delay_ns=2),  # B50612D
        memory=memory,
        toolchain="trellis",
        platform=platform,
        program=programs[0],
        other_programs=programs[1:],
    )


BOARDS = (
    _board(
        "colorlight_i5", "Colorlight i5 v7.0", "25F", "CABGA381", Uart("uart", 0, DAPLINK),
        Memory("sdram", 0, M12L64322A), _module("25F"),
        "openFPGALoader -b colorlight-i5 {bitstream}", "ecpdap program --freq 5000 {bitstream}",
    ),
    _board(
        "colorlight_i9", "Colorlight i9 v7.2", "45F", "CABGA381", Uart("uart", 0, DAPLINK),
        Memory("sdram", 0, M12L64322A), _module("45F"),
        "openFPGALoader -b colorlight-i9 {bitstream}", "ecpdap program --freq 5000 {bitstream}",
    ),
    _board(
        "colorlight_5a_75b", "Colorlight 5A-75B v7.0", "25F", "CABGA256",
        Uart("uart", 0, ADAPTER, "receive J19 KEY+, transmit J19 DATA_LED-"), Memory("sdram", 0, M12L16161A), _card,
        "openFPGALoader -c ft232 {bitstream}",
    ),
)
