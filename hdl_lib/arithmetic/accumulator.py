"""Accumulators with nothing but an adder between registers."""

from __future__ import annotations

from collections.abc import Iterator

from amaranth.hdl import Module, Shape, Signal, Value

from hdl_lib.arithmetic.adder_tree import Term
from hdl_lib.arithmetic.carried_sum import carried_sum

GROUP = 8  # sums that share the registers of their control signals


def controls(m: Module, count: int, update: Value, last: Value) -> Iterator[tuple[Signal, Signal]]:
    """Yield ``update`` and ``last`` one cycle later for each of ``count`` accumulators, from separate registers for
    each :data:`GROUP` of them. The arguments belong to the terms of the *next* cycle. A reset is a last one, too: no
    other one has to reach the accumulators, which are all over the part."""
    group_update = group_last = Signal()
    for index in range(count):
        if index % GROUP == 0:
            # Synthesis must not merge these registers: one for all would have to reach everywhere.
            group_update, group_last = (
                Signal(name=f"{name}_of_{index}", init=init, attrs={"keep": 1})
                for name, init in (("update", 0), ("last", 1))
            )
            m.d.sync += [group_update.eq(update), group_last.eq(last)]
        yield group_update, group_last


def accumulator(
    m: Module, name: str, term: Term, carry: Value | None, shape: Shape, update: Value, last: Value
) -> Term:
    """Accumulate modulo the width of ``shape``: sum the terms of all cycles with ``update``, up to and including one
    with ``last``.

    ``carry`` is a pending carry of the term. The result is available in the cycle after the last term, for that cycle,
    in a register called ``result<name>``.

    After the last term the accumulator is cleared, and the sum goes to another register: a multiplexer in front of the
    adder would lengthen its path. ``last`` must never come without ``update``, so that clearing is the flip-flops'
    reset, which takes no look-up tables.
    """
    carried = Signal(shape, name=f"accumulator{name}", reset_less=True)
    result = Signal(shape, name=f"result{name}", reset_less=True)
    total = Signal(shape, name=f"total{name}")
    value = Value.cast(term.value)
    m.d.comb += total.eq(carried + value if carry is None else carried_sum(carried, value, carry))
    m.d.sync += result.eq(total)
    with m.If(last):
        m.d.sync += carried.eq(0)
    with m.Elif(update):
        m.d.sync += carried.eq(total)
    return Term(result, 0, 0)
