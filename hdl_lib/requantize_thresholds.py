"""Requantization by counting thresholds."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Shape, Signal

from .adder_tree import Term, adder_tree, registered, tree_levels
from .blocks import less
from .multiplier import interval
from .per_channel import PerChannel
from .rom import Table

GROUP = 4  # comparisons counted in one level of look-up tables


class Thresholds(PerChannel):
    """``y = base + number of thresholds T of the channel with x >= T``.

    Parameters
    ----------
    input_shape, output_shape: of an element, integer shapes.
    lanes, channels: elements a beat and elements a pixel; ``blocks = ceil(channels / lanes)`` beats a pixel.
    base, levels: the least result and the number of thresholds a channel, at least 1.
    parameters: a word for each block, or a single one for all. For each lane, lane 0 in the least significant bits,
        the channel's ``levels`` thresholds in any order, each of ``input_shape.width + 1`` bits and signed like the
        input: one more than the greatest input is a threshold that is never reached. A single word given as a number
        becomes constants.
    depth: beats of the output queue; one beat a cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). Elements of ``input_shape``.
    o: Out(stream). Elements of ``output_shape``; lanes beyond ``channels`` follow the table's fields for them.

    Timing
    ------
    One step a beat, at the first cycle with ``i.valid`` and a credit; ``latency`` cycles later ``o.valid``. Stages:
    input, input again with the thresholds, comparisons, counts of four comparisons, one for each level of the sum of
    these counts, output queue. Initiation interval 1 cycle a beat. Under backpressure no step begins; those begun go
    on.

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
        base: int,
        levels: int,
        parameters: Table,
        depth: int,
    ) -> None:
        self.base = base
        self.levels = levels
        self.parameters = parameters
        super().__init__(input_shape, output_shape, lanes=lanes, channels=channels, depth=depth)
        if levels < 1:
            raise ValueError(f"levels must be at least 1, not {levels}; a constant needs no requantizer")
        least, greatest = interval(self.output_shape)
        if not least <= base <= base + levels <= greatest:
            raise ValueError(
                f"base and base + levels must be in {least}..{greatest}, the range of {self.output_shape}, "
                f"not {base} and {base + levels}"
            )
        self._check_table(
            parameters,
            lanes * levels * (self.input_shape.width + 1),
            f"{lanes} lanes with {levels} thresholds of {self.input_shape.width + 1}",
        )

    @staticmethod
    def latency_of(levels: int) -> int:
        """Cycles from a step to ``o.valid``: ``5 + ceil(log2(ceil(levels / 4)))``."""
        return 5 + tree_levels(-(-levels // GROUP))

    @property
    def latency(self) -> int:
        """As :meth:`latency_of`."""
        return self.latency_of(self.levels)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue, step = self._issue(m)
        xs, word = self._operands(m, step, self.parameters)
        width = self.input_shape.width + 1
        for lane, x in enumerate(xs):
            missed = Signal(self.levels, name=f"missed_{lane}", reset_less=True)  # x < threshold
            for level in range(self.levels):
                threshold = Signal(Shape(width, self.input_shape.signed), name=f"threshold_{lane}_{level}")
                m.d.comb += threshold.eq(word.word_select(lane * self.levels + level, width))
                m.d.sync += missed[level].eq(less(x, threshold))
            counts = []
            for group in range(0, self.levels, GROUP):
                reached = ~missed[group : group + GROUP]
                # The first group starts at the base: it is a function of its four comparisons all the same.
                start = 0 if group else self.base
                count = Term(sum(reached, Const(start, self.output_shape)), start, start + len(reached))
                counts.append(registered(m, f"count_{lane}_{group // GROUP}", count))
            m.d.comb += queue.payload[lane].eq(adder_tree(m, f"sum_{lane}", counts).value)
        return m
