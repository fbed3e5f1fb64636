"""ECP5: carry chains that need no cells at their ends.

A chain of CCU2C begins with the carry of whatever stands west of it, so nextpnr puts a cell in front of each chain that
makes its first carry, a constant too, and one behind each whose last carry is a net, even if nobody reads it. An adder
of ten bits then takes 14 look-up tables' places instead of 10. Here the first half of a chain makes its own carry:

* If the last half is unused, all move up by one and the free first half makes the constant.
* Else the carry out of the first half is made by its two-input look-up table, whatever the carry in is, and its sum in
  a look-up table beside the chain.

A carry that nobody reads is left open. Inputs that are 0 become 1, by tables that say the same of both: an input that
is open is 1, and one that is 0 takes a wire from wherever nextpnr makes its only 0.

Source: the cell's simulation model in yosys (share/ecp5/cells_sim.v); nextpnr's own first cell gates the carry in the
same way (ecp5/pack.cc, make_carry_feed_in).
"""

from __future__ import annotations

from typing import NamedTuple

from hwflow.toolchain.packing.netlist import Bit, Netlist

CARRY = "CCU2C"
_LOGIC = 1 << 16  # states of a look-up table of four inputs


class _Half(NamedTuple):
    """Half of a cell: its table (bit A + 2 B + 4 C + 8 D), INJECT1 parameter, inputs A to D and sum."""

    table: int
    inject: str
    inputs: tuple[Bit, ...]
    sum: Bit


def free_ends(netlist: Netlist) -> int:
    """Free the ends of all chains; return the number of look-up tables' places that this saves."""
    saved = 0
    for name in netlist.cells(CARRY):
        if netlist.bit(name, "CIN") in ("0", "1"):
            saved += _own_carry(netlist, _chain(netlist, name))
    for name in netlist.cells(CARRY):
        carry = netlist.bit(name, "COUT")
        if isinstance(carry, int) and not netlist.readers(carry):
            netlist.disconnect(name, "COUT")
            saved += 2
    return saved


def without_zeros(netlist: Netlist) -> None:
    """Make ones of the inputs of carry cells that are 0."""
    for name in netlist.cells(CARRY):
        for which in "01":
            half = _half(netlist, name, which)
            zeros = [pin for pin, bit in enumerate(half.inputs) if bit == "0"]
            table = half.table
            for pin in zeros:
                low = sum(1 << place for place in range(16) if not place >> pin & 1)
                table = table & low | (table & low) << (1 << pin)
            if zeros:
                inputs = ("1" if bit == "0" else bit for bit in half.inputs)
                _set(netlist, name, which, half._replace(table=table, inputs=tuple(inputs)))


def _chain(netlist: Netlist, name: str) -> list[str]:
    """Return the cells of a chain, as far as carries are read by the next cell alone."""
    cells = [name]
    while len(readers := netlist.readers(netlist.bit(cells[-1], "COUT"))) == 1:
        (following, port), = readers
        if netlist.kind(following) != CARRY or port != "CIN":
            break
        cells.append(following)
    return cells


def _own_carry(netlist: Netlist, cells: list[str]) -> int:
    """Let a chain with a constant carry in make it itself; return the places saved."""
    halves = [_half(netlist, name, half) for name in cells for half in "01"]
    carry = netlist.bit(cells[0], "CIN") == "1"
    last = halves[-1].sum
    if not netlist.readers(netlist.bit(cells[-1], "COUT")) and not netlist.readers(last):
        constant = _Half(0b1000 if carry else 0, "NO", ("1",) * 4, netlist.net())  # LUT4 is 0, LUT2 is of A = B = 1
        moved = [constant, *halves[:-1]]
        for place, half in enumerate(moved):
            _set(netlist, cells[place // 2], "01"[place % 2], half)
        saved = 2
    else:
        first = halves[0]
        if first.inject != "NO" or any(bit not in ("0", "1") for bit in first.inputs[2:]):
            return 0
        above = 4 * (first.inputs[2] == "1") + 8 * (first.inputs[3] == "1")
        out = sum(
            (carry if first.table >> (above + low) & 1 else first.table >> low & 1) << low for low in range(4)
        )
        if netlist.readers(first.sum):
            table = first.table ^ (_LOGIC - 1 if carry else 0)
            pins = dict(zip("ABCD", ([bit] for bit in first.inputs), strict=True))
            netlist.connect(cells[0], "S0", [netlist.net()], "output")
            netlist.add(f"{cells[0]}_sum", "LUT4", {"INIT": f"{table:016b}"}, pins, {"Z": [first.sum]})
        _set(netlist, cells[0], "0", _Half(out, "NO", (*first.inputs[:2], "1", "1"), netlist.net()))
        saved = 1
    netlist.connect(cells[0], "CIN", ["x"])
    return saved


def _half(netlist: Netlist, name: str, half: str) -> _Half:
    parameters = netlist.parameters(name)
    inputs = tuple(netlist.bit(name, f"{pin}{half}", "1") for pin in "ABCD")  # an open input is 1
    table = int(str(parameters[f"INIT{half}"]), 2)
    return _Half(table, str(parameters[f"INJECT1_{half}"]).strip(), inputs, netlist.bit(name, f"S{half}"))


def _set(netlist: Netlist, name: str, half: str, made: _Half) -> None:
    netlist.parameters(name).update({f"INIT{half}": f"{made.table:016b}", f"INJECT1_{half}": made.inject})
    for pin, bit in zip("ABCD", made.inputs, strict=True):
        netlist.connect(name, f"{pin}{half}", [bit], "input")
    netlist.connect(name, f"S{half}", [made.sum], "output")
