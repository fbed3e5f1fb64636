"""The longest paths of an ECP5's netlist before it is placed, by guessed delays: seconds instead of minutes.

    python benchmarks/longest_paths.py OUT/board/packed.json [--count 12] [--link]

Every wire takes :data:`WIRE`; what places decide is not seen. It finds structures that no placement mends: a block RAM
or multiplier without a register behind it, a sum behind a sum. A path is shown once for all the bits of its ends.
``--link``: those of the board's link as well.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WIRE = 0.9  # ns, of every wire
TABLE, MULTIPLEXER, SUM, CARRY = 0.24, 0.2, 0.45, 0.07
CLOCKED = {"TRELLIS_FF": 0.52, "DP16KD": 5.8, "PDPW16KD": 5.8, "MULT18X18D": 4.5}  # to an output
BEHIND_REGISTER = {"DP16KD": 0.9, "PDPW16KD": 0.9, "MULT18X18D": 0.7}
NOT_TIMED = re.compile(r"CLK\d?|CLK[ABRW]|WCK")
LINK = ("shell", "carrier")
SHORTCUTS = {("PFUMX", "C0"), ("L6MUX21", "SD")}  # pins of multiplexers that come over wires


@dataclass
class Netlist:
    """A flat netlist: of each bit what drives it, its name, and when it arrives (ns behind the clock)."""

    cells: dict[str, Any]
    names: dict[int, str]
    drivers: dict[int, tuple[str, str]] = field(default_factory=dict)
    arrivals: dict[int, float] = field(default_factory=dict)
    before: dict[int, int] = field(default_factory=dict)  # the bit in front on the longest path

    @classmethod
    def read(cls, path: Path) -> Netlist:
        """Read yosys' JSON of one module."""
        (module,) = [m for m in json.loads(path.read_text())["modules"].values() if "blackbox" not in m["attributes"]]
        names: dict[int, str] = {}
        for name, net in module["netnames"].items():
            for bit in net["bits"]:
                if bit not in names or len(name) < len(names[bit]):
                    names[bit] = name
        netlist = cls(module["cells"], names)
        for cell, port, bits in netlist.pins("output"):
            netlist.drivers |= dict.fromkeys(bits, (cell, port))
        return netlist

    def pins(self, direction: str) -> Iterator[tuple[str, str, list[int]]]:
        """Give each cell's ports of a direction, with the bits that are wires."""
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == direction:
                    yield name, port, [bit for bit in bits if isinstance(bit, int)]

    def launched(self, cell: str, port: str) -> float | None:
        """Return when an output that the clock launches arrives; None if it is combinational."""
        kind, parameters = self.cells[cell]["type"], self.cells[cell]["parameters"]
        registers = [parameters.get(name, "") for name in ("REG_OUTPUT_CLK", f"REGMODE_{port[2:3]}", "REGMODE")]
        behind = any(said.strip() not in ("", "NOREG", "NONE") for said in registers)
        return BEHIND_REGISTER.get(kind, CLOCKED.get(kind)) if behind else CLOCKED.get(kind)

    def through(self, cell: str, port: str) -> list[tuple[int, float]]:
        """Return the bits that a combinational output depends on, each with the time from it."""
        kind, found = self.cells[cell]["type"], []
        for name, bits in self.cells[cell]["connections"].items():
            if self.cells[cell]["port_directions"][name] != "input" or NOT_TIMED.fullmatch(name):
                continue
            if kind == "TRELLIS_DPR16X4" and not name.startswith("RAD"):
                continue
            if (kind, port) == ("CCU2C", "S0") and name.endswith("1"):  # of the other bit's sum
                continue
            if kind == "CCU2C":
                delay = CARRY if (name, port) == ("CIN", "COUT") else SUM if name == "CIN" else SUM + WIRE
            elif kind in ("PFUMX", "L6MUX21"):
                delay = MULTIPLEXER + WIRE * ((kind, name) in SHORTCUTS)
            else:
                delay = TABLE + WIRE
            found += [(bit, delay) for bit in bits if isinstance(bit, int)]
        return found

    def arrival(self, bit: int) -> float:
        """Return when a bit arrives; each bit is computed once, without recursion."""
        waiting, begun = [bit], set()
        while waiting:
            last = waiting[-1]
            driver = self.drivers.get(last)
            launched = 0.0 if driver is None else self.launched(*driver)
            if driver is None or launched is not None:
                self.arrivals[last] = launched or 0.0
            elif last not in self.arrivals:
                sources = self.through(*driver)
                missing = [source for source, _ in sources if source not in self.arrivals]
                if missing and last not in begun:  # else it is behind itself
                    begun.add(last)
                    waiting += missing
                    continue
                times = [(self.arrivals.get(source, 0.0) + delay, source) for source, delay in sources]
                self.arrivals[last], self.before[last] = max(times, default=(0.0, last))
            waiting.pop()
        return self.arrivals[bit]

    def path(self, bit: int) -> list[int]:
        """Return the bits of the longest path to a bit, its own first."""
        bits = [bit]
        while bits[-1] in self.before:
            bits.append(self.before[bits[-1]])
        return bits


def longest(netlist: Netlist, link: bool) -> Iterator[str]:
    """Give a line for each of the longest paths, that of most time first."""
    ends = []
    for cell, port, bits in netlist.pins("input"):
        timed = netlist.cells[cell]["type"] in CLOCKED and not NOT_TIMED.fullmatch(port)
        if timed and (link or not cell.startswith(LINK)):
            ends += [(netlist.arrival(bit) + WIRE, cell, port, bit) for bit in bits]
    seen = set()
    for time, cell, port, bit in sorted(ends, key=lambda end: (-end[0], *map(str, end[1:]))):
        path = netlist.path(bit)
        ways = re.sub(r"\d+", "", f"{netlist.names.get(path[-1])} {netlist.names.get(bit)}")
        if ways not in seen:
            seen.add(ways)
            kind = netlist.cells[netlist.drivers[path[-1]][0]]["type"] if path[-1] in netlist.drivers else "input"
            yield f"{time:6.2f} ns  {len(path) - 1:2} cells  {kind} {netlist.names.get(path[-1])} -> {cell}.{port}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("netlist", type=Path)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--link", action="store_true", help="paths of the board's link, too")
    arguments = parser.parse_args()
    for _, line in zip(range(arguments.count), longest(Netlist.read(arguments.netlist), arguments.link), strict=False):
        print(line)


if __name__ == "__main__":
    main()
