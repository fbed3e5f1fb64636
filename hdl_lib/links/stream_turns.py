"""Time-multiplex several streams on one byte link, a frame of each in turn, in both directions."""

from __future__ import annotations

from amaranth import Const, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import ArrayLayout
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hdl_lib.links.byte_adapter import BeatsToBytes, BytesToBeats, beat_layout


def _check(frames: list[tuple[int, int]]) -> None:
    if not frames:
        raise ValueError("there must be at least one stream, not none")
    for bytes_per_beat, beats in frames:
        if bytes_per_beat < 1 or beats < 1:
            raise ValueError(f"bytes per beat and beats per frame must be 1 or more, not {bytes_per_beat} and {beats}")


def _turn(m: Module, frames: list[tuple[int, int]], advance) -> Value:
    """Return the index of the active stream: k for the bytes of its frame, one per cycle with ``advance``, then the
    next one."""
    if len(frames) == 1:
        return Const(0)
    sizes = [bytes_per_beat * beats for bytes_per_beat, beats in frames]
    turn = Signal(range(len(sizes)))
    left = Signal(range(max(sizes)), init=sizes[0] - 1)  # bytes of its frame behind the next one
    with m.If(advance):
        with m.If(left == 0), m.Switch(turn):
            for k in range(len(sizes)):
                after = (k + 1) % len(sizes)
                with m.Case(k):
                    m.d.sync += [turn.eq(after), left.eq(sizes[after] - 1)]
        with m.Else():
            m.d.sync += left.eq(left - 1)
    return turn


def _queued(m: Module, name: str, depth: int, source, sink) -> None:
    """Insert a queue of beats between two streams of :func:`beat_layout`."""
    queue = SyncFIFOBuffered(width=len(source.payload.as_value()), depth=depth)
    m.submodules[name] = queue
    m.d.comb += [
        queue.w_data.eq(source.payload.as_value()),
        queue.w_en.eq(source.valid),
        source.ready.eq(queue.w_rdy),
        sink.payload.as_value().eq(queue.r_data),
        sink.valid.eq(queue.r_rdy),
        queue.r_en.eq(sink.ready),
    ]


class BytesToStreams(wiring.Component):
    """Deals bytes out to streams: the bytes of a frame of the first, of the second, and so on, then again the first.

    Every stream but the last has a queue of one frame, so that a core that reads all streams at once gets them all,
    although their bytes arrive one stream after the other.

    Parameters
    ----------
    frames : list of (int, int)
        Bytes per beat and beats per frame of each stream.

    Members
    -------
    i : In(stream.Signature(8))
        Bytes, the least significant of a beat first.
    o0, o1, ... : Out(stream.Signature(beat_layout(bytes)))
        Beats; ``last`` on the last one of a frame.

    Timing
    ------
    As :class:`hdl_lib.links.byte_adapter.BytesToBeats` for the stream whose turn it is; a beat of a stream with a queue
    shows 2 cycles later. Combinationally ``i.ready`` depends on the last output's ``ready`` alone.

    Ordering
    --------
    Frame after frame on each stream, in the order of arrival.
    """

    def __init__(self, frames: list[tuple[int, int]]):
        _check(frames)
        self.frames = list(frames)
        outputs = {f"o{k}": Out(stream.Signature(beat_layout(size))) for k, (size, _) in enumerate(self.frames)}
        super().__init__({"i": In(stream.Signature(8)), **outputs})

    def elaborate(self, platform):
        m = Module()
        turn = _turn(m, self.frames, self.i.valid & self.i.ready)
        ready = Signal(ArrayLayout(1, len(self.frames)))
        m.d.comb += self.i.ready.eq(ready[turn])
        for k, (size, beats) in enumerate(self.frames):
            m.submodules[f"to_beats{k}"] = to_beats = BytesToBeats(size, beats)
            m.d.comb += [
                to_beats.i.payload.eq(self.i.payload),
                to_beats.i.valid.eq(self.i.valid & (turn == k)),
                ready[k].eq(to_beats.i.ready),
            ]
            sink = getattr(self, f"o{k}")
            if k + 1 < len(self.frames):
                _queued(m, f"queue{k}", beats, to_beats.o, sink)
            else:
                wiring.connect(m, to_beats.o, wiring.flipped(sink))
        return m


class StreamsToBytes(wiring.Component):
    """Collects streams on one line: the bytes of a frame of the first, of the second, and so on, then again the first.

    Every stream but the first has a queue of one frame, so that a core that writes all streams at once need not wait
    while another stream has its turn.

    Parameters
    ----------
    frames : list of (int, int)
        Bytes per beat and beats per frame of each stream.

    Members
    -------
    i0, i1, ... : In(stream.Signature(beat_layout(bytes)))
        Beats; ``last`` is ignored.
    o : Out(stream.Signature(8))
        Bytes, the least significant of a beat first.

    Timing
    ------
    As :class:`hdl_lib.links.byte_adapter.BeatsToBytes` for the stream whose turn it is; a stream with a queue is 2
    cycles later. Combinationally ``i0.ready`` depends on ``o.ready``, the other inputs' on nothing.

    Ordering
    --------
    Frame after frame of each stream.
    """

    def __init__(self, frames: list[tuple[int, int]]):
        _check(frames)
        self.frames = list(frames)
        inputs = {f"i{k}": In(stream.Signature(beat_layout(size))) for k, (size, _) in enumerate(self.frames)}
        super().__init__({**inputs, "o": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        turn = _turn(m, self.frames, self.o.valid & self.o.ready)
        valid = Signal(ArrayLayout(1, len(self.frames)))
        payload = Signal(ArrayLayout(8, len(self.frames)))
        m.d.comb += [self.o.valid.eq(valid[turn]), self.o.payload.eq(payload[turn])]
        for k, (size, beats) in enumerate(self.frames):
            m.submodules[f"to_bytes{k}"] = to_bytes = BeatsToBytes(size)
            source = getattr(self, f"i{k}")
            if k > 0:
                _queued(m, f"queue{k}", beats, source, to_bytes.i)
            else:
                wiring.connect(m, wiring.flipped(source), to_bytes.i)
            m.d.comb += [
                valid[k].eq(to_bytes.o.valid),
                payload[k].eq(to_bytes.o.payload),
                to_bytes.o.ready.eq(self.o.ready & (turn == k)),
            ]
        return m
