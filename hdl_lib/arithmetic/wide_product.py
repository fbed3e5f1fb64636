"""Products of operands too wide for a multiplier block, as sums of products of their parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Value

from hdl_lib.arithmetic.adder_tree import Term, registered, shape_of, tree_levels
from hdl_lib.arithmetic.block_product import BLOCK_LATENCY, block_product


@dataclass(frozen=True)
class Part:
    """Bits ``first .. first + shape.width - 1`` of an operand as a number of ``shape``."""

    first: int
    shape: Shape

    def of(self, operand: Value) -> Value:
        """Return these bits of the operand."""
        bits = operand[self.first : self.first + self.shape.width]
        return bits.as_signed() if self.shape.signed else bits

    def of_number(self, number: int) -> int:
        """Return these bits of a constant operand."""
        width = self.shape.width
        bits = number >> self.first & ((1 << width) - 1)
        return bits - (1 << width) if self.shape.signed and bits >> (width - 1) else bits

    @property
    def interval(self) -> tuple[int, int]:
        """Return the least and the greatest number."""
        width = self.shape.width
        return (-(1 << width - 1), (1 << width - 1) - 1) if self.shape.signed else (0, (1 << width) - 1)


def parts_of(shape: Shape, part: int) -> list[Part]:
    """Split ``shape`` from the bottom into numbers of ``part`` unsigned bits; the top one may be signed, with one bit
    more."""
    parts, first = [], 0
    while shape.width - first > part + shape.signed:
        parts.append(Part(first, Shape(part)))
        first += part
    return [*parts, Part(first, Shape(shape.width - first, shape.signed))]


@dataclass(frozen=True)
class Summand:
    """A term of the sum: a number within ``low .. high`` times ``2**first``."""

    first: int
    low: int
    high: int

    @property
    def shape(self) -> Shape:
        """Return the shape of the number."""
        return shape_of(self.low, self.high)

    @property
    def end(self) -> int:
        """Return the bit position above it."""
        return self.first + self.shape.width


@dataclass(frozen=True)
class Sum:
    """A register of the tree: its contents, the shift between its two summands, and the bits of the adder in front of
    it (None and 0: a single summand is passed on)."""

    summand: Summand
    distance: int | None
    adder: int


@dataclass(frozen=True)
class WideProduct:
    """``x * w`` with operands split into parts of at most ``part`` bits unsigned, or one more signed.

    Timing: the products of parts are available after :data:`hdl_lib.arithmetic.block_product.BLOCK_LATENCY` cycles.
    Unsigned ones whose bits do not overlap are concatenated without an adder. The resulting numbers are added in a tree
    with a register behind every adder. ``latency`` cycles; one product per cycle.
    """

    x_shape: Shape
    w_shape: Shape
    part: int

    @cached_property
    def pairs(self) -> list[tuple[Part, Part]]:
        """Return the pairs of parts to multiply, the least significant products first."""
        pairs = [(x, w) for x in parts_of(self.x_shape, self.part) for w in parts_of(self.w_shape, self.part)]
        return sorted(pairs, key=lambda pair: pair[0].first + pair[1].first)

    @property
    def blocks(self) -> int:
        """Return the multiplier blocks: products with a part of a single bit are selections and need none."""
        return sum(min(x.shape.width, w.shape.width) > 1 for x, w in self.pairs)

    @property
    def latency(self) -> int:
        """Return the cycles from operands to product."""
        return BLOCK_LATENCY + tree_levels(len(self.groups))

    @cached_property
    def summands(self) -> list[Summand]:
        """Return the product of each pair."""
        return [Summand(x.first + w.first, *product_range(x.interval, w.interval)) for x, w in self.pairs]

    @cached_property
    def groups(self) -> list[list[int]]:
        """Group the products that are concatenated: only the top one may be negative, and the bits of each are above
        those of the one below."""
        groups: list[list[int]] = []
        for index, summand in enumerate(self.summands):
            for group in groups:
                below = self.summands[group[-1]]
                if below.low >= 0 and below.end <= summand.first:
                    group.append(index)
                    break
            else:
                groups.append([index])
        return groups

    @cached_property
    def levels(self) -> list[list[Sum]]:
        """Return the registers of each level of the tree."""
        levels: list[list[Sum]] = []
        summands = [self._sum([self.summands[index] for index in group]) for group in self.groups]
        while len(summands) > 1:
            sums = []
            for index in range(0, len(summands), 2):
                pair = summands[index : index + 2]
                total = self._sum(pair)
                if len(summands) == 2:  # the parts of an operand do not take their extremes together
                    total = Summand(0, *product_range(Part(0, self.x_shape).interval, Part(0, self.w_shape).interval))
                distance = pair[1].first - pair[0].first if len(pair) == 2 else None
                sums.append(Sum(total, distance, 0 if distance is None else total.shape.width - distance))
            levels.append(sums)
            summands = [total.summand for total in sums]
        return levels

    def product(self, m: Module, name: str, x: Value, w: Value) -> Term:
        """Return the product, ``latency`` cycles later; its registers are called ``<name>_part<index>`` and
        ``<name>_sum<level>_<index>``, the last one ``name``."""
        products = []
        for index, ((x_part, w_part), summand) in enumerate(zip(self.pairs, self.summands, strict=True)):
            term = Term(part_product(x_part.of(x), w_part.of(w)), summand.low, summand.high)
            products.append(Value.cast(block_product(m, f"{name}_part{index}", term).value))
        values = [self._concatenated(group, products) for group in self.groups]
        for level, sums in enumerate(self.levels):
            results = []
            for index, total in enumerate(sums):
                value = values[2 * index]
                if total.distance is not None:
                    value = shifted_sum(value, values[2 * index + 1], total.distance)
                full_name = name if len(sums) == 1 else f"{name}_sum{level}_{index}"
                term = Term(value, total.summand.low, total.summand.high)
                results.append(Value.cast(registered(m, full_name, term).value))
            values = results
        last = self.levels[-1][0].summand if self.levels else self.summands[0]
        return Term(values[0], last.low, last.high)

    def at_once(self, m: Module, name: str, x: Value, w: Value) -> Term:
        """Return the product, a cycle later: the sum of its parts' products, without registers behind these, for slow
        clocks. They are called ``<name>_part<index>``."""
        products = []
        for index, ((x_part, w_part), summand) in enumerate(zip(self.pairs, self.summands, strict=True)):
            term = Term(part_product(x_part.of(x), w_part.of(w)), summand.low, summand.high)
            products.append(Value.cast(registered(m, f"{name}_part{index}", term, keep=True).value))
        first, *others = self.groups
        total = self._concatenated(first, products)
        for group in others:
            distance = self.summands[group[0]].first - self.summands[first[0]].first
            total = shifted_sum(total, self._concatenated(group, products), distance)
        low, high = product_range(Part(0, self.x_shape).interval, Part(0, self.w_shape).interval)
        return Term(total, low, high)

    @staticmethod
    def _sum(summands: list[Summand]) -> Summand:
        first = summands[0].first
        low, high = (sum(getattr(s, end) << s.first - first for s in summands) for end in ("low", "high"))
        return Summand(first, low, high)

    def _concatenated(self, group: list[int], products: list[Value]) -> Value:
        """Return the products of a group as one number."""
        bits: Value = products[group[0]]
        base = self.summands[group[0]].first
        for index in group[1:]:
            gap = self.summands[index].first - base - len(bits)
            bits = Cat(bits, Const(0, gap), products[index])
        return bits.as_signed() if products[group[-1]].shape().signed else bits


def product_range(x: tuple[int, int], w: tuple[int, int]) -> tuple[int, int]:
    """Return the least and the greatest product."""
    products = [a * b for a in x for b in w]
    return min(products), max(products)


def part_product(x: Value, w: Value) -> Value:
    """Return ``x * w``; with an operand of a single bit a selection, which synthesis would otherwise map to a
    multiplier block."""
    for factor, bit in ((x, w), (w, x)):
        if len(bit) == 1:
            return Mux(bit[0], -factor if bit.shape().signed else factor, 0)
    return x * w


def shifted_sum(low: Value, high: Value, distance: int) -> Value:
    """Return ``low + (high << distance)``. The bits of ``low`` below ``high`` bypass the adder."""
    if len(low) < distance:  # then there is nothing to add but a sign
        fill = low[-1].replicate(distance - len(low)) if low.shape().signed else Const(0, distance - len(low))
        bits: Value = Cat(low, fill)
    else:
        bits = low[:distance]
    upper = low.shift_right(distance) + high
    total = Cat(bits, upper)
    return total.as_signed() if upper.shape().signed else total
