"""Two reliable pipes between a core and a host, over a carrier of packets that may be lost, damaged or repeated."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.links.link_counters import COUNTERS, LinkCounters
from hdl_lib.links.packet_kinds import PACKET_BYTE, RECEIVED_BYTE
from hdl_lib.links.packet_receiver import PacketReceiver
from hdl_lib.links.packet_sender import PacketSender

STROBES = ("begin", "acknowledge", "rewind", "answer", "open", "identify", "statistics")


class ReliableLink(wiring.Component):
    """The board's end of the protocol in docs/reference/protocol.md, which knows nothing of the carrier.

    Parameters
    ----------
    receive_bytes, transmit_bytes : int
        Bytes of the rings to and from the core, powers of two: 4 to 32,768.
    most_payload : int
        Bytes of payload in a packet to the host at most, a power of two.
    identity : bytes
        The payload of the packet IDENTITY, 1 to 4096 bytes.
    ratio : int
        Cycles of the core in one of the link's.

    Members
    -------
    i : In(stream.Signature(RECEIVED_BYTE)), o : Out(stream.Signature(PACKET_BYTE))
        Packets from and to the carrier.
    to_core : Out(stream.Signature(8)), from_core : In(stream.Signature(8))
        The pipes. What is offered in a cycle with ``core_reset`` is of no session.
    core_reset : Out(1)
        A session begins: the core, and all that lies between it and the pipes, must be reset while it is high. A
        register; also high after reset.
    core_error, frame_in, frame_out : In(1)
        The core's sticky error; high in a cycle in which the last byte of a frame goes to the core, or comes from it.

    Timing
    ------
    As :class:`hdl_lib.links.packet_receiver.PacketReceiver` and :class:`hdl_lib.links.packet_sender.PacketSender`.
    """

    def __init__(self, receive_bytes: int, transmit_bytes: int, most_payload: int, identity: bytes, ratio: int = 1):
        self.counters = LinkCounters(ratio)
        self.receiver = PacketReceiver(receive_bytes, transmit_bytes)
        self.sender = PacketSender(transmit_bytes, most_payload, receive_bytes, identity, 4 * COUNTERS)
        super().__init__(
            {
                "i": In(stream.Signature(RECEIVED_BYTE)),
                "o": Out(stream.Signature(PACKET_BYTE)),
                "to_core": Out(stream.Signature(8)),
                "from_core": In(stream.Signature(8)),
                "core_reset": Out(1, init=1),
                **{name: In(1) for name in ("core_error", "frame_in", "frame_out")},
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = self.receiver
        m.submodules.sender = sender = self.sender
        m.submodules.counters = counters = self.counters
        wiring.connect(m, wiring.flipped(self.i), receiver.i)
        wiring.connect(m, receiver.o, wiring.flipped(self.to_core))
        wiring.connect(m, wiring.flipped(self.from_core), sender.i)
        wiring.connect(m, sender.o, wiring.flipped(self.o))
        m.d.comb += [
            *(getattr(sender, name).eq(getattr(receiver, name)) for name in (*STROBES, "offset", "advance", "room")),
            sender.damaged.eq(receiver.opened & (receiver.damaged | receiver.gap)),
            sender.arrived.eq(receiver.arrived),
            sender.read.eq(receiver.at),
            receiver.acknowledged.eq(sender.acknowledged),
            receiver.unacknowledged.eq(sender.unacknowledged),
            self.core_reset.eq(sender.begun),
            counters.clear.eq(sender.begun),
            counters.damaged.eq(receiver.damaged),
            counters.gap.eq(receiver.gap),
            counters.error.eq(self.core_error),
            counters.frame_in.eq(self.frame_in),
            counters.frame_out.eq(self.frame_out),
            counters.place.eq(sender.place),
            counters.hold.eq(sender.hold),
            sender.held.eq(counters.held),
            sender.byte.eq(counters.byte),
        ]
        return m
