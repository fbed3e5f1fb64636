"""Copies of flip-flops and look-up tables that very many pins read, so that each copy stands among its readers.

A net of thousands of readers crosses the device, which takes most of a cycle (an LFE5U-85F: 5 to 7 ns). Synthesis makes
one register of all that are equal, whatever the design asked for, so that such registers are copied behind it. A copy
reads what the original reads, under the same parameters, and so is equal to it in every cycle.

Readers go together by the core that they stand in, then by name: what belongs together has names that begin alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from hwflow.toolchain.packing.netlist import PORT, Netlist, Pin

READERS = 48
"""What a copy has at most. On an LFE5U-85F MobileNet's netlist of 36,000 flip-flops has 345 cells more by that."""


def copy_outputs(netlist: Netlist, outputs: dict[str, str], apart: frozenset[str], readers: int = READERS) -> int:
    """Copy each cell of the types ``outputs`` (with the pin that it drives) whose output more than ``readers`` pins
    read, so that none does; the number of copies.

    ``apart``: pins that are no readers to divide (clocks): a net with one of them is left alone. A copy reads what the
    original reads, whose drivers may want copies then; there are at most two copies for each ``readers`` of them, so
    that this ends.
    """
    copies = 0
    waiting = list(netlist.cells(*outputs))
    while waiting:
        name = waiting.pop()
        made = _divide(netlist, name, outputs[netlist.kind(name)], apart, readers)
        copies += made
        if made:
            drivers = dict.fromkeys(pin[0] for bit in netlist.inputs(name) if (pin := netlist.driver(bit)) is not None)
            waiting.extend(driver for driver in drivers if netlist.kind(driver) in outputs)
    return copies


def _divide(netlist: Netlist, name: str, output: str, apart: frozenset[str], readers: int) -> int:
    driven = netlist.bit(name, output)
    pins = netlist.readers(driven)
    if len(pins) <= readers or any(port in apart for _, port in pins):
        return 0
    groups = _groups([pin for pin in pins if pin[0] != PORT], readers)
    for group in groups[1:]:  # the first one stays with the original
        copy = netlist.copy(name, output, _core(group[0]))
        for reader in group:
            netlist.connect(*reader, [copy if bit == driven else bit for bit in netlist.bits(*reader)])
    return len(groups) - 1


def _groups(pins: Sequence[Pin], readers: int) -> list[list[Pin]]:
    """The readers of each copy, at most ``readers``: of neighbours, or an even share of one core's."""
    result: list[list[Pin]] = [[]]
    for _, group in groupby(sorted(pins, key=lambda pin: (_core(pin), pin)), key=_core):
        members = list(group)
        share = -(-len(members) // -(-len(members) // readers))
        for start in range(0, len(members), share):
            some = members[start : start + share]
            if result[-1] and len(result[-1]) + len(some) > readers:
                result.append([])
            result[-1] += some
    return result


def _core(pin: Pin) -> str:
    """The instance of the design that a cell stands in, with a point behind it; "" outside the design."""
    path = pin[0].split(".")
    return ".".join(path[:2]) + "." if len(path) > 2 else ""
