"""Reorder the beats of a frame; a beat may be repeated or dropped."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import count_up, delayed, loop
from hdl_lib.memories.address_walk import AddressWalk
from hdl_lib.memories.buffer_memory import BufferMemory
from hdl_lib.memories.release_steps import ReleaseStep, gathered, present_change
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue

MOST_PHASES = 16
"""Runs of equal changes between rounds that the counters follow. A round is one of the outermost loop, or as many of
these as it takes to have no more runs; where none do, the whole walk, which then waits for the whole frame and releases
it as a whole."""

MOST_GROUPED = 64
"""Rounds of the outermost loop in one round that the counters follow."""


@dataclass(frozen=True)
class RearrangePlan:
    """The schedule of a rearranger: when the beats of a frame are needed and released, and how many are buffered.

    ``beats``: of an input frame. ``walk``: for each output beat the number of the input beat it repeats. ``interval``:
    cycles per frame that the buffer must sustain, at least :attr:`cycles`, the default.
    """

    walk: AddressWalk
    beats: int
    interval: int | None = None

    @property
    def has_holes(self) -> bool:
        """Tell whether some output beats repeat none."""
        return any(None in axis.table for axis in self.walk.axes)

    @cached_property
    def rounds(self) -> int:
        """Return the rounds after which reader and writer synchronise: those of the outermost loop, or several of them
        together; 1 if they would need too many phases."""
        outer = self.walk.axes[0].count
        for group in range(1, min(outer, MOST_GROUPED + 1)):
            if outer % group == 0 and len(_phases(self.beats, *self._bounds(outer // group))) <= MOST_PHASES:
                return outer // group
        return 1

    @property
    def group(self) -> int:
        """Return the rounds of the outermost loop in one round."""
        return self.walk.axes[0].count // self.rounds

    @property
    def steps(self) -> int:
        """Return the output beats per round."""
        return self.walk.steps // self.rounds

    @cached_property
    def needed(self) -> list[int]:
        """Return for each round the number of the frame's beats that must have arrived: at least one, so that nothing
        of a frame leaves before it arrives."""
        return self._bounds(self.rounds)[0]

    @cached_property
    def released(self) -> list[int]:
        """Return for each round the number of the frame's beats that are no longer needed after it; after the last
        round all of them and :attr:`skipped` of the next frame."""
        return self._bounds(self.rounds)[1]

    @property
    def skipped(self) -> int:
        """Return the beats at a frame's beginning that no output repeats."""
        return self.released[-1] - self.beats

    @cached_property
    def phases(self) -> tuple[ReleaseStep, ...]:
        """Return the changes after each round of a frame, with equal neighbours merged."""
        return _phases(self.beats, self.needed, self.released)

    @property
    def cycles(self) -> int:
        """Return the fewest cycles per frame."""
        return max(self.beats, self.walk.steps)

    @property
    def writer_lag(self) -> int:
        """Return the cycles from a reader step until its beat may be overwritten."""
        return self.walk.latency + 2

    @property
    def least_rows(self) -> int:
        """Return the fewest beats that the buffer must hold."""
        before = [self.skipped, *self.released[:-1]]
        return max(1, *(need - release for need, release in zip(self.needed, before, strict=True)))

    @cached_property
    def sustaining_rows(self) -> int:
        """Return the beats of buffer that sustain a frame every :attr:`interval` cycles: the backlog of the better of
        two schedules; minimal if the interval is :attr:`cycles`."""
        return max(self.least_rows, min(self._backlog(*self._early()), self._backlog(*self._late())))

    def _backlog(self, reads: list[int], written: Callable[[int], int]) -> int:
        """Return the most beats in the buffer in a schedule, given by the cycle in which each round of a frame begins,
        and the number of beats written before a cycle; the next frame is an interval later."""
        before = [self.skipped, *self.released[:-1]]
        ends = (start + self.steps - 1 + self.writer_lag for start in reads)
        # The next beat beyond the ones released so far needs the place that a round gives back.
        rounds = zip(ends, before, self.released, strict=True)
        return max((written(end) - old for end, old, new in rounds if new > old), default=0)

    @property
    def _interval(self) -> int:
        return self.cycles if self.interval is None else self.interval

    def _early(self) -> tuple[list[int], Callable[[int], int]]:
        """Return the schedule of consecutive writes from the frame's beginning, with rounds as early as possible."""
        period, steps, reads = self._interval, self.steps, list(self.needed)
        for _ in range(2):  # the last round delays the next frame's first one
            reads[0] = max(reads[0], reads[-1] + steps - period)
            for index in range(1, self.rounds):
                reads[index] = max(reads[index], reads[index - 1] + steps)

        def written(cycle: int) -> int:
            frames, within = divmod(cycle, period)
            return frames * self.beats + min(within, self.beats)

        return reads, written

    def _late(self) -> tuple[list[int], Callable[[int], int]]:
        """Return the schedule of consecutive rounds, with writes as late as possible, grouped by the round that needs
        them first."""
        period = self._interval
        reads = [index * self.steps for index in range(self.rounds)]
        groups = [(need, have) for need, have in zip(self.needed, [0, *self.needed[:-1]], strict=True)]
        rest = self.beats - self.needed[-1]  # beats no round waits for come last
        begins, tail = [0] * self.rounds, period - rest
        for _ in range(2):  # the next frame's first write limits the last ones
            following = tail
            for index in reversed(range(self.rounds)):
                need, have = groups[index]
                begins[index] = following = min(reads[index], following) - (need - have)
            tail = following + period - rest

        def written(cycle: int) -> int:
            frames, within = divmod(cycle - begins[0], period)
            at = within + begins[0]
            index = bisect_right(begins, at) - 1
            need, have = groups[index]
            return frames * self.beats + have + min(at - begins[index], need - have) + max(0, at - tail)

        return reads, written

    @cached_property
    def rows(self) -> int:
        """Return the beats of the buffer: :attr:`sustaining_rows`, rounded up to a power of two if that is less than a
        frame (addresses then wrap by themselves)."""
        power = 1 << (self.sustaining_rows - 1).bit_length()
        return power if power < self.beats else max(self.beats, self.sustaining_rows)

    def _bounds(self, rounds: int) -> tuple[list[int], list[int]]:
        """Return :attr:`needed` and :attr:`released` for ``rounds``: the outermost loop's offsets added to the extremes
        of the loops within."""
        outer, *inner = self.walk.axes
        low, high = self.walk.start, self.walk.start
        for axis in inner:
            low, high = low + min(axis.known), high + max(axis.known)
        ends: list[tuple[int, int] | None] = []
        group, offsets = outer.count // rounds, outer.offsets
        for start in range(0, outer.count, group):
            known = [at for at in offsets[start : start + group] if at is not None]
            ends.append((low + min(known), high + max(known)) if known else None)
        needed, most = [], 1
        for end in ends:
            most = most if end is None else max(most, end[1] + 1)
            needed.append(most)
        released, least = [], self.beats
        for end in reversed(ends):
            released.append(least)
            least = least if end is None else min(least, end[0])
        return needed, [*released[:0:-1], self.beats + least]


def _phases(beats: int, needed: list[int], released: list[int]) -> tuple[ReleaseStep, ...]:
    following = [*needed[1:], beats + needed[0]]
    before = [released[-1] - beats, *released[:-1]]
    changes = zip(needed, following, before, released, strict=True)
    return gathered([(after - need, new - old) for need, after, old, new in changes])


class Rearrange(wiring.Component):
    """Sends a frame's beats from a circular buffer, in the order of an address walk.

    Parameters
    ----------
    shape: of an input element, an integer shape.
    lanes: elements per beat.
    plan: the walk over the numbers of a frame's input beats, and their number.
    output_shape: of an output element, an integer shape that holds ``shape``'s values and ``fill``.
    fill: the value of every lane of an output beat that repeats no input beat.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). ``plan.beats`` per frame.
    o: Out(stream). ``plan.walk.steps`` per frame.

    Timing
    ------
    Two processes, each at most one step per cycle. A *writer* step consumes an input beat, a *reader* step produces an
    output beat, :meth:`latency_of` cycles later on ``o.valid``. Beats of the input are numbered through all frames.

    - A writer step of beat g comes at least ``plan.writer_lag`` cycles after the last reader step of the round that
      released beat ``g - plan.rows`` (``plan.released``).
    - A reader step comes at least one cycle after the writer step of the last beat its round needs
      (``plan.needed``).
    - A reader step needs a credit of the output queue.

    Initiation interval: ``plan.cycles`` with the buffer of a plan without an interval, else at most the plan's
    interval.

    Ordering
    --------
    Frames leave in the order they came. Nothing of a frame is used in another one.
    """

    def __init__(
        self, shape: Shape, lanes: int, plan: RearrangePlan, output_shape: Shape, *, fill: int = 0, depth: int
    ) -> None:
        check_depth(depth)
        if lanes < 1:  # uncovered: a defect of ours
            raise ValueError(f"lanes must be at least 1, not {lanes}")
        self.output_shape = Shape.cast(output_shape)
        low, high = interval(self.output_shape)
        if not low <= fill <= high:  # uncovered: a defect of ours
            raise ValueError(f"fill must be in {low}..{high}, the range of {self.output_shape}, not {fill}")
        self.lanes = lanes
        self.plan = plan
        self.fill = fill
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(shape, lanes))),
                "o": Out(stream.Signature(data.ArrayLayout(output_shape, lanes))),
            }
        )

    @staticmethod
    def latency_of(plan: RearrangePlan) -> int:
        """Return the cycles from a reader step to ``o.valid``: walk, row of the buffer, memory, register, queue."""
        return plan.walk.latency + 5

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan, word_width = self.plan, len(Value.cast(self.i.payload))
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        # Reads and writes of a word never meet in a cycle: they are ordered through the counts.
        buffer = BufferMemory("buffer", word_width, plan.rows)
        issue = Signal()
        address, outside, done = plan.walk.elaborate_on(m, issue)
        accept = self._elaborate_writer(m, buffer)
        round_last: Value = done[0]
        if plan.rounds > 1:
            inner_done: Value = done[1] if len(done) > 1 else Const(1)
            round_last = loop(m, "round", plan.group, issue & inner_done) & inner_done
        frame_done, round_done = Signal(), Signal()
        m.d.comb += [frame_done.eq(issue & done[0]), round_done.eq(issue & round_last)]
        self._elaborate_counts(m, accept, round_done, queue, issue)

        place = self._elaborate_place(m, address, delayed(m, "frame_done", frame_done, plan.walk.latency))
        word = Signal(self.i.payload.shape())
        m.d.comb += Value.cast(word).eq(buffer.read(m, place))
        m.d.comb += [
            queue.reserve.eq(issue),
            queue.push.eq(delayed(m, "read_valid", issue, plan.walk.latency + 4)),
        ]
        word_outside = delayed(m, "read_outside", outside, 4)
        fill = Const(self.fill, self.output_shape)
        for lane in range(self.lanes):
            m.d.comb += queue.payload[lane].eq(Mux(word_outside, fill, word[lane]) if plan.has_holes else word[lane])
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m

    def _elaborate_writer(self, m: Module, buffer: BufferMemory) -> Value:
        """Write each accepted beat one cycle later; return "a beat is accepted"."""
        accept = Signal()
        write_enable = Signal()
        write_data = Signal(len(Value.cast(self.i.payload)), reset_less=True)
        m.d.comb += accept.eq(self.i.valid & self.i.ready)
        m.d.sync += [write_enable.eq(accept), write_data.eq(Value.cast(self.i.payload))]
        buffer.write(m, write_enable, count_up(m, "write_address", self.plan.rows, write_enable), write_data)
        return accept

    def _elaborate_counts(
        self, m: Module, accept: Value, round_done: Value, queue: OutputQueue, issue: Signal
    ) -> None:
        """Build the two counts through which writer and reader wait for each other."""
        plan = self.plan
        needed, released = present_change(m, plan.phases, round_done)
        # Beats the writer may take, less one; beats taken beyond those the round waits for. The sign says "none".
        ahead = plan.beats + plan.skipped
        spare = Signal(range(-1, plan.rows + ahead), init=plan.rows + plan.skipped - 1)
        # What the reader releases is free when it has been read, some cycles later.
        lag = plan.writer_lag - 1
        free = delayed(m, "free", round_done, lag)
        freed = delayed(m, "freed", Mux(round_done, released, 0), lag)
        greatest = max(plan.beats + plan.needed[0], *(phase.needed for phase in plan.phases))
        lead = Signal(range(-greatest, plan.rows + ahead + 1), init=-plan.needed[0])
        m.d.sync += [
            spare.eq(
                Mux(free, Mux(accept, spare + freed - 1, spare + freed), Mux(accept, spare - 1, spare))
            ),
            lead.eq(Mux(round_done, lead - needed + accept, lead + accept)),
        ]
        m.d.comb += [self.i.ready.eq(spare >= 0), issue.eq((lead >= 0) & queue.available)]

    def _elaborate_place(self, m: Module, address: Value, frame_done: Value) -> Signal:
        """Return the row of the buffer with input beat ``address`` of the frame, two cycles later."""
        rows, beats = self.plan.rows, self.plan.beats
        base = Signal(range(max(2, rows)), name="frame_place")
        with m.If(frame_done):
            m.d.sync += base.eq(_wrapped(base + beats % rows, rows))
        sum_ = Signal(range(2 * max(2, rows)), name="place_sum", reset_less=True)
        place = Signal(range(max(2, rows)), name="place", reset_less=True)
        m.d.sync += [sum_.eq(base + address), place.eq(_wrapped(sum_, rows))]
        return place


def _wrapped(value: Value, rows: int) -> Value:
    """Return ``value`` modulo ``rows``; it is below ``2 * rows`` unless ``rows`` is a power of two."""
    if rows & (rows - 1) == 0:
        return value[: (rows - 1).bit_length()] if rows > 1 else Const(0)
    less = (value - rows).as_signed()
    return Mux(less[-1], value, less.as_unsigned())
