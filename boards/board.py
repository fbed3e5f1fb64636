"""What hwflow knows of a board. Data only: a board's file fills these in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """An FPGA: what a design may use of it. ``source`` says where the counts come from."""

    family: str  # "ecp5", "ice40": chooses synthesis, place and route, and PLL
    device: str  # "LFE5U-85F", "iCE40UP5K"
    package: str  # as nextpnr spells it: "CABGA381", "sg48"
    speed_grade: str  # "6"; "" where the part has only one
    lut: int  # 4-input look-up tables
    ff: int  # flip-flops of the logic fabric
    dsp: int  # multiplier blocks
    dsp_width: int  # signed operand width of one block, bits
    bram: int  # block RAMs
    bram_bits: int  # bits of one block RAM
    source: str
    spram: int = 0  # single-port RAMs without initial contents
    spram_bits: int = 0  # bits of one of them


@dataclass(frozen=True)
class ClockInput:
    """The oscillator: the platform's resource, its frequency in Hz, and how it gets to the PLL.

    ``route``: "pad" when the pin is the PLL's own pad (iCE40), "fabric" otherwise.
    """

    resource: str
    number: int
    hz: int
    route: str


@dataclass(frozen=True)
class Uart:
    """The serial port at the board's USB: the platform's resource and the baud rate both ends use."""

    resource: str
    number: int
    baud: int


@dataclass(frozen=True)
class Board:
    """A board hwflow makes designs for.

    ``clock_mhz`` is the default target of the design's clock. ``platform`` makes a fresh amaranth-boards platform (one
    can be used only once); ``program`` is the command that loads the bitstream, with ``{bitstream}`` in it.
    """

    name: str  # what --board takes: lower case, digits, underscores
    title: str
    part: Part
    clock: ClockInput
    clock_mhz: float
    uart: Uart
    toolchain: str  # "trellis", "icestorm"
    platform: Callable[[], Any]
    program: str
