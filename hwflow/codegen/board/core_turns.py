"""The core as one stream each way: a frame of each of its streams in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from amaranth import Array, Cat, ClockSignal, Elaboratable, Instance, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib.fifo import SyncFIFOBuffered

from hwflow.codegen.emitted.packaging import TOP

if TYPE_CHECKING:
    from hwflow.codegen.board.identity import FramePort


class CoreTurns(Elaboratable):  # type: ignore[misc]  # Amaranth carries no annotations
    """The design's top module ``core`` with one stream in and one out, whose beats are as wide as the widest of its
    streams.

    A frame is the beats of a frame of the first stream, then of the second, and so on. A stream's beat is in the low
    bytes; the others are ignored on input and anything on output. Every input but the last and every output but the
    first has a queue of one frame, so that a core that works on all of them at once need not wait for one while another
    has its turn.

    Members (signals): ``i_data``, ``i_valid``, ``i_ready``, ``i_last`` (ends the frame of the stream whose turn it is,
    and begins again with the first; also where it comes too early), ``o_data``, ``o_valid``, ``o_ready``, ``o_last``
    (of the last stream's frame), ``error``.

    Timing: with one stream each way the core's own; a stream with a queue is 2 cycles later.
    """

    def __init__(self, sources: Sequence[FramePort], sinks: Sequence[FramePort], core: str = TOP) -> None:
        self.core = core
        self.sources, self.sinks = list(sources), list(sinks)
        self.i_data = Signal(8 * max(port.bytes_per_beat for port in sources))
        self.o_data = Signal(8 * max(port.bytes_per_beat for port in sinks))
        self.i_valid, self.i_ready, self.i_last = Signal(), Signal(), Signal()
        self.o_valid, self.o_ready, self.o_last = Signal(), Signal(), Signal()
        self.error = Signal()

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        ports: dict[str, Any] = {"i_clk": ClockSignal(), "i_rst": ResetSignal(), "o_error": self.error}
        turn, last = _turn(m, self.sources, self.i_valid & self.i_ready, self.i_last)
        readies = []
        beat: Value
        valid: Value
        for k, port in enumerate(self.sources):
            beat = Cat(self.i_data[: 8 * port.bytes_per_beat], last | self.i_last)
            valid, ready = self.i_valid & (turn == k), Signal()
            readies.append(ready)
            if k + 1 < len(self.sources):
                beat, valid, ready = _queued(m, f"input{k}", port.beats, beat, valid, ready)
            name = _name("s", k, self.sources)
            ports |= {
                f"i_{name}_tdata": beat[:-1], f"i_{name}_tvalid": valid, f"o_{name}_tready": ready,
                f"i_{name}_tlast": beat[-1],
            }
        m.d.comb += self.i_ready.eq(Array(readies)[turn])

        turn = Signal(range(max(2, len(self.sinks))))
        beats, valids = [], []
        for k, port in enumerate(self.sinks):
            name = _name("m", k, self.sinks)
            data, ends = Signal(8 * port.bytes_per_beat, name=f"{name}_tdata"), Signal(name=f"{name}_tlast")
            beat, valid = Cat(data, ends), Signal(name=f"{name}_tvalid")
            ready = Signal(name=f"{name}_tready")
            ports |= {f"o_{name}_tdata": data, f"o_{name}_tvalid": valid, f"o_{name}_tlast": ends}
            ports |= {f"i_{name}_tready": ready}
            taken = self.o_ready & (turn == k)
            if k:
                beat, valid, onward = _queued(m, f"output{k}", port.beats, beat, valid, ready)
                m.d.comb += onward.eq(taken)
            else:
                m.d.comb += ready.eq(taken)
            beats.append(beat)
            valids.append(valid)
        beat, last = Array(beat[:-1] for beat in beats)[turn], Array(beat[-1] for beat in beats)[turn]
        m.d.comb += [
            self.o_data.eq(beat), self.o_valid.eq(Array(valids)[turn]),
            self.o_last.eq(last & (turn == len(self.sinks) - 1)),
        ]
        with m.If(self.o_valid & self.o_ready & last):
            m.d.sync += turn.eq(Mux(self.o_last, 0, turn + 1))
        m.submodules.hwflow_top = Instance(self.core, **ports)
        return m


def _name(side: str, k: int, ports: Sequence[FramePort]) -> str:
    return f"{side}_axis" if len(ports) == 1 else f"{side}{k}_axis"


def _turn(m: Module, ports: Sequence[FramePort], advance: Value, again: Value) -> tuple[Value, Value]:
    """Return whose turn it is, and whether the beat is the last of its frame. ``advance``: the beat is taken;
    ``again``: after it the first stream has its turn."""
    turn = Signal(range(max(2, len(ports))))
    left = Signal(range(max(2, max(port.beats for port in ports))), init=ports[0].beats - 1)
    with m.If(advance):
        m.d.sync += left.eq(left - 1)
        with m.If(left == 0), m.Switch(turn):
            for k in range(len(ports)):
                after = (k + 1) % len(ports)
                with m.Case(k):
                    m.d.sync += [turn.eq(after), left.eq(ports[after].beats - 1)]
        with m.If(again):
            m.d.sync += [turn.eq(0), left.eq(ports[0].beats - 1)]
    return turn, left == 0


def _queued(
    m: Module, name: str, depth: int, beat: Value, valid: Value, ready: Signal
) -> tuple[Value, Value, Signal]:
    """Put a queue behind a stream; return its other end."""
    m.submodules[name] = queue = SyncFIFOBuffered(width=len(beat), depth=depth)
    onward = Signal()
    m.d.comb += [queue.w_data.eq(beat), queue.w_en.eq(valid), ready.eq(queue.w_rdy), queue.r_en.eq(onward)]
    return queue.r_data, queue.r_rdy, onward
