"""Packets from a carrier: what a sound one says, and the bytes of one pipe in their order."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.links.packets import CHECK, HEADER, RECEIVED_BYTE, Kind, crc32
from hdl_lib.links.ring import Ring


class PacketReceiver(wiring.Component):
    """The board's receiving side of docs/reference/protocol.md.

    Payload goes into the free part of a ring as it comes. The ring's end moves on over it when the packet has proved to
    be sound and next in order; else the next packet is written over it. What a packet says of the other pipe is held
    back likewise, and passed to :class:`hdl_lib.links.packet_sender.PacketSender` with the strobes below, all in the
    cycle behind the packet's last byte.

    Parameters
    ----------
    size : int
        Bytes of the ring, a power of two: 4 to 32,768.
    sendable : int
        Bytes of the sender's ring, a power of two: 4 to 32,768.

    Members
    -------
    i : In(stream.Signature(RECEIVED_BYTE))
        Packets.
    o : Out(stream.Signature(8))
        The pipe's bytes.
    acknowledged : In(32), unacknowledged : In
        Of the sender's pipe: the offset up to which it is acknowledged, and the bytes that it holds from there on.
    arrived : Out(32)
        The offset up to which this pipe has arrived.
    at : Out
        The place in the ring (the lowest bits of an offset) up to which it is read.
    opened : Out(1)
        A session was begun since reset.
    begin, offset : Out
        Strobe: OPEN begins a session at ``offset`` (32 bits). From the next cycle on both pipes are there.
    acknowledge, advance, room : Out
        Strobe: so many bytes more are acknowledged, and so many may be sent from there on, at most the sender's ring.
    rewind : Out(1)
        Strobe: everything from the acknowledged offset on, after this ``advance``, is to be sent again.
    answer, identify, statistics, open, damaged, gap : Out(1)
        Strobes: a DATA or RESEND was taken or seen before; the other questions; a damaged packet; one beyond a gap.

    Timing
    ------
    One byte per cycle; ``i.ready`` is low for the cycle behind a packet's last byte (a register). The first byte of a
    payload shows at ``o`` 4 cycles after the packet's last one was accepted.
    """

    def __init__(self, size: int, sendable: int):
        for name, value in (("size", size), ("sendable", sendable)):
            if not isinstance(value, int) or not 4 <= value <= 32_768 or value & (value - 1):
                raise ValueError(f"{name} must be a power of two of 4 to 32768 (bytes), not {value!r}")
        self.ring = Ring(size)
        self.sendable = sendable
        strobes = ("begin", "acknowledge", "rewind", "answer", "identify", "statistics", "open", "damaged", "gap")
        super().__init__(
            {
                "i": In(stream.Signature(RECEIVED_BYTE)),
                "o": Out(stream.Signature(8)),
                "acknowledged": In(32),
                "unacknowledged": In(range(sendable + 1)),
                "arrived": Out(32),
                "at": Out(range(2 * size)),
                "opened": Out(1),
                "offset": Out(32),
                "advance": Out(range(2 * sendable)),
                "room": Out(range(sendable + 1)),
                **{name: Out(1) for name in strobes},
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring = ring = self.ring
        m.submodules.crc = crc = crc32().create()
        wiring.connect(m, ring.o, wiring.flipped(self.o))
        byte = self.i.payload.data

        # Where in the packet: -1 at the kind, 0 to 9 at the header's other bytes, then 10.
        payload_from = HEADER - 1
        position = Signal(4, init=15)
        judge = Signal()  # the cycle behind a packet's last byte
        take, inside, first = Signal(), Signal(), Signal()
        broken = Signal()
        m.d.comb += [
            self.i.ready.eq(~judge),
            take.eq(self.i.valid & ~judge),
            first.eq(position.all()),
            inside.eq(position == payload_from),
        ]
        m.d.sync += judge.eq(take & self.i.payload.last)
        with m.If(judge):
            m.d.sync += position.eq(15)
        with m.Elif(take & ~inside):
            m.d.sync += position.eq(position + 1)
        with m.If(take):
            m.d.sync += broken.eq(self.i.payload.damaged)
        m.d.comb += [crc.start.eq(judge), crc.valid.eq(take), crc.data.eq(byte)]

        kind = Signal(8, reset_less=True)
        with m.If(take & first):
            m.d.sync += kind.eq(byte)
        is_open = Signal()
        m.d.comb += is_open.eq(kind == Kind.OPEN)

        # The latest four bytes: payload behind them is not the CRC. Of OPEN they stay its offset.
        recent = Signal(32, reset_less=True)
        with m.If(take & ~(is_open & (position[2:] != 0) & ~first)):
            m.d.sync += recent.eq(Cat(recent[8:], byte))
        m.d.comb += self.offset.eq(recent)

        # The header's numbers less those they are compared with, byte after byte: offset - arrived, then
        # acknowledged - self.acknowledged.
        reference, difference = Signal(8), Signal(9)
        borrow, rest = Signal(), Signal()  # of the bytes before; any of these was not zero
        low = Signal()  # the first byte of a number
        m.d.comb += [
            low.eq(position[:2] == 0),
            reference.eq(Mux(position[2], self.acknowledged, self.arrived).word_select(position[:2], 8)),
            difference.eq(byte - reference - (borrow & ~low)),
        ]
        same, beyond, far = Signal(), Signal(), Signal()
        steps = len(self.advance)
        assert steps <= 16
        behind_low = Signal()  # acknowledged - self.acknowledged is not below 2 ** steps
        with m.If(take):
            m.d.sync += [borrow.eq(difference[8]), rest.eq(difference[:8].any() | (rest & ~low))]
            with m.If(position == 3):
                m.d.sync += [same.eq(~(rest | difference[:8].any())), beyond.eq(~difference[7])]
        with m.If(take & (position == 4)):
            m.d.sync += self.advance[: min(8, steps)].eq(difference)
            m.d.sync += behind_low.eq(difference[steps:8].any() if steps < 8 else 0)
        with m.If(take & (position == 5)):
            if steps > 8:
                m.d.sync += self.advance[8:].eq(difference)
            above = difference[max(0, steps - 8) : 8]
            m.d.sync += far.eq(behind_low | (above.any() if steps < 16 else 0))
        with m.If(take & ((position == 6) | (position == 7))):
            m.d.sync += far.eq(far | difference[:8].any())
        told = Cat(recent[24:], byte)  # the room, once its second byte is there
        with m.If(take & (position == 9)):
            m.d.sync += self.room.eq(Mux(told >= self.sendable, self.sendable, told))

        session, strange = Signal(32, reset_less=True), Signal()
        m.d.sync += strange.eq(session != recent)
        with m.If(self.begin):
            m.d.sync += session.eq(recent)

        # Bytes behind the header, up to four: then the oldest of the recent ones is payload.
        behind = Signal(range(CHECK + 1))
        delayed, full, blocked = Signal(), Signal(), Signal()
        write = Signal(len(ring.at) + 1)  # and a bit that says whether it passed the highest place
        place = write[:-1]
        m.d.comb += [
            delayed.eq(behind == CHECK),
            full.eq((place ^ ring.at) == ring.size),
            ring.place.eq(place),
            ring.byte.eq(recent[:8]),
            ring.write.eq(take & inside & delayed & ~full),
            ring.end.eq(self.arrived[: len(ring.end)]),
            ring.start.eq(ring.end),
            self.at.eq(ring.at),
        ]
        with m.If(first):
            m.d.sync += [write.eq(ring.end), behind.eq(0), blocked.eq(0)]
        with m.Elif(take & inside):
            with m.If(delayed):
                m.d.sync += blocked.eq(blocked | full)
                with m.If(~full):
                    m.d.sync += write.eq(write + 1)
            with m.Else():
                m.d.sync += behind.eq(behind + 1)

        sound, data, resend, new = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            sound.eq(judge & crc.match_detected & delayed & ~broken),
            data.eq(sound & self.opened & (kind == Kind.DATA)),
            resend.eq(sound & self.opened & (kind == Kind.RESEND)),
            self.damaged.eq(judge & ~sound),
            self.identify.eq(sound & (kind == Kind.IDENTIFY)),
            self.statistics.eq(sound & (kind == Kind.STATISTICS)),
            self.open.eq(sound & is_open),
            self.begin.eq(self.open & (strange | ~self.opened)),
            self.acknowledge.eq((data | resend) & ~far & (self.advance <= self.unacknowledged)),
            self.gap.eq(data & ~same & beyond),
            self.answer.eq((data & ~self.gap) | resend),
            self.rewind.eq((resend & self.acknowledge) | (self.open & ~self.begin)),
            new.eq(data & same & ~blocked),
        ]
        high = self.arrived[len(ring.end) :]
        with m.If(self.begin):
            m.d.sync += [self.arrived.eq(recent), self.opened.eq(1)]
        with m.Elif(new):
            m.d.sync += self.arrived[: len(ring.end)].eq(place)
        with m.If(new & write[-1]):
            m.d.sync += high.eq(high + 1)
        m.d.sync += ring.restart.eq(self.begin)
        return m
