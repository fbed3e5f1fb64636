"""Maximum or sum over groups of pixels."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.blocks import block_count, count_up, delayed, held, less, loop
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue

REGISTER_BLOCKS = 4  # up to so many beats per pixel the running results circulate in registers, above in a memory


class GroupPool(wiring.Component):
    """One result (or ``results`` of them) for each ``window`` consecutive pixels, by channel: a running result of each
    channel, updated by every pixel of the group. A subclass defines the update in :meth:`_combine`, and whether only a
    group's last pixel gives a result or ``_every`` one."""

    _name = "result"
    _every = False

    def __init__(
        self, shape: Shape, result_shape: Shape, channels: int, lanes: int, window: int, *, results: int = 1, depth: int
    ) -> None:
        self.blocks = block_count(channels, lanes)
        if window < 1:
            raise ValueError(f"window must be at least 1 pixel, not {window}")
        check_depth(depth)
        self.shape = Shape.cast(shape)
        self.result_shape = Shape.cast(result_shape)
        self.channels = channels
        self.lanes = lanes
        self.window = window
        self.depth = depth
        self._pixel_done = Signal(name="pixel_done")  # a step takes a pixel's last beat
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(shape, lanes))),
                "o": Out(stream.Signature(data.ArrayLayout(result_shape, lanes * results))),
            }
        )

    @staticmethod
    def latency_of(channels: int, lanes: int) -> int:
        """Return the cycles from the producing step to ``o.valid``."""
        return 3 if block_count(channels, lanes) <= REGISTER_BLOCKS else 4

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.channels, self.lanes)

    def _combine(self, beat: Value, before: Value, first: Value) -> Value:
        """Return the running result of a lane after ``beat``; ``before`` is the previous one unless this is the
        ``first``."""
        raise NotImplementedError("each pool combines in its own way")

    def _running(self) -> data.ArrayLayout:
        """Return the layout of the running results of a beat's lanes."""
        layout: data.ArrayLayout = self.o.payload.shape()
        return layout

    def _payload(self, running: data.View) -> Value:
        """Return the output's beat from the running results after a group's last pixel."""
        return running.as_value()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        step = Signal()
        pixel_done = self._pixel_done
        produces = Signal()
        first: Value = Const(1)
        m.d.comb += [
            pixel_done.eq(step & loop(m, "block", self.blocks, step)),
            produces.eq(loop(m, "pixel", self.window, pixel_done)),
            self.i.ready.eq(queue.available if self._every else ~produces | queue.available),
            step.eq(self.i.valid & self.i.ready),
            queue.reserve.eq(step if self._every else step & produces),
        ]
        if self.window > 1:
            first = Signal(name="first_pixel", init=1)
            with m.If(pixel_done):
                m.d.sync += first.eq(produces)
        if self.blocks <= REGISTER_BLOCKS:
            result, stages = self._in_registers(m, step, first)
        else:
            result, stages = self._in_memory(m, step, first)
        m.d.comb += [
            queue.push.eq(delayed(m, "push", queue.reserve, stages)),
            Value.cast(queue.payload).eq(result),
        ]
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m

    def _terms(self, m: Module, step: Value) -> tuple[list[Value], int]:
        """Return what each lane of a step's beat contributes to the running result, and after how many cycles, at least
        1."""
        beat = Signal(self.i.payload.shape(), reset_less=True)
        m.d.sync += beat.eq(self.i.payload)
        return [beat[lane] for lane in range(self.lanes)], 1

    def _in_registers(self, m: Module, step: Value, first: Value) -> tuple[Value, int]:
        """Hold the running results in a ring of one register per block; return the newest and its delay."""
        terms, wait = self._terms(m, step)
        layout = self._running()
        ring = [Signal(layout, name=f"{self._name}_{block}", reset_less=True) for block in range(self.blocks)]
        first = delayed(m, "first", first, wait)
        with m.If(delayed(m, "step", step, wait)):
            for following, present in zip(ring[1:], ring, strict=False):
                m.d.sync += following.eq(present)
            self._update(m, ring[0], terms, ring[-1], first)
        return self._payload(ring[0]), wait + 1

    def _in_memory(self, m: Module, step: Value, first: Value) -> tuple[Value, int]:
        """Hold the running results in a memory of one word per block, written 3 cycles after it was read, before it is
        read again; return the newest and its delay from the step."""
        layout = self._running()
        # A word is never read and written in one cycle.
        m.submodules[f"{self._name}s"] = results = memory.Memory(
            shape=Shape.cast(layout).width, depth=self.blocks, init=[], attrs={"no_rw_check": 1}
        )
        # The memory's read register is written out: synthesis takes "no read meets a write" for such ones only.
        read = results.read_port(domain="comb")
        write = results.write_port()
        terms, wait = self._terms(m, step)
        if wait < 2:  # the result so far takes two cycles
            terms = [held(m, f"beat_2_{lane}", term) for lane, term in enumerate(terms)]
            wait = 2
        reads = delayed(m, "read", step, wait - 2)
        before_1, before_2, result = (
            Signal(layout, name=name, reset_less=True) for name in ("before_1", "before_2", self._name)
        )
        m.d.sync += [Value.cast(before_1).eq(read.data), before_2.eq(before_1)]
        self._update(m, result, terms, before_2, delayed(m, "first", first, wait))
        done = delayed(m, "step", step, wait + 1)
        m.d.comb += [
            read.addr.eq(count_up(m, "read_block", self.blocks, reads)),
            write.en.eq(done),
            write.addr.eq(count_up(m, "write_block", self.blocks, done)),
            write.data.eq(result),
        ]
        return self._payload(result), wait + 1

    def _update(
        self, m: Module, result: data.View, terms: Sequence[Value], before: data.View, first: Value
    ) -> None:
        for lane, term in enumerate(terms):
            m.d.sync += result[lane].eq(self._combine(term, before[lane], first))


class MaxPool(GroupPool):
    """The maximum, or ``least`` the minimum, over each ``window`` consecutive pixels, by channel.

    Parameters
    ----------
    shape: of an element, an integer shape.
    channels, lanes: elements per pixel and elements per beat; ``blocks = ceil(channels / lanes)`` beats per pixel.
    window: input pixels for an output pixel, at least 1.
    least: the minimum instead.
    depth: beats of the output queue. At the full rate up to ``blocks`` beats follow each other without a gap; with
        ``latency + 1`` there is room for any number of them.

    Members
    -------
    i: In(stream). ``window`` pixels for each output pixel, such as
        :class:`hdl_lib.windows.sliding_window.SlidingWindow` sends.
    o: Out(stream). The maxima; the lanes beyond ``channels`` in a pixel's last beat are maxima as well.

    Timing
    ------
    One step per input beat. The steps of a group's last pixel produce, and need a credit; :attr:`latency` cycles later
    the beat shows on ``o.valid``: 3 with up to 4 beats per pixel, else 4. Initiation interval 1 cycle per input beat.
    Under backpressure the steps that would produce wait.

    Ordering
    --------
    Pixels leave in the order of their groups, beats of a pixel in the order they came.
    """

    _name = "maximum"

    def __init__(
        self, shape: Shape, channels: int, lanes: int, window: int, *, least: bool = False, depth: int
    ) -> None:
        self.least = least
        super().__init__(shape, shape, channels, lanes, window, depth=depth)

    def _combine(self, beat: Value, before: Value, first: Value) -> Value:
        better = less(beat, before) if self.least else less(before, beat)
        return Mux(first | better, beat, before)


class SumPool(GroupPool):
    """The sum over each ``window`` consecutive pixels, by channel.

    Exact modulo ``2**result_shape.width``: correct wherever the sums lie in the range of ``result_shape``.

    Parameters
    ----------
    shape, result_shape: of an element and of a sum, integer shapes.
    channels, lanes, window, depth: as for :class:`MaxPool`.

    Members
    -------
    i: In(stream). ``window`` pixels for each output pixel, such as
        :class:`hdl_lib.windows.sliding_window.SlidingWindow` sends, or, with ``window`` pixels per frame, the frame
        as it comes.
    o: Out(stream). The sums; lanes beyond ``channels`` in a pixel's last beat are unspecified.

    Timing
    ------
    As :class:`MaxPool`.

    Ordering
    --------
    As :class:`MaxPool`.
    """

    _name = "sum"

    def _combine(self, beat: Value, before: Value, first: Value) -> Value:
        return Mux(first, 0, before) + beat
