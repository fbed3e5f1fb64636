"""Nodes that carry their timing as an attribute."""

from __future__ import annotations

import pytest

from hwflow.schedule import plan
from tests.schedule.cycles import Operator


@pytest.fixture
def timings_from_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "hardware", lambda op: Operator)
