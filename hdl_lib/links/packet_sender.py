"""Packets to a carrier: answers, and the bytes of one pipe, kept until they are acknowledged."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import stepped
from hdl_lib.links.crc import Crc32
from hdl_lib.links.packet_kinds import CHECK, HEADER, PACKET_BYTE, Kind
from hdl_lib.links.ring import Ring

# What calls for a packet of its own, the most urgent first.
ANSWERS = {"open": Kind.OPENED, "identify": Kind.IDENTITY, "statistics": Kind.COUNTERS, "damaged": Kind.DAMAGED}


class PacketSender(wiring.Component):
    """The board's sending side of docs/reference/protocol.md.

    The core's bytes stay in a ring until they are acknowledged. What was sent of them is where the ring is read; to
    send again is to read again from the acknowledged offset on. It has no timer.

    Parameters
    ----------
    size : int
        Bytes of the ring, a power of two: 4 to 32,768.
    most_payload : int
        Bytes of payload in a packet at most, a power of two.
    receivable : int
        Bytes of the receiver's ring, a power of two.
    identity : bytes
        The payload of IDENTITY: 1 to 4096 bytes.
    counters : int
        Bytes of the payload of COUNTERS.

    Members
    -------
    i : In(stream.Signature(8))
        The pipe's bytes. None is taken while ``begun`` is high, nor when three places or less are free.
    o : Out(stream.Signature(PACKET_BYTE))
        Packets.
    acknowledged, unacknowledged : Out
        The offset up to which the pipe is acknowledged (32 bits), and the bytes in the ring from there on.
    begin, offset, acknowledge, advance, room, rewind, answer, open, identify, statistics, damaged : In
        What :class:`hdl_lib.links.packet_receiver.PacketReceiver` says (``damaged``: what calls for DAMAGED).
    arrived, read : In
        Of the receiver's pipe: the offset up to which it has arrived, and the place in its ring up to which it is read.
    begun : Out(1)
        From the cycle behind ``begin`` until a packet of the session before is out, for one cycle at least; high after
        reset. The core must be reset while it is high.
    hold, held : Out(1), In(1)
        The counters are to stay as they are; they do.
    place, byte : Out, In(8)
        The byte of the counters that is wanted, and that byte four cycles later.

    Timing
    ------
    A byte a cycle inside header, payload of the pipe, and CRC; up to 13 more cycles a packet. A byte of the pipe shows
    in a packet 11 bytes and up to 12 cycles after it was accepted. All outputs are functions of registers.
    """

    def __init__(self, size: int, most_payload: int, receivable: int, identity: bytes, counters: int):
        for name, value in (("size", size), ("most_payload", most_payload), ("receivable", receivable)):
            if not isinstance(value, int) or not 1 <= value <= 32_768 or value & (value - 1):
                raise ValueError(f"{name} must be a power of two of at most 32768 (bytes), not {value!r}")
        if not 1 <= len(identity) <= 4096:
            raise ValueError(f"identity must have 1 to 4096 bytes, not {len(identity)}")
        self.ring = Ring(size)
        self.most_payload, self.receivable, self.identity, self.counters = most_payload, receivable, identity, counters
        strobes = ("begin", "acknowledge", "rewind", "answer", *ANSWERS)
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(PACKET_BYTE)),
                "acknowledged": Out(32),
                "unacknowledged": Out(range(size + 1)),
                "offset": In(32),
                "advance": In(range(2 * size)),
                "room": In(range(size + 1)),
                "arrived": In(32),
                "read": In(range(2 * receivable)),
                "begun": Out(1, init=1),
                "place": Out(range(counters)),
                "byte": In(8),
                "hold": Out(1),
                "held": In(1),
                **{name: In(1) for name in strobes},
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring = ring = self.ring
        m.submodules.crc = crc = Crc32()
        bits = len(ring.at)
        acknowledged = self.acknowledged[:bits]  # its place in the ring
        high = self.acknowledged[bits:]

        # The core's side of the ring.
        made = Signal.like(ring.at)  # the place behind its last byte
        start = Signal()  # reading begins again where it is acknowledged
        end = Signal.like(ring.at)  # of the packet under way
        # Two cycles ago there was a place for this byte and for those that have come since, and one more: were the ring
        # full, all of it acknowledged at once would look like all of it sent.
        spare = Signal()
        m.d.sync += [
            self.unacknowledged.eq(made - acknowledged),
            spare.eq(self.unacknowledged < ring.size - 3),
        ]
        m.d.comb += [
            self.i.ready.eq(spare & ~self.begun),
            ring.write.eq(self.i.valid & self.i.ready),
            ring.place.eq(made),
            ring.byte.eq(self.i.payload),
            ring.end.eq(end),
            ring.start.eq(acknowledged),
            ring.restart.eq(start),
        ]
        renew = Signal()
        m.d.comb += renew.eq(start & self.begun)
        with m.If(renew):
            m.d.sync += self.begun.eq(0)
        with m.If(renew | ring.write):
            m.d.sync += made.eq(stepped(made, renew, acknowledged))

        # What the receiver says; a packet under way ends first. Where more is acknowledged than was read, reading
        # begins again behind it, too. All sums are a cycle old, so that no packet begins in the two cycles behind.
        wrapped = Signal()  # since the acknowledged place, the place that is read has gone round
        room, rewind = Signal(range(ring.size + 1)), Signal()
        moved = Signal(bits + 1)
        not_flown = Signal(bits, init=-1)  # the bytes read since the acknowledged place, complemented: only subtracted
        moving = Signal(2)
        m.d.comb += moved.eq(acknowledged + self.advance)
        m.d.sync += [
            wrapped.eq(ring.at < acknowledged),
            not_flown.eq(~(ring.at - acknowledged)),
            moving.eq(Cat(self.acknowledge | self.begin, moving)),
        ]
        with m.If(start):
            m.d.sync += rewind.eq(0)
        moves = Signal()
        m.d.comb += moves.eq(self.acknowledge & ~self.begun)
        with m.If(self.begin):
            m.d.sync += [self.begun.eq(1), room.eq(0)]
        with m.Elif(moves):
            m.d.sync += room.eq(self.room)
        with m.If(self.begin | moves):
            m.d.sync += acknowledged.eq(Mux(self.begin, self.offset, moved))
        with m.If(self.begin | (moves & moved[-1])):
            m.d.sync += high.eq(stepped(high, self.begin, self.offset[bits:]))
        with m.If(self.rewind | (~not_flown > ring.size)):
            m.d.sync += rewind.eq(1)

        # What the packet says of the other pipe. That its room has grown is seen in eighths of it.
        eighths = max(0, len(self.read) - 4)
        read = self.read[eighths:]
        told = Signal.like(read)  # as the last packet said it
        free, grown = Signal.like(self.read), Signal()
        half = max(1, self.receivable // 2 >> eighths).bit_length() - 1
        m.d.comb += free.eq((self.read ^ self.receivable) - self.arrived)
        m.d.sync += grown.eq((read - told)[half : len(read)].any())

        # One packet after the other. What a packet answers is forgotten as it begins, unless it comes just then.
        wanted = {name: Signal(name=f"wanted_{name}") for name in ANSWERS}
        answering, due = Signal(), Signal()
        code, piped = Signal(3), Signal()  # of the next packet: the kind's low bits; its payload is the pipe's
        unsent, allowed, budget = Signal(bits), Signal(bits + 1), Signal(bits)
        header = Signal(8 * HEADER, reset_less=True)
        load, shift = Signal(), Signal()
        low = 8 + bits  # in the header the offset's higher bits, those of the byte that is read next, stand behind
        with m.If(load | shift):
            said = Cat(code, Const(0x80 >> 3, 5), ring.at, high, self.arrived, free)
            m.d.sync += [
                header.eq(Mux(load, said, header >> 8)),
                header[low:40].eq(stepped(high, ~load, header[low + 8 : 48], wrapped)),
            ]
        step, check = Signal(range(HEADER)), Signal(range(CHECK))
        byte, offered, clear, move, checking = Signal(8), Signal(), Signal(), Signal(), Signal()
        counted = Signal()  # the byte at the output came in the cycle before, and belongs to what is checked
        m.d.comb += [
            piped.eq(code == Kind.BOARD_DATA & 7),
            clear.eq(~self.o.valid | self.o.ready),
            move.eq(offered & clear),
            crc.data.eq(self.o.payload.data),
            crc.valid.eq(counted),
        ]
        drained = Signal()  # the ring has nothing of this packet any more
        m.d.sync += [counted.eq(move & ~checking), drained.eq(ring.empty)]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(move):
            m.d.sync += [self.o.valid.eq(1), self.o.payload.data.eq(byte), self.o.payload.last.eq(0)]

        # The identity is read two cycles behind its place, the second register being a block RAM's own; the counters
        # are four behind theirs.
        m.submodules.identity = rom = memory.Memory(
            shape=8, depth=len(self.identity), init=self.identity, attrs={"rom_style": "block"}
        )
        port = rom.read_port()
        fact = Signal(8, reset_less=True)
        place, settled = Signal(range(max(len(self.identity), self.counters))), Signal(4)
        m.d.comb += [port.addr.eq(place), self.place.eq(place)]
        # Only the last bit is asked, which hangs on no other core: counters are held for as long before.
        m.d.sync += [fact.eq(port.data), settled.eq(Cat((code == Kind.IDENTITY & 7) | self.held, settled))]
        with m.If(move):
            m.d.sync += settled.eq(0)

        with m.FSM(name="state"):
            with m.State("Gauge"):
                m.d.comb += crc.start.eq(1)
                m.d.sync += [
                    unsent.eq(made - ring.at),
                    allowed.eq((Cat(1, room) + Cat(1, not_flown, 1))[1:]),  # room less what has flown
                    due.eq(answering | grown),
                ]
                m.next = "Limit"
            with m.State("Limit"):
                # bytes acknowledged since then make what is allowed too little, never too much
                m.d.sync += budget.eq(Mux(allowed[-1], 0, Mux(allowed[:-1] < unsent, allowed, unsent)))
                m.next = "Choose"
            with m.State("Choose"):
                m.d.sync += [code.eq(Kind.BOARD_DATA & 7), step.eq(0), place.eq(0)]
                for name, kind in reversed(ANSWERS.items()):
                    with m.If(wanted[name]):
                        m.d.sync += code.eq(kind & 7)
                with m.If(budget > self.most_payload):
                    m.d.sync += budget.eq(self.most_payload)
                with m.If(self.begun | rewind | Cat(wanted.values()).any() | due | (budget != 0)):
                    m.next = "Begin"
                with m.Else():
                    m.next = "Gauge"
            with m.State("Begin"):
                # everything a header says is taken in one cycle
                m.d.comb += load.eq(1)
                with m.If(moving.any()):
                    m.next = "Gauge"
                with m.Elif(self.begun | rewind):
                    m.d.comb += start.eq(1)
                    m.d.sync += end.eq(acknowledged)
                    m.next = "Gauge"
                with m.Else():
                    m.d.sync += told.eq(read)
                    for name, kind in ANSWERS.items():
                        with m.If(code == kind & 7):
                            m.d.sync += wanted[name].eq(0)
                    with m.If(code[2]):  # DATA, DAMAGED
                        m.d.sync += answering.eq(0)
                    with m.If(piped):
                        m.d.sync += end.eq(ring.at + budget)
                    m.next = "Header"
            with m.State("Header"):
                m.d.comb += [byte.eq(header[:8]), offered.eq(1)]
                with m.If(clear):
                    m.d.comb += shift.eq(1)
                    m.d.sync += step.eq(step + 1)
                    with m.If(step == HEADER - 1):
                        with m.If(code == Kind.IDENTITY & 7):
                            m.next = "Identity"
                        with m.Elif(code == Kind.COUNTERS & 7):
                            m.next = "Counters"
                        with m.Else():
                            m.next = "Pipe"
            with m.State("Pipe"):  # which is empty for packets of another payload: a cycle for the CRC
                m.d.comb += [byte.eq(ring.o.payload), offered.eq(ring.o.valid), ring.o.ready.eq(clear)]
                with m.If(drained):
                    m.next = "Check"
            with m.State("Identity"):
                m.d.comb += [byte.eq(fact), offered.eq(settled[-1])]
                with m.If(move):
                    m.d.sync += place.eq(place + 1)
                    with m.If(place == len(self.identity) - 1):
                        m.next = "Pipe"
            with m.State("Counters"):
                m.d.comb += [byte.eq(self.byte), self.hold.eq(1), offered.eq(settled[-1])]
                with m.If(move):
                    m.d.sync += place.eq(place + 1)
                    with m.If(place == self.counters - 1):
                        m.next = "Pipe"
            with m.State("Check"):
                m.d.comb += [byte.eq(crc.crc[:8]), offered.eq(1), checking.eq(1), crc.shift.eq(clear)]
                with m.If(clear):
                    m.d.sync += check.eq(check + 1)
                    with m.If(check == CHECK - 1):
                        m.d.sync += self.o.payload.last.eq(1)
                        m.next = "Gauge"

        for name, flag in wanted.items():
            with m.If(getattr(self, name)):
                m.d.sync += flag.eq(1)
        with m.If(self.answer):
            m.d.sync += answering.eq(1)
        return m
