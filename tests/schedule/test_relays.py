"""Where relays stand: followed path by path from one core with multiplier blocks to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from hwflow.api.compiler import dataflow as api_dataflow
from hwflow.boards import find_board
from hwflow.boards.board import Part
from hwflow.cores.chain import ChainAttributes
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Graph, Node
from hwflow.loaded_model import load
from hwflow.passes.outside.fetch_weights import fetch_weights, may_be_fetched
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import Schedule, schedule
from hwflow.schedule.search.folding_search import Budget
from hwflow.schedule.throughput.even import EvenSchedule
from tests.flow.networks import dense_network
from tests.schedule.graphs import dataflow, meeting_graph, random_graph
from tests.schedule.mixed import mixed_graph

PART = find_board("ulx3s_85f").part
SCARCE = replace(PART, dsp=8, lut=PART.lut // 40, bram=2)  # too few tables not to want blocks
GRAPHS = [(meeting_graph, 2), (meeting_graph, 3), (random_graph, 1), (mixed_graph, 1), (mixed_graph, 2)]


def scheduled_on(quantized: Graph, part: Part) -> Schedule:
    return schedule(dataflow(quantized), part, Budget(part.lut, part.ff, part.dsp, part.bram))


def is_end(plan: Plan, node: Node, part: Part) -> bool:
    """Whether a node has multiplier blocks, several inputs or several outputs."""
    cores = [m.node for m in node.attributes.members] if isinstance(node.attributes, ChainAttributes) else [node]
    blocks = sum(hardware(core.op).resources(core, plan[core], part).dsp for core in cores)
    return blocks > 0 or len(node.inputs) > 1 or len(node.outputs) > 1


def ways(plan: Plan, part: Part) -> Iterator[list[Node]]:
    """The nodes on each way from such a node (or an input) to the next, both included."""
    graph = plan.graph
    readers = graph.consumers()

    def onward(node: Node, way: list[Node]) -> Iterator[list[Node]]:
        for value in node.outputs:
            for reader, _ in readers[value]:
                if is_end(plan, reader, part):
                    yield [*way, reader]
                else:
                    yield from onward(reader, [*way, reader])

    makers = graph.producers()
    for node in graph.nodes:
        if is_end(plan, node, part) or not any(value in makers for value in node.inputs):
            yield from onward(node, [node])


def width(plan: Plan, node: Node) -> int:
    """Bits of a beat that it makes."""
    return plan[node].folding.output_lanes * node.outputs[0].typed.element.bits


@pytest.mark.parametrize(("make", "seed"), GRAPHS)
def test_one_on_every_way_where_it_is_narrowest(make: Callable[[int], Graph], seed: int) -> None:
    scheduled = scheduled_on(make(seed), SCARCE)
    assert scheduled.resources.dsp > 4, "the graph must take more than half of the blocks"
    found = list(ways(scheduled.plan, SCARCE))
    assert found, "there must be something to look at"
    for way in found:
        relays = [place for place, node in enumerate(way) if node.op == "relay"]
        assert len(relays) == 1
        assert width(scheduled.plan, way[relays[0]]) == min(width(scheduled.plan, node) for node in way[:-1])


@pytest.mark.parametrize(("make", "seed"), GRAPHS)
def test_none_where_half_of_the_blocks_suffice(make: Callable[[int], Graph], seed: int) -> None:
    taken = scheduled_on(make(seed), SCARCE).resources.dsp
    wide = replace(SCARCE, dsp=2 * taken)
    again = schedule(dataflow(make(seed)), wide, Budget(wide.lut, wide.ff, taken, wide.bram))
    assert 0 < again.resources.dsp <= taken
    assert "relay" not in [node.op for node in again.graph.nodes]


@pytest.mark.parametrize(("clock_mhz", "stand"), [(125.0, True), (50.0, False)])
def test_none_where_wires_across_the_part_take_little_of_a_cycle(clock_mhz: float, stand: bool) -> None:
    make, seed = GRAPHS[0]
    found = scheduled_on(make(seed), replace(SCARCE, clock_mhz=clock_mhz))
    assert found.resources.dsp > 4, "the graph must take more than half of the blocks"
    assert ("relay" in [node.op for node in found.graph.nodes]) == stand


def test_a_memory_with_one_stream_is_an_end(tmp_path: Path) -> None:
    """Ways lead back to what has no inputs."""
    streams = api_dataflow(load(dense_network(tmp_path / "model.onnx", (64, 16, 8))).quantized)
    timing = find_board("ulx3s_85f").memory_timing(Fraction(125_000_000))
    first = next(node.name for node in streams.nodes if may_be_fetched(node, 16))
    part = replace(SCARCE, dsp=2, bram=30, clock_mhz=125.0)
    made = schedule(fetch_weights(streams, {first: 1}, timing), part, Budget(part.lut, part.ff, part.dsp, part.bram))
    assert any(node.op == "relay" for node in made.graph.nodes)
    for way in ways(made.plan, part):
        assert len(way) >= 2


@pytest.mark.parametrize(("make", "seed"), GRAPHS[:-1])  # the last one has no even schedule
def test_even_schedules_have_relays(
    make: Callable[[int], Graph], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where relays follow the cores before them, those in front of the first core follow nothing that follows them."""
    monkeypatch.setattr("hwflow.schedule.queues.MOST_BEATS", 0)
    made = scheduled_on(make(seed), SCARCE)
    assert not made.run.exact
    schedule = EvenSchedule(made.plan, made.initiation_interval)
    schedule._relays_follow = True
    assert schedule.settle()
    producers = made.graph.producers()
    relays = [node for node in made.graph.nodes if node.op == "relay"]
    assert relays
    for relay in relays:
        source = producers[relay.inputs[0]]
        timing = made.plan.timing(source)
        apart = schedule.starts[relay, 0] - schedule.starts[source, len(timing.processes) - 1]
        assert source.op == "frame_sync" or apart == timing.latency[source.outputs.index(relay.inputs[0])]
