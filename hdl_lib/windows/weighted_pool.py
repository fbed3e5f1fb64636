"""Weighted sums over groups of pixels, by channel: a depthwise convolution after its sliding window."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Shape, Signal, Value

from hdl_lib.arithmetic.adder_tree import Term, registered
from hdl_lib.arithmetic.multiplier import PART, Multiplier, ProductForm, interval
from hdl_lib.blocks import block_count, count_up, delayed
from hdl_lib.memories.rom import Rom, Table, lies_in_block
from hdl_lib.windows.pool import GroupPool

ARRIVAL = 2
"""Cycles from a step to its beat and to its weights, which come from a table with an output register."""


class WeightedPool(GroupPool):
    """The sum over each ``window`` consecutive pixels, by channel, of each element times a constant.

    Exact modulo ``2**result_shape.width``: correct wherever the sums lie in the range of ``result_shape``.

    Parameters
    ----------
    shape, weight_shape, result_shape: of an element, a weight and a sum, integer shapes.
    channels, lanes: elements per pixel and elements per beat; ``blocks = ceil(channels / lanes)`` beats per pixel.
    window: input pixels for an output pixel, at least 1.
    weights: a word of ``lanes`` weights, lane 0 in the low bits, for each beat of a group; for as many groups as the
        table holds, which take turns.
    multiplier: "dsp" or "lut" (:class:`hdl_lib.arithmetic.multiplier.Multiplier`).
    part: as for :class:`hdl_lib.matrices.mvu.Mvu`.
    depth: beats of the output queue. At the full rate up to ``blocks`` beats follow each other without a gap; with
        ``latency + 1`` there is room for any number of them.

    Members
    -------
    i: In(stream). ``window`` pixels for each output pixel, such as
        :class:`hdl_lib.windows.sliding_window.SlidingWindow` sends.
    o: Out(stream). The sums; lanes beyond ``channels`` in a pixel's last beat are unspecified.

    Timing
    ------
    One step per input beat. The steps of a group's last pixel produce, and need a credit; :meth:`weighted_latency_of`
    cycles later the beat shows on ``o.valid``: 2 for the beat and its weights (3 where these come from a block RAM and
    go to multiplier blocks), the operand's and the product's (see :class:`hdl_lib.arithmetic.multiplier.Multiplier`), 1
    for the sum, 1 for the queue. Initiation interval 1 cycle per input beat.
    Under backpressure the steps that would produce wait.

    Ordering
    --------
    Pixels leave in the order of their groups, beats of a pixel in the order they came.
    """

    _name = "sum"

    def __init__(
        self,
        shape: Shape,
        weight_shape: Shape,
        result_shape: Shape,
        channels: int,
        lanes: int,
        window: int,
        *,
        weights: Table,
        multiplier: ProductForm,
        part: int = PART,
        depth: int,
    ) -> None:
        self.weight_shape = Shape.cast(weight_shape)
        self.weights = weights
        self.multiplier = Multiplier(Shape.cast(shape), self.weight_shape, multiplier, part)
        self._check_weights(block_count(channels, lanes), window, lanes)
        super().__init__(shape, result_shape, channels, lanes, window, depth=depth)

    def _check_weights(self, blocks: int, window: int, lanes: int) -> None:
        words, weights = window * blocks, self.weights
        if weights.width != lanes * self.weight_shape.width or weights.depth % words:  # uncovered: a defect of ours
            raise ValueError(
                f"weights must be words of {lanes * self.weight_shape.width} bits (lanes * weight bits), a multiple of "
                f"{words} of them (window * blocks), not {weights.depth} words of {weights.width} bits"
            )

    @staticmethod
    def weighted_latency_of(
        shape: Shape, weight_shape: Shape, multiplier: ProductForm, part: int = PART, *, table: tuple[int, int]
    ) -> int:
        """Return the cycles from the producing step to ``o.valid``; ``table``: (bits of a word of the weights, words).
        """
        product = Multiplier(Shape.cast(shape), Shape.cast(weight_shape), multiplier, part)
        return arrival_of(product, *table) + product.operand_latency + product.latency + 2

    def _terms(self, m: Module, step: Value) -> tuple[list[Value], int]:
        product = self.multiplier
        arrival = arrival_of(product, self.weights.width, self.weights.depth)
        weights = self._weights(m, step, arrival + product.operand_latency - product.weight_lead)
        terms: list[Value] = []
        for lane in range(self.lanes):
            x: Value = self.i.payload[lane]
            for cycle in range(arrival):
                x = Value.cast(registered(m, f"input{lane}_{cycle + 1}", Term(x, *interval(self.shape))).value)
            operand = product.operand(m, f"input{lane}", x)
            terms.append(Value.cast(product.product(m, f"product{lane}", operand, weights[lane]).value))
        return terms, arrival + product.operand_latency + product.latency

    def _weights(self, m: Module, step: Value, ahead: int) -> list[Value]:
        """Return each lane's weight of a step, ``ahead`` cycles after it."""
        word = self._word(m, count_up(m, "weight", self.weights.depth, step), ahead)
        weights: list[Value] = []
        for lane in range(self.lanes):
            weight = Signal(self.weight_shape, name=f"weight{lane}")
            m.d.comb += weight.eq(word.word_select(lane, self.weight_shape.width))
            weights.append(weight)
        return weights

    def _word(self, m: Module, address: Value, ahead: int) -> Value:
        """Return the table's word at ``address``, ``ahead`` cycles after it; in a register near its reader if the table
        is in a block RAM and there is a cycle for that."""
        m.submodules.weights = rom = Rom.of_table(self.weights, output_register=True)
        ahead, word = ahead - rom.latency, rom.data
        if ahead and lies_in_block(self.weights.width, self.weights.depth):
            word = Signal(len(rom.data), name="weights_near", reset_less=True)
            m.d.sync += word.eq(rom.data)
            ahead -= 1
        m.d.comb += rom.addr.eq(delayed(m, "weight_address", address, ahead))
        return word

    def _combine(self, beat: Value, before: Value, first: Value) -> Value:
        return Mux(first, 0, before) + beat


def arrival_of(product: Multiplier, width: int, depth: int) -> int:
    """Return the cycles from a step to its beat: :data:`ARRIVAL`, and one more if the weights, ``depth`` words of
    ``width`` bits, go from a block RAM to multiplier blocks, for a register between them."""
    return ARRIVAL + int(product.blocks > 0 and lies_in_block(width, depth))
