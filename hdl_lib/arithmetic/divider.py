"""Quotients and remainders of integers, one quotient bit per pipeline stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Value

from hdl_lib.arithmetic.lane_functions import LaneFunction, magnitude, negated_if, negative, not_zero
from hdl_lib.blocks import held


class DivisionForm(Enum):
    """What a division results in."""

    QUOTIENT = "quotient"  # towards zero
    REMAINDER = "remainder"  # with the sign of the dividend, as in C
    MODULUS = "modulus"  # with the sign of the divisor, as in Python


@dataclass(frozen=True)
class Divider(LaneFunction):
    """Divides the first operand by the second: restoring division of the magnitudes, then the sign. A divisor of 0
    gives 0 in every ``form``.

    Stages: 1 for the magnitudes, 1 for each bit of the dividend, and for the sign, if any operand has one, 1 for a
    quotient or remainder, 3 for a modulus (the complement to the divisor, the choice, the sign).

    Source: restoring division, Koren, Computer Arithmetic Algorithms, chapter 3.
    """

    inputs: tuple[Shape, ...]
    output: Shape
    form: DivisionForm

    @property
    def signed(self) -> bool:
        """Tell whether the result may have either sign."""
        return self.inputs[0].signed or (self.inputs[1].signed and self.form is not DivisionForm.REMAINDER)

    @property
    def stages(self) -> int:
        return 1 + self.inputs[0].width + (0 if not self.signed else 3 if self.form is DivisionForm.MODULUS else 1)

    def build(self, m: Module, name: str, operands: Sequence[Value]) -> Value:
        modulus = self.form is DivisionForm.MODULUS and self.signed
        width = self.inputs[1].width
        dividend, divisor = (held(m, f"{name}_{side}", magnitude(v)) for side, v in zip("ab", operands, strict=True))
        valid = held(m, f"{name}_valid", not_zero(operands[1]))
        signs = [held(m, f"{name}_sign_{side}", negative(v)) for side, v in zip("ab", operands, strict=True)]
        quotient: Value = Const(0, 0)
        rest: Value = Const(0, 0)
        for stage in range(self.inputs[0].width):
            last = stage == self.inputs[0].width - 1
            label = name if last and not self.signed else f"{name}_{stage}"
            trial = Cat(dividend[-1], rest)
            difference = trial - divisor
            enough = ~difference.as_signed()[-1]
            rest = Mux(enough, difference, trial)[: min(stage + 1, width)]
            quotient = Cat(enough, quotient)
            kept = quotient if self.form is DivisionForm.QUOTIENT else rest
            if last:
                kept = Mux(valid, kept, 0)
                shape = None if self.signed else self.output
                kept = held(m, label if not self.signed else f"{label}_result", kept, shape)
            else:
                if self.form is DivisionForm.QUOTIENT:
                    quotient = held(m, f"{label}_quotient", quotient)
                rest = held(m, f"{label}_rest", rest)
                dividend = held(m, f"{label}_a", dividend[:-1])
                valid = held(m, f"{label}_valid", valid)
            if not last or modulus:
                divisor = held(m, f"{label}_b", divisor)
            if self.signed:
                signs = [held(m, f"{label}_sign_{side}", s) for side, s in zip("ab", signs, strict=True)]
        if not self.signed:
            return kept
        if self.form is DivisionForm.QUOTIENT:
            return held(m, name, negated_if(signs[0] ^ signs[1], kept, self.output.width), self.output)
        if self.form is DivisionForm.REMAINDER:
            return held(m, name, negated_if(signs[0], kept, self.output.width), self.output)
        return self._with_sign_of_divisor(m, name, kept, divisor, signs)

    def _with_sign_of_divisor(
        self, m: Module, name: str, rest: Value, divisor: Value, signs: Sequence[Value]
    ) -> Value:
        complement = held(m, f"{name}_complement", (divisor - rest)[: len(divisor)])
        turned = held(m, f"{name}_turned", (signs[0] ^ signs[1]) & rest.any())
        rest, sign = held(m, f"{name}_kept", rest), held(m, f"{name}_sign", signs[1])
        chosen, sign = held(m, f"{name}_chosen", Mux(turned, complement, rest)), held(m, f"{name}_last_sign", sign)
        return held(m, name, negated_if(sign, chosen, self.output.width), self.output)
