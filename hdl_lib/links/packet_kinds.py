"""The packets of a link, as docs/reference/protocol.md specifies them, and how they travel on streams."""

from __future__ import annotations

from enum import IntEnum

from amaranth.lib import data

VERSION = 1
HEADER = 11  # bytes before the payload: kind, offset, acknowledged, room
CHECK = 4  # bytes behind it: the CRC

# A packet's byte; ``last`` is set with its last one.
PACKET_BYTE = data.StructLayout({"data": 8, "last": 1})
# What arrives may be known to be wrong: ``damaged``, looked at with ``last``.
RECEIVED_BYTE = data.StructLayout({"data": 8, "last": 1, "damaged": 1})


class Kind(IntEnum):
    """The first byte of a packet."""

    IDENTIFY = 0x01
    STATISTICS = 0x02
    OPEN = 0x03
    DATA = 0x04
    RESEND = 0x05
    IDENTITY = 0x81
    COUNTERS = 0x82
    OPENED = 0x83
    BOARD_DATA = 0x84
    DAMAGED = 0x85
