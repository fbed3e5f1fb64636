"""Sums with a pending carry into their lowest bit, and adders that take such carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal, Value

from hdl_lib.arithmetic.adder_tree import Term, registered


@dataclass(frozen=True)
class Carried:
    """A sum with a pending carry: the exact sum is ``term`` plus ``carry``, a bit."""

    term: Term
    carry: Value

    def settled(self, m: Module, name: str, limit: int) -> Term:
        """Return the sum with its carry modulo ``2**limit``, one cycle later, in a register called ``name``."""
        whole = Value.cast(self.term.value) + self.carry
        return registered(m, name, Term(whole, self.term.low, self.term.high), limit)


def carried_sum(a: Value, b: Value, carry: Value) -> Value:
    """Return ``a + b + carry`` in one adder: an extra lowest bit makes the carry."""
    one, other = (Cat(bit, value) for bit, value in ((Const(1, 1), a), (carry, b)))
    total = (one.as_signed() if a.shape().signed else one) + (other.as_signed() if b.shape().signed else other)
    return total.shift_right(1)


def carried_tree(m: Module, name: str, terms: Sequence[Carried], limit: int) -> Carried:
    """Add sums with pending carries as :func:`hdl_lib.arithmetic.adder_tree.adder_tree` does: each adder takes one of
    the two carries and passes the other on. Registers are called ``sum<name>_<level>_<index>`` and
    ``carry<name>_<level>_<index>``.

    The intervals of ``terms`` exclude the carry.
    """
    level = 0
    while len(terms) > 1:
        sums = []
        for index in range(0, len(terms), 2):
            pair = terms[index : index + 2]
            value, carry = Value.cast(pair[0].term.value), pair[0].carry
            low, high = pair[0].term.low, pair[0].term.high
            if len(pair) == 2:
                value = carried_sum(value, Value.cast(pair[1].term.value), carry)
                low, high, carry = low + pair[1].term.low + 1, high + pair[1].term.high, pair[1].carry
            place = f"{name}_{level}_{index // 2}"
            kept = Signal(name=f"carry{place}", reset_less=True)
            m.d.sync += kept.eq(carry)
            sums.append(Carried(registered(m, f"sum{place}", Term(value, low, high), limit), kept))
        terms = sums
        level += 1
    return terms[0]
