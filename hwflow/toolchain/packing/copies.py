"""Duplicate flip-flops and look-up tables with a high fan-out, so that each copy stands among its readers.

A net of thousands of readers crosses the device, which takes most of a cycle (an LFE5U-85F: 5 to 7 ns). Synthesis
merges all equal registers, whatever the design asked for, so they are duplicated after it. A copy reads what the
original reads, under the same parameters, and so is equal to it in every cycle.

Readers are grouped by core, then by name: related cells have a common prefix. Blocks, which lie far apart, count as
many readers; so do registers with copies that take it as data, each of which stands among its own readers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from hwflow.toolchain.packing.netlist import PORT, Netlist, Pin

READERS = 48
"""Readers of a copy, at most. This adds 345 cells to MobileNet's netlist of 36,000 flip-flops on an LFE5U-85F."""

BLOCKS = 4
"""Multiplier blocks among the readers of a copy, at most. An LFE5U-85F has its 156 in rows across the device: a layer
that uses them all sends every input to each row of the matrix, from one end of the device to the other."""


COPIES = 8
"""Copies that take their data from a copy, at most: of a reset's last register there is one for each few cores, and
what these read has to come from the one to the other end of the device, unless it is copied as well."""

_DATA = frozenset({"D", "DI"})
"""Data inputs of flip-flops. What enables or resets copies is not divided for their sake: registers that enable each
other would get copies for each other's copies without an end."""


def copy_outputs(
    netlist: Netlist, outputs: dict[str, str], apart: frozenset[str], blocks: Collection[str] = (),
    readers: int = READERS,
) -> int:
    """Duplicate each cell of the types ``outputs`` (with its output pin) until none has more than ``readers`` readers;
    return the number of copies. A cell of the types ``blocks`` counts as a :data:`BLOCKS`-th of ``readers``, however
    many of its pins read, and the data input of a register with copies as a :data:`COPIES`-th; any other pin counts as
    one.

    ``apart``: pins not to divide (clocks): a net with one of them is left alone. Copies add readers to the original's
    inputs, whose drivers may need copies then. A driver that has been divided has room for so many that a copy causes
    less than another copy, so that this terminates; at the latest with about as many copies as there were cells.
    """
    copies = 0
    copied: set[str] = set()
    waiting = list(netlist.cells(*outputs))
    most = len(waiting) + readers
    while waiting and copies < most:
        name = waiting.pop()
        output = outputs[netlist.kind(name)]
        pins = netlist.readers(netlist.bit(name, output))
        if any(port in apart for _, port in pins):
            continue
        found = list(_readers(netlist, pins, blocks, copied, readers))
        if sum(reader.load for reader in found) <= readers:
            continue
        made = _divide(netlist, name, output, _groups(found, readers))
        if not made:  # its other readers are ports of the module
            continue
        copies += len(made)
        if any(netlist.bits(name, port) for port in apart):
            copied |= {name, *made}
        drivers = dict.fromkeys(pin[0] for bit in netlist.inputs(name) if (pin := netlist.driver(bit)) is not None)
        waiting.extend(driver for driver in drivers if netlist.kind(driver) in outputs)
    return copies


class _Reader(NamedTuple):
    """Pins that stay together, and their weight in readers."""

    pins: tuple[Pin, ...]
    load: int


def _readers(
    netlist: Netlist, pins: Sequence[Pin], blocks: Collection[str], copied: Collection[str], readers: int
) -> Iterator[_Reader]:
    for cell, members in groupby(sorted(pins), key=lambda pin: pin[0]):
        if cell != PORT and netlist.kind(cell) in blocks:
            yield _Reader(tuple(members), -(-readers // BLOCKS))
        else:
            for pin in members:
                yield _Reader((pin,), -(-readers // COPIES) if cell in copied and pin[1] in _DATA else 1)


def _divide(netlist: Netlist, name: str, output: str, groups: Sequence[Sequence[_Reader]]) -> list[str]:
    """Give each of ``groups`` a copy, except the smallest, which stays with the original; return the copies. Copies of
    its readers will read the original, too: so it has room for half of what it may have, at least."""
    driven, made = netlist.bit(name, output), []
    stays = min(range(len(groups)), key=lambda place: _load(groups[place]))
    for group in (*groups[:stays], *groups[stays + 1 :]):
        pins = [pin for reader in group for pin in reader.pins]
        copy = netlist.copy(name, output, _core(pins[0]))
        for pin in pins:
            netlist.connect(*pin, [copy if bit == driven else bit for bit in netlist.bits(*pin)])
        driver = netlist.driver(copy)
        assert driver is not None, "the copy"
        made.append(driver[0])
    return made


def _groups(found: Sequence[_Reader], readers: int) -> list[list[_Reader]]:
    """Group readers by copy, with a load of at most ``readers``: neighbours, or an even share of a core's."""
    movable = sorted((r for r in found if r.pins[0][0] != PORT), key=lambda r: (_core(r.pins[0]), r.pins))
    result: list[list[_Reader]] = [[]]
    for _, group in groupby(movable, key=lambda reader: _core(reader.pins[0])):
        for some in _even_parts(list(group), readers):
            if result[-1] and _load([*result[-1], *some]) > readers:
                result.append([])
            result[-1] += some
    return result


def _even_parts(members: Sequence[_Reader], readers: int) -> list[list[_Reader]]:
    """Split in order, so that no part's load exceeds an even share of the fewest possible copies. Loads are not
    divided, so there may be more parts than that."""
    load = _load(members)
    share = load / -(-load // readers)
    parts: list[list[_Reader]] = [[]]
    for reader in members:
        if parts[-1] and _load([*parts[-1], reader]) > share:
            parts.append([])
        parts[-1].append(reader)
    return parts


def _load(members: Sequence[_Reader]) -> int:
    return sum(reader.load for reader in members)


def _core(pin: Pin) -> str:
    """Return the design's instance that a cell is in, with a trailing dot; "" outside the design."""
    path = pin[0].split(".")
    return ".".join(path[:2]) + "." if len(path) > 2 else ""
