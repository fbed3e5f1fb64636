"""iCE40: pack registers into the multiplier block SB_MAC16, and two products of at most 8 by 8 bits into one block.

Sources: Lattice FPGA-TN-02007 (DSP function usage guide for iCE40 devices), SBT ICE Technology Library.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hwflow.toolchain.packing.netlist import Bit, Netlist
from hwflow.toolchain.packing.registers import (
    Bank,
    ice40_register,
    registers_before,
    registers_behind,
    remove_unread,
)

HALF = 8  # bits of an operand, of which two fit into the block
# pins that a product alone leaves at 0 or open; C and D would be added
IDLE = (
    "AHOLD", "BHOLD", "CHOLD", "DHOLD", "IRSTTOP", "IRSTBOT", "ORSTTOP", "ORSTBOT", "OLOADTOP", "OLOADBOT", "ADDSUBTOP",
    "ADDSUBBOT", "OHOLDTOP", "OHOLDBOT", "C", "D", "CI", "ACCUMCI", "SIGNEXTIN",
)
CHAINED = ("CO", "ACCUMCO", "SIGNEXTOUT")  # outputs that a product alone has no reader for
PIPELINE = ("TOP_8x8_MULT_REG", "BOT_8x8_MULT_REG", "PIPELINE_16x16_MULT_REG1")
SECOND = "PIPELINE_16x16_MULT_REG2"
PRODUCT = 3  # of the output selections: the product of 16 by 16 bits
HALF_PRODUCT = 2  # the product of 8 by 8 bits of this half


def pack_registers(netlist: Netlist, name: str) -> int:
    """Move the always loading registers of a product's operands into its block; return the flip-flops removed.

    Synthesis has put the register after the product into the block; it fixes clock and enable for all. What the block's
    registers hold before they load is not documented, so equality begins with the first cycle.
    """
    if not _is_product(netlist, name) or not _flag(netlist, name, PIPELINE[0]):
        return 0
    removed = 0
    for operand in "AB":
        if _flag(netlist, name, f"{operand}_REG"):
            continue
        bank: Bank | None = registers_before(netlist, netlist.bits(name, operand), ice40_register)
        if bank is None or bank.control.clock != netlist.bit(name, "CLK"):
            continue
        if bank.control.enable != "1" or netlist.bit(name, "CE", "1") != "1":
            continue
        netlist.connect(name, operand, list(bank.bits))
        netlist.parameters(name)[f"{operand}_REG"] = _binary(1, 1)
        removed += remove_unread(netlist, bank.cells, ice40_register)
    return removed


def pack_result(netlist: Netlist, name: str) -> int:
    """Move the always loading registers behind the one in the block into it, too; return the flip-flops removed.

    Only a product of 16 by 16 bits has a second register, so pairs are to be found first.
    """
    if not _is_product(netlist, name) or not _flag(netlist, name, PIPELINE[0]):
        return 0
    bank = registers_behind(netlist, netlist.bits(name, "O"), ice40_register)
    if bank is None or bank.control.clock != netlist.bit(name, "CLK"):
        return 0
    if bank.control.enable != "1" or netlist.bit(name, "CE", "1") != "1":
        return 0
    for cell in bank.cells:
        netlist.remove(cell)
    netlist.connect(name, "O", list(bank.bits))
    netlist.parameters(name)[SECOND] = _binary(1, 1)
    return len(bank.cells)


def pack_pair(netlist: Netlist, name: str) -> int:
    """Merge another product of the same kind into the block ``name``, if both are 8 by 8 bits; return blocks removed.

    The kind: the core, so that a core's blocks do not depend on its neighbours; signs of the operands, in either order;
    registers, clock and enable. The first product takes the lower halves of operands and output, the second the upper
    ones. A product of exactly the same kind is preferred to one whose operands may be signed or unsigned.
    """
    first = _half(netlist, name)
    if first is None:
        return 0
    names = list(netlist.cells("SB_MAC16"))
    others = [half for other in names[names.index(name) + 1 :] if (half := _half(netlist, other)) is not None]
    for strict in (True, False):
        for other in others:
            kinds = _joined(first, other, strict)
            if kinds is not None:
                _join(netlist, first, other, kinds)
                return 1
    return 0


_PART = re.compile(r"(rows?|lanes?)_\d+")  # instances of shared components (see hdl_lib/shared.py)

Kind = tuple[int | None, int | None]
"""An operand's sign and register, each 1 or 0, None for either."""


@dataclass(frozen=True)
class _Half:
    """A product that takes half a block: the cell, its two operands (with the names of their pins), and everything else
    that must agree."""

    name: str
    operands: tuple[tuple[str, Kind], tuple[str, Kind]]
    rest: tuple[Any, ...]


def _half(netlist: Netlist, name: str) -> _Half | None:
    """Return the product of a block as a half; None for a wider product."""
    if not _is_product(netlist, name):
        return None
    output = netlist.bits(name, "O")
    if any(netlist.readers(bit) for bit in output[2 * HALF :]):
        return None
    kinds = [_operand(netlist, name, operand) for operand in "AB"]
    if kinds[0] is None or kinds[1] is None:
        return None
    rest = (_flag(netlist, name, PIPELINE[0]), netlist.bit(name, "CLK"), netlist.bit(name, "CE", "1"))
    return _Half(name, (("A", kinds[0]), ("B", kinds[1])), (_core(netlist.scope(output[0])), *rest))


def _core(scope: tuple[str, ...]) -> tuple[str, ...]:
    """Return the instances up to the core, without those of its repeated parts."""
    while scope and _PART.fullmatch(scope[-1]):
        scope = scope[:-1]
    return scope


def _operand(netlist: Netlist, name: str, operand: str) -> Kind | None:
    """Return the kind of an operand; None for more than 8 bits.

    A number below 128 is the same with and without a sign. A constant is the same behind a register once that has
    loaded, and until then the other operand's register determines the product.
    """
    bits = netlist.bits(name, operand)
    if len(bits) != 2 * HALF:
        return None
    above = bits[HALF - 1 :]
    extended = _flag(netlist, name, f"{operand}_SIGNED") and len(set(above)) == 1
    sign: int | None = 1
    if all(bit == "0" for bit in above[1:]):
        sign = 0 if above[0] != "0" else None
    elif not extended:
        return None
    register: int | None = _flag(netlist, name, f"{operand}_REG")
    other = "B" if operand == "A" else "A"
    if all(bit in ("0", "1") for bit in bits) and _flag(netlist, name, f"{other}_REG"):
        register = None
    return sign, register


def _joined(first: _Half, second: _Half, strict: bool) -> list[tuple[str, str, Kind]] | None:
    """Return the pins of both for each operand of the block, with their common kind; None if they differ.

    ``strict``: an operand of either kind goes only with another one.
    """
    if first.rest != second.rest:
        return None
    for operands in (second.operands, second.operands[::-1]):
        found = []
        for (pin, ours), (other, theirs) in zip(first.operands, operands, strict=True):
            alike = all(x == y or (not strict and None in (x, y)) for x, y in zip(ours, theirs, strict=True))
            if alike:
                kind = tuple(y if x is None else x for x, y in zip(ours, theirs, strict=True))
                found.append((pin, other, (kind[0], kind[1])))
        if len(found) == len(operands):
            return found
    return None


def _join(netlist: Netlist, first: _Half, second: _Half, kinds: list[tuple[str, str, Kind]]) -> None:
    """Merge both into the block of the first."""
    name = first.name
    halves: list[tuple[str, list[Bit]]] = [
        (pin, netlist.bits(name, pin)[:HALF] + netlist.bits(second.name, other)[:HALF]) for pin, other, _ in kinds
    ]
    halves.append(("O", netlist.bits(name, "O")[: 2 * HALF] + netlist.bits(second.name, "O")[: 2 * HALF]))
    netlist.remove(second.name)
    for port, bits in halves:
        netlist.connect(name, port, bits)
    parameters = netlist.parameters(name)
    for pin, _, (sign, register) in kinds:
        parameters |= {f"{pin}_SIGNED": _binary(sign or 0, 1), f"{pin}_REG": _binary(register or 0, 1)}
    parameters.update(
        MODE_8x8=_binary(1, 1), PIPELINE_16x16_MULT_REG1=_binary(0, 1),
        TOPOUTPUT_SELECT=_binary(HALF_PRODUCT, 2), BOTOUTPUT_SELECT=_binary(HALF_PRODUCT, 2),
    )


def _is_product(netlist: Netlist, name: str) -> bool:
    """Tell whether the block computes one product of 16 by 16 bits, with at most one register after it."""
    if any(bit not in ("0", "x", "z") for pin in IDLE for bit in netlist.bits(name, pin)):
        return False
    if any(netlist.readers(bit) for pin in CHAINED for bit in netlist.bits(name, pin)):
        return False
    others = ("NEG_TRIGGER", "MODE_8x8", SECOND)
    selections = ("TOPOUTPUT_SELECT", "BOTOUTPUT_SELECT")
    return (
        len({_flag(netlist, name, register) for register in PIPELINE}) == 1
        and not any(_flag(netlist, name, other) for other in others)
        and all(_flag(netlist, name, selection) == PRODUCT for selection in selections)
    )


def _flag(netlist: Netlist, name: str, parameter: str) -> int:
    """Parse a parameter in binary digits, as yosys writes it; 0 for a missing one."""
    return int(str(netlist.parameters(name).get(parameter, "0")), 2)


def _binary(value: int, width: int) -> str:
    return f"{value:0{width}b}"
