"""Write JSON files atomically."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_json(path: Path, table: Mapping[str, Any], indent: int | None = 1) -> None:
    """Write a temporary file, then rename it."""
    beside = path.with_name(path.name + ".part")
    try:
        beside.write_text(json.dumps(table, indent=indent) + "\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
