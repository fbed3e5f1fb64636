"""Maximum or sum over groups of pixels, several or all of which come at once."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.adder_tree import Term, adder_tree, tree_levels
from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import delayed, less, loop
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue


class TreePool(wiring.Component):
    """One result for each ``window`` consecutive pixels, by channel, with ``pixels`` pixels per beat: trees over a
    beat's pixels, a running result over beats. A subclass defines them in :meth:`_tree` and :meth:`_combine`."""

    _name = "result"

    def __init__(
        self, shape: Shape, result_shape: Shape, channels: int, pixels: int, window: int, *, depth: int
    ) -> None:
        if channels < 1:
            raise ValueError(f"channels must be at least 1, not {channels}")
        if window < 1 or pixels < 1 or (window % pixels and pixels % window):
            raise ValueError(f"pixels must divide the window of {window} or be a multiple of it, not {pixels}")
        check_depth(depth)
        self.shape = Shape.cast(shape)
        self.result_shape = Shape.cast(result_shape)
        self.channels = channels
        self.pixels = pixels
        self.window = window
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(shape, pixels * channels))),
                "o": Out(stream.Signature(data.ArrayLayout(result_shape, max(1, pixels // window) * channels))),
            }
        )

    @staticmethod
    def latency_of(pixels: int, window: int) -> int:
        """Return the cycles from the producing step to ``o.valid``."""
        return tree_levels(min(pixels, window)) + (pixels < window) + 1

    def _tree(self, m: Module, name: str, values: list[Value]) -> Value:
        """Combine all values, ``tree_levels(len(values))`` cycles later."""
        raise NotImplementedError("each pool combines in its own way")

    def _combine(self, beat: Value, before: Value, first: Value) -> Value:
        """Return the running result of a lane after ``beat``; ``before`` is the previous one unless this is the
        ``first``."""
        raise NotImplementedError("each pool combines in its own way")

    def _running(self) -> ShapeLike:
        """Return the shape of a lane's running result."""
        return self.result_shape

    def _payload(self, result: Value) -> Value:
        """Return a lane's element of the output's beat."""
        return result

    def _count_rounds(self, m: Module, arrives: Value) -> None:
        """Count a group's beats as the tree's results come with ``arrives``, for subclasses that need the number."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        together = min(self.pixels, self.window)  # pixels of a tree
        rounds, levels = self.window // together, tree_levels(together)
        step, produces = Signal(), Signal()
        m.d.comb += [
            produces.eq(loop(m, "round", rounds, step)),
            self.i.ready.eq(~produces | queue.available),
            step.eq(self.i.valid & self.i.ready),
            queue.reserve.eq(step & produces),
            queue.push.eq(delayed(m, "push", queue.reserve, levels + (rounds > 1))),
        ]
        arrives = delayed(m, "step", step, levels) if rounds > 1 else Const(0)
        first = Signal(name="first_round", init=1)
        if rounds > 1:
            last = delayed(m, "last_round", produces, levels)
            with m.If(arrives):
                m.d.sync += first.eq(last)
            self._count_rounds(m, arrives)
        for lane in range(len(self.o.payload)):
            group, channel = divmod(lane, self.channels)
            pixels = range(group * together, (group + 1) * together)
            result = self._tree(m, f"tree_{lane}", [self.i.payload[p * self.channels + channel] for p in pixels])
            if rounds > 1:
                running = Signal(self._running(), name=f"{self._name}_{lane}", reset_less=True)
                with m.If(arrives):
                    m.d.sync += running.eq(self._combine(result, running, first))
                result = running
            m.d.comb += queue.payload[lane].eq(self._payload(result))
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        return m


class MaxPoolTree(TreePool):
    """The maximum, or ``least`` the minimum, over each ``window`` consecutive pixels, by channel, several pixels
    per beat.

    Parameters
    ----------
    shape: of an element, an integer shape.
    channels: elements per pixel.
    pixels: of a beat; a part of a window (they divide it), or several whole windows.
    window: input pixels for an output pixel, at least 1.
    least: the minimum instead.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). ``window`` pixels for each output pixel, channels fastest.
    o: Out(stream). The maxima, all channels of one pixel per beat, of as many pixels as a beat has whole windows.

    Timing
    ------
    One step per input beat. A step with a window's last pixel produces, and needs a credit; :attr:`latency` cycles
    later the beat shows on ``o.valid``: one for each level of the tree, one more where a window has several beats, and
    one. Initiation interval 1 cycle per input beat. Under backpressure the steps that would produce wait.

    Ordering
    --------
    Pixels leave in the order of their groups.
    """

    _name = "maximum"

    def __init__(
        self, shape: Shape, channels: int, pixels: int, window: int, *, least: bool = False, depth: int
    ) -> None:
        self.least = least
        super().__init__(shape, shape, channels, pixels, window, depth=depth)

    def _better(self, a: Value, b: Value) -> Value:
        """Tell whether ``b`` replaces ``a``."""
        return less(b, a) if self.least else less(a, b)

    def _tree(self, m: Module, name: str, values: list[Value]) -> Value:
        level = 0
        while len(values) > 1:
            best: list[Value] = []
            for index in range(0, len(values), 2):
                register = Signal(self.shape, name=f"{name}_{level}_{index // 2}", reset_less=True)
                pair = values[index : index + 2]
                m.d.sync += register.eq(pair[0] if len(pair) == 1 else Mux(self._better(*pair), pair[1], pair[0]))
                best.append(register)
            values = best
            level += 1
        return values[0]

    def _combine(self, beat: Value, before: Value, first: Value) -> Value:
        return Mux(first | self._better(before, beat), beat, before)


class SumPoolTree(TreePool):
    """The sum over each ``window`` consecutive pixels, by channel, several pixels per beat.

    Exact modulo ``2**result_shape.width``: correct wherever the sums lie in the range of ``result_shape``.

    Parameters
    ----------
    shape, result_shape: of an element and of a sum, integer shapes.
    channels, pixels, window, depth: as for :class:`MaxPoolTree`.

    Members
    -------
    i: In(stream). ``window`` pixels for each output pixel, channels fastest.
    o: Out(stream). The sums, as :class:`MaxPoolTree` sends maxima.

    Timing
    ------
    As :class:`MaxPoolTree`.

    Ordering
    --------
    As :class:`MaxPoolTree`.
    """

    _name = "sum"

    def _tree(self, m: Module, name: str, values: list[Value]) -> Value:
        terms = [Term(value, *interval(self.shape)) for value in values]
        total: Value = Value.cast(adder_tree(m, name, terms, self.result_shape.width).value)
        return total

    def _combine(self, beat: Value, before: Value, first: Value) -> Value:
        return Mux(first, 0, before) + beat
