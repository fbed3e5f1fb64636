"""A ring of bytes in block RAM that is read as a stream up to a given place."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import stepped


class Ring(wiring.Component):
    """Bytes at places 0, 1, ... modulo twice the size: the highest bit of a place tells a full ring from an empty one.

    The writer guarantees that the bytes it overwrites have been read, and advances ``end`` afterwards.

    Parameters
    ----------
    size : int
        Bytes, a power of two of at least 4.

    Members
    -------
    write, place, byte : In
        Write ``byte`` (8 bits) at ``place``.
    end : In
        The place before which everything may be read.
    restart, start : In
        In a cycle with ``restart`` reading begins again at ``start``; what was read and not taken is dropped.
    at : Out
        The place that is read next.
    o : Out(stream.Signature(8))
        Bytes from ``at`` to ``end``.
    empty : Out(1)
        Nothing is left between ``at`` and ``end``, nor on its way to ``o``.

    Timing
    ------
    A byte that ``end`` lets pass at cycle t shows at t + 2; then one byte per cycle. All outputs are functions of
    registers and, for ``empty``, of ``end``.
    """

    def __init__(self, size: int):
        if not isinstance(size, int) or size < 4 or size & (size - 1):
            raise ValueError(f"size must be a power of two of at least 4 (bytes), not {size!r}")
        self.size = size
        place = range(2 * size)
        super().__init__(
            {
                "write": In(1),
                "place": In(place),
                "byte": In(8),
                "end": In(place),
                "restart": In(1),
                "start": In(place),
                "at": Out(place),
                "o": Out(stream.Signature(8)),
                "empty": Out(1),
            }
        )
        # A byte is never read while it is written: `end` follows a cycle later. The read register is written out, for
        # synthesis takes the attribute for such ones only.
        self.memory = memory.Memory(shape=8, depth=size, init=[], attrs={"no_rw_check": 1})
        self.read_valid = Signal()
        self.read_data = Signal(8, reset_less=True)
        self._write = self.memory.write_port()
        self._read = self.memory.read_port(domain="comb")

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        rows = range(self.size)
        bits = Signal(rows).shape().width
        valid, payload = Signal(name="o_valid"), Signal(8, name="o_byte", reset_less=True)
        move, fetch, left = Signal(), Signal(), Signal()
        m.d.comb += [
            self._write.en.eq(self.write),
            self._write.addr.eq(self.place[:bits]),
            self._write.data.eq(self.byte),
            self._read.addr.eq(self.at[:bits]),
            self.o.valid.eq(valid),
            self.o.payload.eq(payload),
            move.eq(~valid | self.o.ready),
            left.eq(self.at != self.end),
            fetch.eq(left & (~self.read_valid | move)),
            self.empty.eq(~left & ~self.read_valid & ~valid),
        ]
        with m.If(~self.read_valid | move):
            m.d.sync += [self.read_data.eq(self._read.data), self.read_valid.eq(left)]
        with m.If(move):
            m.d.sync += [payload.eq(self.read_data), valid.eq(self.read_valid)]
        with m.If(fetch | self.restart):
            m.d.sync += self.at.eq(stepped(self.at, self.restart, self.start))
        with m.If(self.restart):
            m.d.sync += [self.read_valid.eq(0), valid.eq(0)]
        return m
