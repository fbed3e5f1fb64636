"""A serial port: COBS on an asynchronous line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from amaranth import Module
from amaranth.lib import io, wiring

from hdl_lib.links.cobs import CobsDecoder, CobsEncoder, coded_bytes
from hdl_lib.links.uart import MINIMUM_DIVISOR, UartRx, UartTx, divisor_for
from hwflow.codegen.board.carriers.board_carrier import Carrier, Pin
from hwflow.display import show
from hwflow.errors import Finding, UsageError

if TYPE_CHECKING:
    from hwflow.boards import Board, SerialChip

MOST_ERROR = Fraction(2, 100)
"""Of a baud rate. A receiver that samples in mid-bit tolerates 5 % between both ends; the rest is for slow edges."""


class SerialCarrier(Carrier):
    """A board's serial port at ``baud`` (None: the highest that its chip makes and the clock reaches)."""

    name = "serial"

    def __init__(self, board: Board, clock_hz: Fraction, baud: int | None = None) -> None:
        if board.uart is None:  # uncovered: a defect of ours
            raise ValueError(f"board must have a serial port, not {board.name}")
        self.uart = board.uart
        self.clock_hz = clock_hz
        self.baud = self.uart.chip.within(clock_hz / MINIMUM_DIVISOR) if baud is None else baud
        _check_baud(self.uart.chip, self.baud, clock_hz, board.name)
        self.divisor = divisor_for(clock_hz, self.baud)
        super().__init__()

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        uart = self.uart
        lines = {line.name: "-" for line in platform.lookup(uart.resource, uart.number).ios}
        pins = platform.request(uart.resource, uart.number, dir=lines)
        m.submodules.rx_buffer = rx = io.Buffer("i", pins.rx)
        m.submodules.tx_buffer = tx = io.Buffer("o", pins.tx)
        m.submodules.receiver = receiver = UartRx(self.divisor)
        m.submodules.transmitter = transmitter = UartTx(self.divisor)
        m.submodules.decoder = decoder = CobsDecoder()
        m.submodules.encoder = encoder = CobsEncoder()
        # a byte that the receiver drops makes the packet wrong, which its CRC says
        m.d.comb += [receiver.rx.eq(rx.i), tx.o.eq(transmitter.tx)]
        wiring.connect(m, receiver.o, decoder.i)
        wiring.connect(m, decoder.o, wiring.flipped(self.received))
        wiring.connect(m, wiring.flipped(self.packets), encoder.i)
        wiring.connect(m, encoder.o, transmitter.i)
        return m

    @property
    def pins(self) -> Sequence[Pin]:
        port = f"{self.uart.resource}_{self.uart.number}"
        return Pin("uart_rx", f"{port}__rx__io", output=False), Pin("uart_tx", f"{port}__tx__io", output=True)

    @property
    def bytes_per_second(self) -> Fraction:
        return self.clock_hz / (10 * self.divisor)  # start bit, eight bits, stop bit

    def bytes_of(self, packet: int) -> int:
        return coded_bytes(packet)

    def table(self) -> Mapping[str, Any]:
        made = self.uart.chip.nearest(self.baud)
        return {
            "baud": self.baud,
            "baud_error": float(self.clock_hz / self.divisor / made - 1),
            "cycles_per_bit": float(self.divisor),
            "adapter": self.uart.adapter,
            "usb": [{"vendor": vendor, "product": product} for vendor, product in self.uart.chip.usb],
        }

    def simulated(self) -> Mapping[str, float]:
        return {"BAUD": float(self.baud)}


def _check_baud(chip: SerialChip, baud: int, clock_hz: Fraction, board: str) -> None:
    """Raise :class:`UsageError` unless the clock reaches ``baud``, and the chip makes it within 2 %."""
    most, made = int(clock_hz // MINIMUM_DIVISOR), chip.nearest(baud)
    if baud > most:
        message = (
            f"baud rate must be at most {most}, a {MINIMUM_DIVISOR}th of the clock ({float(clock_hz) / 1e6:g} MHz), "
            f"not {baud}"
        )
        remedy = f"ask for '--baud {chip.within(most)}' or for a higher --clock"
    elif abs(clock_hz / divisor_for(clock_hz, baud) / made - 1) > MOST_ERROR:
        message = f"baud rate must be one that its {chip.title} makes within 2 %, not {baud}"
        remedy = f"the nearest one is '--baud {round(made)}'"
    else:
        return
    raise UsageError(Finding("baud-reachable", f"board {show(board)}", message, remedy))
