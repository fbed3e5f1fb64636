"""Packets from a carrier: what a sound one says, and the bytes of one pipe in their order."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import stepped
from hdl_lib.links.crc import Crc32
from hdl_lib.links.packet_kinds import CHECK, HEADER, RECEIVED_BYTE, Kind
from hdl_lib.links.ring import Ring


class PacketReceiver(wiring.Component):
    """The board's receiving side of docs/reference/protocol.md.

    Payload goes into the free part of a ring as it comes. The ring's end moves on over it when the packet has proved to
    be sound and next in order; else the next packet is written over it. What a packet says of the other pipe is held
    back likewise, and passed to :class:`hdl_lib.links.packet_sender.PacketSender` with the strobes below: registers,
    all in the third cycle behind the packet's last byte.

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
    A byte a cycle; ``i.ready`` is low for three cycles behind a packet's last byte (three registers). The first byte of
    a payload shows at ``o`` 6 cycles after the packet's last one was accepted.
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
        m.submodules.crc = crc = Crc32()
        wiring.connect(m, ring.o, wiring.flipped(self.o))
        byte = self.i.payload.data

        # Where in the packet: -1 at the kind, 0 to 9 at the header's other bytes, then 10.
        payload_from = HEADER - 1
        position = Signal(4, init=15)
        following = Signal(4)
        ended, judge, judged = Signal(), Signal(), Signal()  # one, two and three cycles behind a packet's last byte
        take, inside, first = Signal(), Signal(), Signal()
        broken = Signal()
        m.d.comb += [
            self.i.ready.eq(~(ended | judge | judged)),
            take.eq(self.i.valid & self.i.ready),
            first.eq(position.all()),
            following.eq(position + 1),
            inside.eq(position == payload_from),
        ]
        m.d.sync += [ended.eq(take & self.i.payload.last), judge.eq(ended), judged.eq(judge)]
        with m.If(judge):
            m.d.sync += position.eq(15)
        with m.Elif(take & ~inside):
            m.d.sync += position.eq(following)
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
        # acknowledged - self.acknowledged. What is subtracted stands ready, complemented, and so does the difference a
        # cycle later, whose highest bit is what is carried on.
        reference, difference = Signal(8, reset_less=True), Signal(9, reset_less=True)
        carry = Signal()
        m.d.comb += carry.eq(difference[8] | (position[:2] == 0))
        taken, place_taken = Signal(), Signal(4, reset_less=True)
        m.d.sync += [taken.eq(take), place_taken.eq(position)]
        with m.If(take):
            m.d.sync += [
                reference.eq(~Mux(following[2], self.acknowledged, self.arrived).word_select(following[:2], 8)),
                difference.eq((Cat(1, byte) + Cat(carry, reference))[1:]),
            ]
        rest, other = Signal(), Signal()  # any of the number's bytes before was not zero; this one is not
        low = place_taken[:2] == 0  # the first byte of a number
        m.d.comb += other.eq(difference[:8].any())
        same, beyond, far = Signal(), Signal(), Signal()
        steps = len(self.advance)
        assert steps <= 16
        behind_low = Signal()  # acknowledged - self.acknowledged is not below 2 ** steps
        with m.If(taken):
            m.d.sync += rest.eq(other | (rest & ~low))
            with m.If(place_taken == 3):
                m.d.sync += [same.eq(~(rest | other)), beyond.eq(~difference[7])]
            with m.If(place_taken == 4):
                m.d.sync += self.advance[: min(8, steps)].eq(difference)
                m.d.sync += behind_low.eq(difference[steps:8].any() if steps < 8 else 0)
            with m.If(place_taken == 5):
                if steps > 8:
                    m.d.sync += self.advance[8:].eq(difference)
                above = difference[max(0, steps - 8) : 8]
                m.d.sync += far.eq(behind_low | (above.any() if steps < 16 else 0))
            with m.If((place_taken == 6) | (place_taken == 7)):
                m.d.sync += far.eq(far | other)
        told = Cat(recent[24:], byte)  # the room, once its second byte is there
        with m.If(take & (position == 9)):
            m.d.sync += self.room.eq(Mux(told >= self.sendable, self.sendable, told))

        within = Signal()  # known long before the packet ends
        m.d.sync += within.eq(~far & (self.advance <= self.unacknowledged))

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
            ring.end.eq(self.arrived[: len(ring.end)]),
            ring.start.eq(ring.end),
            self.at.eq(ring.at),
        ]
        onward = Signal()
        m.d.comb += onward.eq(take & inside & delayed & ~full & ~first)
        # Long before `ring.end` lets it be read: whether a byte moves and the memory are far from each other.
        m.d.sync += [ring.write.eq(onward), ring.place.eq(place), ring.byte.eq(recent[:8])]
        with m.If(first | onward):
            m.d.sync += write.eq(stepped(write, first, ring.end))
        with m.If(first):
            m.d.sync += [behind.eq(0), blocked.eq(0)]
        with m.Elif(take & inside):
            with m.If(delayed):
                m.d.sync += blocked.eq(blocked | full)
            with m.Else():
                m.d.sync += behind.eq(behind + 1)

        # Decided in registers: what a strobe moves is wide.
        sound = Signal()
        m.d.sync += sound.eq(crc.match_detected & delayed & ~broken)
        was = {name: Signal(name=f"was_{name}") for name in ("identify", "statistics", "open", "data", "resend")}
        for name, flag in was.items():
            m.d.sync += flag.eq(kind == Kind[name.upper()])
        good, data, resend, opening, late = Signal(), Signal(), Signal(), Signal(), Signal()
        new = Signal()  # the pipe moves on by the packet's payload
        renewed = Signal()
        m.d.comb += [
            good.eq(judge & sound),
            data.eq(good & self.opened & was["data"]),
            resend.eq(good & self.opened & was["resend"]),
            opening.eq(good & was["open"]),
            renewed.eq(~strange & self.opened),
            late.eq(~same & beyond),
        ]
        m.d.sync += [
            self.damaged.eq(judge & ~sound),
            self.identify.eq(good & was["identify"]),
            self.statistics.eq(good & was["statistics"]),
            self.open.eq(opening),
            self.begin.eq(opening & ~renewed),
            self.acknowledge.eq((data | resend) & within),
            self.gap.eq(data & late),
            self.answer.eq((data & ~late) | resend),
            self.rewind.eq((resend & within) | (opening & renewed)),
            new.eq(data & same & ~blocked),
        ]
        low, high = self.arrived[: len(ring.end)], self.arrived[len(ring.end) :]
        with m.If(self.begin):
            m.d.sync += self.opened.eq(1)
        with m.If(self.begin | new):
            m.d.sync += low.eq(Mux(self.begin, recent, place))
        with m.If(self.begin | (new & write[-1])):
            m.d.sync += high.eq(stepped(high, self.begin, recent[len(ring.end) :]))
        m.d.sync += ring.restart.eq(self.begin)
        return m
