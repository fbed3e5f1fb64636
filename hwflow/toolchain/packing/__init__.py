"""A pass over the netlist between synthesis and place and route: flip-flops into the registers that blocks have.

Yosys maps a product to a multiplier block and a memory to a block RAM, and leaves the registers around them in the
fabric, from where every bit travels to the block unclocked. :func:`pack` moves them into the block: the same function,
cycle by cycle, with shorter paths. ``design.v`` stays portable: nothing in it knows of it.

A block's operands that have their sign on several pins are moved up afterwards, until they have it on one.

What very many pins read is copied afterwards, so that each copy stands among its readers (``copies.py``). A pass of its
own gives multiplier blocks their places, where most of a part's are used (``places.py``).

Blocks are packed memories first, because their read without register is the slowest, then multipliers, each in the
netlist's order; a flip-flop is absorbed where it is found first. Where a block can hold two products, pairs of blocks
become one. Packing what is packed changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hwflow.toolchain.packing import ecp5, ice40
from hwflow.toolchain.packing.netlist import Netlist

# in order: the type of the blocks, what they are called, what packs one and returns the flip-flops it removed
_REGISTERS = {
    "ecp5": (("DP16KD", "block RAMs", ecp5.pack_memory), ("MULT18X18D", "multipliers", ecp5.pack_multiplier)),
    "ice40": (("SB_MAC16", "multipliers", ice40.pack_registers),),
}
_ALIGNED = {"ecp5": ("MULT18X18D", ecp5.align_operands)}  # returns the pins that want no wire any more
_PAIRS = {"ice40": (("SB_MAC16", "multipliers", ice40.pack_pair),)}  # returns the blocks removed
_COPIES: dict[str, Callable[[Netlist], int]] = {"ecp5": ecp5.copy_outputs}  # iCE40 has nets that reach everything


@dataclass(frozen=True)
class Packing:
    """What :func:`pack` did.

    Of every kind of block how many there were, the flip-flops that are in them now, the blocks that went into others;
    the flip-flops and look-up tables that were copied; the pins of blocks that are constants now.
    """

    blocks: dict[str, int]
    registers: dict[str, int]
    pairs: dict[str, int]
    copies: int = 0
    pins: int = 0

    def __str__(self) -> str:
        parts = [f"{self.registers[kind]} into {count} {kind}" for kind, count in self.blocks.items() if count]
        text = f"{sum(self.registers.values())} flip-flops absorbed" + (f": {', '.join(parts)}" if parts else "")
        text += "".join(f"; {2 * count} {kind} in {count}" for kind, count in self.pairs.items() if count)
        text += f"; {self.pins} pins of operands free" if self.pins else ""
        return text + (f"; {self.copies} copies of what many pins read" if self.copies else "")


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
    pins = 0
    if family in _ALIGNED:
        kind, align = _ALIGNED[family]
        pins = sum(align(netlist, name) for name in netlist.cells(kind))
    copies = _COPIES[family](netlist) if family in _COPIES else 0
    return replace(packing, copies=copies, pins=pins)
