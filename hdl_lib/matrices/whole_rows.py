"""Rows of a matrix that are handed on when they are there as a whole, while the next one comes."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import delayed, loop
from hdl_lib.matrices.stream_matrix import StreamMatrix
from hdl_lib.memories.storage import StorageStyle, count
from hdl_lib.streams.fifo import Fifo


class WholeRows(wiring.Component):
    """Holds two rows of ``beats`` each: a reader that takes a row in one go, and then nothing for a while, does not
    keep the next row from coming at an even pace.

    Parameters: ``shape``, payload of a beat, any Amaranth shape or layout; ``beats`` of a row, at least 1.

    Members: ``i``: In(stream of ``shape``); ``o``: Out(stream of ``shape``).

    Timing: two processes, each with a step per beat. A beat comes in at least one cycle after the last one of the row
    but one before has left. The first one of a row shows at least :meth:`latency_of` cycles after its last one came in;
    the others follow at one a cycle. Ready and valid depend on registers only. Ordering: first in, first out.
    """

    HELD = 2
    """Rows."""

    def __init__(self, shape: Any, beats: int) -> None:
        if beats < 1:
            raise ValueError(f"beats must be at least 1, not {beats}")
        self.beats = beats
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    @staticmethod
    def depth_of(beats: int) -> int:
        """Return the beats for which there is room: with fewer the queue would not hand on one a cycle."""
        return max(WholeRows.HELD * beats, _LATENCY + 1)

    @staticmethod
    def latency_of(beats: int) -> int:
        """Return the cycles from a row's last beat until its first one may leave: of a short row the first one is not
        through the memory before."""
        return max(1, _LATENCY + 1 - beats)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = Fifo(self.i.payload.shape(), self.depth_of(self.beats), style=StorageStyle.BLOCK)
        enters, leaves, comes, goes = (Signal(name=name) for name in ("enters", "leaves", "comes", "goes"))
        # Rows that may leave, less one: the sign says that there is none. Their last beats are through the memory then.
        whole = Signal(range(-1, self.HELD), init=-1)
        inside, room = Signal(range(self.HELD + 1)), Signal(init=1)  # rows, and whether another one may come
        m.d.comb += [
            self.i.ready.eq(room),
            queue.i.payload.eq(self.i.payload),
            queue.i.valid.eq(enters),
            enters.eq(self.i.valid & room),
            comes.eq(enters & loop(m, "enter", self.beats, enters)),
            self.o.payload.eq(queue.o.payload),
            self.o.valid.eq(queue.o.valid & (whole >= 0)),
            queue.o.ready.eq(self.o.ready & (whole >= 0)),
            leaves.eq(self.o.valid & self.o.ready),
            goes.eq(leaves & loop(m, "leave", self.beats, leaves)),
        ]
        count(m, whole, delayed(m, "whole_later", comes, self.latency_of(self.beats) - 1), goes)
        count(m, inside, comes, goes)
        with m.If(comes & ~goes):
            m.d.sync += room.eq(inside == 0)
        with m.Elif(goes & ~comes):
            m.d.sync += room.eq(1)
        return m


class WithWholeRows(wiring.Component):
    """A :class:`hdl_lib.matrices.stream_matrix.StreamMatrix` whose vectors, of ``beats`` each, come through
    :class:`WholeRows`. Members and timing: those of both."""

    def __init__(self, matrix: StreamMatrix, beats: int) -> None:
        self.matrix, self.beats = matrix, beats
        super().__init__(matrix.signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.matrix = matrix = self.matrix
        m.submodules.rows = rows = WholeRows(self.i.payload.shape(), self.beats)
        wiring.connect(m, wiring.flipped(self.i), rows.i)
        wiring.connect(m, rows.o, matrix.i)
        wiring.connect(m, wiring.flipped(self.w), matrix.w)
        wiring.connect(m, matrix.o, wiring.flipped(self.o))
        return m


_LATENCY = Fifo.latency_of(1, 2, StorageStyle.BLOCK)
