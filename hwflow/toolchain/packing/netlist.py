"""A mapped module of yosys' JSON netlist: the drivers and readers of its nets.

The format is that of yosys' ``write_json``: a net is a number, a constant the string "0", "1", "x" or "z".
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import count
from typing import Any

Bit = int | str
Pin = tuple[str, str]  # a cell and one of its ports, both by name
PORT = ""  # the "cell" that stands for the module's own ports


def top_module(design: dict[str, Any]) -> dict[str, Any]:
    """Return the top module of a design.

    Raises :class:`ValueError` for a design without a module, or with several and none marked as the top.
    """
    modules: dict[str, Any] = design.get("modules", {})
    tops = [m for m in modules.values() if int(str(m.get("attributes", {}).get("top", "0")), 2)]
    candidates = tops or list(modules.values())
    if len(candidates) != 1:
        raise ValueError(f"a netlist must have one top module, not {len(candidates)}")
    top: dict[str, Any] = candidates[0]
    return top


class Netlist:
    """The top module of ``design``, edited in place. Raises as :func:`top_module`.
    """

    def __init__(self, design: dict[str, Any]):
        top = top_module(design)
        self._cells: dict[str, Any] = top["cells"]
        self._names: dict[str, Any] = top.setdefault("netnames", {})
        self._scopes: dict[int, tuple[str, ...]] = {}
        for net in self._names.values():
            path = tuple(str(net.get("attributes", {}).get("hdlname", "")).split()[:-1])
            for bit in net["bits"]:
                if isinstance(bit, int) and len(path) > len(self._scopes.get(bit, ())):
                    self._scopes[bit] = path
        self._drivers: dict[int, Pin] = {}
        self._readers: dict[int, dict[Pin, None]] = {}
        for name, port in top.get("ports", {}).items():
            for bit in port["bits"]:
                if isinstance(bit, int):
                    if port["direction"] == "input":
                        self._drivers[bit] = (PORT, name)
                    else:
                        self._readers.setdefault(bit, {})[PORT, name] = None
        for name, cell in self._cells.items():
            for port in cell["connections"]:
                self._note(name, port)
        self._free = 1 + max((1, *self._drivers, *self._readers))  # yosys' numbers begin with 2

    def _note(self, name: str, port: str) -> None:
        cell = self._cells[name]
        drives = cell["port_directions"].get(port) == "output"
        for bit in cell["connections"][port]:
            if isinstance(bit, int):
                if drives:
                    self._drivers[bit] = (name, port)
                else:
                    self._readers.setdefault(bit, {})[name, port] = None

    def _forget(self, name: str, port: str) -> None:
        for bit in self._cells[name]["connections"].get(port, ()):
            if isinstance(bit, int):
                if self._drivers.get(bit) == (name, port):
                    del self._drivers[bit]
                self._readers.get(bit, {}).pop((name, port), None)

    def cells(self, *types: str) -> Iterator[str]:
        """Return the names of the cells of these types, in the netlist's order."""
        return iter([name for name, cell in self._cells.items() if cell["type"] in types])

    def holds(self, name: str) -> bool:
        """Tell whether the cell exists."""
        return name in self._cells

    def kind(self, name: str) -> str:
        """Return the type of a cell; "" for the module's ports."""
        return str(self._cells[name]["type"]) if name != PORT else ""

    def parameters(self, name: str) -> dict[str, Any]:
        """Return the parameters of a cell, which may be changed."""
        parameters: dict[str, Any] = self._cells[name]["parameters"]
        return parameters

    def attributes(self, name: str) -> dict[str, Any]:
        """Return the attributes of a cell, which may be changed."""
        attributes: dict[str, Any] = self._cells[name].setdefault("attributes", {})
        return attributes

    def nets(self) -> Iterator[list[str]]:
        """Yield the cells on each net, the driver first, once per pin."""
        for bit in dict.fromkeys((*self._drivers, *self._readers)):
            driver = self._drivers.get(bit)
            yield [cell for cell, _ in ((driver,) if driver is not None else ())] + [c for c, _ in self.readers(bit)]

    def bits(self, name: str, port: str) -> list[Bit]:
        """Return the bits of a cell's port, least significant first; [] if it is open or absent."""
        return list(self._cells[name]["connections"].get(port, ()))

    def bit(self, name: str, port: str, default: Bit = "x") -> Bit:
        """Return the bit of a one-bit port; ``default`` if it is open."""
        return next(iter(self.bits(name, port)), default)

    def connect(self, name: str, port: str, bits: list[Bit], direction: str | None = None) -> None:
        """Reconnect a port of a cell. ``direction``: of a new port."""
        self._forget(name, port)
        cell = self._cells[name]
        cell["connections"][port] = bits
        if direction is not None:
            cell["port_directions"][port] = direction
        self._note(name, port)

    def net(self) -> Bit:
        """Return a new net."""
        self._free += 1
        return self._free - 1

    def add(
        self, name: str, kind: str, parameters: dict[str, Any], inputs: dict[str, list[Bit]],
        outputs: dict[str, list[Bit]],
    ) -> None:
        """Add a cell of the type ``kind``; a ``name`` that is taken gets a number."""
        name = next(free for n in count(1) if (free := name if n == 1 else f"{name}_{n}") not in self._cells)
        directions = dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output")
        self._cells[name] = {
            "hide_name": 0, "type": kind, "parameters": parameters, "attributes": {}, "port_directions": directions,
            "connections": {**inputs, **outputs},
        }
        for port in directions:
            self._note(name, port)

    def disconnect(self, name: str, port: str) -> None:
        """Leave a port of a cell open."""
        self._forget(name, port)
        self._cells[name]["connections"].pop(port, None)
        self._cells[name]["port_directions"].pop(port, None)

    def remove(self, name: str) -> None:
        """Remove a cell; the nets that it drove are left without a driver."""
        for port in self._cells[name]["connections"]:
            self._forget(name, port)
        del self._cells[name]

    def inputs(self, name: str) -> list[Bit]:
        """Return the bits of all input ports of a cell."""
        cell = self._cells[name]
        ports = [port for port, way in cell["port_directions"].items() if way != "output"]
        return [bit for port in ports for bit in cell["connections"].get(port, ())]

    def copy(self, name: str, output: str, scope: str) -> Bit:
        """Add a copy of the cell ``name`` with a new net on its port ``output``; return the net.

        Its name is ``scope`` (instances, each with a trailing dot), the last part of the cell's name, and a number.
        """
        cell = self._cells[name]
        bit = self.net()
        base = scope + name.rsplit(".", 1)[-1]
        copied = next(free for n in count(1) if (free := f"{base}_copy{n}") not in self._cells)
        self._cells[copied] = deepcopy(cell)
        self._cells[copied]["connections"][output] = [bit]
        self._names[f"{copied}_{output}"] = {"hide_name": 0, "bits": [bit], "attributes": {}}
        for port in cell["connections"]:
            self._note(copied, port)
        return bit

    def driver(self, bit: Bit) -> Pin | None:
        """Return the pin that drives a bit; None for a constant or an undriven net."""
        return self._drivers.get(bit) if isinstance(bit, int) else None

    def readers(self, bit: Bit) -> list[Pin]:
        """Return the pins that read a bit."""
        return list(self._readers.get(bit, ())) if isinstance(bit, int) else []

    def scope(self, bit: Bit) -> tuple[str, ...]:
        """Return the instances in the flattened module, outermost first, of a net's longest name; () for the top module
        itself, and for a net named by synthesis."""
        return self._scopes.get(bit, ()) if isinstance(bit, int) else ()
