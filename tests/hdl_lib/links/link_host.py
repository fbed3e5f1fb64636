"""A host's end of the link protocol for tests: packets, COBS, and a host that sends again until all has arrived.

Written from docs/reference/protocol.md, with zlib's CRC; nothing of it is shared with the hardware.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

IDENTIFY, STATISTICS, OPEN, DATA, RESEND = range(1, 6)
IDENTITY, COUNTERS, OPENED, BOARD_DATA, DAMAGED = range(0x81, 0x86)
WRAP = 1 << 32


@dataclass(frozen=True)
class Packet:
    """A packet's fields."""

    kind: int
    offset: int = 0
    acknowledged: int = 0
    room: int = 0
    payload: bytes = b""

    def encode(self) -> bytes:
        body = struct.pack("<BIIH", self.kind, self.offset % WRAP, self.acknowledged % WRAP, self.room) + self.payload
        return body + struct.pack("<I", zlib.crc32(body))

    @classmethod
    def decode(cls, data: bytes) -> Packet | None:
        """The packet, or None if it is damaged."""
        if len(data) < 15 or zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
            return None
        return cls(*struct.unpack("<BIIH", data[:11]), data[11:-4])


def cobs(packet: bytes) -> bytes:
    """Encode by the definition: split at the zeros, each part in blocks of at most 254."""
    out = bytearray()
    parts = packet.split(b"\0")
    for number, part in enumerate(parts):
        while len(part) >= 254:
            out += b"\xff" + part[:254]
            part = part[254:]
            if not part and number == len(parts) - 1:
                return bytes(out) + b"\0"  # a full block at the end hides no zero
        out += bytes([len(part) + 1]) + part
    return bytes(out) + b"\0"


def uncobs(coded: bytes) -> bytes | None:
    """Decode what stands before a zero; None if the last block is cut short."""
    out, at, hidden = bytearray(), 0, False
    while at < len(coded):
        code = coded[at]
        if hidden:
            out.append(0)
        if at + code > len(coded):
            return None
        out += coded[at + 1 : at + code]
        hidden = code != 255
        at += code
    return bytes(out)


@dataclass
class Host:
    """Go-back-N both ways. ``step`` makes the next packet, ``take`` takes one (its bytes as received)."""

    send: bytes  # all that goes to the core
    wanted: int  # bytes that come back
    offset: int = 0xFFFFFF00  # so that offsets wrap
    room: int = 300  # that the board is given
    cut: int = 100  # bytes of payload in a packet at most
    received: bytearray = field(default_factory=bytearray)
    opened: bool = False
    acknowledged: int = 0  # of `send`
    sent: int = 0
    limit: int = 0  # that the board has room for
    resend: bool = False
    again: bool = False  # a packet that repeats what the board may not have got is due
    told: int = -1  # bytes that the last packet acknowledged
    seen: list[Packet] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return self.opened and self.acknowledged == len(self.send) and len(self.received) == self.wanted

    def _packet(self, kind: int, payload: bytes = b"") -> bytes:
        self.told = len(self.received)
        return Packet(kind, self.offset + self.sent, self.offset + len(self.received), self.room, payload).encode()

    def timeout(self) -> None:
        """Nothing has come for a while."""
        self.sent, self.again, self.resend = self.acknowledged, True, True

    def step(self) -> bytes | None:
        """The next packet, or None if there is nothing to say."""
        if not self.opened:
            if not self.again:
                return None
            self.again = False
            return Packet(OPEN, self.offset).encode()
        if self.resend:
            self.resend = False
            return self._packet(RESEND)
        payload = self.send[self.sent : min(self.limit, self.sent + self.cut)]
        if payload or self.again or self.told != len(self.received):
            self.again = False
            packet = self._packet(DATA, payload)
            self.sent += len(payload)
            return packet
        return None

    def take(self, data: bytes | None) -> None:
        packet = None if data is None else Packet.decode(data)
        if packet is None:
            self.resend = self.opened
            return
        self.seen.append(packet)
        if packet.kind == OPENED and packet.offset == self.offset:
            self.opened, self.limit = True, packet.room
            self.acknowledged = self.sent = 0
        if not self.opened or packet.kind not in (BOARD_DATA, DAMAGED):
            return
        new = (packet.acknowledged - self.offset - self.acknowledged) % WRAP
        if new <= len(self.send) - self.acknowledged:
            self.acknowledged += new
            self.sent = max(self.sent, self.acknowledged)
            self.limit = max(self.limit, self.acknowledged + packet.room)
            if packet.kind == DAMAGED:
                self.sent = self.acknowledged
        behind = (self.offset + len(self.received) - packet.offset) % WRAP
        if behind <= len(packet.payload):
            self.received += packet.payload[behind:]
        elif behind >= WRAP // 2 and packet.payload:
            self.resend = True
