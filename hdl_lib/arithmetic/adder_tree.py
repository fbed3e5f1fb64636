"""Adder trees with a register after every adder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Module, Shape, Signal, ValueLike
from amaranth.utils import ceil_log2


@dataclass(frozen=True)
class Term:
    """A hardware value and an interval ``low .. high`` that contains it."""

    value: ValueLike
    low: int
    high: int


def shape_of(low: int, high: int, limit: int | None = None) -> Shape:
    """Return the narrowest shape that holds ``low .. high``, limited to ``limit`` bits (sums modulo ``2**limit``)."""
    if low < 0:
        shape = Shape(max((~low).bit_length(), (high if high >= 0 else ~high).bit_length()) + 1, signed=True)
    else:
        shape = Shape(high.bit_length())
    return shape if limit is None or shape.width <= limit else Shape(limit, shape.signed)


def registered(m: Module, name: str, term: Term, limit: int | None = None, *, keep: bool = False) -> Term:
    """Return ``term`` one cycle later, in a register called ``name`` without reset, as it carries data only.

    ``keep``: synthesis must not move the register.
    """
    attributes = {"keep": 1} if keep else {}
    register = Signal(shape_of(term.low, term.high, limit), name=name, reset_less=True, attrs=attributes)
    m.d.sync += register.eq(term.value)
    return Term(register, term.low, term.high)


def tree_levels(terms: int) -> int:
    """Return the register levels of :func:`adder_tree` over ``terms``, its latency in cycles."""
    return ceil_log2(terms)


def adder_tree(m: Module, name: str, terms: Sequence[Term], limit: int | None = None) -> Term:
    """Return the sum of ``terms`` after ``tree_levels(len(terms))`` cycles, one sum per cycle.

    Exact, or with ``limit`` modulo ``2**limit``. Registers are called ``<name>_<level>_<index>``.
    """
    level = 0
    while len(terms) > 1:
        sums = []
        for index in range(0, len(terms), 2):
            pair = terms[index : index + 2]
            total = pair[0].value if len(pair) == 1 else pair[0].value + pair[1].value
            low, high = sum(term.low for term in pair), sum(term.high for term in pair)
            sums.append(registered(m, f"{name}_{level}_{index // 2}", Term(total, low, high), limit))
        terms = sums
        level += 1
    return terms[0]
