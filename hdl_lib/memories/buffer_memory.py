"""A memory that is written and read, with two registers behind it, in parts where that takes fewer block RAMs."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import memory
from amaranth.utils import ceil_log2

from hdl_lib.memories.rom import BLOCK_SHAPES


def part_rows(width: int, depth: int) -> int:
    """Return the words of each part, one behind the other, of a memory of ``depth`` words of ``width`` bits: all, or
    the rows of a block RAM of 18 Kbit where several parts take fewer block RAMs. The last part has what is left."""
    shapes = ((-(-depth // rows), rows, bits) for rows, bits in BLOCK_SHAPES)
    _, parts, rows = min((parts * -(-width // bits), parts, rows) for parts, rows, bits in shapes)
    return rows if parts > 1 else depth


def memory_parts(width: int, depth: int) -> list[int]:
    """Return the words of each part (:func:`part_rows`)."""
    rows = part_rows(width, depth)
    return [min(rows, depth - first) for first in range(0, depth, rows)]


class BufferMemory:
    """A memory with a write port and a read port.

    Parameters: ``m``, the module that it is built in; ``name`` of the memory in it; ``width``, bits of a word;
    ``depth``, words. A memory of several parts (:func:`part_rows`) chooses among their second registers. Synthesis
    would make these parts by itself, but would choose among them right behind the block RAMs' slow outputs.

    Nobody reads a word, and uses it, in the cycle in which it is written: no logic is there for that case.
    """

    def __init__(self, m: Module, name: str, width: int, depth: int) -> None:
        self._m, self._name, self._width = m, name, width
        self.address_width = max(1, ceil_log2(depth))
        parts = memory_parts(width, depth)
        self._low = ceil_log2(parts[0])  # address bits within a part
        self._parts = []
        for part, words in enumerate(parts):
            # A memory of one word would have a port of no bits.
            stored = memory.Memory(shape=width, depth=max(2, words), init=[], attrs={"no_rw_check": 1})
            m.submodules[f"{name}_{part}" if len(parts) > 1 else name] = stored
            self._parts.append(stored)

    def write(self, enable: Value, address: Value, data: Value) -> None:
        """Write ``data`` to the word at ``address`` in a cycle with ``enable``."""
        for part, stored in enumerate(self._parts):
            port = stored.write_port()
            here = enable if len(self._parts) == 1 else enable & (address[self._low :] == part)
            self._m.d.comb += [port.en.eq(here), port.addr.eq(address), port.data.eq(data)]

    def read(self, address: Value, *, fetch: Value | None = None, move: Value | None = None) -> Value:
        """Return the word at ``address``, two cycles later: the memory's register takes it in a cycle with ``fetch``,
        and the register behind it takes that one's in a cycle with ``move``; without them in every cycle."""
        fetch, move = (Const(1) if enable is None else enable for enable in (fetch, move))
        fetched = self._fetched(address, fetch)
        shown = [self._register(f"read_{part}_registered", first, move) for part, first in enumerate(fetched)]
        if len(shown) == 1:
            return shown[0]
        m = self._m
        chosen = self._register("part_registered", self._register("part", address[self._low :], fetch), move)
        word = Signal(self._width, name=f"{self._name}_word")
        with m.Switch(chosen):
            for part, data in enumerate(shown):
                with m.Case(part) if part < len(shown) - 1 else m.Default():
                    m.d.comb += word.eq(data)
        return word

    def read_soon(self, address: Value) -> Value:
        """Return the word at ``address`` a cycle later, from the memory's register; with several parts as :meth:`read`.
        """
        return self._fetched(address, Const(1))[0] if len(self._parts) == 1 else self.read(address)

    def _fetched(self, address: Value, fetch: Value) -> list[Signal]:
        """Return each part's register."""
        registers = []
        for part, stored in enumerate(self._parts):
            # The memory's read register is written out: synthesis takes "no read meets a write" for such ones only.
            port = stored.read_port(domain="comb")
            self._m.d.comb += port.addr.eq(address)
            registers.append(self._register(f"read_{part}", port.data, fetch))
        return registers

    def _register(self, name: str, value: Value, enable: Value) -> Signal:
        register = Signal(len(value), name=f"{self._name}_{name}", reset_less=True)
        with self._m.If(enable):
            self._m.d.sync += register.eq(value)
        return register
