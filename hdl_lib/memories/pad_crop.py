"""Pad and crop the frames of a stream, in order: at most one beat is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.memories.release_steps import ReleaseStep, present_change
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue


class Part(StrEnum):
    """What becomes of beats: they are sent as they come, dropped, or sent without that they came."""

    PASS = "pass"
    CROP = "crop"
    PAD = "pad"


class Sent(IntEnum):
    """What a step sends: nothing, the beat that it takes, padding, or the beat that the frame's first step took."""

    NOTHING = 0
    TAKEN = 1
    PADDING = 2
    FIRST = 3


@dataclass(frozen=True)
class Run:
    """``steps`` in a row, at least one, alike in whether they take a beat and in what they send."""

    steps: int
    takes: bool
    sends: Sent


@dataclass(frozen=True)
class Frame:
    """A frame in order, (beats, what becomes of them): at least one each, and some come. Padding at the beginning is
    followed by what passes: what is cropped there is so before."""

    parts: tuple[tuple[int, Part], ...]

    def __post_init__(self) -> None:
        kinds = [kind for _, kind in self.parts]
        if {*kinds} <= {Part.PAD} or (kinds[0] == Part.PAD and kinds[1] != Part.PASS):
            raise ValueError(f"a frame must have beats that come, those after padding at first passed on, not {kinds}")
        if min(count for count, _ in self.parts) < 1:
            raise ValueError(f"parts of a frame must have at least one beat, not be {self.parts}")

    @property
    def runs(self) -> tuple[Run, ...]:
        """Return the steps of a frame, the first of which takes a beat: padding at the beginning goes with its first
        beat, which is sent after it."""
        kinds = {Part.PASS: (True, Sent.TAKEN), Part.CROP: (True, Sent.NOTHING), Part.PAD: (False, Sent.PADDING)}
        runs = [Run(count, *kinds[kind]) for count, kind in self.parts]
        if not runs[0].takes:
            pads, passed, *rest = runs
            runs = [
                Run(1, True, Sent.PADDING), Run(pads.steps - 1, False, Sent.PADDING), Run(1, False, Sent.FIRST),
                Run(passed.steps - 1, True, Sent.TAKEN), *rest,
            ]
        return tuple(run for run in runs if run.steps)

    @property
    def holds_first(self) -> bool:
        """Tell whether the first beat waits for padding before it."""
        return self.parts[0][1] == Part.PAD


class PadCrop(wiring.Component):
    """Passes on some of each frame's beats, drops others, and sends padding before, between and after them.

    Parameters
    ----------
    shape: of an input element, an integer shape.
    lanes: elements per beat.
    frame: what is passed on, dropped and filled in.
    output_shape: of an output element, an integer shape that holds ``shape``'s values and ``fill``.
    fill: the value of every lane of padding.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i, o: In(stream), Out(stream). ``lanes`` elements.

    Timing
    ------
    A process with the steps of ``frame.runs``, frame after frame. A step that takes waits for its input beat. A step
    that sends needs a credit of the output queue; ``latency`` (1) cycles later the beat shows on ``o``. Initiation
    interval: a cycle for each step.

    Ordering
    --------
    First in, first out. Nothing of a frame is sent before its first beat has come.
    """

    latency = 1
    """Cycles from a step that sends to ``o.valid``."""

    def __init__(
        self, shape: Shape, lanes: int, frame: Frame, output_shape: Shape, *, fill: int = 0, depth: int
    ) -> None:
        check_depth(depth)
        self.output_shape = Shape.cast(output_shape)
        low, high = interval(self.output_shape)
        if not low <= fill <= high:
            raise ValueError(f"fill must be in {low}..{high}, the range of {self.output_shape}, not {fill}")
        self.lanes, self.frame, self.fill, self.depth = lanes, frame, fill, depth
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(shape, lanes))),
                "o": Out(stream.Signature(data.ArrayLayout(output_shape, lanes))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        step = Signal()
        runs: Sequence[Run] = self.frame.runs
        takes, sends = present_change(m, [ReleaseStep(run.steps, run.takes, run.sends) for run in runs], step)
        may_send = queue.available | (sends == Sent.NOTHING)
        m.d.comb += [
            self.i.ready.eq(takes[0] & may_send),
            step.eq((self.i.valid | ~takes[0]) & may_send),
            queue.reserve.eq(step & (sends != Sent.NOTHING)),
            queue.push.eq(queue.reserve),
        ]
        first = Signal.like(self.i.payload, name="first", reset_less=True)
        if self.frame.holds_first:
            with m.If(takes[0] & (sends == Sent.PADDING)):
                m.d.sync += Value.cast(first).eq(Value.cast(self.i.payload))
        fill = Const(self.fill, self.output_shape)
        for lane in range(self.lanes):
            late = Mux(sends == Sent.PADDING, fill, first[lane])
            m.d.comb += queue.payload[lane].eq(Mux(sends == Sent.TAKEN, self.i.payload[lane], late))
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m
