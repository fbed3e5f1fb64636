"""Requantization by counting thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Shape, Signal

from hdl_lib.arithmetic.adder_tree import Term, adder_tree, registered, tree_levels
from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import ONE_TURN, Turns, less
from hdl_lib.memories.rom import Table
from hdl_lib.requantizers.per_channel import PerChannel

GROUP = 4  # comparisons counted in one level of look-up tables
RISING, FALLING = "rising", "falling"


class Thresholds(PerChannel):
    """``y = base + number of thresholds T of the channel with x >= T``; some may count with ``x < T`` instead.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    lanes, channels: elements per beat and elements per pixel; ``blocks = ceil(channels / lanes)`` beats per pixel.
    base, levels: the number to count from, a value of ``output_shape``, and the number of thresholds per channel, at
        least 1. A base of None: each channel has its own.
    parameters: a word for each block, or a single one for all. For each lane, lane 0 in the least significant bits,
        the channel's ``levels`` thresholds in any order, each of ``input_shape.width + 1`` bits and signed like the
        input: one more than the greatest input is a threshold that is never reached; then its direction bits, then its
        base, of ``output_shape``, if ``base`` is None. A single word given as a number becomes constants.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.
    directions: for each threshold "rising" (counts where ``x >= T``), "falling" (counts where ``x < T``), or the number
        of the channel's direction bit that says so (1: falling). Empty: all are rising, and the results must not
        leave ``output_shape``. Otherwise the sum is taken modulo ``2**output_shape.width``.

    Members
    -------
    i: In(stream). Elements of ``input_shape``.
    o: Out(stream). Elements of ``output_shape``; lanes beyond ``channels`` follow the table's fields for them.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; ``latency`` cycles later ``o.valid``. Stages:
    input, input again with the thresholds, comparisons, counts of four comparisons, one for each level of the sum of
    these counts (and of the channel's base), output queue. Initiation interval 1 cycle per beat. Under backpressure no
    step begins; those begun continue.

    Ordering
    --------
    Beats leave in the order they came.
    """

    def __init__(
        self,
        input_shape: Shape,
        output_shape: Shape,
        *,
        lanes: int,
        channels: int,
        base: int | None,
        levels: int,
        parameters: Table,
        depth: int,
        directions: Sequence[str | int] = (),
        turns: Turns = ONE_TURN,
    ) -> None:
        self.base = base
        self.levels = levels
        self.parameters = parameters
        self.directions = tuple(directions) or (RISING,) * levels
        self.direction_bits = 1 + max((d for d in self.directions if isinstance(d, int)), default=-1)
        super().__init__(input_shape, output_shape, lanes=lanes, channels=channels, depth=depth, turns=turns)
        if levels < 1:
            raise ValueError(f"levels must be at least 1, not {levels}; a constant needs no requantizer")
        least, greatest = interval(self.output_shape)
        highest = levels if not directions else 0
        if base is not None and not least <= base <= base + highest <= greatest:
            raise ValueError(
                f"base and base + levels must be in {least}..{greatest}, the range of {self.output_shape}, "
                f"not {base} and {base + levels}"
            )
        if len(self.directions) != levels:
            raise ValueError(f"directions must be {levels}, one for each threshold, not {len(self.directions)}")
        for direction in self.directions:
            if direction not in (RISING, FALLING) and not (isinstance(direction, int) and direction >= 0):
                raise ValueError(f"a direction must be rising, falling or the number of a bit, not {direction}")
        self._lane_bits = levels * (self.input_shape.width + 1) + self.direction_bits
        self._lane_bits += 0 if base is not None else self.output_shape.width
        contents = f"{lanes} lanes with {levels} thresholds of {self.input_shape.width + 1}"
        if self.direction_bits:
            contents += f", {self.direction_bits} direction bits"
        if base is None:
            contents += f", a base of {self.output_shape.width}"
        self._check_table(parameters, lanes * self._lane_bits, contents)

    @staticmethod
    def latency_of(levels: int, *, own_bases: bool = False) -> int:
        """Return the cycles from a step to ``o.valid``: ``5 + ceil(log2(ceil(levels / 4)))``; with a base for each
        channel ``5 + ceil(log2(ceil(levels / 4) + 1))``."""
        return 5 + tree_levels(-(-levels // GROUP) + own_bases)

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self.levels, own_bases=self.base is None)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue, step = self._issue(m)
        xs, word = self._operands(m, step, self.parameters)
        width = self.input_shape.width + 1
        for lane, x in enumerate(xs):
            fields = word[lane * self._lane_bits : (lane + 1) * self._lane_bits]
            below = Signal(self.levels, name=f"below_{lane}", reset_less=True)  # x < threshold, or if falling x >= it
            bits = fields[self.levels * width : self.levels * width + self.direction_bits]
            for level, direction in enumerate(self.directions):
                threshold = Signal(Shape(width, self.input_shape.signed), name=f"threshold_{lane}_{level}")
                m.d.comb += threshold.eq(fields.word_select(level, width))
                missed = less(x, threshold)
                m.d.sync += below[level].eq(missed ^ bits[direction] if isinstance(direction, int) else missed)
            reached = Cat(b if d == FALLING else ~b for b, d in zip(below, self.directions, strict=True))
            counts = []
            for group in range(0, self.levels, GROUP):
                counted = reached[group : group + GROUP]
                # The first group starts at the base: it is a function of its four comparisons all the same.
                start = 0 if group or self.base is None else self.base
                count = Term(sum(counted, Const(start, self.output_shape)), start, start + len(counted))
                counts.append(registered(m, f"count_{lane}_{group // GROUP}", count, self.output_shape.width))
            if self.base is None:
                base = Signal(self.output_shape, name=f"base_{lane}", reset_less=True)
                m.d.sync += base.eq(fields[-self.output_shape.width :])
                counts.append(registered(m, f"base_{lane}_1", Term(base, *interval(self.output_shape))))
            total = adder_tree(m, f"sum_{lane}", counts, self.output_shape.width)
            m.d.comb += queue.payload[lane].eq(total.value)
        return m
