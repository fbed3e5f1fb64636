"""A pipelined network of adders that multiplies vectors by a constant matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value

from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.arithmetic.wide_product import shifted_sum


class Adder(NamedTuple):
    """``(left << left_shift) + (right << right_shift)``, or the difference of the two if ``subtract``.

    ``left``, ``right``: numbers of terms; None for ``left`` is zero. At least one of the shifts is 0. ``low`` and
    ``high``: the interval of the result. ``level``: at least 1, and more than the levels of the terms it adds.
    """

    left: int | None
    left_shift: int
    right: int
    right_shift: int
    subtract: bool
    low: int
    high: int
    level: int

    @property
    def operands(self) -> tuple[int, ...]:
        """Return the terms it adds."""
        return (self.right,) if self.left is None else (self.left, self.right)


@dataclass(frozen=True)
class AdderNetwork:
    """A network whose terms ``0 .. len(inputs) - 1`` are the inputs, followed by the adders, each of earlier terms.

    ``inputs``: the interval of each input. ``outputs``: for each a term and a left shift, or None and 0 for zero.
    ``span``: levels of adders between registers.

    Timing: :attr:`stages` cycles from the inputs, which must be registers, to the outputs, which are registers; a
    vector per cycle. A term is registered at its stage, and again at every further stage up to its last use.
    """

    inputs: tuple[tuple[int, int], ...]
    adders: tuple[Adder, ...]
    outputs: tuple[tuple[int | None, int], ...]
    span: int = 1

    def __post_init__(self) -> None:
        if self.span < 1:
            raise ValueError(f"span must be at least 1 level of adders, not {self.span}")
        levels = [0] * len(self.inputs)
        for number, adder in enumerate(self.adders):
            known = len(levels)
            if not all(0 <= term < known for term in adder.operands):
                raise ValueError(f"adder {number} must add terms of 0..{known - 1}, not {adder.operands}")
            least = 1 + max(levels[term] for term in adder.operands)
            if adder.level < least:
                raise ValueError(f"adder {number} must have a level of at least {least}, not {adder.level}")
            if min(adder.left_shift, adder.right_shift) or (adder.left is None and not adder.subtract):
                raise ValueError(f"adder {number} must have a shift of 0, and subtract if left is None: {adder}")
            levels.append(adder.level)
        for term, _ in self.outputs:
            if term is not None and not 0 <= term < len(levels):
                raise ValueError(f"outputs must be terms of 0..{len(levels) - 1}, not {term}")

    @cached_property
    def intervals(self) -> list[tuple[int, int]]:
        """Return the interval of every term."""
        return [*self.inputs, *((adder.low, adder.high) for adder in self.adders)]

    @cached_property
    def term_stages(self) -> list[int]:
        """Return the stage of every term: 0 for inputs."""
        return [0] * len(self.inputs) + [-(-adder.level // self.span) for adder in self.adders]

    @property
    def stages(self) -> int:
        """Return the cycles from the inputs to the outputs."""
        return max(self.term_stages, default=0)

    @cached_property
    def delays(self) -> list[int]:
        """Return the registers in series after every term, excluding an input's own."""
        stages = self.term_stages
        delays = [0] * len(stages)
        for number, adder in enumerate(self.adders, len(self.inputs)):
            for term in adder.operands:
                delays[term] = max(delays[term], stages[number] - stages[term] - (stages[term] == 0))
        last = self.stages
        for output, _ in self.outputs:
            if output is not None:  # behind the stage of the adder, or behind the input's register
                delays[output] = max(delays[output], last - stages[output] + (stages[output] > 0))
        return delays

    @property
    def flip_flops(self) -> int:
        """Return the flip-flops of all registers, excluding those of the inputs."""
        return sum(delay * shape_of(*ends).width for delay, ends in zip(self.delays, self.intervals, strict=True))

    def output_shape(self, index: int) -> Shape:
        """Return the narrowest shape of an output without the bits below its shift."""
        term, _ = self.outputs[index]
        return Shape(0) if term is None else shape_of(*self.intervals[term])

    def build(self, m: Module, name: str, inputs: Sequence[Value]) -> list[Value]:
        """Build the network on registers with the inputs; return the outputs' terms, without their shifts. Registers
        are called ``<name>_<term>_<stage>``."""
        stages = self.term_stages
        # copies[t][k]: term t in the stage that is k after its own; an input has no stage 0.
        copies: list[list[Value]] = []

        def registers(first: Value, term: int) -> list[Value]:
            chain = [first]
            for delay in range(self.delays[term]):
                register = Signal(
                    shape_of(*self.intervals[term]), name=f"{name}_{term}_{stages[term] + delay}", reset_less=True
                )
                m.d.sync += register.eq(chain[-1])
                chain.append(register)
            return chain

        def of(term: int, stage: int) -> Value:
            return copies[term][stage - stages[term] - (stages[term] == 0)]

        for term, value in enumerate(inputs):
            copies.append(registers(_cut(value, *self.inputs[term]), term))
        for term, adder in enumerate(self.adders, len(self.inputs)):
            stage = stages[term]
            left = None if adder.left is None else of(adder.left, stage)
            value = _sum(adder, left, of(adder.right, stage))
            if self.span > 1:  # kept: synthesis would take sums of sums apart, into adders without carry chains
                whole = Signal(shape_of(adder.low, adder.high), name=f"{name}_{term}", attrs={"keep": 1})
                m.d.comb += whole.eq(value)
                value = whole
            copies.append(registers(value, term))
        return [Const(0, 0) if term is None else copies[term][-1] for term, _ in self.outputs]


def _cut(value: Value, low: int, high: int) -> Value:
    """Truncate ``value``, known to lie in ``low .. high``, to the bits that this takes."""
    shape = shape_of(low, high)
    if shape.width >= len(value):
        return value
    return value[: shape.width].as_signed() if shape.signed else value[: shape.width]


def _sum(adder: Adder, left: Value | None, right: Value) -> Value:
    """Return the adder's sum; low bits without a counterpart bypass the carry chain."""
    if left is None:
        return -right
    if adder.left_shift:
        if adder.subtract:
            return left.shift_left(adder.left_shift) - right
        return shifted_sum(right, left, adder.left_shift)
    if not adder.subtract:
        return shifted_sum(left, right, adder.right_shift)
    distance = adder.right_shift
    low = Cat(left, (left[-1] if left.shape().signed else Const(0, 1)).replicate(max(0, distance - len(left))))
    return Cat(low[:distance], left.shift_right(distance) - right).as_signed()
