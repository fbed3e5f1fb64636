"""ECP5: pack registers into the multipliers MULT18X18D and the block RAMs DP16KD.

Sources: Lattice FPGA-TN-02205 (ECP5 sysDSP usage guide), FPGA-TN-02204 (ECP5 memory usage guide).
"""

from __future__ import annotations

from collections.abc import Iterable

from hwflow.toolchain.packing import copies
from hwflow.toolchain.packing.netlist import PORT, Bit, Netlist
from hwflow.toolchain.packing.registers import (
    Bank,
    Control,
    ecp5_register,
    registers_before,
    registers_behind,
    remove_unread,
)

OPERANDS = tuple(tuple(f"{operand}{i}" for i in range(18)) for operand in "AB")
PRODUCT = tuple(f"P{i}" for i in range(36))
READ_DATA = {port: tuple(f"DO{port}{i}" for i in range(18)) for port in "AB"}
STAGES = ("INPUTA", "INPUTB", "INPUTC", "PIPELINE", "OUTPUT")
CLOCKS = frozenset(("CLK", "WCK", "CLKA", "CLKB", "CLK0", "CLK1", "CLK2", "CLK3", "CLKI", "CLKFB"))
ENABLES = 4  # clock enables a multiplier selects from


def pack_memory(netlist: Netlist, name: str) -> int:
    """Enable the output register of the ports of a DP16KD that only flip-flops read; return the flip-flops removed.

    The register follows the port's clock and its output enable OCE, whatever the port's own enable (so that a word
    waits in the block until it is taken). A port of 36 bits has its lower half on the outputs of port A, and clock and
    enable of port B for both.
    """
    parameters = netlist.parameters(name)
    if _width(parameters.get("DATA_WIDTH_B", 18)) == 36:
        groups: tuple[str, ...] = ("BA",)
    else:
        groups = ("A", "B")
    removed = 0
    for group in groups:
        leader = group[0]
        rising = str(parameters.get(f"CLK{leader}MUX", f"CLK{leader}")) == f"CLK{leader}"
        unused = all(str(parameters.get(f"REGMODE_{port}", "NOREG")) == "NOREG" for port in group)
        pins = [pin for port in group for pin in READ_DATA[port]]
        bank = registers_behind(netlist, [netlist.bit(name, pin) for pin in pins], ecp5_register)
        reset = netlist.bit(name, f"RST{leader}", "0")  # would clear the register too
        if not rising or not unused or bank is None or reset != "0":
            continue
        if bank.control.clock != netlist.bit(name, f"CLK{leader}"):
            continue
        removed += _take_over(netlist, name, pins, bank)
        for port in group:
            parameters[f"REGMODE_{port}"] = "OUTREG"
            netlist.connect(name, f"OCE{port}", [bank.control.enable], "input")
    return removed


def pack_multiplier(netlist: Netlist, name: str) -> int:
    """Move the registers around a MULT18X18D into it; return the flip-flops removed.

    After it: one level of flip-flops, the product's only readers, becomes the output register, two become pipeline and
    output register. Before it: those of both operands or none, since nextpnr times no other case. A flip-flop with
    other readers stays and is copied.
    """
    parameters = netlist.parameters(name)
    if any(str(parameters.get(f"REG_{stage}_CLK", "NONE")) != "NONE" for stage in STAGES):
        return 0
    removed = 0
    stages: dict[str, Control] = {}
    levels: list[Control] = []
    while len(levels) < 2:
        bank = registers_behind(netlist, [netlist.bit(name, pin) for pin in PRODUCT], ecp5_register)
        if bank is None or not _agree([*levels, bank.control]):
            break
        levels.append(bank.control)
        removed += _take_over(netlist, name, PRODUCT, bank)
    stages |= dict(zip(("OUTPUT", "PIPELINE"), reversed(levels), strict=False))

    banks = [registers_before(netlist, [netlist.bit(name, p) for p in pins], ecp5_register) for pins in OPERANDS]
    constant = [all(isinstance(netlist.bit(name, p), str) for p in pins) for pins in OPERANDS]
    found = [bank for bank in banks if bank is not None]
    signs = all(isinstance(netlist.bit(name, pin, "0"), str) for pin in ("SIGNEDA", "SIGNEDB"))
    complete = found and all(b is not None or c for b, c in zip(banks, constant, strict=True))
    if complete and signs and _agree([*stages.values(), *(bank.control for bank in found)]):
        for stage, pins, bank in zip(("INPUTA", "INPUTB"), OPERANDS, banks, strict=True):
            stages[stage] = (bank or found[0]).control
            if bank is not None:
                for pin, bit in zip(pins, bank.bits, strict=True):
                    netlist.connect(name, pin, [bit], "input")
        removed += remove_unread(netlist, [cell for bank in found for cell in bank.cells], ecp5_register)
    if stages:
        _configure(netlist, name, stages)
    return removed


def align_operands(netlist: Netlist, name: str) -> int:
    """Shift each sign-extended operand of a MULT18X18D up until its sign is on one pin; return the pins freed.

    Yosys extends an operand to 18 bits. Each needs a wire to a pin of the block, and wires are scarce where blocks
    stand side by side; a constant needs none. Operands shifted by a and b bits shift the product by a + b, for which
    there is room.
    """
    operands = [[netlist.bit(name, pin) for pin in pins] for pins in OPERANDS]
    signed = [netlist.bit(name, pin, "0") == "1" for pin in ("SIGNEDA", "SIGNEDB")]
    spare = [_copies_of_sign(bits) if sign else 0 for bits, sign in zip(operands, signed, strict=True)]
    shift = sum(spare)
    product = [netlist.bits(name, pin) for pin in PRODUCT]
    signs = [bits[0] for bits in product[len(PRODUCT) - 1 - shift :] if bits]
    if not shift or any(cell == PORT for bit in signs[1:] for cell, _ in netlist.readers(bit)):
        return 0
    for pins, bits, more in zip(OPERANDS, operands, spare, strict=True):
        for pin, bit in zip(pins, ["0"] * more + bits[: len(bits) - more], strict=True):
            netlist.connect(name, pin, [bit], "input")
    for bit in signs[1:]:  # bits of the product that are no more: all are its sign
        for cell, port in netlist.readers(bit):
            netlist.connect(cell, port, [signs[0] if read == bit else read for read in netlist.bits(cell, port)])
    for pin in PRODUCT:
        netlist.disconnect(name, pin)
    for pin, bits in zip(PRODUCT[shift:], [*product[: len(PRODUCT) - 1 - shift], signs[:1]], strict=True):
        if bits:
            netlist.connect(name, pin, bits, "output")
    return shift


def ground_blocks(netlist: Netlist) -> None:
    """Give each multiplier block a look-up table that makes the 0 of its reset and of its operands' sources.

    These pins must have a wire. nextpnr makes all of a design's zeros in one place; where blocks stand side by side,
    most of what its router took again and again from other nets were wires from there to resets.
    """
    for name in netlist.cells("MULT18X18D"):
        pins = [pin for pin in ("RST0", "SOURCEA", "SOURCEB") if netlist.bit(name, pin) == "0"]
        if pins:
            zero = netlist.net()
            netlist.add(f"{name}_zero", "LUT4", {"INIT": "0" * 16}, {pin: ["1"] for pin in "ABCD"}, {"Z": [zero]})
            for pin in pins:
                netlist.connect(name, pin, [zero])


def _copies_of_sign(bits: list[Bit]) -> int:
    """Count the pins below the last one that repeat it; none of a constant."""
    if not isinstance(bits[-1], int):
        return 0
    return next((k for k, bit in enumerate(bits[-2::-1]) if bit != bits[-1]), len(bits) - 1)


def copy_outputs(netlist: Netlist) -> int:
    """Duplicate flip-flops and look-up tables with a high fan-out (:mod:`hwflow.toolchain.packing.copies`); return the
    number of copies. Resets and enables have no global nets here: nextpnr keeps those for clocks.
    """
    return copies.copy_outputs(netlist, {"TRELLIS_FF": "Q", "LUT4": "Z"}, CLOCKS, {"MULT18X18D"})


def _take_over(netlist: Netlist, name: str, pins: Iterable[str], bank: Bank) -> int:
    """Let the block drive what the registers after it drove."""
    for cell in bank.cells:
        netlist.remove(cell)
    for pin, bit in zip(pins, bank.bits, strict=True):
        if netlist.bits(name, pin):
            netlist.connect(name, pin, [bit], "output")
    return len(bank.cells)


def _agree(controls: Iterable[Control]) -> bool:
    """Tell whether one clock and the block's enables suffice."""
    controls = list(controls)
    return len({c.clock for c in controls}) == 1 and len({c.enable for c in controls}) <= ENABLES


def _configure(netlist: Netlist, name: str, stages: dict[str, Control]) -> None:
    parameters = netlist.parameters(name)
    enables: dict[Bit, str] = {}
    for stage in STAGES:
        if stage in stages:
            enable = enables.setdefault(stages[stage].enable, f"CE{len(enables)}")
            parameters |= {f"REG_{stage}_CLK": "CLK0", f"REG_{stage}_CE": enable, f"REG_{stage}_RST": "RST0"}
    netlist.connect(name, "CLK0", [next(iter(stages.values())).clock], "input")
    netlist.connect(name, "RST0", ["0"], "input")
    for enable_bit, port in enables.items():
        netlist.connect(name, port, [enable_bit], "input")


def _width(parameter: object) -> int:
    """Parse a parameter as yosys writes numbers: 32 binary digits, or a number."""
    return int(parameter, 2) if isinstance(parameter, str) else int(str(parameter))
