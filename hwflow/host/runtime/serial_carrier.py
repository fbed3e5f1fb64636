"""A serial port, or a USB serial device, or a pseudo-terminal: packets in COBS, each ended by a zero byte."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from .host_errors import HostError, HostFinding, LinkLost, shown
from .packets import cobs_decode, cobs_encode

BAUD = 1_000_000
_LONGEST = 1 << 17  # bytes without a zero byte: no packet
LATENCY_MS = 1


class SerialCarrier:
    """Carries packets over a serial device; see :class:`~.carrier.Carrier`."""

    def __init__(self, device: str, baud: int | None = None) -> None:
        try:
            import serial
        except ImportError:
            message = "must be installed for a serial port, not missing"
            finding = HostFinding("package-present", "package pyserial", message, "pip install pyserial")
            raise HostError(finding) from None
        self.name = device
        where = f"port {shown(device)}"
        try:
            self._port = serial.Serial(device, baud or BAUD, timeout=0, exclusive=True)
            self._file: int = self._port.fileno()
        except (OSError, ValueError) as error:  # pyserial's own are kinds of OSError
            raise HostError(_unusable(where, device, baud, error)) from None
        self._in, self._out = bytearray(), bytearray(b"\0")  # the end of whatever was sent before
        set_latency(device)
        with suppress(Exception):  # where the driver has no such mode
            self._port.set_low_latency_mode(True)

    @property
    def backlog(self) -> int:
        return len(self._out)

    def fileno(self) -> int:
        return self._file

    def write(self, packet: bytes) -> None:
        self._out += cobs_encode(packet)
        self._out.append(0)
        self.flush()

    def flush(self) -> None:
        try:
            while self._out:
                del self._out[: os.write(self._file, self._out)]
        except BlockingIOError:
            pass
        except OSError as error:
            raise self._gone(error) from None

    def read(self) -> list[bytes]:
        try:
            data = os.read(self._file, 1 << 16)
        except OSError as error:
            raise self._gone(error) from None
        if not data:
            raise self._gone(None)
        self._in += data
        *parts, rest = self._in.split(b"\0")
        if len(rest) > _LONGEST:
            parts.append(rest[:64])
            rest = bytearray()
        self._in = bytearray(rest)
        found = []
        for part in parts:
            if part:
                packet = cobs_decode(bytes(part))
                found.append(bytes(part) if packet is None else packet)  # its checksum will be wrong
        return found

    def close(self) -> None:
        with suppress(OSError):
            self._port.close()

    def _gone(self, error: OSError | None) -> LinkLost:
        reason = (error.strerror or str(error)) if error is not None else "it was closed at the other end"
        message = f"must stay while frames are under way, but it vanished: {reason}"
        return LinkLost(
            HostFinding("port-vanished", f"port {shown(self.name)}", message, "plug the cable in, and run it again")
        )


def set_latency(device: str, system: Path = Path("/sys/bus/usb-serial/devices")) -> None:
    """Set the timer after which an FTDI chip sends what it has to :data:`LATENCY_MS`, where the system allows."""
    with suppress(OSError):
        (system / Path(os.path.realpath(device)).name / "latency_timer").write_text(str(LATENCY_MS))


def _unusable(where: str, device: str, baud: int | None, error: Exception) -> HostFinding:
    reason = str(getattr(error, "strerror", None) or error)
    if "lock" in reason.lower() or "busy" in reason.lower():
        message = "must be used by one program at a time, not while another has it"
        return HostFinding("port-busy", where, message, "end the other program")
    if not os.path.exists(device):
        remedy = "plug the board in, or name another --port"
        return HostFinding("port-open", where, "must be a device, not missing", remedy)
    if isinstance(error, ValueError):
        reason = f"the baud rate {baud} is not one that it has"
    return HostFinding(
        "port-open", where, f"must be a serial device that can be opened, but: {shown(reason)}",
        "check that you may use it (group dialout), and that --baud is one that it has",
    )
