"""Packets as datagrams of a UDP core that has a clock of its own and words of 32 bits.

The core's clock is the domain ``ethernet``, that of the packets ``sync``; neither need be the faster one. Words have
their first byte lowest.
"""

from __future__ import annotations

from amaranth import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import AsyncFIFO, AsyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hdl_lib.links.packet_kinds import PACKET_BYTE, RECEIVED_BYTE
from hdl_lib.streams.skid_buffer import SkidBuffer

# A datagram's word: ``last`` in its last one, whose highest byte is ``bytes`` (0 to 3); ``error``, looked at with
# ``last``: the frame around it was damaged.
DATAGRAM_WORD = data.StructLayout({"data": 32, "last": 1, "bytes": 2, "error": 1})
_LENGTHS = 16  # datagrams that may wait to be sent
_MARGIN = 8  # words or lengths that may still come when there is no room any more: `ready` is two cycles late


class DatagramReceiver(wiring.Component):
    """Datagrams to packets. A word that finds no room is lost, which the packet's CRC tells.

    Parameters
    ----------
    words : int
        Words that may wait, a power of two.

    Members
    -------
    i : In(stream.Signature(DATAGRAM_WORD, always_ready=True))
        Datagrams, in ``ethernet``.
    o : Out(stream.Signature(RECEIVED_BYTE))
        Packets, in ``sync``.

    Timing
    ------
    A word each cycle of ``ethernet`` as long as there is room; a byte each cycle of ``sync``.
    """

    def __init__(self, words: int = 2048):
        self.words = words
        super().__init__(
            {
                "i": In(stream.Signature(DATAGRAM_WORD, always_ready=True)),
                "o": Out(stream.Signature(RECEIVED_BYTE)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = AsyncFIFOBuffered(
            width=DATAGRAM_WORD.size, depth=self.words, r_domain="sync", w_domain="ethernet"
        )
        m.submodules.ahead = ahead = SkidBuffer(DATAGRAM_WORD)  # else `o.ready` would decide the queue's next address
        m.d.comb += [
            words.w_data.eq(self.i.payload),
            words.w_en.eq(self.i.valid),
            Value.cast(ahead.i.payload).eq(words.r_data),
            ahead.i.valid.eq(words.r_rdy),
            words.r_en.eq(ahead.i.ready),
        ]
        word = ahead.o.payload
        byte, highest, final = Signal(2), Signal(2), Signal()
        m.d.comb += [
            final.eq(byte == highest),
            self.o.payload.data.eq(word.data.word_select(byte, 8)),
            self.o.payload.last.eq(word.last & final),
            self.o.payload.damaged.eq(word.error),
            self.o.valid.eq(ahead.o.valid),
            ahead.o.ready.eq(self.o.ready & final),
        ]
        m.d.comb += highest.eq(3)
        with m.If(word.last):
            m.d.comb += highest.eq(word.bytes)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += byte.eq(byte + 1)
            with m.If(final):
                m.d.sync += byte.eq(0)
        return m


class DatagramSender(wiring.Component):
    """Packets to datagrams, of which each is sent when it is whole: its length is told before its first word.

    Parameters
    ----------
    words : int
        Words that may wait, a power of two; a packet must have eight less at the most.

    Members
    -------
    i : In(stream.Signature(PACKET_BYTE))
        Packets, in ``sync``.
    o : Out(stream.Signature(DATAGRAM_WORD))
        Datagrams, in ``ethernet``; ``error`` is 0.
    length : Out(16)
        Bytes of the datagram at ``o``.

    Timing
    ------
    A byte each cycle of ``sync`` as long as there is room, a word each cycle of ``ethernet``. ``i.ready`` is a
    register.
    """

    def __init__(self, words: int = 512):
        self.words = words
        super().__init__(
            {
                "i": In(stream.Signature(PACKET_BYTE)),
                "o": Out(stream.Signature(DATAGRAM_WORD)),
                "length": Out(16),
            }
        )

    def elaborate(self, platform):
        m = Module()
        clocks = {"r_domain": "ethernet", "w_domain": "sync"}
        m.submodules.words = words = AsyncFIFOBuffered(width=DATAGRAM_WORD.size, depth=self.words, **clocks)
        m.submodules.lengths = lengths = AsyncFIFO(width=16, depth=_LENGTHS, **clocks)
        # A word is put together, then written; the length follows its last one.
        word = Signal(DATAGRAM_WORD)
        full, told = Signal(), Signal()
        before, length = Signal(16), Signal(16)  # bytes of the packet so far; of the last whole one
        byte = before[:2]
        room, take = Signal(), Signal()
        levels = [Signal.like(fifo.w_level) for fifo in (words, lengths)]
        m.d.sync += [level.eq(fifo.w_level) for level, fifo in zip(levels, (words, lengths), strict=True)]
        m.d.sync += room.eq((levels[0] <= self.words - _MARGIN) & (levels[1] <= _LENGTHS - _MARGIN))
        m.d.comb += [
            self.i.ready.eq(room),
            take.eq(self.i.valid & room),
            words.w_data.eq(word),
            words.w_en.eq(full),
            lengths.w_data.eq(length),
            lengths.w_en.eq(told),
        ]
        m.d.sync += [full.eq(0), told.eq(0)]
        with m.If(take):
            last = self.i.payload.last
            m.d.sync += [
                word.data.word_select(byte, 8).eq(self.i.payload.data),
                word.last.eq(last),
                word.bytes.eq(byte),
                before.eq(before + 1),
                full.eq(last | byte.all()),
                told.eq(last),
            ]
            with m.If(last):
                m.d.sync += [before.eq(0), length.eq(before + 1)]

        sent = data.View(DATAGRAM_WORD, words.r_data)
        m.d.comb += [
            self.o.payload.eq(sent),
            self.o.valid.eq(words.r_rdy & lengths.r_rdy),
            words.r_en.eq(lengths.r_rdy & self.o.ready),
            lengths.r_en.eq(words.r_rdy & self.o.ready & sent.last),
            self.length.eq(lengths.r_data),
        ]
        return m
