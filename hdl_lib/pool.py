"""The maximum over groups of pixels."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .blocks import block_count, count_up, delayed, less, loop
from .output_queue import OutputQueue
from .storage import check_depth

REGISTER_BLOCKS = 4  # up to so many beats a pixel the running maxima circulate in registers, above in a memory


class MaxPool(wiring.Component):
    """The maximum over each ``window`` successive pixels, channel by channel.

    Parameters
    ----------
    shape: of an element, an integer shape.
    channels, lanes: elements a pixel and elements a beat; ``blocks = ceil(channels / lanes)`` beats a pixel.
    window: input pixels for an output pixel, at least 1.
    depth: beats of the output queue. At the full rate up to ``blocks`` beats follow each other without a gap; with
        ``latency + 1`` there is room for any number of them.

    Members
    -------
    i: In(stream). ``window`` pixels for each output pixel, such as :class:`hdl_lib.sliding_window.SlidingWindow` sends.
    o: Out(stream). The maxima; the lanes beyond ``channels`` in a pixel's last beat are maxima as well.

    Timing
    ------
    A step each input beat. The steps of a group's last pixel produce, and need a credit; :attr:`latency` cycles later
    the beat shows on ``o.valid``: 3 with up to 4 beats a pixel, else 4. Initiation interval 1 cycle an input beat.
    Under backpressure the steps that would produce wait.

    Ordering
    --------
    Pixels leave in the order of their groups, beats of a pixel in the order they came.
    """

    def __init__(self, shape: Shape, channels: int, lanes: int, window: int, *, depth: int) -> None:
        self.blocks = block_count(channels, lanes)
        if window < 1:
            raise ValueError(f"window must be at least 1 pixel, not {window}")
        check_depth(depth)
        self.shape = Shape.cast(shape)
        self.channels = channels
        self.lanes = lanes
        self.window = window
        self.depth = depth
        layout = data.ArrayLayout(shape, lanes)
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout))})

    @staticmethod
    def latency_of(channels: int, lanes: int) -> int:
        """Cycles from the step that produces a beat to ``o.valid``."""
        return 3 if block_count(channels, lanes) <= REGISTER_BLOCKS else 4

    @property
    def latency(self) -> int:
        """As :meth:`latency_of`."""
        return self.latency_of(self.channels, self.lanes)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        step = Signal()
        pixel_done = Signal()
        produces = Signal()
        first: Value = Const(1)
        m.d.comb += [
            pixel_done.eq(step & loop(m, "block", self.blocks, step)),
            produces.eq(loop(m, "pixel", self.window, pixel_done)),
            self.i.ready.eq(~produces | queue.available),
            step.eq(self.i.valid & self.i.ready),
            queue.reserve.eq(step & produces),
        ]
        if self.window > 1:
            first = Signal(name="first_pixel", init=1)
            with m.If(pixel_done):
                m.d.sync += first.eq(produces)
        if self.blocks <= REGISTER_BLOCKS:
            maximum, stages = self._in_registers(m, step, first)
        else:
            maximum, stages = self._in_memory(m, step, first)
        m.d.comb += [
            queue.push.eq(delayed(m, "push", queue.reserve, stages)),
            Value.cast(queue.payload).eq(maximum),
        ]
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m

    def _in_registers(self, m: Module, step: Value, first: Value) -> tuple[Value, int]:
        """The running maxima in a ring of one register a block; returns the newest and its delay from the step."""
        layout = self.i.payload.shape()
        beat = Signal(layout, reset_less=True)
        ring = [Signal(layout, name=f"maximum_{block}", reset_less=True) for block in range(self.blocks)]
        m.d.sync += beat.eq(self.i.payload)
        first = delayed(m, "first", first, 1)
        with m.If(delayed(m, "step", step, 1)):
            for following, present in zip(ring[1:], ring, strict=False):
                m.d.sync += following.eq(present)
            self._maximum(m, ring[0], beat, ring[-1], first)
        return ring[0].as_value(), 2

    def _in_memory(self, m: Module, step: Value, first: Value) -> tuple[Value, int]:
        """The same in a memory of one word a block, which is written 3 cycles after it was read: sooner than it is
        read again."""
        layout = self.i.payload.shape()
        # A word is never read and written in one cycle.
        m.submodules.maxima = maxima = memory.Memory(
            shape=Shape.cast(layout).width, depth=self.blocks, init=[], attrs={"no_rw_check": 1}
        )
        # The memory's read register is written out: synthesis takes "no read meets a write" for such ones only.
        read = maxima.read_port(domain="comb")
        write = maxima.write_port()
        beat_1, beat_2, before_1, before_2, maximum = (
            Signal(layout, name=name, reset_less=True)
            for name in ("beat_1", "beat_2", "before_1", "before_2", "maximum")
        )
        m.d.sync += [
            beat_1.eq(self.i.payload),
            beat_2.eq(beat_1),
            Value.cast(before_1).eq(read.data),
            before_2.eq(before_1),
        ]
        self._maximum(m, maximum, beat_2, before_2, delayed(m, "first", first, 2))
        done = delayed(m, "step", step, 3)
        m.d.comb += [
            read.addr.eq(count_up(m, "read_block", self.blocks, step)),
            write.en.eq(done),
            write.addr.eq(count_up(m, "write_block", self.blocks, done)),
            write.data.eq(maximum),
        ]
        return maximum.as_value(), 3

    def _maximum(self, m: Module, maximum: data.View, beat: data.View, before: data.View, first: Value) -> None:
        for lane in range(self.lanes):
            m.d.sync += maximum[lane].eq(Mux(first | less(before[lane], beat[lane]), beat[lane], before[lane]))
