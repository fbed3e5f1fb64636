"""Find registers in a mapped netlist: flip-flops with their control and initial value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hwflow.toolchain.packing.netlist import Bit, Netlist


@dataclass(frozen=True)
class Control:
    """The control of a register: it loads at the rising edge of ``clock`` while ``enable`` is 1 ("1": always)."""

    clock: Bit
    enable: Bit


@dataclass(frozen=True)
class Register:
    """A flip-flop without reset, initially 0: its cell, input and output."""

    cell: str
    control: Control
    d: Bit
    q: Bit


RegisterOf = Callable[[Netlist, str], Register | None]  # the register a cell is, None if it is none to absorb


@dataclass(frozen=True)
class Bank:
    """Registers under one control, before or after the pins of a block.

    ``bits``: the connections of the pins once the block contains the registers. ``cells``: the flip-flops, each once.
    """

    control: Control
    bits: tuple[Bit, ...]
    cells: tuple[str, ...]


def registers_before(netlist: Netlist, bits: Sequence[Bit], register_of: RegisterOf) -> Bank | None:
    """Return the registers that drive ``bits``, all under one control.

    Constants are allowed: a product of a constant and a register that starts with 0 is 0 until both have loaded. None
    if another bit does not come from a register, or all are constant.
    """
    loads: list[Bit] = []
    found: dict[str, Register] = {}
    for bit in bits:
        if isinstance(bit, str):
            loads.append(bit)
            continue
        pin = netlist.driver(bit)
        register = register_of(netlist, pin[0]) if pin is not None else None
        if register is None:
            return None
        found[register.cell] = register
        loads.append(register.d)
    controls = {register.control for register in found.values()}
    return Bank(controls.pop(), tuple(loads), tuple(found)) if len(controls) == 1 else None


def registers_behind(netlist: Netlist, bits: Sequence[Bit], register_of: RegisterOf) -> Bank | None:
    """Return the registers that are the only readers of ``bits``, all under one control; unread bits are skipped.

    None if a bit has another reader, or no bit has any.
    """
    outputs: list[Bit] = []
    found: dict[str, Register] = {}
    for bit in bits:
        readers = netlist.readers(bit)
        if not readers:
            outputs.append(bit)
            continue
        register = register_of(netlist, readers[0][0])
        if len(readers) > 1 or register is None or register.d != bit:
            return None
        found[register.cell] = register
        outputs.append(register.q)
    controls = {register.control for register in found.values()}
    return Bank(controls.pop(), tuple(outputs), tuple(found)) if len(controls) == 1 else None


def remove_unread(netlist: Netlist, cells: Sequence[str], register_of: RegisterOf) -> int:
    """Remove the registers of ``cells`` that have no reader; return the number removed."""
    removed = 0
    for name in cells:
        register = register_of(netlist, name)
        if register is not None and not netlist.readers(register.q):
            netlist.remove(name)
            removed += 1
    return removed


def ecp5_register(netlist: Netlist, name: str) -> Register | None:
    """Return the TRELLIS_FF ``name`` as a register; None if it has a reset, starts with 1, or inverts its clock or
    enable."""
    if netlist.kind(name) != "TRELLIS_FF":
        return None
    parameters = netlist.parameters(name)
    reset = netlist.bit(name, "LSR", "0")
    inert = {"LSR": "0", "INV": "1"}.get(str(parameters.get("LSRMUX", "LSR")).strip())
    mode = str(parameters.get("CEMUX", "1")).strip()
    enable = netlist.bit(name, "CE", "1") if mode == "CE" else "1"
    rising = str(parameters.get("CLKMUX", "CLK")).strip() == "CLK"
    starts_low = str(parameters.get("REGSET", "RESET")).strip() == "RESET"
    if reset != inert or mode not in ("1", "CE") or not rising or not starts_low:
        return None
    return _register(netlist, name, Control(netlist.bit(name, "CLK"), enable), "DI")


def ice40_register(netlist: Netlist, name: str) -> Register | None:
    """Return the SB_DFF or SB_DFFE ``name`` as a register; None for types with a reset or the falling edge."""
    kind = netlist.kind(name)
    if kind not in ("SB_DFF", "SB_DFFE"):
        return None
    enable = netlist.bit(name, "E") if kind == "SB_DFFE" else "1"
    return _register(netlist, name, Control(netlist.bit(name, "C"), enable), "D")


def _register(netlist: Netlist, name: str, control: Control, input_port: str) -> Register | None:
    """Return the register, unless a constant stops its clock or enable, or a pin is open."""
    d, q = netlist.bits(name, input_port), netlist.bits(name, "Q")
    runs = isinstance(control.clock, int) and (control.enable == "1" or isinstance(control.enable, int))
    return Register(name, control, d[0], q[0]) if runs and len(d) == len(q) == 1 else None
