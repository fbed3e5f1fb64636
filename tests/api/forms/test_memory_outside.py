"""Which of two designs is taken where deep queues may lie in memory outside."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from hwflow.api.compiler import dataflow
from hwflow.api.forms import memory_outside as subject
from hwflow.api.forms.memory_outside import MemoryOutside
from hwflow.boards import find_board
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Graph
from hwflow.loaded_model import load
from tests.flow.test_queues_outside import excited

REFUSED = 0


@pytest.mark.parametrize(
    ("inside", "outside", "asks_rate", "taken", "compiled"),
    [
        (125, 100, False, 125, 1),  # little slower than its cores: nothing else is tried
        (400, 110, False, 110, 2),
        (400, 500, False, 400, 2),
        (400, REFUSED, False, 400, 2),
        (400, 110, True, 400, 1),  # it is as fast as asked
        (REFUSED, 110, False, 110, 2),
    ],
)
def test_the_faster_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, inside: int, outside: int, asks_rate: bool, taken: int,
    compiled: int,
) -> None:
    """Of designs that have intervals so and so, and whose cores need 100 cycles."""
    graph = dataflow(load(excited(8).save(tmp_path)).quantized)
    tried = []

    def made(graph: Graph, *_: object) -> SimpleNamespace:
        waits = any(node.op == "memory_queue" for node in graph.nodes)
        tried.append(waits)
        interval = outside if waits else inside
        if interval == REFUSED:
            raise ModelRefused.of("device-budget", "model", "too large", "a larger board")
        search = SimpleNamespace(least=lambda: 100)
        return SimpleNamespace(schedule=SimpleNamespace(initiation_interval=interval, search=search))

    monkeypatch.setattr(subject, "scheduled", made)
    board = find_board("ulx3s_85f")
    clock = SimpleNamespace(frequency_hz=Fraction(100_000_000))
    request = SimpleNamespace(asks_rate=asks_rate, board=board, clock=clock)
    memory = MemoryOutside(
        graph, board.memory_timing(clock.frequency_hz), None, request, lambda text: None, None,
        _queues=[{image(graph): Fraction(1)}],
    )
    assert memory._either(graph).schedule.initiation_interval == taken
    assert tried == [False, True][:compiled]


def image(graph: Graph) -> str:
    """The name of a stream of 8 x 8 pixels in front of the product."""
    return next(value.name for node in graph.nodes for value in node.outputs if value.typed.shape == (64, 8))
