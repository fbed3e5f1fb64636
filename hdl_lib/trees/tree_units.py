"""Decision trees, walked node by node: several units, each with six walks in flight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, ValueLike
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.accumulator import accumulator, controls
from hdl_lib.arithmetic.adder_tree import Term, adder_tree, registered, shape_of, tree_levels
from hdl_lib.blocks import block_count, count_up, delayed, held, less, loop
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.memories.storage import check_depth, count
from hdl_lib.streams.output_queue import OutputQueue

AGGREGATES = ("sum", "min", "max")
READS = 4
"""Cycles from a step to the address of its rank, or from a leaf to its values: address, memory, the memory's register,
and one behind the choice of the bank, of which a table of a thousand trees has dozens."""


@dataclass(frozen=True)
class Record:
    """The fields of a node in memory, the first one lowest. ``pair``: of the two places behind a test, which are
    neighbours: in the memory of nodes, or where ``leaf`` is set, in that of leaves; then ``limit``; ``beat`` and
    ``lane`` of the rank that is compared; where ``missing``, a bit: the test holds for a missing one, too."""

    pair: int
    rank: int
    beat: int
    lane: int
    missing: bool

    @property
    def bits(self) -> tuple[int, ...]:
        """Return the bits of pair, leaf, limit, beat, lane, missing."""
        return self.pair, 1, self.rank, self.beat, self.lane, int(self.missing)

    @property
    def width(self) -> int:
        return sum(self.bits)

    @classmethod
    def of(cls, pair: int, rank: int, features: int, lanes: int, *, missing: bool) -> Record:
        """Return the fields for frames of ``features`` in beats of ``lanes``, with ranks of so many bits."""
        beats = block_count(features, lanes)
        return cls(pair, rank, (beats - 1).bit_length(), (min(lanes, features) - 1).bit_length(), missing)

    def split(self, word: Value) -> list[Value]:
        """Return the fields of a word."""
        fields, low = [], 0
        for bits in self.bits:
            fields.append(word[low : low + bits])
            low += bits
        return fields


def slots_of(lanes: int) -> int:
    """Return the walks in flight in a unit: the cycles from a node to the next."""
    return READS + 2 + (lanes > 1)


class TreeWalk(wiring.Component):
    """Walks trees for each row of ranks, and gives the sum, least or greatest of what their leaves hold.

    The trees of a row come in groups: a tree for each slot (:func:`slots_of`) of each unit, which are walked for as
    many rounds as the deepest has nodes. One or more groups make a result.

    Parameters
    ----------
    rank_shape, shape: of an element of a row and of a result, integer shapes; ranks are not negative.
    features, lanes: elements of a row and of a beat.
    record: how a node lies in memory; ``record.rank`` bits hold every limit.
    nodes: for each unit its table of :class:`Record`, each of ``record.width`` bits. Tree ``slot`` of group ``g``
        begins with node ``g * slots + slot``; true is the first node or leaf of a pair.
    leaves: for each unit its table of rows: the values of a leaf, in the :func:`value_shape` of each.
    values: for each element of a result the least and the greatest value of a leaf.
    rounds, ends: for each group the rounds, at least 1, and whether it ends a result; the last one does. All that end
        one have equally many rounds.
    missing: for each feature the rank of a missing one; only with ``record.missing``, for others empty.
    aggregate: of :data:`AGGREGATES`.
    depth: beats of the output queue.

    Members
    -------
    i: In(stream of ArrayLayout(rank_shape, lanes)). Rows; the last beat of one may have surplus lanes.
    o: Out(stream of ArrayLayout(shape, len(values))). A beat for each result.

    Timing
    ------
    Two processes. A beat is written in each cycle while one of two halves is free; a row takes ``slots * sum(rounds)``
    steps, whose first waits for its row (:data:`WRITE_LAG` cycles after the last beat). The first step of a group that
    ends a result takes a credit; :meth:`latency_of` cycles later the result shows on ``o.valid``. :data:`RELEASE_LAG`
    cycles after a row's last step its half is free. Under backpressure no group begins that ends a result.

    Ordering
    --------
    Results leave in the order of rows and groups.
    """

    WRITE_LAG = 1
    START = 0  # cycles from a step to the place where its tree begins
    RELEASE_LAG = START + READS

    def __init__(
        self, rank_shape: Shape, shape: Shape, *, features: int, lanes: int, record: Record, nodes: Sequence[Table],
        leaves: Sequence[Table], values: Sequence[tuple[int, int]], rounds: Sequence[int], ends: Sequence[bool],
        missing: Sequence[int] = (), aggregate: str, depth: int,
    ) -> None:
        self.beats = block_count(features, lanes)
        check_depth(depth)
        if aggregate not in AGGREGATES:
            raise ValueError(f"aggregate must be one of {', '.join(AGGREGATES)}, not '{aggregate}'")
        if len(nodes) != len(leaves) or not nodes:
            raise ValueError(f"there must be as many tables of leaves as of nodes, not {len(leaves)} and {len(nodes)}")
        if not rounds or len(rounds) != len(ends) or min(rounds) < 1 or not ends[-1]:
            raise ValueError("groups must have a round or more each, and the last one must end a result")
        if len({n for n, end in zip(rounds, ends, strict=True) if end}) != 1:
            raise ValueError("groups that end a result must have equally many rounds")
        if any(table.width != record.width for table in nodes):
            raise ValueError(f"nodes must have {record.width} bits, as their record")
        if bool(missing) != record.missing or len(missing) not in (0, features):
            raise ValueError(f"missing must be of {features if record.missing else 0} features, not {len(missing)}")
        self.rank_shape, self.shape = Shape.cast(rank_shape), Shape.cast(shape)
        self.features, self.lanes = features, lanes
        self.record = record
        self.nodes, self.leaves = tuple(nodes), tuple(leaves)
        self.values = tuple(values)
        self.rounds, self.ends = tuple(rounds), tuple(ends)
        self.missing = tuple(missing)
        self.aggregate = aggregate
        self.depth = depth
        self.slots = slots_of(lanes)
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(self.rank_shape, lanes))),
                "o": Out(stream.Signature(data.ArrayLayout(self.shape, len(self.values)))),
            }
        )

    @staticmethod
    def latency_of(units: int, lanes: int, rounds: int) -> int:
        """Return the cycles from the first step of a group of so many ``rounds`` to ``o.valid`` of the result that it
        ends: its walks, the table of leaves, the values together, those of all walks, the queue."""
        slots = slots_of(lanes)
        return slots * rounds - 1 + slots + READS + tree_levels(units) + 1 + 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        full = Signal(range(-1, 2), init=-1)  # halves, less one: the sign says that there is none
        step, half = Signal(), Signal()
        groups = self._groups(m, step)
        m.d.comb += [
            step.eq(~groups.first | ((~groups.opens | (full >= 0)) & (~groups.closes | queue.available))),
            queue.reserve.eq(step & groups.first & groups.closes),
        ]
        with m.If(groups.row_ends):
            m.d.sync += half.eq(~half)
        ranks = self._writer(m, delayed(m, "release", groups.row_ends, self.RELEASE_LAG - 1))
        count(m, full, ranks.written, groups.row_ends)
        half_read = delayed(m, "half_read", half, self.START + READS - 1, reset=False)
        self._gather(m, queue, groups, step & groups.last, half_read, ranks)
        return m

    def _gather(
        self, m: Module, queue: OutputQueue, groups: NextStep, update: Value, half: Value, ranks: WrittenRanks
    ) -> None:
        """Build the units and what brings their values together. ``update``: a step of a last round is taken."""
        found = [self._unit(m, unit, groups, half, ranks) for unit in range(len(self.nodes))]
        walked = self.slots + READS  # cycles from a step to the values of the leaf that it reaches
        self._collect(
            m, queue, found, delayed(m, "walked", update, walked - 1),
            delayed(m, "ended", update & groups.result_ends, walked - 1),
        )

    def _groups(self, m: Module, step: Signal) -> NextStep:
        """Return what registers say of the next step."""
        slot_last = loop(m, "slot", self.slots, step)
        first, fresh, opens = (Signal(name=name, init=1) for name in ("first", "fresh", "opens"))
        turn, ends = Signal(name="turn"), Signal(name="group_ends")
        m.d.comb += turn.eq(step & slot_last)
        group_last = loop(m, "group", len(self.rounds), ends)
        last, closes = self._scheduled(m, turn, ends)
        m.d.comb += ends.eq(turn & last)
        with m.If(step):
            m.d.sync += first.eq(ends)
        with m.If(turn):
            m.d.sync += fresh.eq(last)
        with m.If(ends):
            m.d.sync += opens.eq(group_last)
        tree = count_up(m, "tree", len(self.rounds) * self.slots, step & fresh)
        return NextStep(first, fresh, last, opens, closes, closes & slot_last, ends & group_last, tree)

    def _scheduled(self, m: Module, turn: Signal, ends: Signal) -> tuple[Value, Value]:
        """Return whether a step is of its group's last round, and whether its group ends a result."""
        groups, most = len(self.rounds), max(self.rounds)
        word = list(zip(self.rounds, self.ends, strict=True))
        if len(set(word)) == 1:
            return loop(m, "round", most, turn), Const(1, 1)
        # A group takes more cycles than the table: the word of the next one is there in time.
        width = (most - 1).bit_length()
        words = [(rounds - 1) | end << width for rounds, end in (*word[1:], word[0])]
        m.submodules.schedule = rom = Rom.of_table(Table.of_words(words, width + 1), output_register=True)
        m.d.comb += rom.addr.eq(count_up(m, "group_number", groups, ends))
        left = Signal(max(1, width), name="rounds_left", init=self.rounds[0] - 1)
        last = Signal(name="round_last", init=self.rounds[0] == 1)
        closes = Signal(name="closes", init=self.ends[0])
        with m.If(turn):
            with m.If(last):
                m.d.sync += [left.eq(rom.data[:width]), last.eq(rom.data[:width] == 0), closes.eq(rom.data[width])]
            with m.Else():
                m.d.sync += [left.eq(left - 1), last.eq(left == 1)]
        return last, closes

    def _writer(self, m: Module, release: Value) -> WrittenRanks:
        """Take rows while a half is free; return what is written where, and when a row is whole. ``release``: a half is
        free."""
        free = Signal(range(-1, 2), init=1)
        accept, half, row_last = Signal(), Signal(name="half_written"), Signal(name="row_last")
        m.d.comb += [self.i.ready.eq(free >= 0), accept.eq(self.i.valid & self.i.ready)]
        number = count_up(m, "beat", self.beats, accept)
        m.d.comb += row_last.eq(accept & loop(m, "beats", self.beats, accept))
        with m.If(row_last):
            m.d.sync += half.eq(~half)
        count(m, free, release, row_last)
        bits = self.rank_shape.width
        ranks = Signal(bits * self.lanes, name="ranks", reset_less=True)
        m.d.sync += ranks.eq(self.i.payload.as_value())
        place = Value.cast(half) if self.beats == 1 else Cat(half, number)
        if not self.missing:
            place = delayed(m, "place", place, 1, reset=False)
            return WrittenRanks(ranks, place, delayed(m, "write", accept, 1), row_last)
        # A bit beside each rank tells whether it is that of a missing one.
        padded = [*self.missing, *[-1] * (self.beats * self.lanes - self.features)]
        codes = [rank & ((1 << self.record.rank) - 1) for rank in padded]
        words = [
            sum(code << lane * self.record.rank for lane, code in enumerate(codes[at : at + self.lanes]))
            for at in range(0, len(codes), self.lanes)
        ]
        m.submodules.missing = rom = Rom.of_table(Table.of_words(words, self.record.rank * self.lanes))
        m.d.comb += rom.addr.eq(number)
        flagged = Signal((bits + 1) * self.lanes, name="flagged", reset_less=True)
        lanes = []
        for lane in range(self.lanes):
            rank = ranks.word_select(lane, bits)
            lanes += [rank, rank == rom.data.word_select(lane, self.record.rank)]
        m.d.sync += flagged.eq(Cat(*lanes))
        place = delayed(m, "place", place, 2, reset=False)
        return WrittenRanks(flagged, place, delayed(m, "write", accept, 2), row_last)

    def _unit(self, m: Module, unit: int, groups: NextStep, half: Value, ranks: WrittenRanks) -> list[Term]:
        """Build a unit; return the values of the leaf that each step of a last round reaches. ``half``: that is read
        in the next cycle."""
        m.submodules[f"leaves_{unit}"] = leaves = Rom.of_table(self.leaves[unit], output_register=True)
        m.d.comb += leaves.addr.eq(self._walk(m, unit, groups, half, ranks))
        row = held(m, f"leaf_{unit}", leaves.data)
        terms, place = [], 0
        for low, high in self.values:
            shape = value_shape(low, high)
            value = row[place : place + shape.width]
            terms.append(Term(value.as_signed() if shape.signed else value, low, high))
            place += shape.width
        return terms

    def _begin(self, m: Module, unit: int, groups: NextStep) -> Beginning:
        """Return where the trees of a unit begin."""
        return Beginning(groups.fresh, groups.tree, self.record.pair)

    def _place(
        self, m: Module, unit: int, begin: Beginning, was: Value, here: Value, pair: Value, leaf: Value
    ) -> Value:
        """Return the place behind a test, ``slots - READS`` cycles later: what its ``pair`` says, or ``here`` again,
        if that ``was`` a leaf's."""
        return delayed(m, f"kept_{unit}", Mux(was, here, pair), self.slots - READS, reset=False)

    def _walk(self, m: Module, unit: int, groups: NextStep, half: Value, ranks: WrittenRanks) -> Signal:
        """Build the walks of a unit; return the place behind the last test of each step's round, ``slots + 1`` cycles
        after the step (and :data:`START`): of a last round a leaf's."""

        def later(name: str, value: Value, cycles: int) -> Value:
            return delayed(m, f"{name}_{unit}", value, cycles, reset=False)

        begin = self._begin(m, unit, groups)
        record, bits = self.record, self.rank_shape.width + bool(self.missing)
        m.submodules[f"nodes_{unit}"] = nodes = Rom.of_table(self.nodes[unit], output_register=True)
        address = Signal(begin.bits + 1, name=f"address_{unit}", reset_less=True)
        done = Signal(name=f"done_{unit}", reset_less=True)  # a leaf is reached, whose address it is
        m.d.comb += nodes.addr.eq(address)

        # The record. From here on a leaf that is reached is in place of the pair.
        pair, leaf, limit, beat, lane, takes = record.split(held(m, f"record_{unit}", nodes.data))
        here, was = later("here", address, READS - 1), later("was", done, READS - 1)
        kept = self._place(m, unit, begin, was, here[1:], pair, leaf)
        low, was_done, is_done = (
            later(name, value, self.slots - READS)
            for name, value in (("low", here[0]), ("was_done", was), ("is_done", was | leaf))
        )

        # The rank. Halves are read and written in different cycles, so that no read meets a write; the memory's
        # register is written out: synthesis takes that for such ones only.
        m.submodules[f"ranks_{unit}"] = stored = memory.Memory(
            shape=bits * self.lanes, depth=2 * self.beats, init=[], attrs={"no_rw_check": 1}
        )
        write, read = stored.write_port(), stored.read_port(domain="comb")
        # Synthesis must not merge these registers: one for all units would have to reach everywhere.
        half_near = Signal(name=f"half_of_{unit}", reset_less=True, attrs={"keep": 1})
        m.d.sync += half_near.eq(half)
        m.d.comb += [
            write.en.eq(ranks.write), write.addr.eq(ranks.place), write.data.eq(ranks.word),
            read.addr.eq(Cat(half_near, beat)),
        ]
        word, word_near = (
            Signal(bits * self.lanes, name=f"{name}_{unit}", reset_less=True) for name in ("word", "word_near")
        )
        m.d.sync += [word.eq(read.data), word_near.eq(word)]
        rank: Value = word_near
        if self.lanes > 1:
            chosen = Signal(bits, name=f"rank_{unit}", reset_less=True)
            m.d.sync += chosen.eq(word_near.word_select(later("lane", lane, 2), bits))
            rank = chosen
        limit, takes = (later(name, value, self.slots - READS) for name, value in (("limit", limit), ("takes", takes)))
        holds = less(rank[: self.rank_shape.width], limit)
        if self.missing:
            holds = holds | (takes & rank[-1])

        # The next node, or the first one of the slot's next tree; what the last round reaches is a leaf.
        following = Cat(Mux(was_done, low, ~holds), kept)
        reached = Signal(begin.bits + 1, name=f"leaf_address_{unit}", reset_less=True)
        m.d.sync += [
            address.eq(Mux(begin.fresh, begin.address, following)), done.eq(is_done & ~begin.fresh),
            reached.eq(following),
        ]
        return reached

    def _collect(self, m: Module, queue: OutputQueue, found: list[list[Term]], update: Value, last: Value) -> None:
        """Aggregate the values of all units' leaves, which come a cycle after ``update``, up to that after ``last``."""
        levels = tree_levels(len(found))
        m.d.comb += queue.push.eq(delayed(m, "push", last, levels + 2))
        control = controls(
            m, len(self.values), delayed(m, "update", update, levels), delayed(m, "last", last, levels)
        )
        for index, (update_, last_) in zip(range(len(self.values)), control, strict=True):
            terms = [unit[index] for unit in found]
            if self.aggregate == "sum":
                total = adder_tree(m, f"sum_{index}", terms, self.shape.width)
                result = accumulator(m, f"_{index}", total, None, self.shape, update_, last_)
            else:
                result = self._extreme(m, index, terms, update_, last_)
            m.d.comb += queue.payload[index].eq(result.value)

    def _extreme(self, m: Module, index: int, terms: Sequence[Term], update: Signal, last: Signal) -> Term:
        """Return the least or greatest term of all units and cycles, as :func:`accumulator` returns a sum."""

        def better(one: ValueLike, *others: ValueLike) -> ValueLike:
            for other in others:
                return Mux(less(one, other) if self.aggregate == "min" else less(other, one), one, other)
            return one

        level, ends = 0, self.values[index]
        while len(terms) > 1:
            pairs = [[term.value for term in terms[at : at + 2]] for at in range(0, len(terms), 2)]
            terms = [
                registered(m, f"best_{index}_{level}_{at}", Term(better(*pair), *ends)) for at, pair in enumerate(pairs)
            ]
            level += 1
        (term,) = terms
        best = Signal(self.shape, name=f"best_{index}", reset_less=True)
        begun = Signal(name=f"begun_{index}")
        with m.If(update):
            m.d.sync += [best.eq(Mux(begun, better(term.value, best), term.value)), begun.eq(~last)]
        return Term(best, term.low, term.high)


def value_shape(low: int, high: int) -> Shape:
    """Return how a leaf's value from ``low`` to ``high`` lies in memory: the narrowest shape, of a bit or more."""
    shape = shape_of(low, high)
    return Shape(max(1, shape.width), shape.signed)


@dataclass(frozen=True)
class NextStep:
    """What registers say of the next step: whether it is the ``first`` of a group, in the first round (``fresh``), in
    the ``last`` one; whether its group is the row's first (``opens``), ends a result (``closes``), and its slot with it
    (``result_ends``, in the last round); the row ends with it (``row_ends``: if it is taken); the number of the
    ``tree`` that begins in the first round."""

    first: Value
    fresh: Value
    last: Value
    opens: Value
    closes: Value
    result_ends: Value
    row_ends: Value
    tree: Value


@dataclass(frozen=True)
class Beginning:
    """``fresh``: in the first round, when trees begin at ``address``; ``bits`` of a place, which is a pair's;
    ``bases``: of nodes and of leaves, :data:`READS` cycles later, where pairs are counted from there."""

    fresh: Value
    address: Value
    bits: int
    bases: tuple[Value, Value] | None = None


@dataclass(frozen=True)
class WrittenRanks:
    """What is written into the units' memories; ``written``: the last beat of a row comes."""

    word: Value
    place: Value
    write: Value
    written: Value
