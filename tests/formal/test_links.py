"""Proofs for the parts of the link: the ring, COBS there and back, the CRC; each refutes a broken twin.

The ring's proof is for all time. Those of COBS (with blocks of 2 bytes instead of 254) and of the CRC are of everything
that can happen in so many cycles from reset.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC32_BZIP2, CRC32_ETHERNET
from amaranth.lib.wiring import In

from hdl_lib.links import cobs
from hdl_lib.links.cobs import CobsDecoder, CobsEncoder
from hdl_lib.links.crc import Crc32
from hdl_lib.links.packet_receiver import PacketReceiver
from hdl_lib.links.packet_sender import PacketSender
from hdl_lib.links.ring import Ring
from hdl_lib.links.uart import UartTx
from tests.formal.prover import check_bounded, has_path, prove, refute
from tests.formal.scoreboard import stream_rules

SIZE = 4  # bytes of the ring


class RingProof(wiring.Component):
    """One that writes a byte where nothing is kept, one that takes bytes, and one that gives up what was taken, or has
    all that is kept read again, whenever they like. One place of the endless row is followed: what is written there is
    what comes from there."""

    write: In(1)
    byte: In(8)
    ready: In(1)
    restart: In(1)
    give: In(1)
    pick: In(1)

    def __init__(self, dut, *, invariants=True):
        self.dut, self.invariants = dut, invariants
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        made, next_, kept = (Signal.like(dut.at, name=name) for name in ("made", "next", "kept"))
        held, shown, free = Signal.like(made), Signal.like(made), Signal()
        taken = Signal()
        m.d.comb += [
            held.eq(made - kept),  # bytes that are kept
            shown.eq(next_ - kept),  # of them, taken
            free.eq(held != SIZE),
            dut.write.eq(self.write & free),
            dut.place.eq(made),
            dut.byte.eq(self.byte),
            dut.end.eq(made),
            dut.restart.eq(self.restart),
            dut.start.eq(kept),
            dut.o.ready.eq(self.ready),
            taken.eq(dut.o.valid & dut.o.ready & ~self.restart),
        ]
        with m.If(dut.write):
            m.d.sync += made.eq(made + 1)
        with m.If(self.restart):
            m.d.sync += next_.eq(kept)
        with m.Elif(taken):
            m.d.sync += next_.eq(next_ + 1)
        with m.If(self.give & ~self.restart & (shown != 0)):
            m.d.sync += kept.eq(kept + 1)

        following, place, value = Signal(), Signal.like(made), Signal(8)
        with m.If(dut.write & self.pick & ~following):
            m.d.sync += [following.eq(1), place.eq(made), value.eq(self.byte)]
        distance = Signal.like(made)
        m.d.comb += distance.eq(place - kept)
        gone = Signal()
        m.d.comb += gone.eq(distance >= held)  # it was given up
        with m.If(following & gone):
            m.d.sync += following.eq(0)
        here = following & ~gone
        m.d.comb += [
            Assert(held <= SIZE),
            Assert(shown <= held),
            Assert(~(here & dut.o.valid & (next_ == place)) | (dut.o.payload == value)),
            Assert(~dut.o.valid | (shown < held)),  # nothing comes that was not written
            Cover(here & taken & (next_ == place) & (distance == 2)),
            Cover(here & taken & (held == SIZE)),
        ]
        late = Signal(2)
        with m.If((shown < held) & ~dut.o.valid & ~self.restart):
            m.d.sync += late.eq(late + 1)
            m.d.comb += Assert(late < 2)
        with m.Else():
            m.d.sync += late.eq(0)
        if self.invariants:
            probe = dut.memory.read_port(domain="comb")
            reading = Signal.like(made)
            ahead = Signal.like(made)
            m.d.comb += [
                probe.addr.eq(place[: len(probe.addr)]),
                reading.eq(next_ + dut.o.valid),  # the place of `read_data`
                ahead.eq(dut.at - next_),
                Assert(ahead == dut.o.valid + dut.read_valid),
                Assert(shown + ahead <= held),
                Assert(~here | (probe.data == value)),
                Assert(~(here & dut.read_valid & (reading == place)) | (dut.read_data == value)),
                Assert((late == 0) | dut.o.valid | ((late == 1) & dut.read_valid)),
            ]
        return m


class Careless(Ring):
    """Keeps what was read ahead when reading begins again."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        stays = Signal()
        m.d.sync += stays.eq(self.read_valid)
        with m.If(self.restart):
            m.d.sync += self.read_valid.eq(stays)
        return m


def test_what_is_written_comes_until_it_is_given_up(tmp_path):
    prove(RingProof(Ring(SIZE)), tmp_path, induction=4)


def test_bytes_read_ahead_that_stay_are_refuted(tmp_path):
    refute(RingProof(Careless(SIZE), invariants=False), tmp_path, depth=10)


class CobsProof(wiring.Component):
    """Packets through both: the same bytes come, as last ones the same, and no zero but behind a packet."""

    valid: In(1)
    data: In(8)
    last: In(1)
    ready: In(1)
    pick: In(1)

    def __init__(self, encoder, decoder):
        self.encoder, self.decoder = encoder, decoder
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.encoder = encoder = self.encoder
        m.submodules.decoder = decoder = self.decoder
        wiring.connect(m, encoder.o, decoder.i)
        enter, leave = Signal(), Signal()
        out = decoder.o.payload
        m.d.comb += [
            encoder.i.valid.eq(self.valid),
            encoder.i.payload.data.eq(self.data),
            encoder.i.payload.last.eq(self.last),
            decoder.o.ready.eq(self.ready),
            enter.eq(encoder.i.valid & encoder.i.ready),
            leave.eq(decoder.o.valid & decoder.o.ready),
        ]
        # as every source does
        waiting, offered = Signal(), Signal(9)
        m.d.sync += [waiting.eq(self.valid & ~encoder.i.ready), offered.eq(Cat(self.data, self.last))]
        m.d.comb += Assume(~waiting | (self.valid & (offered == Cat(self.data, self.last))))
        m.d.comb += Assume(self.data[2:] == 0)  # zeros, what codes look like, and others

        inside, following, ahead, value = Signal(6), Signal(), Signal(6), Signal(9)
        ends, packets = Signal(4), Signal(4)  # packets that went in wholly; zeros on the line
        m.d.sync += inside.eq(inside + enter - leave)
        with m.If(enter & self.last):
            m.d.sync += ends.eq(ends + 1)
        with m.If(encoder.o.valid & encoder.o.ready & (encoder.o.payload == 0)):
            m.d.sync += packets.eq(packets + 1)
        with m.If(following & leave):
            m.d.sync += ahead.eq(ahead - 1)
            with m.If(ahead == 0):
                m.d.sync += following.eq(0)
        with m.Elif(~following & enter & self.pick):
            m.d.sync += [following.eq(1), ahead.eq(inside - leave), value.eq(Cat(self.data, self.last))]
        arrives = following & decoder.o.valid & (ahead == 0)
        stream_rules(m, "coded", encoder.o.valid, encoder.o.payload, encoder.o.ready)
        stream_rules(m, "o", decoder.o.valid, out.as_value(), decoder.o.ready)
        m.d.comb += [
            Assert(~decoder.o.valid | (inside != 0)),
            Assert(~(decoder.o.valid & out.last & out.damaged)),
            Assert(packets <= ends),
            Assert(~arrives | (Cat(out.data, out.last) == value)),
            Cover(arrives & leave & (packets == 1) & out.last),
        ]
        return m


@pytest.fixture
def pair(monkeypatch):
    """pair(a, b): an encoder and a decoder with blocks of a - 1 and b - 1 bytes."""

    def make(of_encoder=3, of_decoder=3):
        class Encoder(CobsEncoder):
            def elaborate(self, platform):
                monkeypatch.setattr(cobs, "LONGEST", of_encoder)
                return super().elaborate(platform)

        class Decoder(CobsDecoder):
            def elaborate(self, platform):
                monkeypatch.setattr(cobs, "LONGEST", of_decoder)
                return super().elaborate(platform)

        monkeypatch.setattr(cobs, "LONGEST", of_encoder)
        return CobsProof(Encoder(8), Decoder())

    return make


def test_cobs_there_and_back(pair, tmp_path):
    check_bounded(pair(), tmp_path, depth=11)


def test_another_length_of_blocks_is_refuted(pair, tmp_path):
    refute(pair(3, 4), tmp_path, depth=13)


class CrcProof(wiring.Component):
    """A byte and its CRC, with a bit turned or not: found whole just where none is. The byte is any one where none is
    turned and zero else: a CRC is linear, so that what a turned bit changes does not hang on the byte."""

    data: In(8)
    turned: In(6)  # the bit of the 40

    def __init__(self, parameters, flips):
        self.parameters, self.flips = parameters, flips
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.sender = sender = self.parameters.create()
        m.submodules.receiver = receiver = Crc32()
        at, turned, begun = Signal(3), Signal(6), Signal()
        byte, mask = Signal(8), Signal(8)
        with m.If(~begun):
            m.d.sync += [turned.eq(self.turned), begun.eq(1)]
        with m.Elif(at != 5):
            m.d.sync += at.eq(at + 1)
        m.d.comb += [
            byte.eq(0 if self.flips else self.data),
            mask.eq(((turned[3:] == at) << turned[:3]) if self.flips else 0),
            sender.data.eq(byte),
            sender.valid.eq(begun & (at == 0)),
            receiver.data.eq(byte ^ mask),
            receiver.valid.eq(begun & (at < 5)),
        ]
        with m.If(at >= 1):
            m.d.comb += byte.eq(sender.crc.word_select((at - 1)[:2], 8))
        whole = (turned >= 40) | (not self.flips)
        done = at == 5
        m.d.comb += [Assert(~done | (receiver.match_detected == whole)), Cover(done & (turned == 11))]
        return m


@pytest.mark.parametrize("flips", [False, True])
def test_the_crc_finds_every_bit(flips, tmp_path):
    check_bounded(CrcProof(CRC32_ETHERNET(data_width=8), flips), tmp_path, depth=8)


@pytest.mark.parametrize("flips", [False, True])
def test_another_crc_is_refuted(flips, tmp_path):
    refute(CrcProof(CRC32_BZIP2(data_width=8), flips), tmp_path, depth=8)


@pytest.mark.parametrize(
    "core",
    [
        lambda: CobsEncoder(), lambda: UartTx(5), lambda: PacketReceiver(8, 8),
        lambda: PacketSender(8, 4, 8, bytes(20), 24),
    ],
)
def test_no_path_leads_through(core, tmp_path):
    assert not has_path(core(), tmp_path)


def test_a_path_is_found(tmp_path):
    """``i.ready`` of the decoder hangs on ``o.ready``, as it says."""
    assert has_path(CobsDecoder(), tmp_path)
