"""What waits in a board's memory: how much room it is given, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from hwflow.api.compiler import dataflow
from hwflow.boards import find_board
from hwflow.cores.external.memory_delay import MemoryDelayAttributes
from hwflow.cores.external.memory_queue import MemoryQueueAttributes
from hwflow.cores.external.weight_memory import MemoryTiming
from hwflow.errors import ModelRefused
from hwflow.frontend.states.ties import States
from hwflow.ir.graph import Graph
from hwflow.loaded_model import load
from hwflow.passes.outside.queue_outside import queue_outside
from hwflow.schedule.queues_outside import deep_delays
from tests.flow.test_queues_outside import excited
from tests.flow.test_states_outside import CHANNELS, SIZE, smoothed

BLOCK = 16_384  # bits


def timing(rows: int) -> MemoryTiming:
    """A memory of so many rows in each of its banks, of 512 words."""
    board = find_board("ulx3s_85f")
    assert board.memory is not None
    found = board.memory.timing(Fraction(100_000_000))
    return replace(found, chip=replace(found.chip, rows=rows))


def recurrent(folder: Path, channels: int = CHANNELS) -> Graph:
    return dataflow(load(smoothed().save(folder), states=States(("h_next=h",), channels)).quantized)


def image(graph: Graph) -> str:
    """The name of a stream of 64 x 64 pixels."""
    return next(value.name for node in graph.nodes for value in node.outputs if value.typed.shape == (4096, 8))


@pytest.mark.parametrize(("rows", "times"), [(128, 8), (40, 4), (20, 2), (9, 1)])
def test_a_queue_has_as_much_room_as_there_is(tmp_path: Path, rows: int, times: int) -> None:
    """64 x 64 pixels of 8 bytes are 16,384 words: 32 pages of 512 if bursts fill these, and two slots more."""
    graph = dataflow(load(excited().save(tmp_path)).quantized)
    made = queue_outside(graph, {image(graph): Fraction(1)}, timing(rows))
    (queue,) = [node.attributes for node in made.nodes if isinstance(node.attributes, MemoryQueueAttributes)]
    assert queue.planned.pages <= 4 * rows
    assert times <= queue.region.slots * queue.region.burst / 16_384 < 1.2 * times


def test_a_memory_that_is_too_small_is_refused(tmp_path: Path) -> None:
    graph = dataflow(load(excited().save(tmp_path)).quantized)
    with pytest.raises(ModelRefused, match=r"must take at most 16,384 bytes, not 3[0-9],") as refused:
        queue_outside(graph, {image(graph): Fraction(1)}, timing(4))
    assert "a board with more memory" in refused.value.findings[0].remedy


def test_a_delay_has_room_for_its_frames(tmp_path: Path) -> None:
    graph = recurrent(tmp_path)
    states = deep_delays(graph, BLOCK)
    assert list(states.values()) == [CHANNELS]
    made = queue_outside(graph, states, timing(4096))
    (delay,) = [node.attributes for node in made.nodes if isinstance(node.attributes, MemoryDelayAttributes)]
    assert delay.region.slots >= CHANNELS * delay.region.bursts + 2 and delay.region.words == SIZE // 2
    assert delay.first_frames.shape == (CHANNELS, 1, SIZE)
    with pytest.raises(ModelRefused, match=r"must take at most [0-9],096 bytes"):
        queue_outside(graph, states, timing(1))


def test_small_states_stay(tmp_path: Path) -> None:
    assert not deep_delays(recurrent(tmp_path, 16), BLOCK)


def test_nothing_outside_leaves_a_graph_as_it_is(tmp_path: Path) -> None:
    graph = recurrent(tmp_path)
    assert queue_outside(graph, {}, None) is graph
