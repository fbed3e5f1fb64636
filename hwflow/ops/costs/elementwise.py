"""Functions of the elements of several streams (:mod:`hdl_lib.lane_functions`, :mod:`hdl_lib.divider`): a lane each."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from hwflow.ops.costs.basics import skid_buffer
from hwflow.ops.costs.memory import queue
from hwflow.ops.operator import Resources
from hwflow.types import IntType

Operands = Sequence[IntType | None]
"""Of which a constant is None."""


def joined(
    family: str, inputs: Sequence[IntType], output: IntType, lanes: int, stages: int, depth: int
) -> Resources:
    """What :class:`hdl_lib.joined.Joined` has around the lanes: skid buffers, the step, its delays, a queue."""
    total = Resources(lut=4, ff=stages)
    for element in inputs:
        total += skid_buffer(lanes * element.bits)
    return total + queue(family, lanes * output.bits, depth)


def comparison(inputs: Operands) -> Resources:
    """The sign of a difference: a carry chain."""
    return Resources(lut=_chain(_difference(inputs)))


def equality(inputs: Operands) -> int:
    """A table for two bits of each operand, and a tree of those."""
    tables = ceil(_widest(inputs) / 2)
    return tables + ceil((tables - 1) / 3)


def negation(width: int) -> Resources:
    """The complement, if need be, and one more."""
    return Resources(lut=width + _chain(width))


def shift(inputs: Operands, output: IntType, left: bool, bits: int) -> Resources:
    """A register for each bit of the distance, the rest of which is kept along."""
    x, distance = inputs
    width = output.bits if left or x is None else x.bits
    if distance is None:
        return Resources(ff=width)
    levels = min(bits.bit_length() - 1, distance.bits - distance.signed)
    above = distance.bits - levels
    total = Resources(lut=(width + ceil(above / 3) if above else 0), ff=width + levels)
    for level in range(levels):
        total += Resources(lut=width, ff=width if level < levels - 1 else output.bits)
        total += Resources(ff=max(0, levels - level - 1))
    return total


def divider(inputs: Operands, output: IntType, form: str) -> Resources:
    """Magnitudes, a subtraction and a choice for each bit of the dividend, the sign."""
    a, b = (element or IntType(1, False) for element in inputs)
    constant = inputs[1] is None
    signed = a.signed or (b.signed and form != "remainder")
    signs = (int(a.signed) + int(b.signed and form != "remainder")) if signed else 0
    total = Resources(lut=ceil(b.bits / 3), ff=a.bits + b.bits + 1 + signs)
    for element in (a, b):
        if element.signed:
            total += negation(element.bits)
    for stage in range(a.bits):
        last, rest = stage == a.bits - 1, min(stage + 1, b.bits)
        kept = a.bits if form == "quotient" else a.bits - 1 - stage
        total += Resources(lut=_chain(max(b.bits, rest) + 1))
        if not last or form != "quotient":
            total += Resources(lut=rest, ff=rest)
        total += Resources(ff=kept + signs)
        if not last:
            total += Resources(ff=1 + (0 if constant else b.bits))
    if signed:
        total += negation(output.bits) + Resources(ff=output.bits)
        if form == "modulus":
            total += Resources(lut=_chain(b.bits) + b.bits + ceil(b.bits / 3), ff=4 * b.bits + 3)
    return total


def _widest(inputs: Operands) -> int:
    return max(element.bits for element in inputs if element is not None)


def _difference(inputs: Operands) -> int:
    """Bits of the difference of two operands."""
    signed = any(element.signed for element in inputs if element is not None)
    return 1 + max(element.bits + (signed and not element.signed) for element in inputs if element is not None)


def _chain(width: int) -> int:
    """A carry chain; a cell takes two bits."""
    return 2 * ceil(width / 2)
