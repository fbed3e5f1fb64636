"""iCE40: registers into the multiplier block SB_MAC16, and two products of at most 8 by 8 bits into one block.

What the block has: Lattice FPGA-TN-02007 (DSP function usage guide for iCE40 devices), SBT ICE Technology Library.
"""

from __future__ import annotations

from typing import Any

from hwflow.toolchain.packing.netlist import Bit, Netlist
from hwflow.toolchain.packing.registers import Bank, ice40_register, registers_before, remove_unread

HALF = 8  # bits of an operand, of which two fit into the block
# pins that a product alone leaves at 0 or open; C and D would be added
IDLE = (
    "AHOLD", "BHOLD", "CHOLD", "DHOLD", "IRSTTOP", "IRSTBOT", "ORSTTOP", "ORSTBOT", "OLOADTOP", "OLOADBOT", "ADDSUBTOP",
    "ADDSUBBOT", "OHOLDTOP", "OHOLDBOT", "C", "D", "CI", "ACCUMCI", "SIGNEXTIN",
)
CHAINED = ("CO", "ACCUMCO", "SIGNEXTOUT")  # outputs that a product alone has no reader for
PIPELINE = ("TOP_8x8_MULT_REG", "BOT_8x8_MULT_REG", "PIPELINE_16x16_MULT_REG1")
PRODUCT = 3  # of the output selections: the product of 16 by 16 bits
HALF_PRODUCT = 2  # the product of 8 by 8 bits of this half


def pack_registers(netlist: Netlist, name: str) -> int:
    """Give a product the registers of its operands that always load; flip-flops removed.

    The register behind the product is in the block since synthesis, and fixes clock and enable for all. What the
    block's registers hold before they load is not documented, so that equality begins with the first cycle.
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


def pack_pair(netlist: Netlist, name: str) -> int:
    """Put the next product of the same kind into the block of ``name``, if both are of 8 by 8 bits; blocks removed.

    The kind: both operands' signs, the registers, clock and enable. The first product is computed in the lower halves
    of operands and output, the second in the upper ones.
    """
    kind = _kind(netlist, name)
    if kind is None:
        return 0
    names = list(netlist.cells("SB_MAC16"))
    for other in names[names.index(name) + 1 :]:
        if _kind(netlist, other) == kind:
            break
    else:
        return 0
    halves: dict[str, list[Bit]] = {
        operand: netlist.bits(name, operand)[:HALF] + netlist.bits(other, operand)[:HALF] for operand in "AB"
    }
    outputs = netlist.bits(name, "O")[: 2 * HALF] + netlist.bits(other, "O")[: 2 * HALF]
    netlist.remove(other)
    for port, bits in (*halves.items(), ("O", outputs)):
        netlist.connect(name, port, bits)
    netlist.parameters(name).update(
        MODE_8x8=_binary(1, 1), A_SIGNED=_binary(kind[0], 1), B_SIGNED=_binary(kind[1], 1),
        TOPOUTPUT_SELECT=_binary(HALF_PRODUCT, 2), BOTOUTPUT_SELECT=_binary(HALF_PRODUCT, 2),
        PIPELINE_16x16_MULT_REG1=_binary(0, 1),
    )
    return 1


def _kind(netlist: Netlist, name: str) -> tuple[Any, ...] | None:
    """What two products must have in common to share a block; None for one of more bits."""
    signs = [_sign(netlist, name, operand) for operand in "AB"]
    if not _is_product(netlist, name) or None in signs:
        return None
    if any(netlist.readers(bit) for bit in netlist.bits(name, "O")[2 * HALF :]):
        return None
    registers = tuple(_flag(netlist, name, register) for register in ("A_REG", "B_REG", PIPELINE[0]))
    return (*signs, *registers, netlist.bit(name, "CLK"), netlist.bit(name, "CE", "1"))


def _sign(netlist: Netlist, name: str, operand: str) -> int | None:
    """1 if the operand is a number of 8 bits with sign, 0 if it is one without; None if it is wider."""
    bits = netlist.bits(name, operand)
    if len(bits) != 2 * HALF:
        return None
    if all(bit == "0" for bit in bits[HALF:]):
        return 0
    extended = all(bit == bits[HALF - 1] for bit in bits[HALF:])
    return 1 if extended and _flag(netlist, name, f"{operand}_SIGNED") else None


def _is_product(netlist: Netlist, name: str) -> bool:
    """Whether the block computes one product of 16 by 16 bits, with one register behind it or none."""
    if any(bit not in ("0", "x", "z") for pin in IDLE for bit in netlist.bits(name, pin)):
        return False
    if any(netlist.readers(bit) for pin in CHAINED for bit in netlist.bits(name, pin)):
        return False
    others = ("NEG_TRIGGER", "MODE_8x8", "PIPELINE_16x16_MULT_REG2")
    selections = ("TOPOUTPUT_SELECT", "BOTOUTPUT_SELECT")
    return (
        len({_flag(netlist, name, register) for register in PIPELINE}) == 1
        and not any(_flag(netlist, name, other) for other in others)
        and all(_flag(netlist, name, selection) == PRODUCT for selection in selections)
    )


def _flag(netlist: Netlist, name: str, parameter: str) -> int:
    """A parameter as yosys writes it, in binary digits; 0 for one that is not given."""
    return int(str(netlist.parameters(name).get(parameter, "0")), 2)


def _binary(value: int, width: int) -> str:
    return f"{value:0{width}b}"
