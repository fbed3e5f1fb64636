"""Convert bytes to beats of several bytes, marking a frame's last beat, and beats to bytes."""

from __future__ import annotations

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import loop


def beat_layout(bytes_per_beat: int) -> data.StructLayout:
    """Return the layout of a beat: ``data`` (the first byte in the least significant bits) and ``last`` (1 in a frame's
    last beat)."""
    return data.StructLayout({"data": 8 * bytes_per_beat, "last": 1})


def _check_positive(name: str, value: int) -> None:
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be an integer of 1 or more, not {value!r}")


class BytesToBeats(wiring.Component):
    """Packs bytes into beats and counts the beats of a frame.

    Parameters
    ----------
    bytes_per_beat : int
        Bytes per beat (n), 1 or more.
    beats : int
        Beats per frame, 1 or more.

    Members
    -------
    i : In(stream.Signature(8))
        Bytes.
    o : Out(stream.Signature(beat_layout(bytes_per_beat)))
        Beats; ``last`` on every ``beats``-th.

    Timing
    ------
    ``i.ready`` is ``~o.valid | o.ready``. The n-th byte of a beat accepted at cycle t shows the beat at t + 1, and the
    next byte is accepted as the beat is taken; so a beat takes n cycles at least.

    Ordering
    --------
    The first byte is the least significant.
    """

    def __init__(self, bytes_per_beat: int, beats: int):
        _check_positive("bytes_per_beat", bytes_per_beat)
        _check_positive("beats", beats)
        self.bytes_per_beat = bytes_per_beat
        self.beats = beats
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(beat_layout(bytes_per_beat)))})

    def elaborate(self, platform):
        m = Module()
        full = Signal()
        word = Signal(8 * self.bytes_per_beat)
        take, give = Signal(), Signal()
        completes = loop(m, "byte", self.bytes_per_beat, take)
        final = loop(m, "beat", self.beats, give)
        m.d.comb += [
            self.i.ready.eq(~full | self.o.ready),
            take.eq(self.i.ready & self.i.valid),
            give.eq(full & self.o.ready),
            self.o.valid.eq(full),
            self.o.payload.data.eq(word),
            self.o.payload.last.eq(final),
        ]
        with m.If(give):
            m.d.sync += full.eq(0)
        with m.If(take):
            # shifting in from the top leaves the first byte lowest once all are there
            m.d.sync += [word.eq(Cat(word[8:], self.i.payload)), full.eq(completes)]
        return m


class BeatsToBytes(wiring.Component):
    """Unpacks beats into bytes; ``last`` is ignored (the receiver counts).

    Parameters
    ----------
    bytes_per_beat : int
        Bytes per beat (n), 1 or more.

    Members
    -------
    i : In(stream.Signature(beat_layout(bytes_per_beat)))
        Beats.
    o : Out(stream.Signature(8))
        Bytes, the least significant first.

    Timing
    ------
    A beat accepted at cycle t shows its first byte at t + 1; the others follow as they are taken. ``i.ready`` is high
    when no byte is left (a register), and as the last one is taken; so a beat takes n cycles at least.
    """

    def __init__(self, bytes_per_beat: int):
        _check_positive("bytes_per_beat", bytes_per_beat)
        self.bytes_per_beat = bytes_per_beat
        super().__init__({"i": In(stream.Signature(beat_layout(bytes_per_beat))), "o": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        word = Signal(8 * self.bytes_per_beat)
        full, give = Signal(), Signal()
        last = loop(m, "byte", self.bytes_per_beat, give)
        m.d.comb += [
            give.eq(full & self.o.ready),
            self.i.ready.eq(~full | (last & self.o.ready)),
            self.o.valid.eq(full),
            self.o.payload.eq(word[:8]),
        ]
        with m.If(self.i.ready):
            m.d.sync += [word.eq(self.i.payload.data), full.eq(self.i.valid)]
        with m.Elif(self.o.ready):
            m.d.sync += word.eq(word[8:])
        return m
