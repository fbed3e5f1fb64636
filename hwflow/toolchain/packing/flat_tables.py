"""ECP5: look-up tables that read their functions' sources directly.

Synthesis makes a look-up table of others where that costs nothing by its own estimate of wires: a column of a table of
11 words, a function of four address bits, comes behind two other columns from across the device (jet6: 122 MHz, three
tables and 7 ns of wires). A function of at most four sources is one table of these, whatever it was made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import NamedTuple

from hwflow.toolchain.packing.netlist import Bit, Netlist

TABLE = "LUT4"
PINS = "ABCD"


class _Function(NamedTuple):
    """A function of at most four nets: bit number ``sum(value of sources[k] << k)`` of ``bits`` is its value."""

    sources: tuple[Bit, ...]
    bits: int

    def at(self, values: dict[Bit, int]) -> int:
        """Return its value for those of its sources."""
        return self.bits >> sum(values[source] << place for place, source in enumerate(self.sources)) & 1


def flatten_tables(netlist: Netlist) -> int:
    """Let every look-up table that is a function of at most four nets farther back read these; return how many do."""
    known: dict[str, _Function] = {}
    changed = 0
    for name in _behind_sources(netlist):
        found = own = _function(netlist, name)
        while (wider := _expanded(netlist, found, known)) is not None:
            found = wider
        known[name] = found
        if found.sources != own.sources:
            _set(netlist, name, found)
            changed += 1
    for name in reversed(list(known)):
        if not netlist.readers(netlist.bit(name, "Z")):
            netlist.remove(name)
    return changed


def _behind_sources(netlist: Netlist) -> list[str]:
    """Return the look-up tables, each behind those that it reads."""
    order: dict[str, None] = {}
    for first in netlist.cells(TABLE):
        waiting = [first]
        while waiting:
            name = waiting[-1]
            before = [other for bit in netlist.inputs(name) if (other := _maker(netlist, bit)) and other not in order]
            if not before or len(waiting) > MOST_LEVELS:
                order[waiting.pop()] = None
            else:
                waiting.append(before[0])
    return list(order)


MOST_LEVELS = 1000  # of tables one behind the other: more are a loop


def _maker(netlist: Netlist, bit: Bit) -> str | None:
    """Return the look-up table that makes a net."""
    pin = netlist.driver(bit)
    return pin[0] if pin is not None and netlist.kind(pin[0]) == TABLE and pin[1] == "Z" else None


def _function(netlist: Netlist, name: str) -> _Function:
    """Return a table's function of its nets; constants and inputs that make no difference are no sources."""
    table = int(str(netlist.parameters(name)["INIT"]), 2)
    pins = [netlist.bit(name, pin, "1") for pin in PINS]
    sources = tuple(dict.fromkeys(bit for bit in pins if isinstance(bit, int)))
    constants: dict[Bit, int] = {"1": 1, "0": 0, "x": 0, "z": 0}
    bits = 0
    for number in range(1 << len(sources)):
        values = constants | {source: number >> place & 1 for place, source in enumerate(sources)}
        bits |= (table >> sum(values[pin] << place for place, pin in enumerate(pins)) & 1) << number
    return _without_idle(_Function(sources, bits))


def _without_idle(function: _Function) -> _Function:
    """Leave out the sources that make no difference."""
    for source in function.sources:
        others = tuple(other for other in function.sources if other != source)
        halves = [_over(others, function, {source: value}) for value in (0, 1)]
        if halves[0] == halves[1]:
            return _without_idle(_Function(others, halves[0]))
    return function


def _over(sources: Sequence[Bit], function: _Function, fixed: dict[Bit, int]) -> int:
    """Return the table of a function over ``sources``, with its others ``fixed``."""
    bits = 0
    for number in range(1 << len(sources)):
        values = fixed | {source: number >> place & 1 for place, source in enumerate(sources)}
        bits |= function.at(values) << number
    return bits


def _expanded(netlist: Netlist, function: _Function, known: dict[str, _Function]) -> _Function | None:
    """Return a function with as many sources as there is room for replaced by what they are made of; None if there is
    room for none. Several together may need fewer nets than one of them."""
    made = {bit: inner for bit in function.sources if (inner := known.get(_maker(netlist, bit) or ""))}
    for count in range(len(made), 0, -1):
        for chosen in combinations(made, count):
            nets = (made[bit].sources if bit in chosen else (bit,) for bit in function.sources)
            sources = tuple(dict.fromkeys(chain.from_iterable(nets)))
            if len(sources) <= len(PINS) and not set(chosen) & set(sources):
                bits = 0
                for number in range(1 << len(sources)):
                    values: dict[Bit, int] = {bit: number >> place & 1 for place, bit in enumerate(sources)}
                    values |= {bit: made[bit].at(values) for bit in chosen}
                    bits |= function.at(values) << number
                return _without_idle(_Function(sources, bits))
    return None


def _set(netlist: Netlist, name: str, function: _Function) -> None:
    """Make the look-up table of a function; inputs without a source are 1."""
    pins: list[Bit] = [*function.sources, *["1"] * (len(PINS) - len(function.sources))]
    table = 0
    for number in range(1 << len(PINS)):
        table |= (function.bits >> (number & (1 << len(function.sources)) - 1) & 1) << number
    netlist.parameters(name)["INIT"] = f"{table:016b}"
    for pin, bit in zip(PINS, pins, strict=True):
        netlist.connect(name, pin, [bit], "input")
