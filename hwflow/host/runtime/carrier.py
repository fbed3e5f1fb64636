"""What carries packets: a serial port, UDP. A port's name says which."""

from __future__ import annotations

from typing import Protocol

from .host_errors import USAGE, HostError, HostFinding, shown

UDP_PORT = 18519


class Carrier(Protocol):
    """Carries packets both ways, and may lose, damage, repeat and reorder them. Raises
    :class:`~.host_errors.LinkLost` when the port is gone."""

    name: str

    def fileno(self) -> int:
        """Return what to wait for until something can be read."""

    def write(self, packet: bytes) -> None:
        """Send a packet, or have it wait to be sent."""

    def flush(self) -> None:
        """Send of what waits as much as the system takes now."""

    @property
    def backlog(self) -> int:
        """Bytes that wait to be sent."""

    def read(self) -> list[bytes]:
        """Return what has arrived, a packet each, damaged ones included; never wait."""

    def close(self) -> None:
        """Give the port back."""


def open_carrier(port: str, baud: int | None = None) -> Carrier:
    """Open ``port``: "udp:HOST" or "udp:HOST:PORT", else a serial device. ``baud``: of the latter.

    Raises :class:`HostError` where there is no such port, or it cannot be used.
    """
    if not port.startswith("udp:"):
        from .serial_carrier import SerialCarrier

        return SerialCarrier(port, baud)
    from .udp_carrier import UdpCarrier

    host, _, number = port.removeprefix("udp:").partition(":")
    if not host or (number and not (number.isdecimal() and 0 < int(number) < 1 << 16)):
        message = f"must be udp:HOST or udp:HOST:PORT, not {shown(port)}"
        finding = HostFinding("port-name", "option --port", message, "for example udp:192.168.1.50")
        raise HostError(finding, exit_code=USAGE)
    return UdpCarrier(host, int(number or UDP_PORT))
