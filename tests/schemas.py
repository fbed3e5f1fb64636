"""The schemas of docs/reference, which everything that tests write is checked against."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"


def schema(kind: str) -> dict[str, Any]:
    """Of "report" or "manifest"."""
    found: dict[str, Any] = json.loads((FOLDER / f"{kind}.schema.json").read_text())
    return found


@cache
def _validator(kind: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema(kind))


def violations(kind: str, table: Mapping[str, Any]) -> list[str]:
    """What a report or a manifest violates of its schema, with the place of each."""
    from jsonschema.exceptions import best_match

    found = [best_match([error]) for error in _validator(kind).iter_errors(table)]
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in found]


def checked(write: Callable[..., None]) -> Callable[..., None]:
    """What writes JSON files, and fails where a report or a whole manifest of a design violates its schema."""

    def write_checked(path: Path, table: Mapping[str, Any], indent: int | None = 1) -> None:
        write(path, table, indent)
        kind = path.name.removesuffix(".json")
        if path.name == "report.json" or (path.name == "manifest.json" and "sha256" in table):  # not its first half
            wrong = violations(kind, json.loads(path.read_text()))
            assert not wrong, f"{path}: {wrong}"

    return write_checked
