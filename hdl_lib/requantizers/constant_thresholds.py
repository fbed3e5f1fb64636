"""Requantization by thresholds that are constants of each lane."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value

from hdl_lib.requantizers.per_channel import PerChannel
from hdl_lib.streams.output_queue import OutputQueue

SEGMENT = 11
"""Bits that a register stage compares: four look-up tables one behind the other."""


def segments(bits: int) -> list[tuple[int, int]]:
    """Return the bits that each stage compares, from the lowest on: equally many, at most :data:`SEGMENT`."""
    count = -(-bits // SEGMENT)
    ends = [bits * (k + 1) // count for k in range(count)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


class ConstantThresholds(PerChannel):
    """``y = first + number of thresholds T with x >= T``, with own thresholds in each lane.

    A comparison with a constant takes no carry chain: from the lowest bit on, "less so far" is a gate of the next bit
    for each. Comparisons of a lane whose lower bits are alike share them.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    thresholds: of each lane, rising, values of ``input_shape``; none for a constant.
    firsts: of each lane.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). An element of ``input_shape`` per lane.
    o: Out(stream). An element of ``output_shape`` per lane.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; ``latency`` cycles later ``o.valid``. Stages:
    input, one for each of :func:`segments`, count, output queue. Initiation interval 1 cycle per beat. Under
    backpressure no step begins; those begun continue.

    Ordering
    --------
    Beats leave in the order they came.
    """

    def __init__(
        self, input_shape: Shape, output_shape: Shape, *, thresholds: Sequence[Sequence[int]], firsts: Sequence[int],
        depth: int,
    ) -> None:
        lanes = len(thresholds)
        super().__init__(input_shape, output_shape, lanes=lanes, channels=lanes, depth=depth)
        if len(firsts) != lanes:
            raise ValueError(f"firsts must be {lanes}, one for each lane, not {len(firsts)}")
        for lane, own in enumerate(thresholds):
            if list(own) != sorted(set(own)):
                raise ValueError(f"thresholds must rise, not those of lane {lane}")
        self.thresholds = tuple(tuple(own) for own in thresholds)
        self.firsts = tuple(firsts)

    @staticmethod
    def latency_of(bits: int) -> int:
        """Return the cycles from a step to ``o.valid``, for inputs of so many bits."""
        return 1 + len(segments(bits)) + 1 + 1

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.input_shape.width)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue: OutputQueue
        queue, _ = self._issue(m)
        bits = self.input_shape.width
        arrived = Signal(self.i.payload.shape(), name="arrived", reset_less=True)
        m.d.sync += arrived.eq(self.i.payload)
        for lane, (own, first) in enumerate(zip(self.thresholds, self.firsts, strict=True)):
            x = Value.cast(arrived[lane])
            if self.input_shape.signed:  # in the order of numbers without a sign
                x = Cat(x[:-1], ~x[-1])
            flip = 1 << bits - 1 if self.input_shape.signed else 0
            codes = [(threshold & ((1 << bits) - 1)) ^ flip for threshold in own]
            below = self._below(m, lane, x, codes)
            reached = [~each for each in below]
            count = Signal(self.output_shape, name=f"count_{lane}", reset_less=True)
            m.d.sync += count.eq(first + counted(reached))
            m.d.comb += queue.payload[lane].eq(count)
        return m

    def _below(self, m: Module, lane: int, x: Value, codes: Sequence[int]) -> list[Value]:
        """Return in registers whether ``x`` is less than each code."""
        known: dict[int, Value] = {0: Const(0, 1)}  # by the bits of codes so far
        for stage, (low, high) in enumerate(segments(self.input_shape.width)):
            lower = (1 << low) - 1
            found: dict[int, Value] = {}
            for code in codes:
                part = code & ((1 << high) - 1)
                if part in found:
                    continue
                less = known[code & lower]
                for place in range(low, high):
                    bit = x[place - low]
                    less = ~bit | less if code >> place & 1 else ~bit & less
                found[part] = Signal(name=f"less_{lane}_{stage}_{len(found)}", reset_less=True)
                m.d.sync += found[part].eq(less)
            known = found
            rest = Signal(len(x) - (high - low), name=f"x_{lane}_{stage}", reset_less=True)
            m.d.sync += rest.eq(x[high - low :])
            x = rest
        return [known[code] for code in codes]


def counted(reached: Sequence[Value]) -> Value:
    """Return how many of ``reached``, of which each implies those before it: bit ``b`` is set where the number's rest
    by ``2 ** (b + 1)`` is at least ``2 ** b``."""
    bits = []
    for place in range(len(reached).bit_length()):
        half = 1 << place
        found: Value = Const(0, 1)
        for start in range(half - 1, len(reached), 2 * half):
            end = start + half
            found = found | (reached[start] & ~reached[end] if end < len(reached) else reached[start])
        bits.append(found)
    return Cat(*bits)
