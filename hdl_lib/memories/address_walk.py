"""Generate a fixed sequence of addresses by a loop nest, with an offset per loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.utils import ceil_log2

from hdl_lib.blocks import count_up, delayed, held, loop
from hdl_lib.memories.rom import Rom


@dataclass(frozen=True)
class LoopAxis:
    """A loop of ``count`` rounds. Round k adds ``k * stride``, or ``table[k]`` if there is a table, in which None means
    that the whole step has no address."""

    count: int
    stride: int = 0
    table: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count must be at least 1, not {self.count}")
        if self.table and len(self.table) != self.count:
            raise ValueError(f"table must have {self.count} entries (count), not {len(self.table)}")
        if self.table and not self.known:
            raise ValueError("table must have an offset, not None only")

    @property
    def offsets(self) -> tuple[int | None, ...]:
        """Return the offset that each round adds."""
        return self.table or tuple(k * self.stride for k in range(self.count))

    @property
    def known(self) -> tuple[int, ...]:
        """Return the offsets that are not None."""
        return tuple(offset for offset in self.offsets if offset is not None)


@dataclass(frozen=True)
class AddressWalk:
    """A loop nest, outermost loop first, and the address ``start`` that the loops add to. All addresses are at least 0.

    Timing: a step advances the innermost loop; its address is available ``latency`` cycles later.
    """

    axes: tuple[LoopAxis, ...]
    start: int = 0

    @property
    def steps(self) -> int:
        """Return the steps of the whole loop nest."""
        return prod(axis.count for axis in self.axes)

    @property
    def tables(self) -> list[LoopAxis]:
        """Return the loops with a table."""
        return [axis for axis in self.axes if axis.table]

    @property
    def latency(self) -> int:
        """Return the cycles from a step to its address: two for tables (memory, output register), one for each level of
        their sums."""
        tables = len(self.tables)
        return 2 + ceil_log2(tables + 1) if tables else 0

    def elaborate_on(self, m: Module, step: Value) -> tuple[Value, Value, list[Value]]:
        """Build the walk, which advances in every cycle with ``step``; return the address of the step ``latency``
        cycles ago, "it has none", and for each loop "this step is the last one of its last round", a function of
        registers alone."""
        done: list[Value] = []
        inner_last: Value = Const(1)
        advances: list[Value] = []
        for number, axis in reversed(list(enumerate(self.axes))):
            advance = Signal(name=f"walk_advance_{number}")
            m.d.comb += advance.eq(step & inner_last)
            advances.insert(0, advance)
            inner_last = loop(m, f"walk_{number}", axis.count, advance) & inner_last
            done.insert(0, inner_last)
        strided = self._strided(m, step, done)
        if not self.tables:
            return strided, Const(0), done
        terms, outside = [delayed(m, "walk_strided", strided, 2)], []
        for number, axis in enumerate(self.axes):
            if axis.table:
                hole, offset = self._looked_up(m, number, axis, advances[number])
                terms.append(offset)
                outside.append(hole)
        level = 0
        while len(terms) > 1:
            level += 1
            terms = [
                held(m, f"walk_sum_{level}_{k}", terms[k] + terms[k + 1] if k + 1 < len(terms) else terms[k])
                for k in range(0, len(terms), 2)
            ]
        any_outside: Value = Const(0)
        for hole in outside:
            any_outside = any_outside | hole
        return terms[0].as_unsigned(), delayed(m, "walk_outside", any_outside, level), done

    def _strided(self, m: Module, step: Value, done: Sequence[Value]) -> Signal:
        """Return a register with the start plus the offsets of all loops without a table. Each step changes it by the
        stride of the outermost loop that advances, less the offsets of the loops within."""
        axes = self.axes
        spans = [0 if axis.table else axis.stride * (axis.count - 1) for axis in axes]
        low = self.start + sum(min(0, span) for span in spans)
        high = self.start + sum(max(0, span) for span in spans)
        address = Signal(Shape.cast(range(min(low, 0), max(high, 0) + 1)), name="walk_address", init=self.start)
        within = list(accumulate(reversed(spans), initial=0))[::-1]  # of the loops from each on
        move: Value = Const(-within[0], Shape.cast(range(-abs(within[0]), abs(within[0]) + 1)))
        for number, axis in enumerate(axes):
            stride = 0 if axis.table else axis.stride
            change = stride - within[number + 1]
            fixed = Const(change, Shape.cast(range(-abs(change), abs(change) + 1)))
            inner = done[number + 1] if number + 1 < len(axes) else Const(1)
            move = Mux(inner & ~done[number], fixed, move) if number else Mux(done[0], move, fixed)
        with m.If(step):
            m.d.sync += address.eq(address + move)
        return address

    def _looked_up(self, m: Module, number: int, axis: LoopAxis, advance: Value) -> tuple[Value, Value]:
        """Return "no address" and the offset of a loop with a table, two cycles after its steps."""
        shape = Shape.cast(range(min(0, *axis.known), max(0, *axis.known) + 1))
        mask = (1 << shape.width) - 1
        words = [1 << shape.width if offset is None else offset & mask for offset in axis.table]
        m.submodules[f"walk_table_{number}"] = rom = Rom(
            shape.width + 1, len(words), init=words, output_register=True
        )
        place = count_up(m, f"walk_place_{number}", axis.count, advance)
        m.d.comb += rom.addr.eq(place)
        offset = rom.data[: shape.width]
        return rom.data[-1], offset.as_signed() if shape.signed else offset
