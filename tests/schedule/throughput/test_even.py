"""Even schedules: what they say is kept by the second implementation, cycle by cycle, and by exact evaluation."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil

import numpy as np
import pytest

from hwflow.boards import find_board
from hwflow.cores.beat_movers import FifoAttributes
from hwflow.cores.operator import Decision
from hwflow.cores.registry import hardware
from hwflow.cores.timing import Beats, Cyclic, Process, Timing, Wait, beat_by_beat, every, spaced
from hwflow.errors import InternalError, ModelRefused
from hwflow.ir.graph import Graph, Node, Port, Stage, Value, identity_order
from hwflow.schedule import queues
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import Schedule, planned, schedule
from hwflow.schedule.search.folding_search import Budget
from hwflow.schedule.throughput import even
from hwflow.schedule.throughput.evaluate import evaluate
from hwflow.schedule.throughput.even import EvenSchedule, EvenSteps, _backlog, _QueueEnd, _separation
from hwflow.types import IntType
from tests.schedule.cycles import ANY, LANE, Timed, simulate
from tests.schedule.graphs import Builder, dataflow
from tests.schedule.skips import KINDS, skip_graph
from tests.schedule.throughput.test_periodic import SEEDS, moving

PART = find_board("ulx3s_85f").part


def chain(timings: list[Timing]) -> Plan:
    """Nodes one behind the other, from an input to an output."""
    values = [Value(f"v{n}", ANY) for n in range(len(timings) + 1)]
    nodes = [Node(f"n{n}", [values[n]], [values[n + 1]], Timed(timing)) for n, timing in enumerate(timings)]
    ports = [Port(value.name, value, (1,), identity_order((1,))) for value in (values[0], values[-1])]
    graph = Graph("chain", Stage.SCHEDULED, ports[:1], ports[1:], nodes)
    return Plan(graph, {node: Decision(LANE) for node in nodes})


def test_a_pace_by_hand() -> None:
    """Four steps in ten cycles: 0, 2, 5, 7."""
    pace = EvenSteps(10, 4)
    assert pace.cycles(np.arange(-4, 8)).tolist() == [-10, -8, -5, -3, 0, 2, 5, 7, 10, 12, 15, 17]
    assert pace.done(np.arange(-3, 11)).tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5]
    half = EvenSteps(20, 8, taken=4)  # the same in the first half of twenty
    assert half.count == 4
    assert half.cycles(np.arange(-4, 8)).tolist() == [-20, -18, -15, -13, 0, 2, 5, 7, 20, 22, 25, 27]
    assert half.done(np.arange(-3, 9)).tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4]
    assert half.done(np.array([19, 20])).tolist() == [4, 5]
    some = _QueueEnd(pace, np.array([1, 2]))  # cycles 2 and 5
    for end in (some, replace(some, follows=True)):
        assert end.cycles(np.arange(-1, 3)).tolist() == [-5, 2, 5, 12]
        assert end.done(np.arange(-5, 13)).tolist() == [0] * 7 + [1] * 3 + [2] * 7 + [3]


@pytest.mark.usefixtures("timings_from_attributes")
def test_depths_and_starts_by_hand() -> None:
    """A core makes beats in its cycles 0, 3 and 6 of nine, seen two cycles later; the next takes them in its cycles 0,
    1 and 2. It starts for the third to be there in its cycle 2: 6 + 2 - 2 cycles after the first core. So beats are
    made in cycles 0, 3 and 6 and taken in 6, 7 and 8, each with a credit a cycle later: all three are under way."""
    burst = Process(9, {0: every(3)}, {0: np.array([8])})
    plan = chain([Timing((Process(3, {0: every(3)}, {0: every(3)}),), (2,)), Timing((burst,), (1,))])
    schedule = EvenSchedule(plan, 9)
    assert schedule.settle()
    assert list(schedule.starts.values()) == [0, 6, 7]
    assert list(schedule.depths().values()) == [3, 1]
    (output,) = schedule.run().outputs
    assert output[:, 0].tolist() == [15, 24]


@pytest.mark.usefixtures("timings_from_attributes")
@pytest.mark.parametrize(("room", "kept"), [(3, False), (4, True)])
def test_a_memory_that_is_too_small(room: int, kept: bool) -> None:
    """A reader waits for the beat two after its own, of four per frame and one per cycle, and frees its place a cycle
    after its step: between the writing of a beat and its place being free are four cycles."""
    need = np.minimum(every(4) + 2, 3)
    writer = Process(4, {0: every(4)}, {}, (Wait(1, every(4) - room),))
    reader = Process(4, {}, {0: every(4)}, (Wait(0, need),))
    assert EvenSchedule(chain([Timing((writer, reader), (1,))]), 4).settle() is kept


def test_steps_that_repeat() -> None:
    """Steps 1 and 3 of each of three times four."""
    steps = Cyclic(np.array([1, 3]), 4, 3)
    assert len(steps) == 6 and list(steps) == np.asarray(steps).tolist() == [1, 3, 5, 7, 9, 11]
    assert steps[np.array([0, 3, 4])].tolist() == [1, 7, 9]
    for side in ("left", "right"):
        some = np.arange(13)
        assert steps.searchsorted(some, side).tolist() == np.asarray(steps).searchsorted(some, side).tolist()


@pytest.mark.parametrize("seed", range(40))
def test_a_part_of_a_frame_bounds_all(seed: int) -> None:
    """The distance of two ends that repeat, found from a part of the frame, is that of all beats, or a cycle more."""
    rng = np.random.default_rng(seed)
    times, beats = (int(n) for n in rng.integers(2, 9, 2))
    several = times * int(rng.integers(1, 4))  # the other end may repeat more often
    ends, slowest = [], 0
    for repeats in (times, several):
        each = beats * several // repeats
        period = each + int(rng.integers(0, 20))
        once = np.sort(rng.choice(period, each, replace=False))
        ends.append(Cyclic(once, period, repeats))
        slowest = max(slowest, period * repeats)
    period = slowest + int(rng.integers(0, 30))
    first, second = (
        _QueueEnd(EvenSteps(period, steps.period * steps.times), steps) for steps in ends
    )
    plain = [replace(end, steps=np.asarray(end.steps)) for end in (first, second)]
    assert first.times == times and plain[0].times == 1
    for back in (0, 1, beats, len(ends[0])):
        exact = _separation(plain[0], plain[1], back)
        assert exact <= _separation(first, second, back) <= exact + 1
        assert _separation(first, first, 0) == 0
    for between in (0, -7, -period // 2, -2 * period):
        exact, bound = _backlog(*plain, between), _backlog(first, second, between)
        # a beat takes a cycle at the least
        assert exact <= bound <= exact + 3, (exact, bound)


@pytest.mark.parametrize("seed", range(12))
def test_a_share_of_a_frame(seed: int) -> None:
    """Ends that pause at the end of each frame: as every beat says, one by one, over frames before and behind."""
    rng = np.random.default_rng(seed)
    times, beats = (int(n) for n in rng.integers(2, 9, 2))
    share = Fraction(int(rng.integers(2, 9)), 9)
    parts = [
        Cyclic(np.sort(rng.choice(beats + 9, beats, replace=False)), beats + int(rng.integers(9, 20)), times)
        for _ in range(2)
    ]
    period = ceil(max(part.period * times for part in parts) / share) + int(rng.integers(0, 30))
    first, second = (
        _QueueEnd(EvenSteps(period, ceil(part.period * times / share), taken=part.period * times), part)
        for part in parts
    )

    def cycle(end: _QueueEnd, beat: int) -> int:
        frame, within = divmod(beat, len(end.steps))
        return frame * period + int(np.asarray(end.steps)[within]) * period // end.spacing.steps

    count = times * beats
    for back in (0, 1, beats, count):
        slowest = max(cycle(first, beat - back) - cycle(second, beat) for beat in range(count))
        assert abs(_separation(first, second, back) - slowest) <= 1
    for between in (0, -7, -period // 2):
        there = 1
        for beat in range(count):
            now = cycle(first, beat) + between - 1
            taken = sum(cycle(second, other) <= now for other in range(-2 * count, 2 * count)) - 2 * count
            there = max(there, beat + 1 - taken)
        assert abs(_backlog(first, second, between) - there) <= 1


@dataclass(frozen=True, eq=False)
class TimedFifo(FifoAttributes):
    """A queue in a node of its own, with ``timing``."""

    timing: Timing = field(kw_only=True)


def queued(made: Beats, taken: Beats, steps: int) -> Plan:
    """A core that makes beats, a queue in a node of its own, and a core that takes them."""
    first, last = (Process(steps, {0: spaced(1)}, {0: made}), Process(steps, {0: taken}, {0: spaced(1)}))
    plan = chain([Timing((first,), (1,)), beat_by_beat(len(made), 2), Timing((last,), (1,))])
    fifo = plan.graph.nodes[1]
    fifo.attributes = TimedFifo(timing=fifo.attributes.timing)
    return plan


@pytest.mark.usefixtures("timings_from_attributes")
@pytest.mark.parametrize("times", [5, even._FEW])
def test_what_follows_a_core_takes_no_memory_for_its_beats(times: int) -> None:
    """Of three steps a core makes beats in two, from cycle 0 on; the next takes them in the last two of three, so that
    it may begin with the core but for latencies, 1 and 2 cycles. A place in the first queue is free two cycles after
    its beat was made, in the second one three: of three cycles two have beats, so both hold two. What is bounded by a
    part of the frame may be two more."""
    made, taken = Cyclic(np.array([0, 1]), 3, times), Cyclic(np.array([1, 2]), 3, times)
    plan = queued(made, taken, 3 * times)
    tracemalloc.start()
    try:
        schedule = EvenSchedule(plan, 3 * times)
        assert schedule.settle()
        starts = list(schedule.starts.values())
        depths = list(schedule.depths().values())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert starts == [0, 1, 2, 3]
    assert all(0 <= depth - 2 <= (2 if times > 5 else 0) for depth in depths[:2])
    assert peak < 1 << 26


@pytest.mark.usefixtures("timings_from_attributes")
@pytest.mark.parametrize("seed", range(20))
def test_what_follows_has_the_cycles_of_all_its_beats(seed: int) -> None:
    """Steps that repeat, and the same in arrays: the same starts and depths, or bounds of them where the beats of what
    follows are too many to look at all."""
    rng = np.random.default_rng(seed)
    times, beats = (int(n) for n in rng.integers(2, 9, 2))
    each = beats + int(rng.integers(0, 9))
    ends = [Cyclic(np.sort(rng.choice(each, beats, replace=False)), each, times) for _ in range(2)]
    period = each * times + int(rng.integers(0, 30))
    found = []
    for made, taken in (ends, [np.asarray(end) for end in ends]):
        schedule = EvenSchedule(queued(made, taken, each * times), period)
        assert schedule.settle()
        found.append([*schedule.starts.values(), *schedule.depths().values()])
    assert all(0 <= bound - exact <= 4 for bound, exact in zip(*found, strict=True))


@pytest.mark.usefixtures("timings_from_attributes")
@pytest.mark.parametrize("seed", SEEDS)
def test_random_networks(seed: int) -> None:
    """Hardware with these depths is no later than said, frame after frame."""
    plan, period = moving(seed)
    schedule = EvenSchedule(plan, period)
    if not schedule.settle():
        return
    depths = schedule.depths()
    for node in plan.graph.nodes:
        plan[node] = Decision(LANE, tuple(depths[value] for value in node.outputs))
    frames = 8
    found = simulate(plan, frames)
    assert found is not None
    for cycles, bound in zip(found, schedule.run().outputs, strict=True):
        latest = np.concatenate([bound[0] + frame * period for frame in range(frames)])
        assert (np.array(cycles) <= latest).all()


@pytest.mark.usefixtures("timings_from_attributes")
def test_many_random_networks_have_one() -> None:
    assert sum(EvenSchedule(*moving(seed)).settle() for seed in SEEDS) > len(SEEDS) // 2


def scheduled(graph: Graph, interval: int | None = None) -> Schedule:
    return schedule(dataflow(graph), PART, Budget(PART.lut, PART.ff, PART.dsp, PART.bram), interval)


@pytest.fixture
def evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of any size."""
    monkeypatch.setattr(queues, "MOST_BEATS", 0)


@pytest.mark.usefixtures("evenly")
@pytest.mark.parametrize("interval", [None, 3000])
@pytest.mark.parametrize("kind", KINDS)
def test_designs_keep_what_is_said(kind: str, interval: int | None) -> None:
    result = scheduled(skip_graph(kind), interval)
    assert not result.run.exact
    assert result.initiation_interval == queues.slowest(result.plan)
    exact = evaluate(result.plan, 40)
    assert exact.exact
    assert exact.latency <= result.latency
    bound = result.run.last_output[0]
    assert all(
        cycle <= bound + frame * result.initiation_interval for frame, cycle in enumerate(exact.last_output)
    )
    assert {later - cycle for cycle, later in pairwise(exact.last_output[-4:])} == {result.initiation_interval}


def test_large_frames_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What looking for the least depths takes is more than a hundred bytes per beat."""
    monkeypatch.setattr(queues, "MOST_BEATS", 1 << 20)
    build = Builder(np.random.default_rng(1))
    element = IntType(6, False)
    value = build.conv2d(build.input((1, 112, 112), element), 8, 1, 1, 0, IntType(3, True))
    value = build.requantize(value, element, per_channel=False)
    build.output(build.requantize(build.conv2d(value, 1, 3, 1, 1, IntType(3, True)), element, per_channel=False))
    graph = dataflow(build.done())
    foldings = {n: min(hardware(n.op).foldings(n, PART), key=lambda f: f.input_lanes) for n in graph.nodes}
    plan = planned(graph, foldings)
    beats = queues.streamed_beats(plan)
    assert beats > queues.MOST_BEATS
    tracemalloc.start()
    try:
        run = queues.size_queues(plan, PART, queues.make_room(plan))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert run.initiation_interval == queues.slowest(plan)
    assert peak < 60 * beats


def test_frames_too_long_for_any_other_schedule_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = dataflow(skip_graph(KINDS[0]))
    foldings = {n: min(hardware(n.op).foldings(n, PART), key=lambda f: f.input_lanes) for n in graph.nodes}
    plan = planned(graph, foldings)
    monkeypatch.setattr(queues, "MOST_BEATS", 1)
    monkeypatch.setattr(EvenSchedule, "settle", lambda self: False)
    assert queues.make_room(plan)  # there is another one
    monkeypatch.setattr(queues, "_MOST_EVENTS", 2)
    beats = queues.streamed_beats(plan)
    with pytest.raises(ModelRefused, match=f"frames of {beats:,} beats must have an even schedule, and none was found"):
        queues.make_room(plan)


@pytest.mark.parametrize("enough", [None, 0, 1, 5])
def test_longer_periods_are_tried_where_the_longest_does(monkeypatch: pytest.MonkeyPatch, enough: int | None) -> None:
    """Where nothing bounds what brings weights but fixed depths: 1, 3, 7 ... cycles more, until twice as long does not
    suffice either. ``enough``: how many of these do not."""
    graph = dataflow(skip_graph(KINDS[0]))
    foldings = {n: min(hardware(n.op).foldings(n, PART), key=lambda f: f.input_lanes) for n in graph.nodes}
    plan = planned(graph, foldings)
    first, tried = queues.slowest(plan), []
    needed = 10 * first if enough is None else first + 2 ** (enough + 1) - 1

    def room(plan: Plan, even: EvenSchedule) -> EvenSchedule | None:
        tried.append(even.period)
        return even if even.period >= needed else None

    monkeypatch.setattr(queues, "has_sources", lambda graph: True)
    monkeypatch.setattr(queues, "_room", room)
    if enough is None:
        with pytest.raises(InternalError):
            queues.make_room(plan)
        assert len(tried) == 2 and tried[-1] >= 2 * first
    else:
        assert queues.make_room(plan).period == needed
        assert tried[2:] == [first + 2 ** (more + 1) - 1 for more in range(enough + 1)]
