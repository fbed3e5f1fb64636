"""Decision trees side by side: a row a cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.blocks import held, less
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue
from hdl_lib.trees.tree_units import AGGREGATES, value_shape

LEVELS = 3
"""Levels of a tree whose tests a register stage chooses from at first; each further stage has two."""


class RankTest(NamedTuple):
    """Holds where element ``feature`` is less than ``limit`` or equals ``missing`` (None: never)."""

    feature: int
    limit: int
    missing: int | None


@dataclass(frozen=True)
class Branch:
    """A node: the number of its ``test``, and what is behind it; None for a leaf."""

    test: int
    true: Branch | None
    false: Branch | None


class Field(NamedTuple):
    """A field of a table's words: ``value << shift`` is within ``low .. high`` and goes to ``target``."""

    target: int
    low: int
    high: int
    shift: int

    @property
    def shape(self) -> Shape:
        """Return how ``value`` lies in a word."""
        return value_shape(self.low >> self.shift, self.high >> self.shift)


class Lookup(NamedTuple):
    """What a table is: its address is the ways through ``trees``, the first one lowest, its words have ``fields``.

    A way is a bit for each level of a tree, the root's lowest: whether the test holds; any where a leaf is above.
    """

    trees: tuple[int, ...]
    fields: tuple[Field, ...]


class _Addend(NamedTuple):
    """``value << shift`` is within ``low .. high``."""

    value: Value
    low: int
    high: int
    shift: int


def way_stages(levels: int) -> int:
    """Return the register stages that find the way through a tree."""
    return 1 + max(0, -(-(levels - LEVELS) // 2))


def pairings(count: int) -> int:
    """Return the register levels that make one of ``count``."""
    return max(0, count - 1).bit_length()


class ParallelTrees(wiring.Component):
    """The sum, least or greatest of what the leaves of all trees hold, for each row of ranks.

    Parameters
    ----------
    rank_shape, shape: of an element of a row and of a result, integer shapes; ranks are not negative.
    features, targets: elements of a row and of a result.
    tests: each is made once.
    trees, levels: the root of each, and the levels of its tests.
    lookups, tables: of leaves; every target has a field or more.
    in_block: tables have output registers, as those in block RAM need, and one more on the way to what adds their rows.
    aggregate: of :data:`hdl_lib.trees.tree_units.AGGREGATES`.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream of ArrayLayout(rank_shape, features)). A row per beat.
    o: Out(stream of ArrayLayout(shape, targets)). A result per beat.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; :meth:`latency_of` cycles later ``o.valid``.
    Stages: ranks, tests, ways, tables (and their two registers if some table lies in block RAM), a level of sums each,
    output queue. Initiation interval 1 cycle. Under backpressure no step begins; those begun continue.

    Ordering
    --------
    Beats leave in the order they came.
    """

    def __init__(
        self, rank_shape: Shape, shape: Shape, *, features: int, targets: int, tests: Sequence[RankTest],
        trees: Sequence[Branch], levels: Sequence[int], lookups: Sequence[Lookup], tables: Sequence[Table],
        in_block: bool, aggregate: str, depth: int,
    ) -> None:
        check_depth(depth, least=0)
        if aggregate not in AGGREGATES:
            raise ValueError(f"aggregate must be one of {', '.join(AGGREGATES)}, not '{aggregate}'")
        if {field.target for lookup in lookups for field in lookup.fields} != set(range(targets)):
            raise ValueError(f"each of the {targets} targets must have a field of a table")
        self.rank_shape, self.shape = Shape.cast(rank_shape), Shape.cast(shape)
        self.features, self.targets = features, targets
        self.tests, self.trees, self.levels = tuple(tests), tuple(trees), tuple(levels)
        self.lookups, self.tables = tuple(lookups), tuple(tables)
        self.in_block = in_block
        self.aggregate = aggregate
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(self.rank_shape, features))),
                "o": Out(stream.Signature(data.ArrayLayout(self.shape, targets))),
            }
        )

    @staticmethod
    def latency_of(levels: int, addends: int, *, in_block: bool) -> int:
        """Return the latency for trees of at most so many ``levels``, and so many tables of a target. ``in_block``:
        some table lies in block RAM."""
        return 1 + 1 + way_stages(levels) + 1 + 2 * in_block + pairings(addends) + 1

    @property
    def latency(self) -> int:
        """Return the cycles from a step to ``o.valid``."""
        return self.latency_of(max(self.levels), max(map(len, self._fields().values())), in_block=self.in_block)

    def _fields(self) -> Mapping[int, list[Field]]:
        found: dict[int, list[Field]] = {}
        for lookup in self.lookups:
            for field in lookup.fields:
                found.setdefault(field.target, []).append(field)
        return found

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        queue.issue(m, self.i, self.latency - 1)
        ranks = Signal(self.i.payload.shape(), name="ranks", reset_less=True)
        m.d.sync += ranks.eq(self.i.payload)
        tests = Signal(len(self.tests), name="held", reset_less=True)
        m.d.sync += [tests[k].eq(_holds(test, ranks[test.feature])) for k, test in enumerate(self.tests)]
        stages = way_stages(max(self.levels))
        line = [tests]
        for stage in range(1, stages):
            line.append(Signal(len(tests), name=f"held_{stage}", reset_less=True))
            m.d.sync += line[stage].eq(line[stage - 1])
        bits = [[each[k] for k in range(len(self.tests))] for each in line]
        ways = [
            _way(m, f"way_{number}", root, levels, bits[stages - way_stages(levels) :])
            for number, (root, levels) in enumerate(zip(self.trees, self.levels, strict=True))
        ]
        addends: dict[int, list[_Addend]] = {}
        for number, (lookup, table) in enumerate(zip(self.lookups, self.tables, strict=True)):
            rom = Rom.of_table(table, output_register=self.in_block)
            m.submodules[f"table_{number}"] = rom
            m.d.comb += rom.addr.eq(Cat(*(ways[tree] for tree in lookup.trees)))
            row, place = held(m, f"row_{number}", rom.data) if self.in_block else rom.data, 0
            for field in lookup.fields:
                word = row[place : place + field.shape.width]
                place += field.shape.width
                value = word.as_signed() if field.shape.signed else word
                addends.setdefault(field.target, []).append(_Addend(value, field.low, field.high, field.shift))
        levels = pairings(max(map(len, addends.values())))
        for target in range(self.targets):
            result = self._together(m, f"of_{target}", addends[target], levels)
            m.d.comb += queue.payload[target].eq(result.value << result.shift)
        return m

    def _together(self, m: Module, name: str, addends: Sequence[_Addend], levels: int) -> _Addend:
        """Return what all make together, after so many ``levels`` of registers."""
        for level in range(levels):
            pairs = [addends[at : at + 2] for at in range(0, len(addends), 2)]
            made = [pair[0] if len(pair) == 1 else self._pair(*pair) for pair in pairs]
            addends = []
            for number, each in enumerate(made):
                shape = shape_of(each.low >> each.shift, each.high >> each.shift, self.shape.width)
                register = Signal(shape, name=f"{name}_{level}_{number}", reset_less=True)
                m.d.sync += register.eq(each.value)
                addends.append(each._replace(value=register))
        return addends[0]

    def _pair(self, one: _Addend, other: _Addend) -> _Addend:
        if self.aggregate != "sum":
            shift = min(one.shift, other.shift)
            a, b = one.value << one.shift - shift, other.value << other.shift - shift
            ends = (one.low, other.low), (one.high, other.high)
            least = self.aggregate == "min"
            low, high = (min(each) if least else max(each) for each in ends)
            return _Addend(Mux(less(a, b) if least else less(b, a), a, b), low, high, shift)
        if other.shift < one.shift:
            one, other = other, one
        # What is below the other one's digits is its own.
        below, low, high = other.shift - one.shift, one.low + other.low, one.high + other.high
        if not below:
            return _Addend(one.value + other.value, low, high, one.shift)
        whole = one.value
        if below >= len(whole):
            sign = whole[-1] if whole.shape().signed and len(whole) else Const(0, 1)
            longer = Cat(whole, sign.replicate(below + 1 - len(whole)))
            whole = longer.as_signed() if whole.shape().signed else longer
        value = Cat(whole[:below], (whole >> below) + other.value)
        return _Addend(value.as_signed() if low < 0 else value, low, high, one.shift)


def _holds(test: RankTest, rank: Value) -> Value:
    """Return whether a test holds: bit by bit, from the lowest on, as constants leave no more than a gate for each. A
    comparison would be a carry chain."""
    found: ValueLike = 0
    for place in range(len(rank)):
        found = ~rank[place] | found if test.limit >> place & 1 else ~rank[place] & found
    if test.limit >> len(rank):
        found = Const(1, 1)
    if test.missing is not None:
        found = found | (rank == test.missing)
    return Value.cast(found)


def _way(m: Module, name: str, root: Branch, levels: int, tests: Sequence[Sequence[Value]]) -> Value:
    """Return the way through a tree: a bit a level, the same stage for all. ``tests``: all of them, and the same after
    each stage but the last one."""
    bits: list[Value] = []
    stages = way_stages(levels)
    for stage in range(stages):
        last = levels if stage == stages - 1 else LEVELS + 2 * stage
        while len(bits) < last:
            chosen = _chosen(root, bits, tests[stage])
            bits.append(Const(0, 1) if chosen is None else chosen)
        register = Signal(len(bits), name=f"{name}_{stage}", reset_less=True)
        m.d.sync += register.eq(Cat(*bits))
        bits = [register[level] for level in range(len(bits))]
    return Cat(*bits)


def _chosen(node: Branch | None, way: Sequence[Value], tests: Sequence[Value]) -> Value | None:
    """Return the test that is behind the nodes on the ``way``; None where there is none.

    The last bit of the way is chosen in the same cycle, so it comes late, and chooses last: between the tests that
    the others choose behind either of its values.
    """
    if node is None or not way:
        return None if node is None else tests[node.test]
    return _either(way[-1], *(_behind(node, way[:-1], side, tests) for side in (True, False)))


def _behind(node: Branch | None, way: Sequence[Value], side: bool, tests: Sequence[Value]) -> Value | None:
    """Return the test that is behind one ``side`` of the node at the end of the ``way``; None where there is none."""
    if node is None or not way:
        child = None if node is None else node.true if side else node.false
        return None if child is None else tests[child.test]
    return _either(way[0], *(_behind(child, way[1:], side, tests) for child in (node.true, node.false)))


def _either(which: Value, true: Value | None, false: Value | None) -> Value | None:
    """Return what ``which`` chooses; None where neither is there."""
    if true is None or false is None:
        return false if true is None else true
    return true if true is false else Mux(which, true, false)
