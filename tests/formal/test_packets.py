"""Proofs for the receiver of the link's packets; each refutes broken twins.

Each is of everything that can happen in so many cycles, and begins not at reset but between two packets, whatever came
before: all registers but a few have any value at first (``KEPT``). The CRC says of
any packet that it is right or wrong.
"""

import inspect
from typing import ClassVar

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.links import packet_receiver
from hdl_lib.links.packets import CHECK, HEADER, RECEIVED_BYTE, Kind
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
        quiet = dut.i.ready & ~Cat(getattr(dut, name) for name in strobes).any()
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
        # The pipe: what is written lies behind what has arrived, and is the payload, byte after byte.
        place, written = Signal.like(self.at), Signal(5)
        with m.If(ring.write):
            m.d.sync += written.eq(written + 1)
        m.d.comb += [
            place.eq(ring.place - self.at),
            Assert(~ring.write | (ring.place == (dut.arrived + written)[: len(place)])),
            Assert(~ring.write | (kind != Kind.DATA) | (ring.byte == last[:8])),
            Assert(~ring.write | (count >= HEADER + CHECK)),
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
    ],
)
def test_a_broken_receiver_is_refuted(length, old, new, monkeypatch, tmp_path):
    refute(receiver(monkeypatch, length, old, new), tmp_path, depth=length + BEHIND)
