"""Packets to bytes without zeros between zeros, and back: Consistent Overhead Byte Stuffing.

S. Cheshire and M. Baker, "Consistent Overhead Byte Stuffing", IEEE/ACM Transactions on Networking 7 (2), 1999. A packet
becomes blocks: a code byte c and c - 1 bytes that are not zero. A block ends where the packet has a zero, which is left
out, or after 254 bytes (c = 255), with no zero left out. A zero byte ends the packet.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.links.packet_kinds import PACKET_BYTE, RECEIVED_BYTE
from hdl_lib.links.ring import Ring

LONGEST = 255  # bytes of a block, its code included


def coded_bytes(packet: int) -> int:
    """Return the most bytes that a packet of so many bytes becomes: a code for each block, and the zero behind all."""
    return packet + -(-packet // (LONGEST - 1)) + 1


class CobsEncoder(wiring.Component):
    """Packets to encoded bytes, each packet followed by a zero.

    The bytes of a block are written into a ring behind a free place; the code is written there when it is known, in
    the cycle of the zero that ends the block. So as many bytes are written as come out, one per cycle; only the place
    up to which they may be read waits for the end of a block.

    Parameters
    ----------
    size : int
        Bytes of the ring, a power of two of at least 512: a block may be read while another one is written.

    Members
    -------
    i : In(stream.Signature(PACKET_BYTE))
        Packets of at least one byte.
    o : Out(stream.Signature(8))
        Encoded bytes.

    Timing
    ------
    One byte per cycle at ``o``, so at ``i`` as well but for one cycle behind 254 bytes without a zero and two behind a
    packet. ``i.ready`` is a function of registers. The first byte of a block shows 4 cycles after its last one was
    accepted, or after the cycle behind that.
    """

    def __init__(self, size: int = 512):
        if size < 2 * LONGEST + 2:
            raise ValueError(f"size must be at least {2 * LONGEST + 2} (bytes, two blocks), not {size!r}")
        self.ring = Ring(size)
        super().__init__({"i": In(stream.Signature(PACKET_BYTE)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring = ring = self.ring
        wiring.connect(m, ring.o, wiring.flipped(self.o))
        begin = Signal.like(ring.at)  # place of the open block's code; everything before may be read
        write = Signal.like(ring.at, init=1)  # place of its next byte
        code = Signal(8, init=1)  # bytes of the open block with its code
        full, zero, free, go = Signal(), Signal(), Signal(), Signal()
        put, place, byte = Signal(), Signal.like(ring.place), Signal(8)
        m.d.comb += [zero.eq(self.i.payload.data == 0), byte.eq(self.i.payload.data), place.eq(write)]
        # Whether a byte is zero decides about the state and the memory's address: a register parts the two.
        m.d.sync += [ring.write.eq(put), ring.place.eq(place), ring.byte.eq(byte), ring.end.eq(begin)]

        # Each byte takes a place, and so does a block that ends, for the next one's code. `free` is a register, so that
        # what waits hangs on no sum, and looks at sixteenths of the ring: an open block has place for its 255 bytes and
        # one more all the same.
        sixteenths = max(0, len(write) - 5)
        used = Signal(min(5, len(write)))
        m.d.comb += used.eq(write[sixteenths:] - ring.at[sixteenths:])
        m.d.sync += free.eq(used < (ring.size >> sixteenths) // 4 * 3)

        def close(after):
            """Put the code in its place; the next block begins at ``after``."""
            m.d.comb += [put.eq(1), place.eq(begin), byte.eq(code)]
            m.d.sync += [begin.eq(after), write.eq(after + 1), code.eq(1), full.eq(0)]

        with m.FSM(name="state"):
            with m.State("Bytes"):
                m.d.comb += [go.eq(free & ~full), self.i.ready.eq(go)]
                with m.If(free & full):
                    close(write)
                with m.Elif(go & self.i.valid):
                    with m.If(zero):
                        close(write)
                        with m.If(self.i.payload.last):
                            m.next = "Code"
                    with m.Else():
                        m.d.comb += put.eq(1)
                        m.d.sync += [write.eq(write + 1), code.eq(code + 1), full.eq(code == LONGEST - 1)]
                        with m.If(self.i.payload.last):
                            m.next = "Code"
            with m.State("Code"), m.If(free):  # of the last block
                close(write)
                m.next = "End"
            with m.State("End"):  # the zero behind the packet, in the place that was for a code
                m.d.comb += [place.eq(begin), byte.eq(0)]
                with m.If(free):
                    m.d.comb += put.eq(1)
                    m.d.sync += [begin.eq(write), write.eq(write + 1)]
                    m.next = "Bytes"
        return m


class CobsDecoder(wiring.Component):
    """Encoded bytes to packets.

    Members
    -------
    i : In(stream.Signature(8))
        Encoded bytes, each packet followed by a zero.
    o : Out(stream.Signature(RECEIVED_BYTE))
        Packets; empty ones are dropped. ``damaged`` with the last byte of a packet whose last block was cut
        short.

    Timing
    ------
    A byte is passed on when the next one has come, which says whether it was the last: it shows two cycles after it
    was accepted, if the next one follows at once. One byte per cycle. ``i.ready`` is ``~o.valid | o.ready``; nothing
    else leads through.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(RECEIVED_BYTE))})

    def elaborate(self, platform):
        m = Module()
        held, holds = Signal(8, reset_less=True), Signal()
        left, whole = Signal(8), Signal(init=1)  # bytes of the block to come; none
        hidden = Signal()  # a zero was left out behind the block, unless the packet ends with it
        end, take, pushed = Signal(), Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~self.o.valid | self.o.ready),
            take.eq(self.i.valid & self.i.ready),
            end.eq(self.i.payload == 0),
            pushed.eq(~end & (~whole | hidden)),  # this byte, or the hidden zero
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(take):
            with m.If(end | pushed):
                m.d.sync += [
                    self.o.valid.eq(holds),
                    self.o.payload.data.eq(held),
                    self.o.payload.last.eq(end),
                    self.o.payload.damaged.eq(~whole),
                    holds.eq(~end),
                    held.eq(Mux(whole, 0, self.i.payload)),
                ]
            with m.If(end):
                m.d.sync += [left.eq(0), whole.eq(1), hidden.eq(0)]
            with m.Elif(whole):  # a code
                m.d.sync += [
                    left.eq(self.i.payload - 1),
                    whole.eq(self.i.payload == 1),
                    hidden.eq(self.i.payload != LONGEST),
                ]
            with m.Else():
                m.d.sync += [left.eq(left - 1), whole.eq(left == 1)]
        return m
