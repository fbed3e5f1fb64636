"""Functions of the elements of several streams (:mod:`hdl_lib.arithmetic.lane_functions`,
:mod:`hdl_lib.arithmetic.divider`): a lane each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from hdl_lib.arithmetic.divider import DivisionForm
from hwflow.cores.costs.basics import chain, joint_step, skid_buffer
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import queue
from hwflow.cores.operator import Resources
from hwflow.types import IntType


@dataclass(frozen=True)
class Operand:
    """An operand of a lane; ``constant``: no stream, but a number of this type."""

    element: IntType
    constant: bool = False


Operands = Sequence[Operand]

def joined(
    family: str, inputs: Sequence[int], output: int, lanes: int, stages: int, depth: int
) -> Resources:
    """Estimate what :class:`hdl_lib.streams.joined.Joined` has around the lanes: skid buffers, the step, its delays, a
    queue; ``inputs`` and ``output``: bits of an element."""
    if not depth:  # of one input, in a chain
        return Resources(ff=stages)
    total = Resources(lut=joint_step(family, len(inputs)), ff=stages + len(inputs))
    for bits in inputs:
        total += skid_buffer(lanes * bits, family)
    return total + queue(family, lanes * output, depth)


def comparison(family: str, inputs: Operands) -> Resources:
    """Estimate the sign of a difference: a carry chain."""
    return Resources(lut=chain(family, _difference(inputs)))


def equality(inputs: Operands) -> int:
    """Count look-up tables: one for two bits of each operand, and a tree of those."""
    tables = ceil(_widest(inputs) / 2)
    return tables + ceil((tables - 1) / 3)


def negation(family: str, width: int) -> Resources:
    """Estimate the complement, if need be, and one more."""
    return Resources(lut=width if width <= 4 else width + chain(family, width))


def shift(inputs: Operands, output: IntType, left: bool, bits: int) -> Resources:
    """Estimate a register for each bit of the distance, the rest of which is kept along."""
    x, distance = inputs
    width = output.bits if left else x.element.bits
    levels = min(bits.bit_length() - 1, distance.element.bits - distance.element.signed)
    if distance.constant:
        return Resources(ff=(levels + 1) * x.element.bits)
    above = distance.element.bits - levels
    # A register is cleared without look-up tables; a negative number is shifted as its complement, without the sign.
    complemented = above > 0 and levels > 0 and x.element.signed and not left
    moved = width - complemented
    total = Resources(lut=moved * complemented + ceil(above / 3), ff=width + levels)
    for level in range(levels):
        total += Resources(lut=moved, ff=width + levels - level - 1)
    return total


def divider(family: str, inputs: Operands, output: IntType, form: DivisionForm) -> Resources:
    """Estimate magnitudes, a subtraction and a choice for each bit of the dividend, the sign."""
    a, b = (operand.element for operand in inputs)
    free = inputs[1].constant
    if free:  # its sign is known, and that no quotient has as many bits
        b = IntType(b.bits - b.signed, False)
    signed = a.signed or (inputs[1].element.signed and form is not DivisionForm.REMAINDER)
    signs = int(a.signed) + int(b.signed and form is not DivisionForm.REMAINDER) if signed else 0
    divisor = 0 if free else b.bits + 1  # and whether it is 0
    total = Resources(lut=ceil(divisor / 3), ff=a.bits + signs + divisor)
    for operand in inputs:
        if operand.element.signed and not operand.constant:
            total += negation(family, operand.element.bits)
    for stage in range(a.bits):
        last, rest = stage == a.bits - 1, min(stage + 1, b.bits)
        kept = a.bits if form is DivisionForm.QUOTIENT else a.bits - 1 - stage
        compared = chain(family, b.bits + 1)
        if free and FAMILIES[family].carry_bits == 1:
            # The tables of the choice have room for those of the difference, whose sign is left; none of a rest that
            # is too short.
            compared = int(stage + 1 >= b.bits)
        total += Resources(lut=compared, ff=kept + signs)
        if not last or form is not DivisionForm.QUOTIENT:
            total += Resources(lut=rest if compared else 0, ff=rest)
        if free and form is DivisionForm.QUOTIENT:
            total += Resources(ff=-min(stage + 1, b.bits - 1))
        total += Resources(ff=divisor)
    if signed:
        total += negation(family, output.bits) + Resources(ff=output.bits)
        if form is DivisionForm.MODULUS:
            total += Resources(lut=chain(family, b.bits) + b.bits + ceil(b.bits / 3), ff=4 * b.bits + 3)
    return total


def _widest(inputs: Operands) -> int:
    return max(operand.element.bits for operand in inputs if not operand.constant)


def _difference(inputs: Operands) -> int:
    """Return the bits of the difference of two operands."""
    signed = any(operand.element.signed for operand in inputs)
    return 1 + max(o.element.bits + (signed and not o.element.signed) for o in inputs)
