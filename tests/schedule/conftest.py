"""Nodes that carry their timing as an attribute."""

from __future__ import annotations

from typing import Any

import pytest

from hwflow.cores.registry import hardware
from hwflow.schedule import fixed_depths, plan
from hwflow.schedule.throughput import even
from tests.schedule.cycles import Operator, Timed


@pytest.fixture
def timings_from_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    def timed(op: str) -> Any:
        return Operator if op == Timed.op else hardware(op)

    monkeypatch.setattr(plan, "hardware", lambda op: Operator)
    for module in (even, fixed_depths):
        monkeypatch.setattr(module, "hardware", timed)
