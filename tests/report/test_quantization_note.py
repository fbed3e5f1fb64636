"""What a model's metadata says of its noise, if it does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hwflow.report.quantization_note import KEY, note, noted

LAYER = {"name": "x", "node": "conv", "type": "int8", "weights": True, "snr_db": 31.5, "noise_share": None}


def test_what_is_noted_is_read() -> None:
    assert noted({KEY: note([LAYER | {"more": 1}, LAYER | {"snr_db": None}])}) == [LAYER, LAYER | {"snr_db": None}]
    assert noted({}) is None


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "1", "{}", "[" * 100_000, "[1]", json.dumps([{}]), json.dumps({"layers": [LAYER]}),
        json.dumps([LAYER | {"more": 1}]), json.dumps([LAYER | {"snr_db": "30"}]), json.dumps([LAYER | {"name": 1}]),
        json.dumps([LAYER | {"snr_db": True}]), json.dumps([LAYER | {"weights": 1}]), "[{\"snr_db\": NaN}]",
        json.dumps([LAYER | {"snr_db": float("inf")}]), json.dumps([LAYER] * 20_000),
    ],
)  # fmt: skip
def test_anything_else_is_nothing(text: str) -> None:
    """The file is not ours: it may hold what would stop the page."""
    assert noted({KEY: text}) is None


def test_what_else_a_layer_has_is_left_out() -> None:
    row: dict[str, Any] = json.loads(note([LAYER | {"bits": 8}]))[0]
    assert row == LAYER
