"""Digit recurrences: functions that give a bit of the result in each step, with the remainder's sticky bit below.

A result is rounded to odd: its lowest bit is 1 if anything is left of the remainder. Any later rounding to fewer bits,
and any comparison with a number of no more bits, then decides as it would on the exact result (S. Boldo, G. Melquiond,
"Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 57, 2008).

Source of the recurrences: restoring division and square root, Koren, Computer Arithmetic Algorithms, chapters 3 and 7.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Value

from hdl_lib.arithmetic.lane_functions import magnitude, negated_if, negative
from hdl_lib.blocks import held

State = dict[str, Value]
R = TypeVar("R", bound="Recurrence")


@dataclass(frozen=True)
class Recurrence(ABC):
    """A function of one lane.

    ``inputs``: the shapes of the operands, integer shapes; ``fraction``: bits of the result below the point, without
    the sticky bit; ``bits``: steps, and bits of the result's magnitude without the sticky bit. The caller guarantees
    that results are below ``2**(bits - fraction)``.
    """

    inputs: tuple[Shape, ...]
    fraction: int
    bits: int

    before = 1
    """Cycles from the operands to the first state."""

    def with_bits(self: R, bits: int) -> R:
        """Return the same function with zeros above its results: of ``bits`` steps, no fewer."""
        return replace(self, bits=bits)

    @property
    @abstractmethod
    def signed(self) -> bool:
        """Tell whether results may be negative."""

    @property
    def output(self) -> Shape:
        """Return the shape of the result, the sticky bit included."""
        return Shape(self.bits + 1 + self.signed, self.signed)

    @property
    def after(self) -> int:
        """Return the cycles from the last state to the result."""
        return 1 + self.signed

    @abstractmethod
    def start(self, m: Module, name: str, operands: Sequence[Value]) -> State:
        """Return the first state, in registers ``<name>_...``, ``before`` cycles after the operands."""

    @abstractmethod
    def widths(self, begin: int, end: int) -> tuple[int, int, int]:
        """Return the bits of the registers in which steps ``begin`` to ``end`` - 1 take place: of the rest, of what
        stays as it is, of what is shifted."""

    @property
    @abstractmethod
    def loaded(self) -> int:
        """Return the bits of the registers of the first state that change."""

    @abstractmethod
    def step(self, state: State) -> State:
        """Return the state after one step, with what has grown as long as it can be by then."""

    @abstractmethod
    def finish(self, m: Module, name: str, state: State) -> Value:
        """Return the result of the last state, ``after`` cycles later, in a register ``<name>``."""


@dataclass(frozen=True)
class Quotient(Recurrence):
    """``a * 2**fraction / b``, where ``b`` is positive: towards zero, with the sticky bit."""

    @property
    def signed(self) -> bool:
        return self.inputs[0].signed

    @property
    def divisor(self) -> int:
        """Return the bits of the divisor."""
        return self.inputs[1].width - self.inputs[1].signed

    def widths(self, begin: int, end: int) -> tuple[int, int, int]:
        above = max(0, self.bits - self.fraction)
        left = min(self.inputs[0].width, max(0, above - begin))  # of the dividend, to be brought down
        return self.divisor, self.divisor + self.signed, min(self.bits, left + end)

    @property
    def loaded(self) -> int:
        return self.inputs[0].width + self.divisor

    def start(self, m: Module, name: str, operands: Sequence[Value]) -> State:
        a, b = operands
        above = self.bits - self.fraction  # places of the dividend below the first rest
        whole = magnitude(a)
        rest: Value = whole[above:] if above >= 0 else Cat(Const(0, -above), whole)
        low: Value = whole[: max(0, above)]
        missing = max(0, above) - len(low)
        low = Cat(Const(0, self.bits - len(low) - missing), low, Const(0, missing))
        state = {
            "rest": held(m, f"{name}_rest", Cat(rest, Const(0, self.divisor))[: self.divisor]),
            "divisor": held(m, f"{name}_divisor", b[: self.divisor]),
            "low": held(m, f"{name}_low", low),
        }
        if self.signed:
            state["sign"] = held(m, f"{name}_sign", negative(a))
        return state

    def step(self, state: State) -> State:
        rest, divisor, low = state["rest"], state["divisor"], state["low"]
        trial = Cat(low[-1], rest)
        difference = trial - divisor
        enough = ~difference.as_signed()[-1]
        return {**state, "rest": Mux(enough, difference, trial)[: self.divisor], "low": Cat(enough, low[:-1])}

    def finish(self, m: Module, name: str, state: State) -> Value:
        whole = Cat(state["rest"].any(), state["low"])
        if not self.signed:
            return held(m, name, whole, self.output)
        whole, sign = held(m, f"{name}_magnitude", whole), held(m, f"{name}_last_sign", state["sign"])
        return held(m, name, negated_if(sign, whole, self.output.width), self.output)


@dataclass(frozen=True)
class Root(Recurrence):
    """``sqrt(a * 4**fraction + addend)`` of a number that is not negative: down, with the sticky bit."""

    addend: int = 0

    @property
    def signed(self) -> bool:
        return False

    @property
    def radicand(self) -> int:
        """Return the bits of the radicand, an even number."""
        width = self.inputs[0].width - self.inputs[0].signed
        most = ((1 << width) - 1 << 2 * self.fraction) + self.addend
        return most.bit_length() + most.bit_length() % 2

    def widths(self, begin: int, end: int) -> tuple[int, int, int]:
        known = 2 * self.fraction if end == begin + 1 or not self.addend else 0  # bits of the addend, or zeros
        return min(self.bits, end) + 1, 0, end + max(0, 2 * (self.bits - begin - 1) - known)

    @property
    def loaded(self) -> int:
        return self.radicand - 2 * self.fraction

    def start(self, m: Module, name: str, operands: Sequence[Value]) -> State:
        total = (operands[0].shift_left(2 * self.fraction) + self.addend)[: self.radicand]
        left = Cat(total, Const(0, 2 * self.bits))[: 2 * self.bits]
        return {
            "rest": Const(0, 1),
            "root": Const(0, 0),
            "left": held(m, f"{name}_left", left),
        }

    def step(self, state: State) -> State:
        rest, root, left = state["rest"], state["root"], state["left"]
        trial = Cat(left[-2:], rest)
        difference = trial - Cat(Const(1, 2), root)
        enough = ~difference.as_signed()[-1]
        return {
            "rest": Mux(enough, difference, trial)[: min(self.bits, len(root) + 1) + 1],  # at most twice the root
            "root": Cat(enough, root)[: self.bits],
            "left": Cat(Const(0, 2), left[:-2]),
        }

    def finish(self, m: Module, name: str, state: State) -> Value:
        return held(m, name, Cat(state["rest"].any(), state["root"]), self.output)
