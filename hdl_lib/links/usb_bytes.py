"""Bytes between a core's clock and that of a USB device, and where a transfer to the host ends.

The device's clock is the domain ``usb``, that of the bytes ``sync``; neither need be the faster one.
"""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import AsyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hdl_lib.links.packet_kinds import PACKET_BYTE

DEPTH = 16  # bytes between the clocks


class BytesFromUsb(wiring.Component):
    """Bytes from a USB device.

    Members
    -------
    i : In(stream.Signature(8))
        Bytes, in ``usb``.
    o : Out(stream.Signature(8))
        Bytes, in ``sync``.

    Timing
    ------
    A byte each cycle of the slower clock. ``i.ready`` is a function of registers.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = AsyncFIFOBuffered(width=8, depth=DEPTH, r_domain="sync", w_domain="usb")
        m.d.comb += [
            fifo.w_data.eq(self.i.payload),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            self.o.payload.eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
        ]
        return m


class BytesToUsb(wiring.Component):
    """Bytes to a USB device, in transfers: a host's driver passes bytes on when a transfer ends, and a device sends a
    packet that is not full at the end of one only.

    A byte is held back until the next one comes, or ``patience`` cycles have passed: then it was the last one of a
    transfer.

    Parameters
    ----------
    patience : int
        Cycles of ``usb``, 1 or more. Pauses that are shorter do not end a transfer.

    Members
    -------
    i : In(stream.Signature(8))
        Bytes, in ``sync``.
    o : Out(stream.Signature(PACKET_BYTE))
        Transfers, in ``usb``.

    Timing
    ------
    A byte each cycle of the slower clock while bytes follow each other; the last one of a transfer ``patience`` + 1
    cycles later. ``o.payload.last`` stays as it is while ``o.valid`` waits for ``o.ready``.
    """

    def __init__(self, patience: int):
        if not isinstance(patience, int) or patience < 1:
            raise ValueError(f"patience must be an integer of 1 or more (cycles), not {patience!r}")
        self.patience = patience
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(PACKET_BYTE))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = AsyncFIFOBuffered(width=8, depth=DEPTH, r_domain="usb", w_domain="sync")
        m.d.comb += [
            fifo.w_data.eq(self.i.payload),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
        ]
        held, holds = Signal(8), Signal()  # the byte held back
        waited = Signal(range(self.patience + 1))
        move = Signal()  # the held byte goes to the output
        follows, over = Signal(), Signal()
        m.d.comb += [
            follows.eq(fifo.r_rdy),
            over.eq(waited == self.patience),
            move.eq(holds & (follows | over) & (~self.o.valid | self.o.ready)),
            fifo.r_en.eq(~holds | move),
        ]
        with m.If(self.o.ready):
            m.d.usb += self.o.valid.eq(0)
        with m.If(move):
            m.d.usb += [self.o.valid.eq(1), self.o.payload.data.eq(held), self.o.payload.last.eq(~follows)]
        with m.If(fifo.r_en):
            m.d.usb += [held.eq(fifo.r_data), holds.eq(fifo.r_rdy), waited.eq(0)]
        with m.Elif(~over):
            m.d.usb += waited.eq(waited + 1)
        return m
