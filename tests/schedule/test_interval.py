"""The interval of a run: of the steady state, even where it comes late."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.ir.graph import Graph, Stage
from hwflow.schedule import schedule as module
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import _bound, _settled
from hwflow.schedule.throughput.evaluate import Run


def leading(frames: int, lead: int, cyclic: int = 1) -> Run:
    """A run whose slowest core, 40 cycles, has made ``lead`` frames before the first one; 30 cycles a frame until they
    are used up."""
    last = np.cumsum([100, *([30] * lead), *([40] * frames)])[:frames]
    return Run((np.stack([last - 3, last], axis=1),), cyclic=cyclic)


@pytest.mark.parametrize(("cyclic", "lead"), [(1, 0), (1, 20), (1, 50), (2, 30)])
def test_a_lead_is_waited_for(monkeypatch: pytest.MonkeyPatch, cyclic: int, lead: int) -> None:
    monkeypatch.setattr(module, "slowest", lambda plan: 40)
    monkeypatch.setattr(module, "evaluate", lambda plan, frames, cyclic=1: leading(frames, lead, cyclic))
    found = _settled(Plan(Graph("none", Stage.SCHEDULED, [], [], []), {}), leading(6, lead, cyclic))
    assert found.initiation_interval == 40
    assert found.last_output == leading(len(found.last_output), lead).last_output


@pytest.mark.parametrize("cyclic", [1, 3])
def test_a_bound_goes_on_at_the_pace_of_the_slowest_core(cyclic: int) -> None:
    endless = leading(96, 1000, cyclic)
    found = _bound(endless, 40)
    assert not found.exact and found.initiation_interval == 40
    assert found.last_output[:-1] == endless.last_output
    assert found.last_output[-1] == endless.last_output[-cyclic] + 40 * cyclic
    settled = leading(96, 0, cyclic)
    assert _bound(settled, 40).last_output == settled.last_output
