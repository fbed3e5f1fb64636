"""A USB socket wired to the FPGA itself: a serial device at full speed, and COBS on its bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from amaranth import ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import io, wiring
from amaranth.lib.cdc import ResetSynchronizer

from hdl_lib.clocks.pll_ecp5 import Ecp5Pll, Ecp5PllSettings, find_ecp5_pll
from hdl_lib.links.cobs import CobsDecoder, CobsEncoder, coded_bytes
from hdl_lib.links.usb_bytes import BytesFromUsb, BytesToUsb
from hwflow.codegen.board.carriers.board_carrier import Carrier, Pin
from hwflow.display import show
from hwflow.errors import UsageError

if TYPE_CHECKING:
    from hwflow.boards import Board

VENDOR, PRODUCT = 0x1209, 0x0001  # https://pid.codes/1209/0001: for tests, not to be sold
LINE_HZ = 48_000_000  # four samples a bit
TOLERANCE = Fraction(2, 1000)  # of the bit rate; USB 2.0, 7.1.11: 0.25 %, some of which is the oscillator's
PACKETS = 19  # of 64 bytes in a frame of a millisecond at the most: USB 2.0, table 5-9
PATIENCE = 128  # cycles of 12 MHz: longer than the pauses within a packet of the link
LONGEST_NAME = 60  # characters
_BAUD = 1_000_000


class UsbCarrier(Carrier):
    """A board's USB socket. ``name``: of the design, which the device shows."""

    name = "usb"
    shared = True

    def __init__(self, board: Board, clock_hz: Fraction, design: str = "hwflow") -> None:
        where = f"board {show(board.name)}"
        if board.usb is None:
            raise UsageError.of(
                "usb-socket", where, "must have a USB socket that is wired to the FPGA, not only another link",
                "leave out --usb, or choose a board with it (see 'hwflow boards')",
            )
        self.usb, self.design = board.usb, design
        self.settings: Ecp5PllSettings | None = None  # None: the line's clock is the design's
        if board.part.family == "ecp5":
            self.settings = find_ecp5_pll(board.clock.hz, LINE_HZ)
            assert abs(self.settings.output_hz / LINE_HZ - 1) <= TOLERANCE, "tested for every board"
        elif clock_hz != LINE_HZ:
            raise UsageError.of(
                "usb-clock", where,
                f"the clock of a design behind USB must be {LINE_HZ / 1e6:g} MHz where there is one PLL, not "
                f"{float(clock_hz) / 1e6:g}", f"leave out --clock, or have a serial adapter instead: --baud {_BAUD}",
            )
        if find_spec("luna") is None:
            raise UsageError.of(
                "package-present", "package luna-usb", "must be installed for a design behind USB, not missing",
                f"pip install 'hwflow[usb]', or have a serial port instead: --baud {_BAUD}",
            )
        super().__init__()

    def elaborate(self, platform: Any) -> Module:
        from hwflow.codegen.board.usb_device import UsbLines, UsbSerialDevice

        m = Module()
        self._clocks(m, platform)
        lines = UsbLines()
        resource = self.usb.resource, self.usb.number
        pins = platform.request(*resource, dir={line.name: "-" for line in platform.lookup(*resource).ios})
        for name in ("d_p", "d_n"):
            m.submodules[name] = buffer = io.Buffer("io", getattr(pins, name))
            line = getattr(lines, name)
            m.d.comb += [line.i.eq(buffer.i), buffer.o.eq(line.o), buffer.oe.eq(line.oe)]
        m.submodules.pullup = pullup = io.Buffer("o", pins.pullup)
        m.d.comb += pullup.o.eq(lines.pullup.o)

        m.submodules.device = device = UsbSerialDevice(lines, VENDOR, PRODUCT, self.design[:LONGEST_NAME])
        m.submodules.receiver = receiver = BytesFromUsb()
        m.submodules.sender = sender = BytesToUsb(PATIENCE)
        m.submodules.decoder = decoder = CobsDecoder()
        m.submodules.encoder = encoder = CobsEncoder()
        m.d.comb += [
            device.connect.eq(1),
            receiver.i.payload.eq(device.rx.payload),
            receiver.i.valid.eq(device.rx.valid),
            device.rx.ready.eq(receiver.i.ready),
            device.tx.payload.eq(sender.o.payload.data),
            device.tx.last.eq(sender.o.payload.last),
            device.tx.valid.eq(sender.o.valid),
            sender.o.ready.eq(device.tx.ready),
        ]
        wiring.connect(m, receiver.o, decoder.i)
        wiring.connect(m, decoder.o, wiring.flipped(self.received))
        wiring.connect(m, wiring.flipped(self.packets), encoder.i)
        wiring.connect(m, encoder.o, sender.i)
        return m

    def _clocks(self, m: Module, platform: Any) -> None:
        """Make the domains ``usb_io`` (48 MHz) and ``usb`` (12 MHz): of the oscillator, or of the design's clock."""
        m.domains.usb_io = ClockDomain()
        m.domains.usb = ClockDomain()
        lost = Signal()  # the clock is not to be relied on
        if self.settings is not None:
            m.submodules.pll = pll = Ecp5Pll(self.settings, ratio=4)
            m.d.comb += [
                pll.clk_in.eq(ClockSignal("oscillator")),
                ClockSignal("usb_io").eq(pll.clk_out),
                ClockSignal("usb").eq(pll.clk_divided),
                lost.eq(~pll.lock),
            ]
        else:
            quarter, count = Signal(name="usb_clock"), Signal(2)
            m.d.sync += [count.eq(count + 1), quarter.eq(count[1])]
            platform.add_clock_constraint(quarter, LINE_HZ / 4)
            m.d.comb += [ClockSignal("usb_io").eq(ClockSignal("sync")), ClockSignal("usb").eq(quarter)]
        for domain in ("usb_io", "usb"):
            m.submodules[f"{domain}_reset"] = ResetSynchronizer(ResetSignal("sync") | lost, domain=domain)

    @property
    def pins(self) -> Sequence[Pin]:
        port = f"{self.usb.resource}_{self.usb.number}"
        return (
            Pin("usb_d_p", f"{port}__d_p__io", output=True, pull="up"),
            Pin("usb_d_n", f"{port}__d_n__io", output=True, pull="down"),
            Pin("usb_pullup", f"{port}__pullup__io", output=True),
        )

    @property
    def bytes_per_second(self) -> Fraction:
        return Fraction(1000 * PACKETS * 64)

    def bytes_of(self, packet: int) -> int:
        return coded_bytes(packet)

    def table(self) -> Mapping[str, Any]:
        return {
            "transport": "USB serial device, full speed", "baud": None,
            "usb": [{"vendor": VENDOR, "product": PRODUCT}],
        }

    def simulated(self) -> Mapping[str, float]:
        return {"CLOCK_HZ": float(LINE_HZ)}  # the simulated board's one clock: the core may be slower than on the chip
