"""Nodes that carry their timing as an attribute."""

from __future__ import annotations

import pytest

from hwflow.schedule.throughput import even, events, steady
from tests.schedule.cycles import Operator


@pytest.fixture
def timings_from_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (even, events, steady):
        monkeypatch.setattr(module, "hardware", lambda op: Operator)
