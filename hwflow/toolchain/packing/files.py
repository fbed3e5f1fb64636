"""Packing from file to file."""

from __future__ import annotations

import json
from pathlib import Path

from hwflow.toolchain.packing import Packing, pack


def pack_file(family: str, source: str | Path, target: str | Path) -> Packing:
    """Pack the netlist in ``source`` (yosys' JSON) for ``family`` and write it to ``target``, which may be the same."""
    design = json.loads(Path(source).read_text())
    packing = pack(design, family)
    Path(target).write_text(json.dumps(design, indent=1) + "\n")
    return packing
