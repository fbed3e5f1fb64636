"""Decision trees, walked node by node, whose leaves are lists: of many targets each names a few."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import C, Cat, Module, Mux, Shape, Signal, Value
from amaranth.utils import ceil_log2

from hdl_lib.arithmetic.adder_tree import Term, tree_levels
from hdl_lib.blocks import delayed
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.streams.output_queue import OutputQueue
from hdl_lib.trees.tree_units import READS, Beginning, NextStep, Record, TreeWalk, WrittenRanks, slots_of, value_shape


class ListWalk(TreeWalk):
    """Walks trees as :class:`hdl_lib.trees.tree_units.TreeWalk` does, and sums what the lists of their leaves give to
    each target.

    A list is entries side by side, whose targets ascend; where they do not, it ends. A pair of leaves is the entry
    between their lists: false's begins there, and true's ends before it, and is read downwards. So a list needs neither
    length nor end in memory, and a slot reads an entry in each round of the group that is walked after its own.

    Nodes and lists are numbered within their tree, so that large forests do not make records longer.

    Parameters
    ----------
    rank_shape, shape, features, lanes, record, nodes, rounds, missing, depth: as there; pairs are counted from the
        first of the tree, and a tree begins with the lower node of pair 0.
    bases: for each unit the first pair of nodes and the first entry of each tree, of ``base_bits`` each; of group ``g``
        and slot ``s`` in word ``g * slots + s``.
    entries: for each unit its table: target, of as many bits as count ``values``, and the value, in the
        :func:`hdl_lib.trees.tree_units.value_shape` of all. Where a list at either end of the table could go on beyond
        it, a last entry stops it: target 0, value 0.
    dictionary: for each unit a table of values, whose entries then have its words' numbers instead; or empty.
    values: for each target the least and the greatest value of an entry, 0 among them.
    longest: entries of a list of the last group, at most; a list has no more than the group after its own has rounds.

    Timing
    ------
    As there, with a step's place :data:`START` cycles later; :meth:`result_latency` counts reading the last lists.
    """

    START = 2  # the table of bases
    RELEASE_LAG = START + READS

    def __init__(
        self, rank_shape: Shape, shape: Shape, *, features: int, lanes: int, record: Record, nodes: Sequence[Table],
        bases: Sequence[Table], base_bits: tuple[int, int], entries: Sequence[Table], dictionary: Sequence[Table],
        values: Sequence[tuple[int, int]], rounds: Sequence[int], longest: int, missing: Sequence[int] = (), depth: int,
    ) -> None:
        if len(bases) != len(nodes) or (dictionary and len(dictionary) != len(nodes)):
            raise ValueError(f"there must be a table of bases and of values for each of {len(nodes)} units")
        if any(low > 0 or high < 0 for low, high in values):
            raise ValueError("values of every target must include 0")
        if not 1 <= longest <= rounds[0]:
            raise ValueError(f"longest must be at most the first group's rounds {rounds[0]}, not {longest}")
        ends = [False] * (len(rounds) - 1) + [True]
        super().__init__(
            rank_shape, shape, features=features, lanes=lanes, record=record, nodes=nodes, leaves=entries,
            values=values, rounds=rounds, ends=ends, missing=missing, aggregate="sum", depth=depth,
        )
        self.bases, self.base_bits, self.dictionary, self.longest = tuple(bases), base_bits, tuple(dictionary), longest

    @staticmethod
    def read_cycles(lanes: int, longest: int, *, dictionary: bool) -> int:
        """Return the cycles from a step to the value of the last entry of its leaf's list, or of the one before."""
        return ListWalk.START + slots_of(lanes) * longest + 8 + 2 * dictionary

    @staticmethod
    def result_latency(units: int, lanes: int, rounds: int, longest: int, *, dictionary: bool) -> int:
        """Return the cycles from the first step of the last group, of so many ``rounds`` and lists of at most
        ``longest`` entries, to ``o.valid``: its walks, the last of their lists, sums of units and entries, queue."""
        read = ListWalk.read_cycles(lanes, longest, dictionary=dictionary)
        return slots_of(lanes) * rounds - 1 + read + tree_levels(units) + 2

    def _gather(
        self, m: Module, queue: OutputQueue, groups: NextStep, update: Value, half: Value, ranks: WrittenRanks
    ) -> None:
        # Entries that are none are zeros, which may be added.
        arrive = delayed(m, "arrive", update, self.START + self.slots + 1)
        found = [self._listed(m, unit, self._walk(m, unit, groups, half, ranks), arrive)
                 for unit in range(len(self.nodes))]
        cycles = self.read_cycles(self.lanes, self.longest, dictionary=bool(self.dictionary))
        self._collect(m, queue, found, C(1), delayed(m, "ended", update & groups.result_ends, cycles - 1))

    def _begin(self, m: Module, unit: int, groups: NextStep) -> Beginning:
        m.submodules[f"bases_{unit}"] = rom = Rom.of_table(self.bases[unit], output_register=True)
        m.d.comb += rom.addr.eq(groups.tree)
        fresh = delayed(m, f"fresh_{unit}", groups.fresh, self.START, reset=False)
        base = Signal(sum(self.base_bits), name=f"base_{unit}")
        line = Signal(len(base) * self.slots, name=f"base_line_{unit}", reset_less=True)
        m.d.comb += base.eq(Mux(fresh, rom.data, line.word_select(self.slots - 1, len(base))))
        m.d.sync += line.eq(Cat(base, line))
        node = base[: self.base_bits[0]]
        there = line.word_select(READS - 1, len(base))
        return Beginning(
            fresh, Cat(C(0, 1), node), max(self.base_bits), (there[: len(node)], there[len(node) :])
        )

    def _place(
        self, m: Module, unit: int, begin: Beginning, was: Value, here: Value, pair: Value, leaf: Value
    ) -> Value:
        assert begin.bases is not None
        base, number, place = (
            Signal(bits, name=f"{name}_{unit}", reset_less=True)
            for name, bits in (("from", begin.bits), ("number", len(pair)), ("place", begin.bits))
        )
        m.d.sync += [
            base.eq(Mux(was, here, Mux(leaf, begin.bases[1], begin.bases[0]))), number.eq(Mux(was, 0, pair)),
            place.eq(base + number),
        ]
        return delayed(m, f"kept_{unit}", place, self.slots - READS - 2, reset=False)

    def _listed(self, m: Module, unit: int, reached: Signal, arrive: Value) -> list[Term]:
        """Read the lists of leaves that are ``reached`` with ``arrive``, an entry of each slot's in turns; return what
        an entry gives to each target."""

        def register(name: str, value: Value) -> Signal:
            found = Signal(value.shape(), name=f"{name}_{unit}", reset_less=True)
            m.d.sync += found.eq(value)
            return found

        # Pointers: to the entry between two lists, then one down for true's, one up in each turn for false's.
        bits = self.base_bits[1]
        known = Signal(bits + 1, name=f"known_{unit}")
        upwards, boundary = reached[0], reached[1 : bits + 1]
        at = register("at", Mux(arrive, boundary, known[1:]))
        up = register("up", Mux(arrive, upwards, known[0]))
        moves = register("moves", ~(arrive & upwards))
        pointer = register("pointer", (at + Cat(moves, (~up).replicate(bits - 1)))[:bits])
        up_there = register("up_there", up)
        m.d.comb += known.eq(delayed(m, f"known_{unit}", Cat(up_there, pointer), self.slots - 2, reset=False))
        m.submodules[f"leaves_{unit}"] = entries = Rom.of_table(self.leaves[unit], output_register=True)
        m.d.comb += entries.addr.eq(pointer)

        # The entry, if the list has it still.
        width = ceil_log2(len(self.values))
        entry = register("entry", entries.data)
        target, value = entry[:width], entry[width:]
        first = delayed(m, f"first_{unit}", arrive, 5)
        upward = delayed(m, f"upward_{unit}", up_there, 3, reset=False)
        goes_on = Signal(name=f"goes_on_{unit}")
        before = delayed(m, f"before_{unit}", target, self.slots, reset=False)
        there = delayed(m, f"there_{unit}", goes_on, self.slots)
        m.d.comb += goes_on.eq(first | (there & Mux(upward, target > before, target < before)))
        if self.dictionary:
            m.submodules[f"values_{unit}"] = known_values = Rom.of_table(self.dictionary[unit], output_register=True)
            m.d.comb += known_values.addr.eq(value)
            value = known_values.data
            target = delayed(m, f"target_{unit}", target, 2, reset=False)
            goes_on = delayed(m, f"given_{unit}", goes_on, 2)
        value = register("value", value)
        terms = []
        for index, (low, high) in enumerate(self.values):
            hit = Signal(name=f"hit_{unit}_{index}")
            term = Signal(value_shape(low, high), name=f"term_{unit}_{index}", reset_less=True)
            m.d.sync += [hit.eq(goes_on & (target == index)), term.eq(Mux(hit, value, 0))]
            terms.append(Term(term, low, high))
        return terms
