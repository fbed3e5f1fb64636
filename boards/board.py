"""The description of a board. Data only: a board's file fills it in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hdl_lib.external.memory_timing import MemoryTiming
from hdl_lib.external.sdram import SdramChip, SdramTiming
from hdl_lib.external.spi_flash import SpiFlashChip, SpiFlashTiming
from hdl_lib.external.spram import SpramChip, SpramTiming

from .serial_chips import SerialChip


@dataclass(frozen=True)
class Part:
    """An FPGA and its resources. ``source``: where the counts come from."""

    family: str  # "ecp5", "ice40", "gowin", "xilinx7", "cyclonev": chooses synthesis, place and route, PLL, cost model
    device: str  # "LFE5U-85F", "iCE40UP5K", "GW1NR-LV9QN88PC6/I5", "xc7a35ticsg324-1L"
    package: str  # as nextpnr spells it: "CABGA381", "sg48"; "" where the device says it
    speed_grade: str  # "6"; "" where the part has only one, or the device says it
    lut: int  # look-up tables; see hwflow.cores.costs.family for what the cost model takes one for
    ff: int  # flip-flops of the logic fabric
    dsp: int  # multipliers
    dsp_width: int  # signed operand width of one multiplier, bits
    bram: int  # block RAMs
    bram_bits: int  # bits of one block RAM
    source: str
    spram: SpramChip | None = None  # single-port RAM without initial contents, all of it as one memory
    database: str = ""  # what nextpnr and the packer call the die, where the device does not say it: "GW1N-9C"
    clock_mhz: float | None = None  # of a design that is made for the part; None: any


@dataclass(frozen=True)
class ClockInput:
    """The oscillator: the platform's resource, its frequency in Hz, and its route to the PLL.

    ``route``: "pad" when the pin is the PLL's own pad (iCE40), "fabric" otherwise; "processor" where there is no pin:
    ``hz`` is then the PLL of the processor system, which divides it for the logic (Zynq).
    """

    resource: str
    number: int
    hz: int
    route: str


@dataclass(frozen=True)
class Uart:
    """A serial port: the platform's resource, and what is at the line's other end.

    ``adapter``: "" where the board's own USB socket is the port; else the pins a 3.3 V USB-to-serial adapter has to be
    connected to, as the board's print names them, from the board's side: "receive 0, transmit 1".
    """

    resource: str
    number: int
    chip: SerialChip
    adapter: str = ""


@dataclass(frozen=True)
class Usb:
    """A USB socket whose two data lines, and the pull-up of D+, are wired to the FPGA itself: the platform's resource.

    ``default``: it is the link unless another one is asked for.
    """

    resource: str
    number: int
    default: bool


@dataclass(frozen=True)
class Ethernet:
    """A gigabit PHY on RGMII: the platform's resource, how it ends its control lines' names ("ctl", "ctrl"), and by how
    many nanoseconds the FPGA delays the clock to the PHY and the data from it: 0 where the PHY does."""

    resource: str
    number: int
    control: str
    tx_delay_ns: float
    rx_delay_ns: float


@dataclass(frozen=True)
class Memory:
    """An SDRAM beside the FPGA: the platform's resource, and the chip, or what several side by side make together."""

    resource: str
    number: int
    chip: SdramChip

    def timing(self, clock_hz: Fraction) -> SdramTiming:
        """Return its timing at a clock."""
        return SdramTiming(self.chip, clock_hz)


@dataclass(frozen=True)
class Flash:
    """The flash that the bitstream is in, on four wires: the platform's resource and the chip. ``programs``: for each
    of the board's own, the command that writes the file ``{image}`` from byte ``{offset}`` on."""

    resource: str
    number: int
    chip: SpiFlashChip
    programs: tuple[str, ...]


@dataclass(frozen=True)
class ZynqSystem:
    """A design beside the processors of a Zynq, on AXI4-Streams to a DMA engine.

    ``board_part`` names Vivado's board files, which have the memory and the pins of the processors; if they are not
    installed the script uses defaults.
    """

    board_part: str
    crystal_mhz: float  # what the processors' PLL is fed with


@dataclass(frozen=True)
class Toolchain:
    """The tools that make a bitstream: ``vendor`` "" for open tools, else the program that must be installed.

    ``constraints``: endings of the files with pins and clocks, the pins first.
    """

    title: str
    vendor: str
    constraints: tuple[str, ...]


TOOLCHAINS: Mapping[str, Toolchain] = {
    "trellis": Toolchain("yosys, nextpnr, Project Trellis", "", ("lpf",)),
    "icestorm": Toolchain("yosys, nextpnr, Project IceStorm", "", ("pcf",)),
    "apicula": Toolchain("yosys, nextpnr, Project Apicula", "", ("cst",)),
    "vivado": Toolchain("AMD Vivado", "vivado", ("xdc",)),
    "quartus": Toolchain("Intel Quartus Prime", "quartus_sh", ("qsf", "sdc")),
}


@dataclass(frozen=True)
class Board:
    """A supported board.

    ``clock_mhz`` is the default target of the design's clock. ``platform`` makes a fresh amaranth-boards platform (one
    can be used only once); ``program`` is the command that loads the bitstream, with ``{bitstream}`` in it (or two of
    them, with && between), and ``other_programs`` are others that do. A board has a serial port (``uart``) or a
    processor system (``zynq``) to talk to, and perhaps Ethernet or a USB socket besides. ``memory``: one beside the
    part; ``flash``: one that weights can be read from.
    """

    name: str  # what --board takes: lower case, digits, underscores
    title: str
    part: Part
    clock: ClockInput
    clock_mhz: float
    uart: Uart | None
    toolchain: str  # a name of TOOLCHAINS
    platform: Callable[[], Any]
    program: str
    zynq: ZynqSystem | None = None
    ethernet: Ethernet | None = None
    usb: Usb | None = None
    memory: Memory | None = None
    flash: Flash | None = None
    other_programs: tuple[str, ...] = ()

    @property
    def tools(self) -> Toolchain:
        """The tools that :attr:`toolchain` names."""
        return TOOLCHAINS[self.toolchain]

    def memory_timing(self, clock_hz: Fraction) -> MemoryTiming | None:
        """Return the timing at a clock of what weights and streams may wait in: the memory beside the part, else the
        single-port RAM within it; None: there is neither."""
        if self.memory is not None:
            return self.memory.timing(clock_hz)
        return None if self.part.spram is None else SpramTiming(self.part.spram, clock_hz)

    def flash_timing(self, clock_hz: Fraction) -> SpiFlashTiming | None:
        """Return the timing at a clock of the flash, which weights alone may be read from; None: there is none."""
        return None if self.flash is None else SpiFlashTiming(self.flash.chip, clock_hz)

    @property
    def memory_bytes(self) -> int:
        """Return the size of that memory."""
        chip = self.part.spram if self.memory is None else self.memory.chip
        return 0 if chip is None else chip.bytes

    @property
    def transport(self) -> str:
        """What :attr:`uart` or :attr:`zynq` is, in a few words."""
        if self.uart is None:
            return "AXI4-Stream, DMA"
        return f"serial adapter: {self.uart.adapter}" if self.uart.adapter else "serial, USB"
