"""Channel blocks, loop counters and delayed control, shared by cores with a static schedule."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, ValueLike

Turns = tuple[int, int]  # rounds with constants of their own, and how often those of one are used
ONE_TURN: Turns = (1, 1)


def block_count(channels: int, lanes: int) -> int:
    """Return the beats per pixel: ``ceil(channels / lanes)``.

    Raises ValueError unless both are at least 1.
    """
    if channels < 1:
        raise ValueError(f"channels must be at least 1, not {channels}")
    if lanes < 1:
        raise ValueError(f"lanes must be at least 1, not {lanes}")
    return -(-channels // lanes)


def less(left: ValueLike, right: ValueLike) -> Value:
    """Return ``left < right``, as the sign of the difference: a single carry chain, where a signed comparison takes
    two."""
    return (left - right).as_signed()[-1]


def stepped(value: Signal, jump: Value, to: ValueLike, step: ValueLike = 1) -> Value:
    """Return ``value + step`` (of 1 bit; the carry is dropped) or, with ``jump`` (1 bit), ``to``.

    With ``jump`` all ones are added to the sum, although it is not used then: so the multiplexer behind it finds
    ``jump`` at an input that the adder has already, and one look-up table of an iCE40 takes both. Elsewhere it costs
    nothing.
    """
    ones = Cat(step, jump.replicate(len(value)))  # the step as the carry into the lowest bit
    return Mux(jump, to, (Cat(1, value) + ones)[1 : len(value) + 1])


def loop(m: Module, name: str, count: int, advance: Value, *, start: int = 0) -> Value:
    """Build a loop of ``count`` rounds that advances in every cycle with ``advance``; return "this is the last round".

    The result is a register (a constant for one round), so that nested loops cost one AND each. ``start``: the round
    after reset, below ``count``.
    """
    if count == 1:
        return Const(1)
    left = Signal(range(count), name=f"{name}_left", init=count - 1 - start)
    last = Signal(name=f"{name}_last", init=start == count - 1)
    with m.If(advance):
        with m.If(last):
            m.d.sync += [left.eq(count - 1), last.eq(0)]
        with m.Else():
            m.d.sync += [left.eq(left - 1), last.eq(left == 1)]
    return last


def count_up(m: Module, name: str, count: int, advance: Value, *, start: int = 0) -> Signal:
    """Return a register that counts 0 to ``count - 1`` repeatedly, one up in every cycle with ``advance``. ``start``:
    the value after reset."""
    value = Signal(range(max(count, 2)), name=name, init=start)
    if count & (count - 1):
        wrap = Signal(name=f"{name}_wrap", init=start == count - 1)  # the value is the greatest one
        with m.If(advance):
            m.d.sync += [value.eq(value + 1), wrap.eq(value == count - 2)]
            with m.If(wrap):
                m.d.sync += value.eq(0)
    elif count > 1:
        with m.If(advance):
            m.d.sync += value.eq(value + 1)
    return value


SMALL_COUNT = 4
"""Numbers that are counted without a carry chain."""


def count_behind(m: Module, name: str, count: int, advance: Value) -> Signal:
    """Return what :func:`count_up` does, in a register behind a counter that is one step ahead.

    The address of a table in look-up tables: of a counter that is the address, synthesis takes the sum for a part of
    the table's functions, which has to come through the carry chain first.
    """
    if count <= SMALL_COUNT:
        return count_up(m, name, count, advance)
    value = Signal(range(count), name=name)
    following = count_up(m, f"{name}_following", count, advance, start=1)
    with m.If(advance):
        m.d.sync += value.eq(following)
    return value


def count_in_turns(m: Module, name: str, words: int, turns: Turns, advance: Value) -> Signal:
    """Return a register that counts through ``words`` numbers as often as ``turns`` say, then through the next ones,
    and after the last round's from 0 again; one step in every cycle with ``advance``.

    The address of a table with the words of each round.
    """
    groups, times = turns
    if groups == 1:
        return count_up(m, name, words, advance)
    if words == 1:
        return count_up(m, name, groups, advance & loop(m, f"{name}_turn", times, advance))
    value = Signal(range(words * groups), name=name)
    begin = Signal.like(value, name=f"{name}_begin")
    word_last = loop(m, f"{name}_word", words, advance)
    turn_last = loop(m, f"{name}_turn", times, advance & word_last)
    all_last = loop(m, f"{name}_group", groups, advance & word_last & turn_last)
    after = Signal.like(value, name=f"{name}_after")
    m.d.comb += after.eq(value + 1)
    with m.If(advance):
        m.d.sync += value.eq(after)
        with m.If(word_last):
            with m.If(~turn_last):
                m.d.sync += value.eq(begin)
            with m.Elif(all_last):
                m.d.sync += [value.eq(0), begin.eq(0)]
            with m.Else():
                m.d.sync += begin.eq(after)
    return value


def held(m: Module, name: str, value: Value, shape: Shape | None = None) -> Value:
    """Return ``value`` one cycle later, in a register called ``name`` without reset; a constant is returned as it is.
    """
    if isinstance(value, Const):
        return value
    register = Signal(value.shape() if shape is None else shape, name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


def delayed(m: Module, name: str, value: Value, cycles: int, *, reset: bool = True) -> Value:
    """Return ``value`` delayed by ``cycles``; 0 in the cycles after reset, or unspecified without ``reset`` and for a
    signal without a reset.

    A single shift register, called ``<name>_delayed``, with the latest value in its low bits.
    """
    if cycles == 0:
        return value
    reset_less = not reset or (isinstance(value, Signal) and value.reset_less)
    line = Signal(len(value) * cycles, name=f"{name}_delayed", reset_less=reset_less)
    m.d.sync += line.eq(Cat(value, line))
    result = line[-len(value) :]
    return result.as_signed() if value.shape().signed else result
