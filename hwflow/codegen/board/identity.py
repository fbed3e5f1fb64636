"""What a board says of itself, as docs/reference/protocol.md has it, and the buffers that its part has room for."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hdl_lib.links.packet_kinds import VERSION

if TYPE_CHECKING:
    from hwflow.boards.board import Part

SHARE = 12  # of the part's block RAM, that a buffer takes one part of at the most
LARGEST = 8192  # bytes of a buffer: 7 ms at 12 Mbaud, longer than a USB host lets a chip wait
MOST_PAYLOAD = 512  # bytes: 97 % of a serial line's are payload then, and a damaged packet costs little


@dataclass(frozen=True)
class FramePort:
    """A stream of the design: bytes a beat and beats a frame."""

    bytes_per_beat: int
    beats: int

    @property
    def bytes(self) -> int:
        """Return the bytes a frame."""
        return self.bytes_per_beat * self.beats


@dataclass(frozen=True)
class Buffers:
    """Bytes of the link's two buffers, powers of two that fill their block RAMs, and of a packet's payload at most."""

    receive: int
    transmit: int
    payload: int

    @classmethod
    def of(cls, part: Part) -> Buffers:
        """Return those for a part: each a :data:`SHARE` of the block RAM, of at most :data:`LARGEST` bytes."""
        block = 1 << (part.bram_bits // 8).bit_length() - 1
        most = min(LARGEST, part.bram * block // SHARE)
        size = max(block, 1 << most.bit_length() - 1)
        # an acknowledgement is up to three packets late: it waits for one, and comes with another one
        return cls(size, size, min(MOST_PAYLOAD, size // 4))


def identity(
    manifest: Mapping[str, Any], clock_hz: Fraction, buffers: Buffers, sources: Sequence[FramePort],
    sinks: Sequence[FramePort],
) -> bytes:
    """Return the payload of IDENTITY for a design described by ``manifest.json``."""
    version = [int(n) for n in re.findall(r"\d+", manifest["versions"]["hwflow"] or "")[:3]]
    return b"".join(
        [
            struct.pack("<B", VERSION),
            bytes.fromhex(manifest["model_file"]["sha256"]),
            bytes((*version, 0, 0, 0)[:3]),
            struct.pack("<II", manifest["timing"]["initiation_interval"], round(clock_hz / 1000)),
            struct.pack("<HII", buffers.payload, buffers.receive, buffers.transmit),
            struct.pack("<BB", len(sources), len(sinks)),
            *(struct.pack("<HI", port.bytes_per_beat, port.beats) for port in (*sources, *sinks)),
        ]
    )
