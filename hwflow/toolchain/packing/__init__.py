"""A pass over the netlist between synthesis and place and route: flip-flops into the registers that blocks have.

Yosys maps a product to a multiplier block and a memory to a block RAM, and leaves the registers around them in the
fabric, from where every bit travels to the block unclocked. :func:`pack` moves them into the block: the same function,
cycle by cycle, with shorter paths. ``design.v`` stays portable: nothing in it knows of it.

Blocks are packed memories first, because their read without register is the slowest, then multipliers, each in the
netlist's order; a flip-flop is absorbed where it is found first. Packing what is packed changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hwflow.toolchain.packing import ecp5
from hwflow.toolchain.packing.netlist import Netlist

# in order: the type of the blocks, what they are called, what packs one and returns the flip-flops it removed
_RULES = {
    "ecp5": (("DP16KD", "block RAMs", ecp5.pack_memory), ("MULT18X18D", "multipliers", ecp5.pack_multiplier)),
}


@dataclass(frozen=True)
class Packing:
    """What :func:`pack` did: of every kind of block how many there are, and the flip-flops that are in them now."""

    blocks: dict[str, int]
    registers: dict[str, int]

    def __str__(self) -> str:
        parts = [f"{self.registers[kind]} into {count} {kind}" for kind, count in self.blocks.items() if count]
        return f"{sum(self.registers.values())} flip-flops absorbed" + (f": {', '.join(parts)}" if parts else "")


def pack(design: dict[str, Any], family: str) -> Packing:
    """Pack the top module of ``design`` (yosys' JSON), in place. A family without rules has nothing to pack."""
    netlist = Netlist(design)
    blocks, registers = {}, {}
    for kind, called, rule in _RULES.get(family, ()):
        names = list(netlist.cells(kind))
        blocks[called] = len(names)
        registers[called] = sum(rule(netlist, name) for name in names)
    return Packing(blocks, registers)
