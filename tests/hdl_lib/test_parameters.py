"""Parameters that a core cannot have are refused when it is made, with what they must be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from amaranth.hdl import signed, unsigned

from hdl_lib.arithmetic.lane_functions import Expression
from hdl_lib.links.cobs import CobsEncoder
from hdl_lib.links.packet_receiver import PacketReceiver
from hdl_lib.links.packet_sender import PacketSender
from hdl_lib.links.ring import Ring
from hdl_lib.memories.address_walk import LoopAxis
from hdl_lib.memories.rom import Table
from hdl_lib.streams.elementwise import Elementwise
from hdl_lib.streams.joined import Joined
from hdl_lib.streams.lane_map import LaneMap

S8, U8 = signed(8), unsigned(8)
ADD = Expression((S8, S8), S8, "add")
NARROW, SHORT, LONG = Table((1, 2), None, 7, 2), Table((1, 2), None, 8, 2), Table((1, 2, 3), None, 8, 3)

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "function": (lambda: Expression((S8,), S8, "root"), "function must be one of .*, not 'root'"),
    "ring": (lambda: Ring(6), r"size must be a power of two of at least 4 \(bytes\), not 6"),
    "blocks": (lambda: CobsEncoder(300), r"size must be at least 512 \(bytes, two blocks\), not 300"),
    "receiver": (lambda: PacketReceiver(1024, 2), r"sendable must be a power of two of 4 to 32768 \(bytes\), not 2"),
    "sender": (
        lambda: PacketSender(1024, 1024, 65_536, b"a", 1),
        r"receivable must be a power of two of at most 32768 \(bytes\), not 65536",
    ),
    "identity": (lambda: PacketSender(1024, 512, 512, b"", 1), "identity must have 1 to 4096 bytes, not 0"),
    "rounds": (lambda: LoopAxis(0), "count must be at least 1, not 0"),
    "offsets": (lambda: LoopAxis(3, table=(1, 2)), r"table must have 3 entries \(count\), not 2"),
    "no offset": (lambda: LoopAxis(2, table=(None, None)), "table must have an offset, not None only"),
    "constants": (
        lambda: Elementwise(ADD, lanes=1, depth=2, constants=[1]), r"constants must be 2 \(one per operand\), not 1",
    ),
    "words": (
        lambda: Elementwise(ADD, lanes=1, depth=2, constants=[None, NARROW]), "words of a table must have 8 bits, not 7"
    ),
    "tables": (
        lambda: Elementwise(ADD, lanes=1, depth=2, constants=[SHORT, LONG]), "all tables must have as many words"
    ),
    "inputs": (lambda: Joined([], S8, lanes=1, channels=1, depth=2), "inputs must be 1 to .*, not 0"),
    "lane": (lambda: LaneMap(S8, 2, [2], S8, depth=2), r"source of lane 0 must be in 0\.\.1, not 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        make()
