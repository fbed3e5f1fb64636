"""The contents of block RAMs, in a netlist's cells and in the files of place and route, as the text of the latter."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BlockFiles:
    """Where a family has its block RAMs' contents. ``cells``: the beginning of the type of a netlist's cells, whose
    parameters ``contents`` are begun so; ``body``: from these parameters to the lines of a section in the placed
    design, which begins with a line ``section``. ``places``: whether that line says where the block lies."""

    cells: str
    contents: str
    body: Callable[[Mapping[str, str]], str]
    section: re.Pattern[str]

    def bodies(self, placed: str) -> dict[str, str]:
        """Return the contents of the sections of a placed design's file, by their first lines."""
        return {match[1]: match[2] for match in self.section.finditer(placed)}

    def replaced(self, placed: str, new: Mapping[str, str]) -> str:
        """Return a placed design's file with ``new`` contents by old ones; others stay."""
        return self.section.sub(lambda match: f"{match[1]}\n{new.get(match[2], match[2])}", placed)


def _trellis(parameters: Mapping[str, str]) -> str:
    """Return the 2,048 words of nine bits of a DP16KD: an initial value is 16 words of 18 bits, two bits apart."""
    words = [0] * 2048
    for row in range(64):
        bits = parameters.get(f"INITVAL_{row:02X}", "").replace("x", "0")[::-1]
        if "1" not in bits:
            continue
        for half in range(32):
            start = 20 * (half // 2) + 9 * (half % 2)
            words[32 * row + half] = int(bits[start : start + 9][::-1] or "0", 2)
    lines = (words[start : start + 8] for start in range(0, len(words), 8))
    return "".join(" ".join(f"{word:03x}" for word in line) + "\n" for line in lines)


def _icestorm(parameters: Mapping[str, str]) -> str:
    """Return the 16 rows of 256 bits of an SB_RAM40_4K."""
    rows = (parameters.get(f"INIT_{row:X}", "").replace("x", "0") or "0" for row in range(16))
    return "".join(f"{int(row, 2):064x}\n" for row in rows)


FILES: Mapping[str, BlockFiles] = {
    "ecp5": BlockFiles(
        "DP16KD", "INITVAL_", _trellis, re.compile(r"^(\.bram_init \d+)\n((?:[0-9a-f]{3}[0-9a-f ]*\n)+)", re.MULTILINE)
    ),
    "ice40": BlockFiles(
        "SB_RAM40_4K", "INIT_", _icestorm, re.compile(r"^(\.ram_data \d+ \d+)\n((?:[0-9a-f]+\n)+)", re.MULTILINE)
    ),
}
