"""Multiplication by constants as sums of shifted inputs: canonical signed digits, and the tree that adds them.

A constant in canonical signed digit form has the fewest nonzero digits, no two of them adjacent (Reitwiesner, "Binary
arithmetic", Advances in Computers 1, 1960). Each is an input shifted and added or subtracted.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal, Value

from hdl_lib.arithmetic.adder_tree import shape_of


def signed_digits(constant: int) -> list[tuple[int, bool]]:
    """Return (bit, is subtracted) for each nonzero digit, least bit first."""
    digits, bit = [], 0
    while constant:
        if constant & 1:
            negative = constant & 3 == 3
            digits.append((bit, negative))
            constant += 1 if negative else -1
        constant >>= 1
        bit += 1
    return digits


@dataclass(frozen=True)
class Summand:
    """``value << shift``, subtracted if ``negative``; ``value`` is within ``low .. high`` and exact in its lower bits.

    In a planned sum (:func:`planned`) ``value`` is None and ``key`` identifies it: synthesis merges equal ones.
    """

    value: Value | None
    low: int
    high: int
    shift: int = 0
    negative: bool = False
    key: Hashable = None


@dataclass(frozen=True)
class Register:
    """A register of a tree: its bits, how many of them come from an adder (0: a copy), and bits of the subtrahend."""

    width: int
    added: int
    subtracted: int = 0


def sum_of(p: Summand, q: Summand) -> tuple[Summand, int]:
    """Return the sum of two summands and the bits of its adder: low bits of the less shifted one bypass it unless that
    is subtracted. Two subtracted summands give a subtracted one."""
    if p.negative == q.negative:
        if p.shift > q.shift:
            p, q = q, p
    elif p.negative:
        p, q = q, p
    subtract = p.negative != q.negative
    shift, distance = min(p.shift, q.shift), q.shift - p.shift
    up, down = max(0, distance), max(0, -distance)  # bits that q, that p stands above the other
    p_low, p_high, q_low, q_high = p.low << down, p.high << down, q.low << up, q.high << up
    low, high = (p_low - q_high, p_high - q_low) if subtract else (p_low + q_low, p_high + q_high)
    value = None
    if p.value is not None and q.value is not None:
        upper = p.value.shift_right(up) if up else p.value.shift_left(down)
        upper = upper - q.value if subtract else upper + q.value
        value = upper
        if up:
            value = Cat(_extended(p.value, up)[:up], upper)
            value = value.as_signed() if upper.shape().signed else value
    key = (p.key, q.key, distance, subtract)
    return Summand(value, low, high, shift, p.negative and not subtract, key), shape_of(low, high).width - up


def _extended(value: Value, width: int) -> Value:
    """Extend ``value`` to at least ``width`` bits."""
    missing = width - len(value)
    if missing <= 0:
        return value
    return Cat(value, value[-1].replicate(missing) if value.shape().signed else Const(0, missing))


def signed_sum(m: Module, name: str, summands: Sequence[Summand], levels: int, width: int) -> Value:
    """Return the sum modulo ``2**width``, ``levels`` cycles later: a tree with a register behind every adder, in which
    summands without a partner are passed on. ``levels`` is at least :func:`tree_levels` of the summands, and 1."""
    parts = list(summands)
    for level in range(levels):
        sums = []
        for index, (part, _) in enumerate(_level(parts, level + 1 == levels)):
            limit = max(1, width - part.shift)
            register = Signal(
                shape_of(part.low, part.high, limit), name=f"{name}_{level}_{index}", reset_less=True
            )
            m.d.sync += register.eq(part.value)
            sums.append(Summand(register, part.low, part.high, part.shift, part.negative))
        parts = sums
    (total,) = parts
    assert total.value is not None and not total.negative, "the last level leaves a sum that is added"
    return total.value.shift_left(total.shift)


def planned(summands: Sequence[Summand], levels: int, width: int) -> list[Register]:
    """Return the registers of :func:`signed_sum` for summands of these intervals, shifts and signs."""
    registers, parts = [], list(summands)
    for level in range(levels):
        made = _level(parts, level + 1 == levels)
        subtracted = {part.key: _subtracted(parts[2 * k : 2 * k + 2], part) for k, (part, _) in enumerate(made)}
        for part, added in {part.key: (part, added) for part, added in made}.values():
            bits = min(shape_of(part.low, part.high).width, max(1, width - part.shift))
            registers.append(Register(bits, min(added, bits), min(subtracted[part.key], bits)))
        parts = [part for part, _ in made]
    return registers


def _subtracted(pair: Sequence[Summand], total: Summand) -> int:
    """Return the bits of the subtrahend for ``total``, the sum of a pair or, at the end, its negative."""
    negative = [part for part in pair if part.negative]
    if len(negative) < len(pair):
        return sum(shape_of(part.low, part.high).width for part in negative)
    return 0 if total.negative else shape_of(total.low, total.high).width


def _level(parts: Sequence[Summand], last: bool) -> list[tuple[Summand, int]]:
    """Return the sums of a level with their adders' bits; the last level leaves nothing subtracted."""
    made = []
    for index in range(0, len(parts), 2):
        pair = parts[index : index + 2]
        part, added = sum_of(*pair) if len(pair) == 2 else (pair[0], 0)
        if last and part.negative:
            value = None if part.value is None else -part.value
            part = Summand(value, -part.high, -part.low, part.shift, key=(part.key, "negated"))
            added = shape_of(part.low, part.high).width
        made.append((part, added))
    return made
