"""Running sums with nothing but an adder between registers."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Module, Shape, Signal, Value

from .adder_tree import Term
from .carried_sum import carried_sum

GROUP = 8  # sums that share the registers of their control signals


def accumulators(
    m: Module, sums: Sequence[tuple[Term, Value | None]], shape: Shape, update: Value, last: Value
) -> list[Term]:
    """Modulo the width of ``shape``, the sum of the terms of all cycles with ``update`` up to one with ``last`` as
    well.

    A term may have a bit that is still to be added to it. ``update`` and ``last`` belong to the terms of the *next*
    cycle, so that each group of sums gets a register of its own of them. The results are there in the cycle after the
    last term, for that cycle.

    What is carried on is zero again behind the last term of a sum, and the sum goes to another register: a multiplexer
    in front of the adder would be in its path. ``last`` must never come without ``update``: then the zero is the
    flip-flops' reset, which takes no tables.
    """
    results = []
    group_update = group_last = Signal()
    for index, (term, carry) in enumerate(sums):
        if index % GROUP == 0:
            # Synthesis must not merge these registers: one for all would have to reach everywhere.
            group_update, group_last = (
                Signal(name=f"{name}_of_{index}", attrs={"keep": 1}) for name in ("update", "last")
            )
            m.d.sync += [group_update.eq(update), group_last.eq(last)]
        carried = Signal(shape, name=f"accumulator{index}")
        result = Signal(shape, name=f"result{index}", reset_less=True)
        total = Signal(shape, name=f"total{index}")
        value = Value.cast(term.value)
        m.d.comb += total.eq(carried + value if carry is None else carried_sum(carried, value, carry))
        m.d.sync += result.eq(total)
        with m.If(group_last):
            m.d.sync += carried.eq(0)
        with m.Elif(group_update):
            m.d.sync += carried.eq(total)
        results.append(Term(result, 0, 0))
    return results
