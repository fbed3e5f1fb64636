"""What cores and queues do while a frame passes, against processes and queues simulated cycle by cycle."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from hwflow.cores.timing import Process, Timing, Wait
from hwflow.ir.graph import Node, Value
from hwflow.schedule.throughput import activity as subject
from hwflow.schedule.throughput.activity import activity
from hwflow.schedule.throughput.evaluate import evaluate
from tests.schedule.cycles import Done, Queue, chain, random_network, simulate

pytestmark = pytest.mark.usefixtures("timings_from_attributes")

FRAMES, FRAME = 20, 12  # of the simulation; the frame that is looked at: others come before and after it
LEAST = 20  # of the networks below neither stand still nor change from frame to frame
known: list[int] = []


def process_of(node: Node, done: Done) -> int:
    """The longest one."""
    sizes = [process.steps for process in node.attributes.timing.processes]
    return sizes.index(max(sizes))


def steps_in(node: Node, index: int, done: Done, frame: int) -> np.ndarray:
    size = node.attributes.timing.processes[index].steps
    return np.array(done[node, index][frame * size : (frame + 1) * size])


@pytest.mark.parametrize("seed", range(60))
def test_random_networks(seed: int) -> None:
    plan = random_network(seed)
    done: Done = {}
    queues: dict[Value, Queue] = {}
    if simulate(plan, FRAMES, seen=(done, queues)) is None:
        return
    run = evaluate(plan, FRAMES)
    interval = run.initiation_interval
    frames = range(4, FRAMES - 4)  # all events of these, and not of outputs alone, are an interval apart
    processes = [(n, k) for n in plan.graph.nodes for k in range(len(n.attributes.timing.processes))]
    steady = all(
        (steps_in(n, k, done, f + 1) - steps_in(n, k, done, f) == interval).all() for n, k in processes for f in frames
    )
    if not steady:
        return
    known.append(seed)
    found = activity(plan, run, bins=14)
    assert found is not None and found.interval == interval
    (source,) = (port.value for port in plan.graph.inputs)
    reader, number = plan.graph.consumers()[source][0]
    first = next(
        steps_in(reader, k, done, FRAME)[p.consumes[number][0]]
        for k, p in enumerate(reader.attributes.timing.processes) if number in p.consumes
    )  # fmt: skip
    edges = first + np.linspace(found.begin, found.cycles + 1, 15)
    for core in found.cores:
        spans = [steps_in(core.node, k, done, FRAME) for k in range(len(core.node.attributes.timing.processes))]
        longest = spans[process_of(core.node, done)]
        assert core.end + first == max(span[-1] for span in spans)
        assert core.start + first == min(span[0] for span in spans)
        assert core.steps == len(longest)
        taken = [np.clip(high - longest, 0, 1).sum() - np.clip(low - longest, 0, 1).sum()
                 for low, high in pairwise(edges)]  # fmt: skip
        assert core.busy == pytest.approx(taken)
        assert core.starved + core.blocked <= longest[-1] - longest[0] + 1 - len(longest)
    for queue in found.queues:
        seen = queues[queue.value]
        begin = np.array(seen.seen) - seen.latency
        held = [
            int((begin <= first + t).sum() - (np.array(seen.taken) < first + t).sum()) for t in range(interval)
        ]  # fmt: skip
        bounds = [k * interval // len(queue.fill) for k in range(len(queue.fill) + 1)]
        assert queue.fill.tolist() == [max(held[a:b]) for a, b in pairwise(bounds)]
        assert queue.depth == seen.depth >= queue.fill.max()


def test_the_networks_are_worth_something() -> None:
    assert len(known) >= LEAST


def every(count: int, latency: int) -> Timing:
    steps = np.arange(count)
    return Timing((Process(count, {0: steps}, {0: steps}),), (latency,))


def slow(count: int, pause: int, latency: int) -> Timing:
    """A beat is taken and given in every ``pause``-th step."""
    steps = np.arange(count) * pause
    return Timing((Process(count * pause, {0: steps}, {0: steps}),), (latency,))


def test_who_waits_for_what_by_hand() -> None:
    """The core in the middle takes 3 cycles for each of 4 beats: the one before it finds no room, the one behind no
    beat, both for two cycles between each two of their steps."""
    plan = chain([every(4, 1), slow(4, 3, 1), every(4, 1)], [2, 2, 2])
    found = activity(plan, evaluate(plan, 12))
    assert found is not None and found.interval == 12
    before, middle, behind = found.cores
    assert [(core.starved, core.blocked, core.steps) for core in found.cores] == [(0, 6, 4), (0, 0, 12), (6, 0, 4)]
    assert middle.busy.sum() == pytest.approx(12) and behind.end - behind.start == 9 == before.end - before.start
    assert [int(queue.fill.max()) for queue in found.queues] == [2, 1, 1]


def test_a_core_that_waits_for_itself() -> None:
    """What reads begins only when all is written: neither beats nor room are what it waits for."""
    steps = np.arange(3)
    writes = Process(3, {0: steps}, {}, (Wait(1, np.full(3, -1), 1),))  # the frame before is read
    reads = Process(3, {}, {0: steps}, (Wait(0, np.full(3, 2), 1),))
    plan = chain([Timing((writes, reads), (1,))], [4])
    found = activity(plan, evaluate(plan, 8))
    assert found is not None
    (core,) = found.cores
    assert (core.start, core.end, core.starved, core.blocked) == (0, 5, 0, 0)


def test_nothing_is_said_of_what_is_only_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = chain([every(4, 1)], [2])
    run = evaluate(plan, 8)
    assert activity(plan, run) is not None
    monkeypatch.setattr(subject, "MOST_EVENTS", 3)
    assert activity(plan, run) is None
    monkeypatch.undo()
    assert activity(plan, type(run)(run.outputs, exact=False)) is None
