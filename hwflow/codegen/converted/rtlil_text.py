"""Rewrite Amaranth's RTLIL for readable Verilog."""

from __future__ import annotations

import re

from hwflow.cores.verilog_names import KEYWORDS


def readable(text: str) -> str:
    """Make public names legal Verilog identifiers, not keywords: hierarchy dots become double underscores; drop what
    :func:`without_initial_contents` does."""
    return without_initial_contents(_NAME.sub(lambda match: "\\" + legal(match.group(1)), text))


def without_initial_contents(text: str) -> str:
    """Drop the initial contents of written memories, all zeros: no word is read before it is written."""
    return "".join(_of_module(module) for module in re.split(r"(?m)^(?=attribute .*\nmodule |module )", text))


_NAME = re.compile(r"\\([A-Za-z_$][A-Za-z0-9_.$]*(?:\[\d+\])*)")  # Amaranth numbers the lanes of a port: payload[0]
_MEMORY_CELL = re.compile(r"(?ms)^  cell (\$mem\w+) \S+\n(.*?)^  end\n")
_MEMORY_NAME = re.compile(r"parameter \\MEMID \"(.*?)\"")


def legal(name: str) -> str:
    """Return the legal form of a name."""
    # Two underscores, which no name from a model has: a.b, a[1] and a$1 (the second signal a) become a__b, a__1, a__v1.
    plain = re.sub(r"[.\[]", "__", name.replace("]", "").replace("$", "__v"))
    return f"{plain}_" if plain in KEYWORDS else plain


def _of_module(module: str) -> str:
    written = {
        _MEMORY_NAME.search(cell.group(2)).group(1)  # type: ignore[union-attr]  # every memory cell has the parameter
        for cell in _MEMORY_CELL.finditer(module)
        if cell.group(1).startswith("$memwr")
    }

    def keep(cell: re.Match[str]) -> str:
        name = _MEMORY_NAME.search(cell.group(2))
        initial = cell.group(1).startswith("$meminit") and name is not None and name.group(1) in written
        return "" if initial else cell.group(0)

    return _MEMORY_CELL.sub(keep, module) if written else module
