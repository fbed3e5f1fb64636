"""Convert a stream to another number of lanes."""

from functools import cached_property
from math import lcm
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.memories.storage import check_depth
from hdl_lib.shared import CommonComponent
from hdl_lib.streams.output_queue import OutputQueue


def _beats(channels, lanes):
    return -(-channels // lanes)


class WidthConverter(CommonComponent):
    """Regroups the ``channels`` elements of each pixel from ``lanes_in`` to ``lanes_out`` per beat.

    A pixel is ceil(channels / lanes_in) beats in and ceil(channels / lanes_out) beats out; the surplus lanes of a
    pixel's last beat are ignored on the input and 0 on the output.

    Parameters:
        ``shape``: one element, any Amaranth shape.
        ``channels``: elements of a pixel, at least 1.
        ``lanes_in``, ``lanes_out``: elements of a beat, at least 1, different from each other.
        ``depth``: credits of the output queue, at least 1.

    Members: ``i`` (in): stream of ``ArrayLayout(shape, lanes_in)``; ``o`` (out): of ``ArrayLayout(shape, lanes_out)``.

    Timing (steps, one per cycle at most):
        ``lanes_out = r * lanes_in`` or ``channels``: a step for each input beat; the step of each r-th beat and of the
        pixel's last beat produces, the others need no credit. Latency 1.
        ``lanes_in = r * lanes_out`` or ``channels``: a step for each output beat; the first of an input beat consumes
        it. Latency 1.
        Any other ratio: two such processes, up to the least common multiple and down from it, with a queue of 2 beats
        between them; latency 2.
        Initiation interval per pixel: the larger of its beats in and its beats out, if ``depth`` is at least 2.
        Under backpressure the step that would produce waits for its credit.

    Ordering: elements keep their order.
    """

    module_name = "width_converter"

    def __init__(self, shape: Any, channels: int, lanes_in: int, lanes_out: int, depth: int = 2) -> None:
        for name, value in (("channels", channels), ("lanes_in", lanes_in), ("lanes_out", lanes_out)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, not {value!r}")
        if lanes_in == lanes_out:
            raise ValueError(f"lanes_in and lanes_out must differ, not both be {lanes_in}: leave the converter out")
        check_depth(depth)
        self.shape = shape
        self.channels = channels
        self.lanes_in = lanes_in
        self.lanes_out = lanes_out
        self.depth = depth
        super().__init__(
            {
                "shape": Shape.cast(shape).width, "channels": channels, "lanes_in": lanes_in, "lanes_out": lanes_out,
                "depth": depth,
            },
            {
                "i": In(stream.Signature(data.ArrayLayout(shape, lanes_in))),
                "o": Out(stream.Signature(data.ArrayLayout(shape, lanes_out))),
            },
        )

    @cached_property
    def stages(self):
        """Return the stages that its beats pass, by name."""
        lanes_in, lanes_out, channels = self.lanes_in, self.lanes_out, self.channels
        if lanes_out % lanes_in == 0 or lanes_in < lanes_out == channels:
            return {"up": Up(self.shape, channels, lanes_in, lanes_out, self.depth)}
        if lanes_in % lanes_out == 0 or lanes_out < lanes_in == channels:
            return {"down": Down(self.shape, channels, lanes_in, lanes_out, self.depth)}
        common = lcm(lanes_in, lanes_out)
        return {
            "up": Up(self.shape, channels, lanes_in, common, 2),
            "down": Down(self.shape, channels, common, lanes_out, self.depth),
        }

    @property
    def latency(self):
        """Return the cycles from the first step that completes an output beat to ``o.valid``."""
        return len(self.stages)

    def build(self):
        m = Module()
        source = wiring.flipped(self.i)
        for name, stage in self.stages.items():
            m.submodules[name] = stage
            wiring.connect(m, source, stage.i)
            source = stage.o
        wiring.connect(m, source, wiring.flipped(self.o))
        return m


class _Converter(wiring.Component):
    def __init__(self, shape, channels, lanes_in, lanes_out, depth):
        self.channels = channels
        self.lanes_in = lanes_in
        self.lanes_out = lanes_out
        self.depth = depth
        self.element = Shape.cast(shape).width
        self.beats_in = _beats(channels, lanes_in)
        self.beats_out = _beats(channels, lanes_out)
        self.beat = Signal(range(self.beats_in))  # place in the pixel of the input beat to come, where that is needed
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(shape, lanes_in))),
                "o": Out(stream.Signature(data.ArrayLayout(shape, lanes_out))),
            }
        )
        self.queue = OutputQueue(self.o.payload.shape(), depth)

    def _last(self, m, step):
        """Return a signal that is high while the next input beat is its pixel's last; ``step``: that beat is taken."""
        last = Signal(name="last_beat")
        m.d.comb += last.eq(self.beat == self.beats_in - 1)
        with m.If(step):
            m.d.sync += self.beat.eq(Mux(last, 0, self.beat + 1))
        return last

    @property
    def _surplus(self):
        """Return the number of surplus lanes in a pixel's last input beat."""
        return -self.channels % self.lanes_in

    def _cleared(self, last):
        """Return the input payload, with its surplus lanes 0 while ``last``."""
        payload = Value.cast(self.i.payload)
        used = (self.lanes_in - self._surplus) * self.element
        return Cat(payload[:used], Mux(last, 0, payload[used:])) if self._surplus else payload


class Up(_Converter):
    """``lanes_out = ratio * lanes_in``: beats are collected; the ratio-th, or the pixel's last, completes one. If
    ``lanes_out`` is the whole pixel, its last beat may have surplus lanes."""

    def __init__(self, shape, channels, lanes_in, lanes_out, depth):
        super().__init__(shape, channels, lanes_in, lanes_out, depth)
        self.ratio = min(-(-lanes_out // lanes_in), self.beats_in)
        self.place = Signal(range(self.ratio))  # of the input beat to come in its output beat
        self.parts = [
            Signal(lanes_in * self.element, name=f"part_{k}", reset_less=True) for k in range(self.ratio - 1)
        ]

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        ratio = self.ratio
        place = self.place
        parts = self.parts
        final = (self.beats_in - 1) % ratio  # place of a pixel's last input beat in its output beat
        step = Signal()
        complete = Signal()
        if self.beats_in == ratio:
            last = complete
        elif self._surplus or final != ratio - 1:
            last = self._last(m, step)
        else:
            last = Const(0)  # pixels need not be told apart
        payload = Signal(self.lanes_in * self.element)
        m.d.comb += [
            payload.eq(self._cleared(last)),
            complete.eq((place == ratio - 1) | (last if final != ratio - 1 else 0)),
            self.i.ready.eq(~complete | queue.available),
            step.eq(self.i.valid & self.i.ready),
            queue.push.eq(step & complete),
            queue.reserve.eq(queue.push),
        ]
        with m.If(step):
            m.d.sync += place.eq(Mux(complete, 0, place + 1))
        for k, part in enumerate(parts):
            with m.If(place == k):  # until its beat comes it may hold anything: nothing waits for the input's valid
                m.d.sync += part.eq(payload)
        word = [*parts, payload]
        if final != ratio - 1:
            early = [*parts[:final], payload]
            word = [Mux(last, early[k] if k <= final else 0, word[k]) for k in range(ratio)]
        m.d.comb += Value.cast(queue.payload).eq(Cat(*word))
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m


class Down(_Converter):
    """``lanes_in = ratio * lanes_out``: the first part of a beat is sent as it is taken, the rest from registers. If
    ``lanes_in`` is the whole pixel, its last part may have surplus lanes."""

    def __init__(self, shape, channels, lanes_in, lanes_out, depth):
        super().__init__(shape, channels, lanes_in, lanes_out, depth)
        self.ratio = min(-(-lanes_in // lanes_out), self.beats_out)  # steps of each input beat but a pixel's last
        self.held = Signal(lanes_out * self.element * (self.ratio - 1), reset_less=True)
        self.left = Signal(range(self.ratio))  # steps the beat in ``held`` still needs
        self.empty = Signal(init=1)  # that is 0

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        ratio = self.ratio
        ratio_last = self.beats_out - (self.beats_in - 1) * ratio
        width = self.lanes_out * self.element
        held = self.held
        left = self.left
        empty = self.empty
        step = Signal()
        consume = Signal()
        last = self._last(m, consume) if self._surplus or ratio_last != ratio else Const(0)
        payload = Signal(self.lanes_in * self.element)
        m.d.comb += [
            payload.eq(self._cleared(last)),
            consume.eq(self.i.valid & self.i.ready),
            queue.push.eq(step),
            queue.reserve.eq(step),
        ]
        if ratio == 1:
            m.d.comb += [
                self.i.ready.eq(queue.available),
                step.eq(consume),
                Value.cast(queue.payload).eq(payload),
            ]
        else:
            m.d.comb += [
                self.i.ready.eq(queue.available & empty),
                step.eq(consume | (queue.available & ~empty)),
                Value.cast(queue.payload).eq(Mux(empty, payload[:width], held[:width])),
            ]
            with m.If(empty):  # what is held then does not matter, so that this need not wait for the input's valid
                m.d.sync += held.eq(payload[width:])
            with m.Elif(queue.available):  # a step, as long as something is left
                m.d.sync += held.eq(held[width:])
            with m.If(consume):
                first_left = Mux(last, ratio_last - 1, ratio - 1)
                m.d.sync += [left.eq(first_left), empty.eq(last if ratio_last == 1 else 0)]
            with m.Elif(step):
                m.d.sync += [left.eq(left - 1), empty.eq(left == 1)]
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m
