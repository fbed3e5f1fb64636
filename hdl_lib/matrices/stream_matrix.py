"""The matrix-vector unit whose matrix is a stream: a memory of two halves holds it, one written while one is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.lane_sums import gathered
from hdl_lib.arithmetic.multiplier import FORMS, PART, ProductForm
from hdl_lib.arithmetic.packed_product import Packing, borrowed
from hdl_lib.blocks import delayed, loop
from hdl_lib.matrices.dot_product import ProductSum
from hdl_lib.matrices.mvu_rows import Ranges, connect_rows, parts_of, row_of
from hdl_lib.matrices.vector_buffer import vector_inputs, vector_latency
from hdl_lib.memories.buffer_memory import BufferMemory, memory_parts
from hdl_lib.memories.storage import check_depth, count
from hdl_lib.streams.output_queue import OutputQueue

Shapes = tuple[Shape, Shape]
"""Of an element of a vector, of a matrix."""


class Along(StrEnum):
    """Which elements of a matrix lie side by side in its stream."""

    INNER = "inner"  # those of a row: what a vector's elements are multiplied by
    OUTER = "outer"  # those of a column: what one element of a vector is multiplied by


@dataclass(frozen=True)
class MatrixRounds:
    """What is multiplied by what, and in which order it comes.

    A round has ``sets`` matrices of ``outer`` rows and ``inner`` columns, and ``vectors`` of ``inner`` elements.
    Consecutive ``repeat`` vectors take the same matrix, the next ``repeat`` the next one, and after the last one the
    first again: ``vectors`` is a multiple of ``sets * repeat``.

    ``along``: what a beat of the matrices holds. ``interleaved``: row 0 (or column 0) of all matrices comes first, then
    row 1 of all of them, and so on; else one matrix comes after the other.
    """

    inner: int
    outer: int
    vectors: int
    sets: int = 1
    repeat: int = 1
    along: Along = Along.INNER
    interleaved: bool = False

    def __post_init__(self) -> None:
        for name in ("inner", "outer", "vectors", "sets", "repeat"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.vectors % (self.sets * self.repeat):
            raise ValueError(
                f"vectors must be a multiple of sets * repeat, {self.sets * self.repeat}, not {self.vectors}"
            )


@dataclass(frozen=True)
class FoldedRounds:
    """:class:`MatrixRounds` with ``pe`` rows and ``simd`` columns at a time, at most those that there are."""

    rounds: MatrixRounds
    pe: int
    simd: int

    def __post_init__(self) -> None:
        for name, most in (("pe", self.rounds.outer), ("simd", self.rounds.inner)):
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(f"{name} must be 1 to {most}, not {getattr(self, name)}")

    @property
    def synapse_fold(self) -> int:
        """Return the beats of a vector."""
        return -(-self.rounds.inner // self.simd)

    @property
    def neuron_fold(self) -> int:
        """Return the passes over a vector."""
        return -(-self.rounds.outer // self.pe)

    @property
    def words(self) -> int:
        """Return the words of half the memory, of ``pe * simd`` elements each."""
        return self.rounds.sets * self.neuron_fold * self.synapse_fold

    @property
    def steps(self) -> int:
        """Return the steps of a round."""
        return self.rounds.vectors * self.neuron_fold * self.synapse_fold

    @property
    def lanes(self) -> int:
        """Return the elements of a beat of the matrices."""
        return self.simd if self.rounds.along == Along.INNER else self.pe

    @property
    def banks(self) -> int:
        """Return the memories side by side, of which each beat goes to one."""
        return self.pe if self.rounds.along == Along.INNER else self.simd

    @property
    def lines(self) -> int:
        """Return the rows of a matrix, or its columns if they come one after the other."""
        return self.rounds.outer if self.rounds.along == Along.INNER else self.rounds.inner

    @property
    def blocks(self) -> int:
        """Return the beats of a row, or of a column."""
        return self.synapse_fold if self.rounds.along == Along.INNER else self.neuron_fold

    @property
    def beats(self) -> int:
        """Return the beats of a round's matrices."""
        return self.rounds.sets * self.lines * self.blocks


class StreamMatrix(wiring.Component):
    """Multiplies vectors by matrices that come as a stream, ``pe`` rows and ``simd`` columns at a time.

    Element n of the result of a vector x and its matrix w::

        sum over k of (x[k] - offsets[0]) * (w[n][k] - offsets[1])

    Parameters
    ----------
    shapes: integer shapes of an element of a vector and of a matrix, as they come.
    factors: the same less the offsets, of 1 to 32 bits: the caller guarantees that they hold every difference.
    accumulator_shape: integer shape of an output lane that holds every result; intermediate sums may leave it.
    folded: what comes in a round, and how many rows and columns are taken at a time.
    offsets: integers.
    multiplier: "dsp" or "lut", see :mod:`hdl_lib.arithmetic.multiplier`, or "dsp2": a product for each two rows; the
        last one of an odd ``pe`` as in "dsp".
    packing: for "dsp2", and only there: how the factors of rows ``2 * k`` (low) and ``2 * k + 1`` (high) share a
        multiplier block, see :mod:`hdl_lib.arithmetic.packed_product`.
    depth: credits of the output queue, at least 1. ``latency // synapse_fold + 2`` or more sustain the full rate.
    part, ranges: see :class:`hdl_lib.matrices.mvu.Mvu`; ranges of the factors, with 0 in both.

    Members
    -------
    i: In(stream of ArrayLayout(shapes[0], simd)). Vectors, of ``synapse_fold`` beats each.
    w: In(stream of ArrayLayout(shapes[1], folded.lanes)). ``folded.beats`` of each round.
    o: Out(stream of ArrayLayout(accumulator_shape, pe)). ``neuron_fold`` beats for each vector.

    Lanes of a row's or a vector's last beat beyond its elements may carry anything; those of the results do.

    Timing
    ------
    Two processes, each at most one step per cycle. A *writer* step consumes a beat of ``w``. A *reader* has the steps
    of a pixel of :class:`hdl_lib.matrices.mvu.Mvu`: (nf, sf), nf outermost, of which those with nf == 0 consume a beat
    of ``i``, and those with sf == synapse_fold - 1 produce one of ``o``, :meth:`latency_of` cycles later.

    - A reader step comes at least :data:`WRITE_LAG` cycles after the last writer step of its round.
    - A writer step comes at least :meth:`release_lag` cycles after the last reader step of the round before the last
      one.
    - A reader step that produces needs a credit of the output queue.

    Initiation interval per round: ``max(folded.steps, folded.beats)`` cycles, or half of what writing and using the
    same half of the memory takes together, with these lags: a cycle more where both take equally long.

    Ordering
    --------
    Results leave in the order of the vectors, the beats of one by rising nf.
    """

    WRITE_LAG = 2
    """Cycles from the last beat of a round's matrices to the first step that takes them."""

    def __init__(
        self, shapes: Shapes, factors: Shapes, accumulator_shape: Shape, folded: FoldedRounds, *,
        offsets: Sequence[int], multiplier: ProductForm, depth: int, part: int = PART, ranges: Ranges | None = None,
        packing: Packing | None = None,
    ) -> None:
        check_depth(depth)
        if multiplier not in (*FORMS, ProductForm.DSP2):
            raise ValueError(f"multiplier must be one of {', '.join(FORMS)}, dsp2, not {multiplier!r}")
        if (packing is None) == (multiplier == ProductForm.DSP2):
            raise ValueError('packing must be given for "dsp2", and for nothing else')
        self.shapes = tuple(Shape.cast(shape) for shape in shapes)
        self.factors = tuple(Shape.cast(shape) for shape in factors)
        self.accumulator_shape = Shape.cast(accumulator_shape)
        for shape in (*self.shapes, *self.factors, self.accumulator_shape):
            if shape.width < 1:
                raise ValueError("elements, factors and sums must have at least 1 bit, not 0")
        self.folded = folded
        self.offsets = tuple(offsets)
        self.multiplier = multiplier
        self.depth = depth
        self.part = part
        self.ranges = ranges
        self.packing = packing
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(self.shapes[0], folded.simd))),
                "w": In(stream.Signature(data.ArrayLayout(self.shapes[1], folded.lanes))),
                "o": Out(stream.Signature(data.ArrayLayout(self.accumulator_shape, folded.pe))),
            }
        )

    @staticmethod
    def row_of(
        factors: Shapes, folded: FoldedRounds, multiplier: ProductForm, part: int, ranges: Ranges | None
    ) -> ProductSum:
        """Return the sum over a beat's lanes, of a row by itself."""
        row = row_of(*factors, folded.simd, multiplier, part, ranges, None, folded.synapse_fold > 1)
        assert isinstance(row, ProductSum), "of products"
        return row

    @staticmethod
    def latency_of(row: ProductSum, folded: FoldedRounds, *, packed: bool) -> int:
        """Return the cycles from a producing step to ``o.valid``."""
        inputs = StreamMatrix.input_latency(row, folded)
        return inputs + row.operand_latency + row.latency + int(folded.synapse_fold > 1 or packed) + 1

    @staticmethod
    def input_latency(row: ProductSum, folded: FoldedRounds) -> int:
        """Return the cycles from a step to its inputs: they wait for the word where that takes longer."""
        inputs = vector_latency(folded.synapse_fold, folded.neuron_fold)
        return max(inputs, StreamMatrix.read_latency(row, folded) + row.weight_lead - row.operand_latency)

    @staticmethod
    def ahead_of(row: ProductSum, folded: FoldedRounds) -> int:
        """Return the cycles from a step to the read of its word."""
        inputs = StreamMatrix.input_latency(row, folded)
        return inputs + row.operand_latency - row.weight_lead - StreamMatrix.read_latency(row, folded)

    @staticmethod
    def read_latency(row: ProductSum, folded: FoldedRounds) -> int:
        """Return the registers behind the memory: two, and another one in front of the choice among its parts, or where
        multiplier blocks take the word and the vector's elements leave the time."""
        slow = vector_latency(folded.synapse_fold, folded.neuron_fold) > 2
        return 3 if StreamMatrix.in_parts(row, folded) or (row.weight_lead and slow) else 2

    @staticmethod
    def in_parts(row: ProductSum, folded: FoldedRounds) -> bool:
        """Tell whether a bank's memory is of several parts (:mod:`hdl_lib.memories.buffer_memory`)."""
        return len(memory_parts(folded.lanes * row.multiplier.weight_shape.width, 2 * folded.words)) > 1

    @staticmethod
    def release_lag(row: ProductSum, folded: FoldedRounds) -> int:
        """Return the cycles from a round's last step until its words may be written over."""
        return max(1, StreamMatrix.ahead_of(row, folded))

    @property
    def row(self) -> ProductSum:
        """Return this core's :meth:`row_of`."""
        return self.row_of(self.factors, self.folded, self.multiplier, self.part, self.ranges)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        folded, row = self.folded, self.row
        folds = (folded.synapse_fold, folded.neuron_fold)
        m.submodules.queue = queue = OutputQueue(data.ArrayLayout(self.accumulator_shape, folded.pe), self.depth)
        wiring.connect(m, queue.o, wiring.flipped(self.o))

        # Issue. Halves that are full, or free, less one: the sign says that there is none.
        full = Signal(range(-1, 2), init=-1)
        step = Signal()
        consumes, produces, synapse, address, used = self._schedule(m, step)
        room = Signal()
        m.d.comb += [
            room.eq((~produces | queue.available) & (full >= 0)),
            self.i.ready.eq(consumes & room),
            step.eq((self.i.valid | ~consumes) & room),
            queue.reserve.eq(step & produces),
        ]
        release = delayed(m, "release", used, self.release_lag(row, folded) - 1)
        read, written = self._memory(m, delayed(m, "read", address, self.ahead_of(row, folded), reset=False), release)
        count(m, full, delayed(m, "filled", written, self.WRITE_LAG - 1), used)
        word = read
        if self.read_latency(row, folded) > 2 and not self.in_parts(row, folded):
            word = Signal(len(read), name="word_near", reset_less=True)
            m.d.sync += word.eq(read)

        # Products, their sums, accumulation.
        inputs = [
            delayed(m, f"waiting_{s}", x, self.input_latency(row, folded) - vector_latency(*folds), reset=False)
            for s, x in enumerate(self._inputs(m, step, consumes, produces, synapse))
        ]
        operands = [row.operand(m, f"input{s}", x) for s, x in enumerate(inputs)]
        accumulated = folded.synapse_fold > 1
        stages = self.input_latency(row, folded) + row.operand_latency + row.latency
        update = last = None
        if accumulated:
            update = delayed(m, "update", step, stages - 1)
            last = delayed(m, "last", step & produces, stages - 1)
        if accumulated or self.packing is not None:
            stages += 1
        taken = gathered(m, operands)
        layouts = {name: value.shape() for name, value in taken.items()}
        parts = parts_of(row, folded.pe, layouts, self.factors[1], self.accumulator_shape, accumulated, self.packing)
        m.d.comb += queue.push.eq(delayed(m, "push", step & produces, stages))
        for p, result in enumerate(connect_rows(m, parts, taken, word, update, last)):
            m.d.comb += queue.payload[p].eq(result)
        return m

    def _schedule(self, m: Module, step: Signal) -> tuple[Value, Value, Signal, Signal, Value]:
        """Return what registers say of the next step: whether it consumes, whether it produces, its beat, and the
        address of its word; and whether a step ends a round."""
        folded, rounds = self.folded, self.folded.rounds
        synapse = Signal(range(folded.synapse_fold))
        produces: Value = Const(1, 1)
        if folded.synapse_fold > 1:
            produces = Signal(name="produces")
            with m.If(step):
                m.d.sync += [
                    synapse.eq(Mux(produces, 0, synapse + 1)), produces.eq(synapse == folded.synapse_fold - 2)
                ]
        matrix = folded.neuron_fold * folded.synapse_fold
        levels = [_Level(produces, folded.synapse_fold, 1)]
        done = produces
        for name, turns, stride in (
            ("neuron", folded.neuron_fold, folded.synapse_fold),
            ("repeat", rounds.repeat, 0),
            ("set", rounds.sets, matrix),
            ("group", rounds.vectors // (rounds.sets * rounds.repeat), 0),
        ):
            last = loop(m, name, turns, step & done)
            levels.append(_Level(last, turns, stride))
            if name == "neuron":
                vector_ends = last
            done = done & last
        consumes: Value = Const(1, 1)
        if folded.neuron_fold > 1:
            consumes = Signal(name="consumes", init=1)
            with m.If(step & produces):
                m.d.sync += consumes.eq(vector_ends)
        address = _walk(m, "word", step, levels, folded.words)
        return consumes, produces, synapse, address, step & done

    def _memory(self, m: Module, address: Value, release: Value) -> tuple[Value, Value]:
        """Return the word that lies at ``address``, two cycles later (three if it is chosen among parts), lane ``s`` of
        row ``p`` in place ``p * simd + s``, or as :func:`packed_word` has it; and whether the last beat of a round is
        accepted. ``release``: a half is free."""
        folded, rounds = self.folded, self.folded.rounds
        lanes, banks = folded.lanes, folded.banks
        free = Signal(range(-1, 2), init=1)
        accept = Signal()
        m.d.comb += [self.w.ready.eq(free >= 0), accept.eq(self.w.valid & self.w.ready)]

        # Where a beat goes: the loops from the beats of a row to the sets, or of a column.
        inner = rounds.along == Along.INNER
        matrix = folded.neuron_fold * folded.synapse_fold
        bank = Signal(banks, init=1)
        block_last = loop(m, "block", folded.blocks, accept)
        levels = [_Level(block_last, folded.blocks, 1 if inner else folded.synapse_fold)]
        sets = [("sets", rounds.sets, matrix)]
        line = accept & block_last
        if rounds.interleaved:
            levels.append(_Level(loop(m, "set_written", rounds.sets, line), rounds.sets, matrix))
            line, sets = line & levels[-1].last, []
        line_last = loop(m, "line", folded.lines, line)
        with m.If(line):
            m.d.sync += bank.eq(Mux(line_last, 1, bank.rotate_left(1)))
        levels += [
            _Level(bank[-1] | line_last, banks, 0),
            _Level(line_last, -(-folded.lines // banks), folded.synapse_fold if inner else 1),
        ]
        written = line & line_last
        for name, turns, stride in sets:
            levels.append(_Level(loop(m, name, turns, written), turns, stride))
            written = written & levels[-1].last
        place = delayed(m, "write_address", _walk(m, "place", accept, levels, folded.words), 1, reset=False)
        count(m, free, release, written)

        factors = Signal(data.ArrayLayout(self.factors[1], lanes), reset_less=True)
        enable = Signal(banks)
        m.d.sync += [factors[lane].eq(self.w.payload[lane] - self.offsets[1]) for lane in range(lanes)]
        m.d.sync += enable.eq(Mux(accept, bank, 0))
        words = []
        for number in range(banks):
            words.append(self._bank(m, number, (enable[number], place, factors), address))
        rows = words if inner else [[words[s][p] for s in range(folded.simd)] for p in range(folded.pe)]
        lanes_read = packed_word(rows, self.packing)
        word = Signal(len(lanes_read), name="word", reset_less=True)
        m.d.sync += word.eq(lanes_read)
        return word, written

    def _bank(
        self, m: Module, number: int, written: tuple[Value, Value, data.View], address: Value
    ) -> data.View:
        """Return a bank's word at ``address``, a cycle later; with parts a choice among registers, two cycles later.
        ``written``: enable, place and word."""
        enable, place, factors = written
        layout = data.ArrayLayout(self.factors[1], self.folded.lanes)
        # A half is read and written in different cycles, so that no read meets a write.
        store = BufferMemory(f"bank_{number}", Shape.cast(layout).width, 2 * self.folded.words)
        store.write(m, enable, place, factors.as_value())
        return layout(store.read_soon(m, address))

    def _inputs(
        self, m: Module, step: Signal, consumes: Value, produces: Value, synapse: Signal
    ) -> list[Signal]:
        """Return the factors of the step's input beat, :func:`vector_latency` cycles after the step; zeros in lanes
        beyond the vector, where the matrix may be anything."""
        folded = self.folded
        beat = data.ArrayLayout(self.factors[0], folded.simd)
        payload = Signal(beat, name="differences")
        surplus = folded.synapse_fold * folded.simd - folded.rounds.inner
        for lane in range(folded.simd):
            difference: Value = self.i.payload[lane] - self.offsets[0]
            if lane >= folded.simd - surplus:
                difference = Mux(produces, 0, difference)
            m.d.comb += payload[lane].eq(difference)
        return vector_inputs(
            m, beat, payload, step, consumes, synapse, (folded.synapse_fold, folded.neuron_fold)
        )


def packed_word(rows: Sequence[Sequence[Value] | data.View], packing: Packing | None) -> Value:
    """Return the factors of ``rows``, row after row, or as :class:`hdl_lib.matrices.mvu.Mvu` has packed ones: of two
    rows at a time lane after lane, the second less what the first one borrows, and then an odd row."""
    lanes = [[Value.cast(row[s]) for s in range(_length(row))] for row in rows]
    if packing is None:
        return Cat(*(factor for row in lanes for factor in row))
    low_bits, high_shape = packing.low_shape.width, packing.high_shape
    found: list[Value] = []
    for low_row, high_row in zip(lanes[::2], lanes[1::2], strict=False):
        for low, high in zip(low_row, high_row, strict=True):
            found += [low[:low_bits], borrowed(high, low)[: high_shape.width]]
    if len(lanes) % 2:
        found += [factor[:low_bits] for factor in lanes[-1]]
    return Cat(*found)


def _length(row: Sequence[Value] | data.View) -> int:
    return row.shape().length if isinstance(row, data.View) else len(row)


@dataclass(frozen=True)
class _Level:
    """A loop of an address: whether its round is the ``last`` of ``count``, and what a round is further."""

    last: Value
    count: int
    stride: int


def _walk(m: Module, name: str, advance: Value, levels: Sequence[_Level], words: int) -> Signal:
    """Return an address that moves with ``advance``: through the ``levels``, the innermost first, which lead from the
    first to the last of ``words``, and after all of them from one half of the memory to the other."""
    address = Signal(range(2 * words), name=name)
    half = Signal(name=f"{name}_half")
    moves, back, done = [], 0, Const(1, 1)
    for level in levels:
        moves.append((level.last, level.stride - back))
        back += level.stride * (level.count - 1)
        done = done & level.last if level.count > 1 else done
    with m.If(advance & done):
        m.d.sync += half.eq(~half)
    move: Value = Mux(half, 1 - 2 * words, 1)
    for (last, change), level in reversed(list(zip(moves, levels, strict=True))):
        if level.count > 1:
            move = Mux(last, move, change)
    with m.If(advance):
        m.d.sync += address.eq(address + move)
    return address
