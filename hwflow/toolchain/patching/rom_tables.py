"""The tables of an emitted design: where they stand in its hierarchy, and the bits of their words that are constant.

Synthesis leaves out the bits of a table's words that never change, so a new table fits an old one's memory only where
the old one's bits change, or the new one's are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_MODULE = re.compile(r"^module (\w+)(.*?)^endmodule", re.MULTILINE | re.DOTALL)
_PLAIN = re.compile(r"^  (\w+) (?:#\(\.WEIGHTS_DIR\(WEIGHTS_DIR\)\) )?(\w+) \($", re.MULTILINE)
_TABLE = re.compile(r"^  \w+_rom #\(\n(.*?)^  \) (\w+) \($", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\.(WIDTH|DEPTH|HELD)\(32'd(\d+)\)")
_FILE = re.compile(r'\.FILE\(\{WEIGHTS_DIR, "/(\w+\.mem)"\}\)')
_ROM = re.compile(r"^module (\w+_rom) #\(.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_FOLDER = "weights"


@dataclass(frozen=True)
class RomTable:
    """A table. ``path``: its instance's name in a flattened netlist, with that of its memory; ``file``: its
    ``$readmemh`` file; ``block``: it asks for block RAM, whatever its size; ``held``: likewise, and synthesis
    leaves out none of its bits."""

    path: str
    file: str
    width: int
    depth: int
    block: bool = False
    held: bool = False


def tables_of(verilog: str, top: str, path: str) -> list[RomTable]:
    """Return the tables in files of an emitted design, once for each place below the module ``top``, which stands at
    ``path``."""
    below: dict[str, list[tuple[str, str]]] = {}
    tables: dict[str, list[RomTable]] = {}
    for name, body in _MODULE.findall(verilog):
        below[name] = _PLAIN.findall(body)
        tables[name] = [_table(parameters, instance) for parameters, instance in _TABLE.findall(body)]
    return list(_below(top, path, below, tables))


def _below(
    module: str, path: str, below: dict[str, list[tuple[str, str]]], tables: dict[str, list[RomTable]]
) -> Iterator[RomTable]:
    for table in tables.get(module, ()):
        yield replace(table, path=f"{path}.{table.path}")
    for child, instance in below.get(module, ()):
        if child in below:
            yield from _below(child, f"{path}.{instance}", below, tables)


def _table(text: str, instance: str) -> RomTable:
    sizes = {name: int(number) for name, number in _NUMBER.findall(text)}
    (file,) = _FILE.findall(text)
    return RomTable(f"{instance}.memory", f"{_FOLDER}/{file}", sizes["WIDTH"], sizes["DEPTH"], held="HELD" in sizes)


def rom_of(verilog: str) -> tuple[str, str] | None:
    """Return the name and the text of the module that reads tables from files; None if the design has none."""
    found = _ROM.search(verilog)
    return None if found is None else (found[1], found[0])


def words_of(path: Path) -> list[int]:
    """Return the words of a ``$readmemh`` file."""
    return [int(line, 16) for line in path.read_text().split()]


def text_of(words: Sequence[int], width: int) -> str:
    """Return the ``$readmemh`` file of such words."""
    return "".join(f"{word:0{-(-width // 4)}x}\n" for word in words)


def constant_bits(words: Sequence[int], width: int) -> tuple[int, int]:
    """Return which bits are 0 in every word, and which are 1, as masks."""
    every, some = (1 << width) - 1, 0
    for word in words:
        every &= word
        some |= word
    return ~some & ((1 << width) - 1), every


def lost_bits(left_out: tuple[int, int], new: Sequence[int], width: int) -> int:
    """Return the mask of the bits that synthesis ``left_out`` as constants (:func:`constant_bits`) and that ``new`` has
    otherwise."""
    (old_zeros, old_ones), (zeros, ones) = left_out, constant_bits(new, width)
    return (old_zeros & ~zeros) | (old_ones & ~ones)


COPIES = 3


def with_changing_bits(left_out: tuple[int, int], words: Sequence[int], width: int) -> list[list[int]]:
    """Return tables in which every bit changes that synthesis has not ``left_out``: ``words``, or where others are
    constant there, :data:`COPIES` of it. Each of these differs from it in one word of its own, so that whatever
    synthesis makes of a bit, two of three have the right one."""
    zeros, ones = constant_bits(words, width)
    only_here = (zeros | ones) & ~(left_out[0] | left_out[1])
    if not only_here:
        return [list(words)]
    made = []
    for copy in range(COPIES):
        copied = list(words)
        copied[copy] ^= only_here
        made.append(copied)
    return made
