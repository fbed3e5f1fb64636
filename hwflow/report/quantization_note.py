"""What `hwflow quantize` found out about a model's noise, as its file carries it: an entry of the model's metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

KEY = "hwflow.quantization"

_MOST = 1 << 20  # characters: a file may hold anything
_TEXTS, _NUMBERS = ("name", "node", "type"), ("snr_db", "noise_share")


def note(layers: list[dict[str, Any]]) -> str:
    """Return the entry of these layers: ``name``, ``node``, ``type``, ``weights``, ``snr_db`` and ``noise_share`` of
    each, as ``quantize --format json`` has them."""
    keys = (*_TEXTS, "weights", *_NUMBERS)
    return json.dumps([{key: layer[key] for key in keys} for layer in layers], separators=(",", ":"))


def noted(metadata: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """Return the layers that a model's metadata has; None where there is no such entry, or something else in it."""
    text = metadata.get(KEY, "")
    if not 0 < len(text) <= _MOST:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    rows = found if isinstance(found, list) else []
    return rows if rows and all(map(_is_layer, rows)) else None


def _is_layer(row: object) -> bool:
    return (
        isinstance(row, dict) and row.keys() == {*_TEXTS, "weights", *_NUMBERS} and isinstance(row["weights"], bool)
        and all(isinstance(row[key], str) for key in _TEXTS)
        and all(row[key] is None or (type(row[key]) in (int, float) and isfinite(row[key])) for key in _NUMBERS)
    )
