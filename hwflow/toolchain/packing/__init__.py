"""Pack a netlist between synthesis and place and route: move flip-flops into the registers of blocks.

Yosys maps a product to a multiplier block and a memory to a block RAM, and leaves the registers around them in the
fabric, where routing to the block adds to its own delay. :func:`pack` moves them into the block: the same function,
cycle by cycle, with shorter paths. ``design.v`` stays portable: it does not depend on packing.

Then operands of blocks whose sign takes several pins are shifted up, until it takes one, and cells with a high fan-out
are copied, so that each copy stands among its readers (``copies.py``). Look-up tables read what others in front of
them were made of (``flat_tables.py``). Carry chains get their first carry in a cell
that they have, and no inputs of 0 (``carries.py``); multiplier blocks get zeros of their own. A separate pass places
multiplier blocks if most of a part's are used (``block_places.py``).

Memories are packed first, because a read without output register is slowest, then multipliers, each in the netlist's
order; a flip-flop is absorbed where it is found first. If a block can hold two products, pairs of blocks are merged.
Packing is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hwflow.toolchain.packing import carries, ecp5, flat_tables, ice40
from hwflow.toolchain.packing.netlist import Netlist

# in order: the type of the blocks, what they are called, what packs one and returns the flip-flops it removed
_REGISTERS = {
    "ecp5": (("DP16KD", "block RAMs", ecp5.pack_memory), ("MULT18X18D", "multipliers", ecp5.pack_multiplier)),
    "ice40": (("SB_MAC16", "multipliers", ice40.pack_registers),),
}
_ALIGNED = {"ecp5": ("MULT18X18D", ecp5.align_operands)}  # returns the pins that want no wire any more
_ZEROS: dict[str, Sequence[Callable[[Netlist], None]]] = {"ecp5": (carries.without_zeros, ecp5.ground_blocks)}
_CARRIES: dict[str, Callable[[Netlist], int]] = {"ecp5": carries.free_ends}  # returns the look-up tables freed
_PAIRS = {"ice40": (("SB_MAC16", "multipliers", ice40.pack_pair),)}  # returns the blocks removed
_RESULTS = {"ice40": (("SB_MAC16", "multipliers", ice40.pack_result),)}  # as _REGISTERS, of what is no pair
_TABLES: dict[str, Callable[[Netlist], int]] = {"ecp5": flat_tables.flatten_tables}  # returns the tables changed
_COPIES: dict[str, Callable[[Netlist], int]] = {"ecp5": ecp5.copy_outputs}  # iCE40 has nets that reach everything


def merged_kinds(family: str) -> tuple[str, ...]:
    """Return the kinds of cells of which packing may merge two."""
    return tuple(kind for kind, _, _ in _PAIRS.get(family, ()))


@dataclass(frozen=True)
class Packing:
    """The result of :func:`pack`.

    By kind of block: the number of blocks, the flip-flops absorbed, the blocks merged into others. Then the flip-flops
    and look-up tables copied, the pins of blocks freed (now constant), the look-up tables freed at carry chains, and
    those that read what others were made of.
    ``cells``: where files are packed, the cells of each kind by the beginnings of their names (:mod:`cells`).
    """

    blocks: dict[str, int]
    registers: dict[str, int]
    pairs: dict[str, int]
    copies: int = 0
    pins: int = 0
    carries: int = 0
    tables: int = 0
    cells: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [f"{self.registers[kind]} into {count} {kind}" for kind, count in self.blocks.items() if count]
        text = f"{sum(self.registers.values())} flip-flops absorbed" + (f": {', '.join(parts)}" if parts else "")
        text += "".join(f"; {2 * count} {kind} in {count}" for kind, count in self.pairs.items() if count)
        text += f"; {self.pins} operand pins freed" if self.pins else ""
        text += f"; {self.carries} look-up tables freed at carry chains" if self.carries else ""
        text += f"; {self.tables} look-up tables without others in front" if self.tables else ""
        return text + (f"; {self.copies} copies of cells with many readers" if self.copies else "")


def pack(design: dict[str, Any], family: str) -> Packing:
    """Pack the top module of ``design`` (yosys' JSON), in place. A family without rules has nothing to pack."""
    netlist = Netlist(design)
    packing = Packing({}, {}, {})
    for kind, called, rule in _REGISTERS.get(family, ()):
        names = list(netlist.cells(kind))
        packing.blocks[called] = len(names)
        packing.registers[called] = sum(rule(netlist, name) for name in names)
    for kind, called, rule in _PAIRS.get(family, ()):
        names = list(netlist.cells(kind))
        packing.pairs[called] = sum(rule(netlist, name) for name in names if netlist.holds(name))
    for kind, called, rule in _RESULTS.get(family, ()):
        packing.registers[called] += sum(rule(netlist, name) for name in netlist.cells(kind))
    pins = 0
    if family in _ALIGNED:
        kind, align = _ALIGNED[family]
        pins = sum(align(netlist, name) for name in netlist.cells(kind))
    freed = _CARRIES[family](netlist) if family in _CARRIES else 0
    flat = _TABLES[family](netlist) if family in _TABLES else 0
    copies = _COPIES[family](netlist) if family in _COPIES else 0
    for make in _ZEROS.get(family, ()):
        make(netlist)
    return replace(packing, copies=copies, pins=pins, carries=freed, tables=flat)
