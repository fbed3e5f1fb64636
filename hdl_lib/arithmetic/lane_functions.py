"""Elementwise functions of several streams, as pipelines with a register after every step.

A function takes one hardware value for each operand and gives its result ``stages`` cycles later, one result per cycle.
Results are exact modulo ``2**width`` of the output's shape. An operand may be a constant (:class:`amaranth.hdl.Const`),
which needs no registers. Division is in :mod:`hdl_lib.arithmetic.divider`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Value

from hdl_lib.arithmetic.adder_tree import tree_levels
from hdl_lib.arithmetic.multiplier import Multiplier, ProductForm, interval
from hdl_lib.arithmetic.signed_sum import Register, Summand, planned, signed_digits, signed_sum
from hdl_lib.blocks import held, less


class LaneFunction(ABC):
    """A function of one lane of :class:`hdl_lib.streams.elementwise.Elementwise`. ``inputs``: the shapes of the
    operands; ``output``: the shape of the result."""

    inputs: tuple[Shape, ...]
    output: Shape

    @property
    @abstractmethod
    def stages(self) -> int:
        """Return the cycles from the operands to the result, at least 1."""

    @abstractmethod
    def build(self, m: Module, name: str, operands: Sequence[Value]) -> Value:
        """Return the result, in a register; all registers are called ``<name>...``."""


_EXPRESSIONS: Mapping[str, Callable[..., Value]] = {
    "add": lambda a, b: a + b,
    "and": lambda a, b: a & b,
    "equal": lambda a, b: a == b,
    "greater": lambda a, b: less(b, a),
    "greater_or_equal": lambda a, b: ~less(a, b),
    "less": less,
    "less_or_equal": lambda a, b: ~less(b, a),
    "not": lambda a: ~a,
    "not_equal": lambda a, b: a != b,
    "or": lambda a, b: a | b,
    "sub": lambda a, b: a - b,
    "where": lambda condition, a, b: Mux(condition, a, b),
    "wrap": lambda a: a,
    "xor": lambda a, b: a ^ b,
}


@dataclass(frozen=True)
class Expression(LaneFunction):
    """A function of one stage: at most one carry chain, then a register."""

    inputs: tuple[Shape, ...]
    output: Shape
    function: str

    def __post_init__(self) -> None:
        if self.function not in _EXPRESSIONS:
            raise ValueError(f"function must be one of {', '.join(_EXPRESSIONS)}, not {self.function!r}")

    @property
    def stages(self) -> int:
        return 1

    def build(self, m: Module, name: str, operands: Sequence[Value]) -> Value:
        return held(m, name, _EXPRESSIONS[self.function](*operands), self.output)


@dataclass(frozen=True)
class Extremum(LaneFunction):
    """The smaller operand, or with ``greatest`` the greater one: a comparison, then a choice."""

    inputs: tuple[Shape, ...]
    output: Shape
    greatest: bool

    @property
    def stages(self) -> int:
        return 2

    def build(self, m: Module, name: str, operands: Sequence[Value]) -> Value:
        a, b = operands
        first = held(m, f"{name}_first", less(b, a) if self.greatest else less(a, b))
        kept = [held(m, f"{name}_{side}", operand) for side, operand in zip("ab", operands, strict=True)]
        return held(m, name, Mux(first, *kept), self.output)


@dataclass(frozen=True)
class Absolute(LaneFunction):
    """The magnitude of the operand."""

    inputs: tuple[Shape, ...]
    output: Shape

    @property
    def stages(self) -> int:
        return 1

    def build(self, m: Module, name: str, operands: Sequence[Value]) -> Value:
        return held(m, name, magnitude(operands[0]), self.output)


def negative(value: Value) -> Value:
    """Return a bit: the number is below 0."""
    if isinstance(value, Const):
        return Const(int(value.value < 0), 1)
    return value[-1] if value.shape().signed else Const(0, 1)


def not_zero(value: Value) -> Value:
    """Return a bit: the number is not 0."""
    return Const(int(value.value != 0), 1) if isinstance(value, Const) else value.any()


def negated_if(condition: Value, number: Value, width: int) -> Value:
    """Return ``-number`` if ``condition`` (one bit), else ``number``, which is unsigned; modulo ``2**width``."""
    padded = Cat(number, Const(0, max(0, width - len(number))))[:width]
    return ((padded ^ condition.replicate(width)) + condition)[:width]


def magnitude(value: Value) -> Value:
    """Return the magnitude of a number, in as many bits."""
    if isinstance(value, Const):
        return Const(abs(value.value), len(value))
    return negated_if(value[-1], value.as_unsigned(), len(value)) if value.shape().signed else value


@dataclass(frozen=True)
class Product(LaneFunction):
    """The product of two operands, in the form "dsp" or "lut" of :mod:`hdl_lib.arithmetic.multiplier`."""

    inputs: tuple[Shape, ...]
    output: Shape
    form: ProductForm

    @property
    def multiplier(self) -> Multiplier:
        """Return the multiplier."""
        return Multiplier(self.inputs[0], self.inputs[1], self.form)

    @property
    def stages(self) -> int:
        return self.multiplier.operand_latency + self.multiplier.latency

    def build(self, m: Module, name: str, operands: Sequence[Value]) -> Value:
        a, b = operands
        multiplier = self.multiplier
        for stage in range(multiplier.operand_latency - multiplier.weight_lead):
            b = held(m, f"{name}_b_{stage}", b)
        operand = multiplier.operand(m, f"{name}_a", a)
        return Value.cast(multiplier.product(m, name, operand, b).value)


@dataclass(frozen=True)
class Multiple(LaneFunction):
    """The operand times a constant: an adder tree over the constant's signed digits
    (:mod:`hdl_lib.arithmetic.signed_sum`)."""

    inputs: tuple[Shape, ...]
    output: Shape
    factor: int

    @property
    def stages(self) -> int:
        return max(1, tree_levels(len(self.summands(None))))

    def summands(self, value: Value | None) -> list[Summand]:
        """Return the summands of ``value``; with None those of a planned sum."""
        low, high = interval(self.inputs[0])
        digits = [digit for digit in signed_digits(self.factor) if digit[0] < self.output.width] or [(0, False)]
        return [Summand(value, low, high, bit, minus, "x") for bit, minus in digits]

    def registers(self) -> list[Register]:
        """Return the registers of the tree."""
        return planned(self.summands(None), self.stages, self.output.width)

    def build(self, m: Module, name: str, operands: Sequence[Value]) -> Value:
        if self.factor % (1 << self.output.width) == 0:
            return Const(0, self.output)
        return signed_sum(m, name, self.summands(operands[0]), self.stages, self.output.width)


@dataclass(frozen=True)
class Shift(LaneFunction):
    """The first operand shifted by the second one, with a register for each bit of the distance.

    ``bits``: of the shifted type (a power of two). A distance outside 0 .. ``bits`` - 1 gives 0, or -1 for a negative
    number shifted right (BitShift 28 of the ONNX standard).
    """

    inputs: tuple[Shape, ...]
    output: Shape
    left: bool
    bits: int

    @property
    def levels(self) -> int:
        """Return the bits of a distance within range that can be set."""
        return min(self.bits.bit_length() - 1, self.inputs[1].width - int(self.inputs[1].signed))

    @property
    def stages(self) -> int:
        return 1 + self.levels

    def build(self, m: Module, name: str, operands: Sequence[Value]) -> Value:
        x, distance = operands
        shape = self.output if self.left else self.inputs[0]
        constant = distance.value if isinstance(distance, Const) else None
        start, sign = x, None
        if self.inputs[1].width > self.levels:
            beyond = distance[self.levels :].any()
            if constant is None and self.levels and shape.signed and not self.left:
                # The complement of a negative number is shifted: 0 then stands for what is beyond the range, which is a
                # register's reset, and the last choice has room for the complement of the result.
                sign = negative(x)
                start = Mux(beyond, 0, x ^ sign.replicate(shape.width))
                sign = held(m, f"{name}_sign", sign)
            else:
                fill = Const(0, 1) if self.left else negative(x)
                start = Mux(beyond, fill.replicate(shape.width), x)
        value = held(m, f"{name}_x", start, shape)
        rest = distance if constant is not None else held(m, f"{name}_distance", distance[: self.levels])
        for level in range(self.levels):
            far = value.shift_left(1 << level) if self.left else value.shift_right(1 << level)
            last = level == self.levels - 1
            label = name if last else f"{name}_{level}"
            moved = Mux(rest[0], far, value) if constant is None else far if constant >> level & 1 else value
            if sign is not None and last:
                moved = (moved ^ sign.replicate(shape.width)).as_signed()
            elif sign is not None:
                sign = held(m, f"{name}_sign_{level}", sign)
            value = held(m, label, moved, self.output if last else shape)
            if not last and constant is None:
                rest = held(m, f"{name}_distance_{level}", rest[1:])
        return value
