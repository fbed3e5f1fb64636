"""UDP: a packet a datagram."""

from __future__ import annotations

import socket
from contextlib import suppress

from .host_errors import HostError, HostFinding, shown

_LONGEST = 1 << 16
_AT_ONCE = 64  # datagrams a read
_BUFFER = 1 << 21  # bytes that the system may keep


class UdpCarrier:
    """Carries packets by UDP to ``host``; see :class:`~.carrier.Carrier`."""

    backlog = 0

    def __init__(self, host: str, port: int) -> None:
        self.name = f"udp:{host}:{port}"
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            self._socket = socket.socket(family, kind, protocol)
            self._socket.setblocking(False)
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                self._socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
            self._socket.connect(address)
        except (OSError, UnicodeError) as error:
            message = f"must be a host that can be reached, but: {getattr(error, 'strerror', None) or error}"
            remedy = "check that the name is right and the network is up"
            raise HostError(HostFinding("port-open", f"port {shown(self.name)}", message, remedy)) from None

    def fileno(self) -> int:
        return self._socket.fileno()

    def write(self, packet: bytes) -> None:
        with suppress(OSError):  # no room, nobody there yet, no way there: it is lost, and will be sent again
            self._socket.send(packet)

    def flush(self) -> None:
        """Do nothing: what the system does not take is lost."""

    def read(self) -> list[bytes]:
        found: list[bytes] = []
        with suppress(OSError):  # nothing more; or nobody was there when something was sent
            while len(found) < _AT_ONCE:
                found.append(self._socket.recv(_LONGEST))
        return found

    def close(self) -> None:
        self._socket.close()
