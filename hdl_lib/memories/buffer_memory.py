"""A memory that is written and read, with two registers behind it, in parts where that takes fewer block RAMs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory
from amaranth.utils import ceil_log2

from hdl_lib.blocks import delayed
from hdl_lib.memories.rom import BLOCK_SHAPES

_NEAR = 4
"""Parts that choose among each other in a step."""

_STEPS = 3
"""Of a choice in steps: enough for 64 parts."""


def memory_parts(width: int, depth: int) -> list[int]:
    """Return the words of each part, one behind the other, of a memory of ``depth`` words of ``width`` bits: all, or
    rows of block RAMs of 18 Kbit where several parts take fewer of these. No part has more words than the one before
    it."""
    return list(_parts(width, depth)[2])


@lru_cache(maxsize=1 << 12)
def _parts(width: int, depth: int) -> tuple[int, int, tuple[int, ...]]:
    """Return the fewest block RAMs, the number of parts, and their words."""
    found: list[tuple[int, int, tuple[int, ...]]] = []
    for rows, bits in BLOCK_SHAPES:
        blocks, (whole, left) = -(-width // bits), divmod(depth, rows)
        if depth <= rows:
            found.append((blocks, 1, (depth,)))
        else:
            others, parts, words = _parts(width, left) if left else (0, 0, ())
            found.append((whole * blocks + others, whole + parts, (rows,) * whole + words))
    return min(found)


class BufferMemory:
    """A memory with a write port and a read port.

    Parameters: ``name`` of the memory; ``width``, bits of a word; ``depth``, words. A memory of several parts
    (:func:`memory_parts`) chooses among their second registers. Synthesis would make these parts by itself, but would
    choose among them right behind the block RAMs' slow outputs.

    Nobody reads a word, and uses it, in the cycle in which it is written: no logic is there for that case.

    ``parts``: the memories; ``fetched``, ``moved``: of each its own register, and the one behind it.
    """

    def __init__(self, name: str, width: int, depth: int) -> None:
        self._name, self._width = name, width
        self.address_width = max(1, ceil_log2(depth))
        words = memory_parts(width, depth)
        # Address bits within a part; what is left behind others has as many as they.
        self._low = [ceil_log2(count) for count in (*words[:-1], *words[-2:][:1])]
        self._first = [*accumulate(words[:-1], initial=0)]  # word of each
        # A memory of one word would have a port of no bits.
        self.parts = [
            memory.Memory(shape=width, depth=max(2, count), init=[], attrs={"no_rw_check": 1}) for count in words
        ]
        # The memory's read register is written out: synthesis takes "no read meets a write" for such ones only.
        self._ports = [(part.write_port(), part.read_port(domain="comb")) for part in self.parts]
        self.fetched, self.moved = (
            [Signal(width, name=f"{name}_{part}{suffix}", reset_less=True) for part in range(len(words))]
            for suffix in ("_read", "_registered")
        )

    def write(self, m: Module, enable: Value, address: Value, data: Value) -> None:
        """Build the memory, which writes ``data`` to the word at ``address`` in a cycle with ``enable``."""
        for part, (stored, (port, _)) in enumerate(zip(self.parts, self._ports, strict=True)):
            m.submodules[f"{self._name}_{part}" if len(self.parts) > 1 else self._name] = stored
            m.d.comb += [port.en.eq(self._is_in(part, enable, address)), port.addr.eq(address), port.data.eq(data)]

    def write_in_steps(self, m: Module, enable: Value, address: Value, data: Value) -> None:
        """Build the memory, which writes ``data`` to the word at ``address`` in the cycle after one with ``enable``:
        which part it goes to is in a register."""
        enables = Signal(len(self.parts), name=f"{self._name}_write_part")
        m.d.sync += enables.eq(Cat(self._is_in(part, enable, address) for part in range(len(self.parts))))
        place, word = (
            delayed(m, f"{self._name}_write_{name}", each, 1, reset=False)
            for name, each in (("address", address), ("word", data))
        )
        for part, (stored, (port, _)) in enumerate(zip(self.parts, self._ports, strict=True)):
            m.submodules[f"{self._name}_{part}" if len(self.parts) > 1 else self._name] = stored
            m.d.comb += [port.en.eq(enables[part]), port.addr.eq(place), port.data.eq(word)]

    def _is_in(self, part: int, enable: Value, address: Value) -> Value:
        """Return ``enable``, if a part has the word at ``address``."""
        low, first = self._low[part], self._first[part]
        return enable if len(self.parts) == 1 else enable & (address[low:] == first >> low)

    def _part_at(self, address: Value) -> Value:
        """Return the number of the part with the word at ``address``."""
        number, before = address[self._low[0] :], self._low[0]
        for part, (low, first) in enumerate(zip(self._low, self._first, strict=True)):
            if low < before:  # smaller ones follow, in the place of one
                number = Mux(address[before:] == first >> before, part + address[low:before], number)
                before = low
        return number[: ceil_log2(len(self.parts))]

    def read(self, m: Module, address: Value, *, fetch: Value | None = None, move: Value | None = None) -> Value:
        """Return the word at ``address``, two cycles later: the memory's register takes it in a cycle with ``fetch``,
        and the register behind it takes that one's in a cycle with ``move``; without them in every cycle."""
        fetch, move = (Const(1) if enable is None else enable for enable in (fetch, move))
        self._fetch(m, address, fetch)
        with m.If(move):
            m.d.sync += [second.eq(first) for first, second in zip(self.fetched, self.moved, strict=True)]
        if len(self.parts) == 1:
            return self.moved[0]
        part = self._part_at(address)
        first, second = (
            Signal(len(part), name=f"{self._name}_part{suffix}", reset_less=True) for suffix in ("", "_registered")
        )
        with m.If(fetch):
            m.d.sync += first.eq(part)
        with m.If(move):
            m.d.sync += second.eq(first)
        word = Signal(self._width, name=f"{self._name}_word")
        with m.Switch(second):
            for number, data in enumerate(self.moved):
                with m.Case(number) if number < len(self.moved) - 1 else m.Default():
                    m.d.comb += word.eq(data)
        return word

    def read_in_steps(self, m: Module, address: Value) -> Value:
        """Return the word at ``address``, five cycles later: a few parts choose among each other, then their choices,
        and these once more, with a register behind each, so that a choice may stand among its parts."""
        self._fetch(m, address, Const(1))
        m.d.sync += [second.eq(first) for first, second in zip(self.fetched, self.moved, strict=True)]
        words, bits = self.moved, ceil_log2(_NEAR)
        number = delayed(m, f"{self._name}_part", self._part_at(address), 2, reset=False)
        for step in range(_STEPS):
            groups = [words[first : first + _NEAR] for first in range(0, len(words), _NEAR)]
            words = [
                self._chosen(m, f"chosen_{step}_{place}", group, number[:bits]) for place, group in enumerate(groups)
            ]
            number = delayed(m, f"{self._name}_group_{step}", number[bits:], 1, reset=False)
        (word,) = words
        return word

    def _chosen(self, m: Module, name: str, words: Sequence[Signal], number: Value) -> Signal:
        """Return the word with a number, a cycle later."""
        chosen = Signal(self._width, name=f"{self._name}_{name}", reset_less=True)
        if len(words) == 1:
            m.d.sync += chosen.eq(words[0])
            return chosen
        with m.Switch(number):
            for place, word in enumerate(words):
                with m.Case(place) if place < len(words) - 1 else m.Default():
                    m.d.sync += chosen.eq(word)
        return chosen

    def read_soon(self, m: Module, address: Value) -> Value:
        """Return the word at ``address`` a cycle later, from the memory's register; with several parts as :meth:`read`.
        """
        if len(self.parts) > 1:
            return self.read(m, address)
        self._fetch(m, address, Const(1))
        return self.fetched[0]

    def _fetch(self, m: Module, address: Value, enable: Value) -> None:
        for register, (_, port) in zip(self.fetched, self._ports, strict=True):
            m.d.comb += port.addr.eq(address)
            with m.If(enable):
                m.d.sync += register.eq(port.data)
