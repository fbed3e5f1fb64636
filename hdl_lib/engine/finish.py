"""What becomes of sums: one by one through a requantizer, a second stage that adds another element, and a table."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value, signed

from hdl_lib.arithmetic.adder_tree import Term, registered
from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.blocks import delayed, less
from hdl_lib.engine.engine_program import BYTE, LOOKED_UP, Program
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.requantizers.shift_and_clamp import quotient

RESULT = signed(BYTE + 1)
"""Of a result: signed or unsigned, of 8 bits."""


def first_stage(
    m: Module, name: str, program: Program, now: Mapping[str, Value], total: Value, multiplier: Value, addend: Value
) -> Value:
    """Return the result of a sum, :attr:`Program.first_stage` cycles later."""
    product = program.forms.scaling
    operand = product.operand(m, f"scaled{name}", total)
    scaled = product.product(m, f"scaled{name}", operand, multiplier)
    later = delayed(m, f"addend{name}", addend, product.operand_latency + product.latency, reset=False)
    low, high = interval(addend.shape())
    whole = registered(m, f"shifted{name}", Term(scaled.value + later, scaled.low + low, scaled.high + high))
    shifted = quotient(m, f"of{name}", whole, program.forms.shift, program.forms.rounding)
    return _limited(m, f"result{name}", Value.cast(shifted.value), now["low"], now["high"])


def second_stage(
    m: Module, name: str, program: Program, now: Mapping[str, Value], own: Value, other: Value
) -> Value:
    """Return the result of the second stage, or of the first alone where a layer has no other,
    :attr:`Program.second_stage` cycles after both elements."""
    product = program.forms.weighing
    factors = []
    for factor in ("factor_own", "factor_other"):
        factors.append(Signal(signed(program.forms.factor_bits), name=f"weight_{factor}{name}"))
        m.d.comb += factors[-1].eq(now[factor])
    parts = [
        product.product(m, f"weighed_{place}{name}", product.operand(m, f"weighed_{place}{name}", x), factor)
        for place, (x, factor) in enumerate(zip((own, other), factors, strict=True))
    ]
    sums = Term(parts[0].value + parts[1].value, 2 * parts[0].low, 2 * parts[0].high)
    both = registered(m, f"both{name}", sums)
    low, high = interval(signed(program.forms.added_bits))
    whole = registered(m, f"both_shifted{name}", Term(both.value + now["addend"], both.low + low, both.high + high))
    shifted = quotient(m, f"of_both{name}", whole, program.forms.added_shift, program.forms.added_rounding)
    result = _limited(m, f"added{name}", Value.cast(shifted.value), now["added_low"], now["added_high"])
    alone = delayed(m, f"alone{name}", own, program.second_stage, reset=False)
    return Mux(now["added"], result, alone)


def looked_up(m: Module, name: str, program: Program, now: Mapping[str, Value], result: Value) -> Value:
    """Return what a layer's table has for a result, or the result where it has none, ``LOOKED_UP`` cycles later."""
    words = [byte for table in program.tables for byte in table]
    m.submodules[f"table{name}"] = rom = Rom.of_table(Table.of_words(words, BYTE), output_register=True)
    m.d.comb += rom.addr.eq(Cat(result[:BYTE], now["table"]))
    alone = delayed(m, f"not_looked_up{name}", result[:BYTE], LOOKED_UP, reset=False)
    return Mux(now["looks_up"], rom.data, alone)


def _limited(m: Module, name: str, value: Value, low: Value, high: Value) -> Value:
    """Return ``value`` within limits that are results, two cycles later."""
    shape = Shape(max(len(value), BYTE + 2), True)
    wide = Signal(shape, name=f"{name}_wide")
    m.d.comb += wide.eq(value)
    kept = Signal(RESULT, name=f"{name}_kept", reset_less=True)
    below, above = (Signal(name=f"{name}_{side}", reset_less=True) for side in ("below", "above"))
    limited = Signal(RESULT, name=name, reset_less=True)
    m.d.sync += [
        kept.eq(wide), below.eq(less(wide, low)), above.eq(less(high, wide)),
        limited.eq(Mux(below, low, Mux(above, high, kept))),
    ]
    return limited


def elements(word: Value, lanes: int, is_signed: Value) -> list[Value]:
    """Return the elements of a word, with a sign where they have one."""
    return [
        Cat(part, part[-1] & is_signed).as_signed() for part in (word.word_select(lane, BYTE) for lane in range(lanes))
    ]
