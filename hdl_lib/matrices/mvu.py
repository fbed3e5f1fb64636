"""The matrix-vector unit: pe x simd multipliers, weights stationary in a table."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.lane_sums import gathered
from hdl_lib.arithmetic.multiplier import FORMS as PRODUCTS
from hdl_lib.arithmetic.multiplier import PART, ProductForm
from hdl_lib.arithmetic.packed_product import Packing
from hdl_lib.blocks import ONE_TURN, Turns, count_behind, count_in_turns, delayed, loop
from hdl_lib.matrices.mvu_rows import connect_rows, parts_of, row_of
from hdl_lib.matrices.vector_buffer import vector_inputs, vector_latency
from hdl_lib.memories.rom import Rom, Table, lies_far, lies_in_block
from hdl_lib.streams.output_queue import OutputQueue
from hdl_lib.windows.clipped_taps import CyclicSequence, clipped_taps, rounds
from hdl_lib.windows.window_geometry import WindowGeometry

FORMS = (*PRODUCTS, ProductForm.DSP2, ProductForm.XNOR)
MAXIMUM_INPUT = 32  # bits
MAXIMUM_WEIGHT = 40
Ranges = tuple[tuple[int, int], tuple[int, int]]  # least and greatest of the inputs, of the weights


class Mvu(wiring.Component):
    """Multiplies input vectors with a constant matrix, ``pe`` rows and ``simd`` columns at a time.

    A pixel is ``synapse_fold`` input beats of ``simd`` values, and gives ``neuron_fold`` output beats of ``pe``
    values::

        output beat nf, lane p = sum over sf, s of weight[nf * synapse_fold + sf][p][s] * input beat sf, lane s

    In the form "xnor" inputs and weights are bits, and each product is replaced by 1 if the two are equal, else by 0.

    Parameters
    ----------
    input_shape, weight_shape: integer shapes of 1 to 32 and 1 to 40 bits, signed or unsigned each; one bit without sign
        for "xnor".
    accumulator_shape: integer shape of an output lane. The caller guarantees that it holds every result;
        intermediate sums may leave it.
    pe, simd, synapse_fold, neuron_fold: each at least 1.
    weights: ``neuron_fold * synapse_fold`` words of ``pe * simd`` weights. The word at address
        ``nf * synapse_fold + sf`` holds ``weight[..][p][s]`` in lane ``p * simd + s`` of ``weight_shape``'s width,
        lane 0 in the least significant bits. A table of a multiple of so many words holds several sets, which
        pixels use in turn.
    turns: (rounds, pixels): the table holds the sets of so many rounds, which follow each other; those of each serve so
        many pixels, a multiple of the sets, before the next ones come. Not where ``clipped``.
    multiplier: "dsp" (the ``*`` operator between registers; operands of more than 16 bits are split into parts), "dsp2"
        (a product for each two rows, see :mod:`hdl_lib.arithmetic.packed_product`; the last one of an odd ``pe`` as in
        "dsp"), "lut" (sums of partial products, see :mod:`hdl_lib.arithmetic.multiplier`) or "xnor" (see
        :class:`hdl_lib.matrices.dot_product.MatchCount`).
    packing: for "dsp2", and only there: how the weights of lanes ``2 * k`` (low) and ``2 * k + 1`` (high) are packed.
        A word then holds for each such pair and each of the ``simd`` lanes ``packing.bits`` (pairs outermost), and
        above these ``simd`` weights of ``packing.low_shape`` where ``pe`` is odd.
    depth: credits of the output queue, at least 1. ``latency // synapse_fold + 2`` or more sustain the full rate.
    part: for "dsp" with an operand of more than 16 bits: bits without sign (one more with) that a multiplier block of
        the device takes, 17 for 18 by 18 bits with sign, 15 for 16 by 16.
    ranges: the least and the greatest input, and the least and the greatest weight, with 0 among the weights: they
        narrow products of two by two bits in the form "lut" (see :class:`hdl_lib.arithmetic.multiplier.Multiplier`).
        Lanes with a weight of 0 may carry any input.
    digits: for "lut": the table holds the weights as :meth:`hdl_lib.arithmetic.digit_product.Digits.stored` returns
        them, of ``digits.bits`` each: smaller than "lut" without digits.
    group, surplus: the upper ``surplus`` lanes of every ``group``-th input beat are taken as zero, whatever they carry;
        ``synapse_fold`` is a multiple of ``group`` (``synapse_fold`` itself by default). A weight of 1 there never
        equals its input. Zero weights do the same for products without this.
    clipped: vectors are the windows of this geometry, of which only the taps inside the image come, each in
        ``synapse_fold / taps`` beats (:class:`hdl_lib.windows.clipped_window.ClippedWindow`), 2 or more of each window.
        The table is the same; weights of taps that do not come are passed over. Not for "xnor".

    Members
    -------
    i: In(stream of ArrayLayout(input_shape, simd)).
    o: Out(stream of ArrayLayout(accumulator_shape, pe)).

    Timing
    ------
    One process; its steps of a pixel are (nf, sf), nf outermost. A step consumes an input beat iff nf == 0 (for nf > 0
    the beats come from an internal buffer), and produces an output beat iff sf == synapse_fold - 1; if ``clipped``,
    iff it takes the last beat of the window that comes (there are no steps for others). Step n executes at
    the first cycle t after step n - 1's with: ``i.valid`` if it consumes; if it produces output beat j,
    t >= (handshake of output beat j - depth) + 1. Output beat j of a step at t shows ``o.valid`` at
    max(t + latency, handshake of output beat j - 1, + 1).

    Initiation interval: ``synapse_fold * neuron_fold`` cycles per pixel, less where clipped. Latency
    (:meth:`latency_of`): 2 cycles for weights and input registers (3 with both folds above 1: inputs come from a memory
    with a register behind it), 1 for operands in registers ("dsp") or the multiples of the input ("lut" where it needs
    them), the product's, one per level of the adder tree (for "xnor" in place of both ceil(log2(simd)), at least 1), 1
    for the accumulator if synapse_fold > 1 (for "dsp2" and ``digits`` in any case: without an accumulator the last
    carry is added there), 1 for the output queue. Backpressure stops only the issue of steps; issued steps run on into
    the queue.

    Ordering
    --------
    Pixels leave in the order they came, the beats of a pixel by rising nf.
    """

    def __init__(
        self,
        input_shape,
        weight_shape,
        accumulator_shape,
        *,
        pe: int,
        simd: int,
        synapse_fold: int,
        neuron_fold: int,
        weights: Table,
        multiplier: ProductForm,
        depth: int,
        part: int = PART,
        ranges: Ranges | None = None,
        group: int | None = None,
        surplus: int = 0,
        packing: Packing | None = None,
        digits: Digits | None = None,
        clipped: WindowGeometry | None = None,
        turns: Turns = ONE_TURN,
    ) -> None:
        self.turns = turns
        self.input_shape = Shape.cast(input_shape)
        self.weight_shape = Shape.cast(weight_shape)
        self.accumulator_shape = Shape.cast(accumulator_shape)
        self.pe = pe
        self.simd = simd
        self.synapse_fold = synapse_fold
        self.neuron_fold = neuron_fold
        self.weights = weights
        self.depth = depth
        self.multiplier = multiplier
        self.part = part
        self.ranges = ranges
        self.group = synapse_fold if group is None else group
        self.surplus = surplus
        self.packing = packing
        self.digits = digits
        self.clipped = clipped
        self._check()
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(self.input_shape, simd))),
                "o": Out(stream.Signature(data.ArrayLayout(self.accumulator_shape, pe))),
            }
        )

    def _check(self) -> None:
        for name in ("pe", "simd", "synapse_fold", "neuron_fold", "depth"):
            if getattr(self, name) is not None and getattr(self, name) < 1:  # a depth may become known later
                raise ValueError(f"Mvu {name} must be at least 1, not {getattr(self, name)}")
        for name, maximum in (("input_shape", MAXIMUM_INPUT), ("weight_shape", MAXIMUM_WEIGHT)):
            if not 1 <= getattr(self, name).width <= maximum:
                raise ValueError(
                    f"Mvu {name} must have 1 to {maximum} bits, not {getattr(self, name).width}; "
                    "split wider operands into several products"
                )
        if self.part < 2:
            raise ValueError(f"Mvu part must be at least 2 bits, not {self.part}")
        if self.accumulator_shape.width < 1:
            raise ValueError("Mvu accumulator_shape must have at least 1 bit, not 0; leave out rows that are all zero")
        if self.multiplier not in FORMS:
            raise ValueError(f'Mvu multiplier must be "dsp", "dsp2", "lut" or "xnor", not {self.multiplier!r}')
        if self.multiplier == ProductForm.XNOR:
            for name in ("input_shape", "weight_shape"):
                if getattr(self, name) != Shape(1):
                    raise ValueError(f'Mvu {name} must be unsigned(1) for "xnor", not {getattr(self, name)!r}')
        if (self.packing is None) == (self.multiplier == ProductForm.DSP2):
            raise ValueError('Mvu packing must be given for "dsp2", and for nothing else')
        if self.digits is not None and (self.multiplier != ProductForm.LUT or self.input_shape.width < 2):
            raise ValueError('Mvu digits must be given for "lut" only, with inputs of 2 bits or more')
        if self.group < 1 or self.synapse_fold % self.group:
            raise ValueError(
                f"Mvu group must divide synapse_fold, {self.synapse_fold}, not {self.group}; "
                "give the beats after which surplus lanes come"
            )
        if not 0 <= self.surplus < self.simd:
            raise ValueError(f"Mvu surplus must be 0 to {self.simd - 1} (simd - 1), not {self.surplus}")
        width, bits = self.pe * self.simd * self.weight_shape.width, "pe * simd * weight bits"
        if self.packing is not None:
            width = self.simd * (self.pe // 2 * self.packing.bits + self.pe % 2 * self.packing.low_shape.width)
            bits = "simd * packed bits of each two rows"
        if self.digits is not None:
            width, bits = self.pe * self.simd * self.digits.bits, "pe * simd * bits of digits"
        depth = self.neuron_fold * self.synapse_fold
        if self.weights.width != width or self.weights.depth % depth:
            raise ValueError(
                f"Mvu weights must be {depth} words (neuron_fold * synapse_fold), or a multiple, of {width} bits "
                f"({bits}), not {self.weights.depth} words of {self.weights.width} bits; "
                "pack the table for this folding"
            )

        sets, (rounds, pixels) = self.weights.depth // depth, self.turns
        if sets % rounds or (rounds > 1 and pixels * rounds % sets):
            raise ValueError(
                f"Mvu turns, {self.turns}, must be rounds that divide the sets of weights, {sets}, and a number of "
                "pixels that the sets of each divide"
            )
        if self.clipped is not None:
            self._check_clipped(self.clipped)

    def _check_clipped(self, windows: WindowGeometry) -> None:
        blocks, left = divmod(self.synapse_fold, windows.kernel[0] * windows.kernel[1])
        least = min(clipped_taps(windows)) * blocks
        if self.multiplier == ProductForm.XNOR or left or self.weights.depth != self.neuron_fold * self.synapse_fold:
            raise ValueError(
                "Mvu clipped must be None for bits, for beats that mix taps and for several sets of weights; padding "
                "counts there"
            )
        if least < 2:
            raise ValueError(f"Mvu clipped must leave each window at least 2 beats, not {least}; do not clip it")

    @staticmethod
    def latency_of(
        *, input_shape, weight_shape, simd: int, synapse_fold: int, neuron_fold: int, multiplier: ProductForm,
        part: int = PART, ranges: Ranges | None = None, digits: Digits | None = None,
    ) -> int:
        """Return the cycles from the producing step to ``o.valid`` with an empty queue."""
        row = row_of(
            Shape.cast(input_shape), Shape.cast(weight_shape), simd, multiplier, part, ranges, digits, synapse_fold > 1
        )
        inputs = vector_latency(synapse_fold, neuron_fold)
        accumulators = int(synapse_fold > 1 or multiplier == ProductForm.DSP2)
        return inputs + row.operand_latency + row.latency + accumulators + 1

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(
            input_shape=self.input_shape,
            weight_shape=self.weight_shape,
            simd=self.simd,
            synapse_fold=self.synapse_fold,
            neuron_fold=self.neuron_fold,
            multiplier=self.multiplier,
            part=self.part,
            ranges=self.ranges,
            digits=self.digits,
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(data.ArrayLayout(self.accumulator_shape, self.pe), self.depth)
        wiring.connect(m, queue.o, wiring.flipped(self.o))

        # The weights leave the table's last register when the sums take them.
        row = row_of(
            self.input_shape, self.weight_shape, self.simd, self.multiplier, self.part, self.ranges, self.digits,
            self.synapse_fold > 1,
        )
        arrival = vector_latency(self.synapse_fold, self.neuron_fold)
        m.submodules.weights = rom = Rom.of_table(self.weights, output_register=True)
        ahead = arrival + row.operand_latency - row.weight_lead - rom.latency
        table = self.weights.width, self.weights.depth
        far = lies_far(*table) or (row.weight_lead > 0 and lies_in_block(*table))

        # Issue: which step is next, and whether it can be taken.
        step = Signal()
        at_once = not (ahead or self.weights.held or lies_in_block(*table))
        consumes, produces, synapse, address = self._schedule(m, step, at_once)
        room = Signal()
        m.d.comb += [
            room.eq(~produces | queue.available),
            self.i.ready.eq(consumes & room),
            step.eq((self.i.valid | ~consumes) & room),
            queue.reserve.eq(step & produces),
        ]

        # Operands.
        words = rom.data
        if ahead and far:  # a cycle that is there anyway
            words = Signal(len(rom.data), name="weights_near", reset_less=True)
            m.d.sync += words.eq(rom.data)
            ahead -= 1
        m.d.comb += rom.addr.eq(delayed(m, "weight_address", address, ahead, reset=False))
        inputs = self._inputs(m, step, consumes, produces, synapse)
        operands = [row.operand(m, f"input{s}", x) for s, x in enumerate(inputs)]

        # Products, their sums, accumulation.
        accumulated = self.synapse_fold > 1
        stages = arrival + row.operand_latency + row.latency
        update = last = None
        if accumulated:
            update = delayed(m, "update", step, stages - 1)
            last = delayed(m, "last", step & produces, stages - 1)
        if accumulated or self.packing is not None:
            stages += 1
        weight_shape = self.weight_shape if self.digits is None else Shape(self.digits.bits)
        taken = gathered(m, operands)
        layouts = {name: value.shape() for name, value in taken.items()}
        parts = parts_of(row, self.pe, layouts, weight_shape, self.accumulator_shape, accumulated, self.packing)
        m.d.comb += queue.push.eq(delayed(m, "push", step & produces, stages))
        for p, result in enumerate(connect_rows(m, parts, taken, words, update, last)):
            m.d.comb += queue.payload[p].eq(result)
        return m

    def _schedule(self, m: Module, step: Signal, at_once: bool) -> tuple[Signal, Signal, Signal, Signal]:
        """Return what registers say of the next step: whether it consumes, whether it produces, its beat, and the
        address of its weights, which a table in look-up tables takes ``at_once``."""
        consumes = Signal(init=1)
        produces = Signal(init=self.synapse_fold == 1)
        synapse = Signal(range(self.synapse_fold))
        last = loop(m, "neuron", self.neuron_fold, step & produces)
        if self.clipped is not None:
            address = self._clipped_walk(m, self.clipped, step, produces, last)
        else:
            rounds, pixels = self.turns
            words = self.weights.depth // rounds
            times = pixels * self.neuron_fold * self.synapse_fold // words
            if at_once and rounds == 1:
                address = count_behind(m, "weight", words, step)
            else:
                address = count_in_turns(m, "weight", words, (rounds, times), step)
        with m.If(step):
            if self.synapse_fold > 1:
                m.d.sync += synapse.eq(Mux(produces, 0, synapse + 1))
                if self.clipped is None:
                    m.d.sync += produces.eq(synapse == self.synapse_fold - 2)
            if self.neuron_fold > 1:
                with m.If(produces):
                    m.d.sync += consumes.eq(last)
        return consumes, produces, synapse, address

    def _clipped_walk(self, m: Module, g: WindowGeometry, step: Signal, produces: Signal, last: Value) -> Signal:
        """Walk the beats of each window that come, once for each pass over the outputs, of which ``last`` says that it
        is the last one; drive ``produces``, and return the address of the weights.

        The beats of a kernel row are a run of addresses. The next window is known one ahead, and what it takes to get
        there is in registers: it has at least two steps.
        """
        whole = self.synapse_fold // g.kernel[0]  # the beats of a kernel row
        blocks = whole // g.kernel[1]
        across = [(count * blocks - 1, first * blocks) for first, count in g.inside(1)]
        along = [(count - 1, first * whole, (count - 1) * whole) for first, count in g.inside(0)]
        ends, window_done, next_row = (Signal(name=name) for name in ("window_ends", "window_done", "next_row"))
        columns = CyclicSequence(m, "column", across, window_done, int(g.out_width > 1))
        second = int(g.out_width == 1 and g.out_height > 1)
        rows = CyclicSequence(m, "row", along, next_row, second)
        m.d.comb += [
            ends.eq(produces & last),
            window_done.eq(step & ends),
            next_row.eq(window_done & columns.last),
        ]
        (next_run, left), (next_count, top, height) = columns.values, rows.values

        (run, first), (count, above, _) = across[0], along[0]
        (after_run, after_first), (_, after_above, after_height) = across[int(g.out_width > 1)], along[second]
        present_run = Signal(range(whole), name="window_run", init=run)
        present_count = Signal(range(g.kernel[0]), name="window_rows", init=count)
        row_jump = Signal(range(whole + 1), init=whole - run)
        pass_jump = Signal(range(self.synapse_fold + 1), init=self.synapse_fold - count * whole - run)
        next_jump = Signal.like(pass_jump, name="next_jump", init=self.synapse_fold - after_height - after_run)
        start = Signal(range(self.synapse_fold), name="next_start", init=after_above + after_first)
        m.d.sync += [
            start.eq(top + left),
            next_jump.eq(self.synapse_fold - (height + next_run)),
        ]
        with m.If(window_done):
            m.d.sync += [
                present_run.eq(next_run),
                present_count.eq(next_count),
                row_jump.eq(whole - next_run),
                pass_jump.eq(next_jump),
            ]
        run_last = rounds(m, "run", [each for each, _ in across], run, step, Mux(ends, next_run, present_run))
        rows_last = rounds(
            m, "kernel_row", [each for each, _, _ in along], count, step & run_last,
            Mux(ends, next_count, present_count),
        )
        m.d.comb += produces.eq(run_last & rows_last)
        address = Signal(range(max(2, self.weights.depth)), name="weight", init=above + first)
        with m.If(step):
            move = Mux(produces, pass_jump, Mux(run_last, row_jump, 1))
            m.d.sync += address.eq(Mux(ends, start, address + move))
        return address

    def _inputs(
        self, m: Module, step: Signal, consumes: Signal, produces: Signal, synapse: Signal
    ) -> list[Signal]:
        """Return the lanes of the step's input beat, :func:`vector_latency` cycles after the step."""
        beat = data.ArrayLayout(self.input_shape, self.simd)
        payload = self.i.payload
        if self.surplus:
            payload = Signal(beat, name="counted")
            last = self._last_of_group(m, step, produces)
            m.d.comb += payload.eq(self.i.payload)
            with m.If(last):
                m.d.comb += [payload[s].eq(0) for s in range(self.simd - self.surplus, self.simd)]
        return vector_inputs(m, beat, payload, step, consumes, synapse, (self.synapse_fold, self.neuron_fold))

    def _last_of_group(self, m: Module, step: Signal, produces: Signal) -> Value:
        """Tell whether the next step's beat is the last of its group."""
        if self.group == 1:
            return Const(1, 1)
        if self.group == self.synapse_fold:
            return produces
        place = Signal(range(self.group))
        last = place == self.group - 1
        with m.If(step):
            m.d.sync += place.eq(Mux(last, 0, place + 1))
        return last
