"""Proofs for the two ends of the link's packets; each refutes broken twins.

Each is of everything that can happen in so many cycles, and begins not at reset but between two packets, whatever came
before: all registers but a few have any value at first (``KEPT``). The CRC says of any packet that it is right or
wrong.
"""

import inspect
from typing import ClassVar

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.links import packet_receiver, packet_sender
from hdl_lib.links.packet_kinds import CHECK, HEADER, RECEIVED_BYTE, Kind
from hdl_lib.links.ring import Ring
from tests.formal.prover import check_bounded, refute

SIZE = 4  # bytes of the rings


class AnyCrc(wiring.Component):
    """What a CRC has, with results from outside."""

    start: In(1)
    valid: In(1)
    data: In(8)
    shift: In(1)
    crc: Out(32)
    match_detected: Out(1)

    def elaborate(self, platform):
        return Module()


class AnyRing(Ring):
    """What a ring has, with its place from outside."""

    def elaborate(self, platform):
        return Module()


def twin(module, name, old, new):
    """The class ``name`` of ``module`` with ``new`` in its source where ``old`` was."""
    source = inspect.getsource(getattr(module, name))
    assert source.count(old) == 1, old
    names = dict(vars(module))
    exec(compile(source.replace(old, new), name, "exec"), names)
    return names[name]


class ReceiverProof(wiring.Component):
    """One packet of ``length`` bytes, a byte a cycle. The ring is read meanwhile."""

    KEPT: ClassVar = {"dut": ["position", "new"]}

    at: In(range(2 * SIZE))
    match: In(1)
    byte: In(RECEIVED_BYTE)
    acknowledged: In(32)
    unacknowledged: In(range(SIZE + 1))

    def __init__(self, dut, length):
        self.dut, self.length, self.crc = dut, length, AnyCrc()
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        ring = dut.ring
        take = Signal()
        m.d.comb += [
            ring.at.eq(self.at),
            self.crc.match_detected.eq(self.match),
            dut.i.payload.eq(self.byte),
            dut.acknowledged.eq(self.acknowledged),
            dut.unacknowledged.eq(self.unacknowledged),
            take.eq(dut.i.valid & dut.i.ready),
            Assume(~ResetSignal("sync")),
        ]
        # The other pipe stands still. Of this one is read what there is.
        begun, at = Signal(), Signal.like(self.at)
        acknowledged, unacknowledged = Signal.like(self.acknowledged), Signal.like(self.unacknowledged)
        m.d.sync += [
            begun.eq(1), at.eq(self.at), acknowledged.eq(self.acknowledged), unacknowledged.eq(self.unacknowledged)
        ]
        held, before = Signal.like(self.at), Signal.like(self.at)
        m.d.comb += [
            held.eq(dut.arrived - self.at),
            before.eq(dut.arrived - at),
            Assume(held <= SIZE),
            Assume(~begun | ((self.at - at)[: len(at)] <= before)),
            Assume(self.unacknowledged <= SIZE),
            Assume(~begun | (acknowledged == self.acknowledged) & (unacknowledged == self.unacknowledged)),
        ]

        strobes = ("begin", "acknowledge", "rewind", "answer", "identify", "statistics", "open", "damaged", "gap")
        quiet = dut.i.ready & ~ring.write & ~Cat(getattr(dut, name) for name in strobes).any()
        m.d.comb += Assume(begun | quiet)  # between two packets
        for value in (dut.arrived, self.acknowledged):  # where borrows go through all bytes or none, lest it takes long
            m.d.comb += Assume(begun | (value[8:] == 0) | value[8:].all())

        # What came, by the specification alone.
        count, kind = Signal(5), Signal(8)
        offset, told, room, last = Signal(32), Signal(32), Signal(16), Signal(32)
        damaged, free = Signal(), Signal.like(self.at)
        since = Signal(3)  # cycles since the packet's last byte, from one on
        m.d.comb += dut.i.valid.eq(since == 0)
        with m.If(since != 0):
            m.d.sync += since.eq(Mux(since == 7, 7, since + 1))
        with m.If(take):
            m.d.sync += [count.eq(count + 1), last.eq(Cat(last[8:], self.byte.data)), damaged.eq(self.byte.damaged)]
            with m.If(count == 0):
                m.d.sync += [kind.eq(self.byte.data), free.eq(SIZE - held)]
            for first, field in ((1, offset), (5, told), (9, room)):
                with m.If((count >= first) & (count < first + len(field) // 8)):
                    m.d.sync += field.eq(Cat(field[8:], self.byte.data))
            with m.If(self.byte.last):
                m.d.sync += since.eq(1)
        m.d.comb += Assume(self.byte.last == (count == self.length - 1))
        match = Signal()
        with m.If(since == 1):
            m.d.sync += match.eq(self.match)
        opened, arrived = Signal(), Signal(32)
        with m.If((since == 0) & (count == 0)):
            m.d.sync += [opened.eq(dut.opened), arrived.eq(dut.arrived)]

        sound, payload = Signal(), Signal(5)
        data, resend, opening, within, gap = Signal(), Signal(), Signal(), Signal(), Signal()
        ahead, acknowledges, limit = Signal(32), Signal(32), Signal(16)
        m.d.comb += [
            sound.eq((count >= HEADER + CHECK) & ~damaged & match),
            payload.eq(count - HEADER - CHECK),
            data.eq(sound & opened & (kind == Kind.DATA)),
            resend.eq(sound & opened & (kind == Kind.RESEND)),
            opening.eq(sound & (kind == Kind.OPEN)),
            ahead.eq(offset - arrived),
            acknowledges.eq(told - self.acknowledged),
            within.eq(acknowledges <= self.unacknowledged),
            gap.eq(data & (ahead != 0) & ~ahead[31]),
            limit.eq(Mux(room < SIZE, room, SIZE)),
        ]
        judged = since == 3
        m.d.comb += [
            Assert(dut.damaged == (judged & ~sound)),
            Assert(dut.identify == (judged & sound & (kind == Kind.IDENTIFY))),
            Assert(dut.statistics == (judged & sound & (kind == Kind.STATISTICS))),
            Assert(dut.open == (judged & opening)),
            Assert(~dut.begin | (judged & opening & (dut.offset == offset))),
            Assert(dut.begin | ~(judged & opening & ~opened)),
            Assert(dut.answer == (judged & (resend | (data & ~gap)))),
            Assert(dut.gap == (judged & gap)),
            Assert(dut.acknowledge == (judged & (data | resend) & within)),
            Assert(~dut.acknowledge | ((dut.advance == acknowledges) & (dut.room == limit))),
            Assert(dut.rewind == (judged & ((resend & within) | (opening & ~dut.begin)))),
        ]
        # The pipe: what is written, a cycle later, lies behind what has arrived, and is the payload, byte after byte.
        place, written, oldest = Signal.like(self.at), Signal(5), Signal(8)
        m.d.sync += oldest.eq(last[:8])
        with m.If(ring.write):
            m.d.sync += written.eq(written + 1)
        m.d.comb += [
            place.eq(ring.place - self.at),
            Assert(~ring.write | (ring.place == (dut.arrived + written)[: len(place)])),
            Assert(~ring.write | (kind != Kind.DATA) | (ring.byte == oldest)),
            Assert(~ring.write | (count > HEADER + CHECK)),
            Assert(~ring.write | (place < SIZE)),
        ]
        moves = data & (ahead == 0)
        with m.If(since == 4):
            with m.If(moves):
                m.d.comb += [
                    Assert((dut.arrived == arrived) | (dut.arrived == (arrived + payload)[:32])),
                    Assert((dut.arrived == arrived) | (written == payload)),
                    Assert((dut.arrived != arrived) | (payload == 0) | (payload > free)),
                ]
            with m.Elif(opening):
                m.d.comb += Assert((dut.arrived == offset) | (dut.arrived == arrived))
            with m.Else():
                m.d.comb += Assert(dut.arrived == arrived)
            right = self.length >= HEADER + CHECK
            m.d.comb += [Assert(dut.opened == (opened | opening)), Cover(opened & (sound == right))]
        with m.Elif((count != 0) & (since < 4)):
            m.d.comb += Assert(dut.arrived == arrived)
        return m


SHORT, LONG = HEADER + CHECK - 1, HEADER + CHECK + 2
BEHIND = 6  # cycles behind a packet's last byte until all that it says is done


def receiver(monkeypatch, length, old="", new=""):
    """The receiver's proof for packets of ``length`` bytes; ``old`` and ``new``: of a twin."""
    monkeypatch.setattr(packet_receiver, "Ring", AnyRing)
    kind = twin(packet_receiver, "PacketReceiver", old, new) if old else packet_receiver.PacketReceiver
    made = ReceiverProof(kind(SIZE, SIZE), length)
    monkeypatch.setitem(kind.elaborate.__globals__, "Crc32", lambda: made.crc)
    return made


@pytest.mark.parametrize("length", [SHORT, LONG])
def test_the_receiver_does_what_a_packet_says(length, monkeypatch, tmp_path):
    component = receiver(monkeypatch, length)
    check_bounded(component, tmp_path, depth=length + BEHIND)


@pytest.mark.parametrize(
    ("length", "old", "new"),
    [
        (LONG, "new.eq(data & same & ~blocked)", "new.eq(data & ~blocked)"),  # out of order
        (LONG, "new.eq(data & same & ~blocked)", "new.eq(data & same)"),  # beyond the ring's end
        (LONG, "crc.match_detected & delayed & ~broken", "delayed & ~broken"),  # damaged
        (SHORT, "crc.match_detected & delayed & ~broken", "crc.match_detected & ~broken"),  # too short
        (LONG, "within.eq(~far & (", "within.eq(("),  # of another session
        (LONG, "ring.byte.eq(recent[:8])", "ring.byte.eq(recent[8:16])"),  # another byte
    ],
)
def test_a_broken_receiver_is_refuted(length, old, new, monkeypatch, tmp_path):
    refute(receiver(monkeypatch, length, old, new), tmp_path, depth=length + BEHIND)


class SenderProof(wiring.Component):
    """A packet while bytes come from the core. Before it the host acknowledges and asks again as it likes. What is read
    next lies at offset 0, what is acknowledged there or before: so all carries occur."""

    KEPT: ClassVar = {"dut": ["state_state"]}

    fetch: In(1)
    valid: In(1)
    acknowledge: In(1)
    advance: In(range(2 * SIZE))
    room: In(range(SIZE + 1))
    rewind: In(1)
    answer: In(1)
    arrived: In(32)
    flown: In(range(SIZE + 1))

    def __init__(self, dut):
        self.dut, self.crc = dut, AnyCrc()
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        ring = dut.ring
        places = len(ring.at)
        made, end = ring.place, ring.end
        known = dut.acknowledged[:places]

        # The ring: what it has fetched and what was taken from it; of the latter the offset, too.
        taken, ahead, offset = Signal(places), Signal(2), Signal(32)
        take, fresh = Signal(), Signal(3)
        first = fresh == 0
        with m.If(fresh != 7):
            m.d.sync += fresh.eq(fresh + 1)
        fetch = Signal()
        m.d.comb += [
            ring.at.eq(taken + ahead),
            ring.o.valid.eq(ahead != 0),
            ring.empty.eq((ahead == 0) & (taken == end)),
            take.eq(ring.o.valid & ring.o.ready),
            fetch.eq(self.fetch & (ring.at != end) & (ahead != 2)),
            dut.i.valid.eq(self.valid & (fresh >= 4)),
            dut.o.ready.eq(1),
            Assume(~ResetSignal("sync")),
        ]
        with m.If(first):
            m.d.comb += Assume((taken == (known + self.flown)[:places]) & (ahead == 0) & (end == taken))
            m.d.comb += Assume((offset == (dut.acknowledged + self.flown)[:32]) & ~dut.o.valid)
            m.d.comb += Assume(((made - known)[:places] < SIZE) & (self.flown <= (made - known)[:places]))
        with m.If(ring.restart):
            m.d.sync += [taken.eq(ring.start), ahead.eq(0), offset.eq(dut.acknowledged)]
        with m.Else():
            m.d.sync += [taken.eq(taken + take), ahead.eq(ahead + fetch - take), offset.eq(offset + take)]

        # The host: what it acknowledges has been sent. At first it says twice how much may be: so all sums are right.
        held, constant = Signal(places), Signal(32)
        moves, sent = Signal(), Signal(8)  # sent: the highest offset that it may know of
        with m.If(first):
            m.d.comb += Assume(~take)
        with m.If(take & (offset[:8] == sent)):
            m.d.sync += sent.eq(sent + 1)
        m.d.comb += [
            held.eq(made - known),
            moves.eq(Mux(fresh < 2, 1, self.acknowledge)),
            dut.acknowledge.eq(moves),
            dut.advance.eq(Mux(fresh < 2, 0, self.advance)),
            dut.room.eq(self.room),
            dut.rewind.eq(self.rewind),
            dut.answer.eq(self.answer),
            dut.arrived.eq(self.arrived),
            Assume(~moves | (fresh < 7)),
            Assume(~self.rewind | (fresh < 7)),
            Assume(~moves | (fresh < 2) | (self.advance <= (sent - dut.acknowledged)[:8])),
            Assume(~first | ((sent - dut.acknowledged)[:8] >= self.flown) & ((sent - dut.acknowledged)[:8] <= held)),
            Assume(~first | (self.room >= self.flown)),
            Assume(first | (constant == self.arrived)),
            Assume(dut.begun == 0),
        ]
        m.d.sync += constant.eq(self.arrived)
        limit, allowed = Signal(8), Signal(8)  # the highest offset that it has let pass
        m.d.comb += allowed.eq(dut.acknowledged + dut.advance + dut.room)
        with m.If(moves & (first | ~(limit - allowed)[7])):
            m.d.sync += limit.eq(Mux(first, allowed, limit))
        with m.Elif(moves):
            m.d.sync += limit.eq(allowed)

        reach = Signal(places)
        m.d.comb += [
            reach.eq(end - known),
            # what may be read is there and was let pass, unless it has been acknowledged since
            Assert(first | (reach > SIZE) | (reach <= held)),
            Assert(first | (reach > SIZE) | ((limit - dut.acknowledged)[:8] >= reach)),
            Assert(~take | (reach > SIZE) | ((limit - offset - 1)[:8] < 128)),
        ]

        # Packets: their headers, and that they begin at what is acknowledged where that was asked for.
        index, began = Signal(4), Signal(32)
        with m.If(dut.o.valid):
            m.d.sync += index.eq(Mux(dut.o.payload.last, 0, Mux(index == 12, 12, index + 1)))
            with m.If(index == 0):
                m.d.sync += began.eq(offset)
        for n in range(4):
            for at, field in ((1, began), (5, self.arrived)):
                wrong = dut.o.payload.data != field.word_select(n, 8)
                m.d.comb += Assert(~(dut.o.valid & (index == at + n) & wrong))
        m.d.comb += Cover(dut.o.valid & (index == 5) & (began != dut.acknowledged))
        return m


def sender(monkeypatch, old="", new=""):
    """The sender's proof; ``old`` and ``new``: of a twin."""
    monkeypatch.setattr(packet_sender, "Ring", AnyRing)
    kind = twin(packet_sender, "PacketSender", old, new) if old else packet_sender.PacketSender
    made = SenderProof(kind(SIZE, 2, SIZE, bytes(1), 4))
    monkeypatch.setitem(kind.elaborate.__globals__, "Crc32", lambda: made.crc)
    return made


SENT = 15  # cycles: until the offset in a packet's header is out


def test_the_sender_says_what_it_sends(monkeypatch, tmp_path):
    check_bounded(sender(monkeypatch), tmp_path, depth=SENT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("end.eq(ring.at + budget)", "end.eq(ring.at + budget + 1)"),  # beyond what it may
        ("stepped(high, ~load, header[low + 8 : 48], wrapped)", "stepped(high, ~load, header[low + 8 : 48], 0)"),
    ],
)
def test_a_broken_sender_is_refuted(old, new, monkeypatch, tmp_path):
    refute(sender(monkeypatch, old, new), tmp_path, depth=SENT)
