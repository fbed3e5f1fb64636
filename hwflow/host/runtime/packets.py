"""Packets of the link protocol (docs/reference/protocol.md): their fields, CRC-32, COBS framing, identity, counters.

COBS by hand: a few lines, for which every host would need one more package.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

IDENTIFY, STATISTICS, OPEN, DATA, RESEND = range(0x01, 0x06)
IDENTITY, COUNTERS, OPENED, BOARD_DATA, DAMAGED = range(0x81, 0x86)

MASK = (1 << 32) - 1  # offsets wrap
MOST_ROOM = (1 << 16) - 1
OVERHEAD = 15  # bytes of a packet besides its payload
VERSION = 1  # of the protocol

_HEAD = struct.Struct("<BIIH")
_CRC = struct.Struct("<I")


class Packet(NamedTuple):
    """A packet that arrived whole."""

    kind: int
    offset: int
    acknowledged: int
    room: int
    payload: bytes


def pack(kind: int, offset: int, acknowledged: int, room: int, payload: bytes = b"") -> bytes:
    """Return the bytes of a packet, CRC included; offsets are taken modulo 2^32."""
    body = _HEAD.pack(kind, offset & MASK, acknowledged & MASK, room) + payload
    return body + _CRC.pack(crc32(body))


def unpack(data: bytes) -> Packet | None:
    """Return the packet in ``data``; None if it is damaged."""
    if len(data) < OVERHEAD or crc32(data[:-4]) != _CRC.unpack_from(data, len(data) - 4)[0]:
        return None
    kind, offset, acknowledged, room = _HEAD.unpack_from(data)
    return Packet(kind, offset, acknowledged, room, data[_HEAD.size : -4])


def distance(later: int, earlier: int) -> int:
    """Return how far offset ``later`` lies behind ``earlier``, -2^31 to 2^31 - 1: offsets wrap."""
    return ((later - earlier + (1 << 31)) & MASK) - (1 << 31)


def cobs_encode(data: bytes) -> bytes:
    """Return ``data`` without zero bytes, by COBS (Cheshire and Baker, 1999): each zero byte, and one that is thought
    behind the end, becomes the distance to the next. 254 other bytes in a row take one byte more."""
    parts: list[bytes] = []
    for block in data.split(b"\0"):
        while len(block) >= 254:
            parts += b"\xff", block[:254]
            block = block[254:]
        parts += _CODES[len(block) + 1], block
    return b"".join(parts)


def cobs_decode(data: bytes) -> bytes | None:
    """Return what :func:`cobs_encode` was given; None where no such thing exists."""
    parts: list[bytes] = []
    place, end = 0, len(data)
    while place < end:
        code = data[place]
        after = place + code
        if not code or after > end:
            return None
        parts.append(data[place + 1 : after])
        if code < 255 and after < end:
            parts.append(b"\0")
        place = after
    return b"".join(parts)


_CODES = [bytes([code]) for code in range(256)]


class StreamShape(NamedTuple):
    """A stream's frame: bytes per beat, beats per frame."""

    beat_bytes: int
    beats: int


@dataclass(frozen=True)
class Identity:
    """What a board says of its design. ``interval``: cycles per frame, as scheduled; buffers in bytes."""

    protocol: int
    model_sha256: str
    version: str
    interval: int
    clock_khz: int
    most_payload: int
    receive_buffer: int
    transmit_buffer: int
    inputs: tuple[StreamShape, ...]
    outputs: tuple[StreamShape, ...]

    def table(self) -> dict[str, Any]:
        """Return what JSON has of it."""
        streams = {
            name: [{"bytes_a_beat": s.beat_bytes, "beats": s.beats} for s in shapes]
            for name, shapes in (("inputs", self.inputs), ("outputs", self.outputs))
        }
        return {
            "protocol": self.protocol, "model_sha256": self.model_sha256, "version": self.version,
            "interval": self.interval, "clock_khz": self.clock_khz, "most_payload": self.most_payload,
            "receive_buffer": self.receive_buffer, "transmit_buffer": self.transmit_buffer, **streams,
        }


_IDENTITY = struct.Struct("<B32s3BIIHIIBB")
_SHAPE = struct.Struct("<HI")


def identity_from(payload: bytes) -> Identity | None:
    """Return the identity in a packet's payload; None if it is none of this protocol's."""
    if len(payload) < _IDENTITY.size or payload[0] != VERSION:
        return None
    protocol, sha256, *version, interval, clock, most, receive, transmit, inputs, outputs = (
        _IDENTITY.unpack_from(payload)
    )
    if len(payload) != _IDENTITY.size + _SHAPE.size * (inputs + outputs) or not most:
        return None
    shapes = tuple(StreamShape(*shape) for shape in _SHAPE.iter_unpack(payload[_IDENTITY.size :]))
    return Identity(
        protocol, sha256.hex(), ".".join(map(str, version)), interval, clock, most, receive, transmit,
        shapes[:inputs], shapes[inputs:],
    )


class Counters(NamedTuple):
    """What a board counted since the session began. ``cycles``: between the ends of two output frames, the least."""

    frames_in: int
    frames_out: int
    damaged: int
    beyond_gap: int
    cycles: int
    error: int


_COUNTERS = struct.Struct("<6I")


def counters_from(payload: bytes) -> Counters | None:
    """Return the counters in a packet's payload; None if it has another length."""
    return Counters(*_COUNTERS.unpack(payload)) if len(payload) == _COUNTERS.size else None
