"""The search for foldings against brute force, and what it says when nothing fits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from hwflow.boards import find_board
from hwflow.cores.operator import Decision, Folding, Resources
from hwflow.cores.registry import hardware
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Graph, Node, Value
from hwflow.schedule.converters import conversions
from hwflow.schedule.schedule import schedule
from hwflow.schedule.search import selection
from hwflow.schedule.search.folding_search import Budget, FoldingSearch
from hwflow.types import IntType
from tests.attributes import attributes_of
from tests.schedule.graphs import Builder, dataflow, meeting_graph, random_graph

PART = find_board("ulx3s_85f").part
U4, I4, U8, I8 = IntType(4, False), IntType(4, True), IntType(8, False), IntType(8, True)


def dense(seed: int, inputs: int, outputs: int) -> Graph:
    """mvu, requantize"""
    build = Builder(np.random.default_rng(seed))
    build.output(build.requantize(build.dense(build.input((inputs,), U8), outputs, I8), U8, per_channel=False))
    return dataflow(build.done())


def two_dense(seed: int, widths: tuple[int, int, int]) -> Graph:
    """mvu, mvu of bytes without a requantizer between: the second one's input is at most 16 bits wide."""
    build = Builder(np.random.default_rng(seed))
    value = build.dense(build.input((widths[0],), U4), widths[1], I4)
    build.output(build.dense(value, widths[2], I4))
    return dataflow(build.done())


def convolution(seed: int, channels: int, outputs: int) -> Graph:
    """sliding_window, mvu, max_pool"""
    build = Builder(np.random.default_rng(seed))
    value = build.conv2d(build.input((channels, 5, 4), U4), outputs, 2, 1, 1, I4)
    build.output(build.max_pool2d(value, 1, 1))
    return dataflow(build.done())


GRAPHS = [
    dense(1, 6, 4),
    dense(2, 5, 7),
    two_dense(3, (4, 3, 5)),
    two_dense(4, (6, 4, 2)),
    convolution(5, 3, 2),
    convolution(6, 2, 4),
]


def every_combination(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """(interval [n], resources [n, 4]) of every combination of foldings of every node: the definition. Queues of cores
    are as :func:`depths` says, others hold two beats; a frame synchroniser is at every input, and converters are where
    lanes differ. Both ends of a stream send and take as many pixels."""
    options = [list(hardware(n.op).foldings(n, PART)) for n in graph.nodes]
    choice = np.indices([len(o) for o in options]).reshape(len(options), -1)
    interval, need = np.zeros(choice.shape[1], dtype=int), np.zeros((choice.shape[1], 4), dtype=int)
    possible = np.ones(choice.shape[1], dtype=bool)
    consumers = graph.consumers()
    for index, node in enumerate(graph.nodes):
        core = hardware(node.op)
        chosen = [core.as_chosen(node, f) for f in options[index]]
        interval = np.maximum(interval, np.array([core.cycles(n, f) for n, f in chosen])[choice[index]])
        needs = [row(core.resources(n, provisional(f, depths(n, f)), PART)) for n, f in chosen]
        need += np.array(needs)[choice[index]]
        for value in node.outputs:
            for reader, _ in consumers[value]:
                there = graph.nodes.index(reader)
                bridges = [[bridge(value, reader, f, g) for g in options[there]] for f in options[index]]
                need += np.array(bridges)[choice[index], choice[there]]
                taken = [hardware(reader.op).as_chosen(reader, g)[0].inputs[0].typed.shape[0] for g in options[there]]
                given = np.array([n.outputs[0].typed.shape[0] for n, _ in chosen])[choice[index]]
                if reader.inputs[0] is value:
                    possible &= given == np.array(taken)[choice[there]]
    for port in graph.inputs:
        for reader, _ in consumers[port.value]:
            there = graph.nodes.index(reader)
            need += np.array([sync(port.value, reader, f) for f in options[there]])[choice[there]]
    return interval[possible], need[possible]


def provisional(folding: Folding, depths: Sequence[int]) -> Decision:
    """What a search looks at."""
    return Decision(folding, tuple(depths), provisional=True)


def depths(node: Node, folding: Folding) -> list[int]:
    """Beats that a core's queues hold: two, or one of a core that is at leisure for two cycles per beat, which is as
    long as an entry is taken. By the core's schedule."""
    timing = hardware(node.op).timing(node, Decision(folding))
    made = [sum(len(p.produces.get(output, ())) for p in timing.processes) for output in range(len(node.outputs))]
    return [1 if 2 * beats <= max(p.steps for p in timing.processes) else 2 for beats in made]


def bridge(value: Value, reader: Node, here: Folding, there: Folding) -> tuple[int, ...]:
    lanes = lanes_at(reader, value, there)
    steps = conversions(value, reader, here.output_lanes, lanes, whole_vector=there.whole_vector)
    converter = hardware("width_converter")
    needs = [
        converter.resources(viewed(value, "width_converter", s.view), provisional(s.folding, [2]), PART)
        for s in steps
    ]
    return row(sum(needs, Resources()))


def viewed(value: Value, op: str, view: tuple[int, int]) -> Node:
    return Node("", [value], [value], attributes_of(op, view=view))


def lanes_at(reader: Node, value: Value, folding: Folding) -> int:
    """Of a concatenation of whole pixels each input has as many pixels."""
    if reader.op != "stream_concat" or not folding.whole_vector:
        return folding.input_lanes
    return folding.input_lanes // reader.outputs[0].typed.shape[1] * value.typed.shape[1]


def sync(value: Value, reader: Node, folding: Folding) -> tuple[int, ...]:
    """With a queue of two, unless it may be a chain's first: in front of a core that takes a frame a cycle."""
    lanes = lanes_at(reader, value, folding)
    view = hardware(reader.op).input_view(reader, value.typed.shape, lanes, whole_vector=folding.whole_vector)
    node = viewed(value, "frame_sync", view)
    first = view[0] * -(-view[1] // lanes) == 1 and len(reader.inputs) == 1
    first = first and hardware(reader.op).is_steady(reader, folding)
    return row(hardware("frame_sync").resources(node, provisional(Folding(lanes, lanes), [2 * (not first)]), PART))


def cycles(node: Node, folding: Folding) -> int:
    core = hardware(node.op)
    return core.cycles(*core.as_chosen(node, folding))


def row(need: Resources) -> tuple[int, ...]:
    return need.lut, need.ff, need.dsp, need.bram


def price(need: np.ndarray) -> np.ndarray:
    """Share of the device, multiplier blocks at a tenth and block RAMs at a quarter, in whole billionths per piece."""
    weights = [round(1e9 * w / n) for w, n in [(1, PART.lut), (1, PART.ff), (0.1, PART.dsp), (0.25, PART.bram)]]
    return need @ np.array(weights)


BUDGETS = [
    Budget(lut, ff, dsp, 20)
    for lut, ff, dsp in [
        (100_000, 100_000, 156),
        (3000, 3000, 100),
        (2000, 100_000, 20),
        (1500, 1500, 4),
        (1000, 1000, 6),
        (100_000, 1200, 3),
        (1200, 100_000, 0),
        (700, 700, 8),
        (300, 300, 0),
    ]
]


def check(graph: Graph, budgets: list[Budget]) -> int:
    """The search finds the least interval of all combinations that fit and the cheapest at that interval; so it does
    for slower targets; how many budgets could be met."""
    interval, need = every_combination(graph)
    met = 0
    for budget in budgets:
        fits = (need <= np.array([budget.lut, budget.ff, budget.dsp, budget.bram])).all(axis=1)
        search = FoldingSearch(graph, PART, budget)
        if not fits.any():
            with pytest.raises(ModelRefused):
                search.best()
            continue
        met += 1
        least = int(interval[fits].min())
        found, foldings = search.best()
        assert found == least, budget
        targets = {least, 2 * least, int(interval.max())}
        for target, chosen in [(least, foldings), *((t, search.for_interval(t)[1]) for t in targets)]:
            total = search.total(chosen)
            assert not budget.shortages(total)
            assert max(cycles(n, f) for n, f in chosen.items()) <= target
            assert price(np.array(row(total))) == price(need[fits & (interval <= target)]).min(), (budget, target)
        if least > interval.min():
            faster = int(interval[interval < least].max())
            with pytest.raises(ModelRefused):
                search.for_interval(faster)
    return met


@pytest.mark.parametrize("graph", GRAPHS, ids=["dense1", "dense2", "two3", "two4", "conv5", "conv6"])
def test_equal_to_brute_force(graph: Graph) -> None:
    assert check(graph, BUDGETS) > 3


def small_graph(seed: int) -> Graph:
    """A convolution or a dense layer, a second one or two that meet again, of two or three channels."""
    rng = np.random.default_rng(seed)
    build = Builder(rng)
    element, weight = [(U4, I4), (U8, I8), (IntType(2, False), IntType(2, True))][seed % 3]
    channels = int(rng.integers(2, 4))
    value = build.requantize(build.conv2d(build.input((2, 2, 2), element), channels, 1, 1, 0, weight), element, False)
    match seed % 4:
        case 0:
            way = build.conv2d(value, channels, 1, 1, 0, weight)
            total = build.node("scaled_add", way, value, axis=0, multipliers=((3,), (5,)))
            build.output(total)
        case 1:
            ways = [build.conv2d(value, 2, 1, 1, 0, weight), value]
            build.output(build.node("concat", *ways, axis=0))
        case 2:
            build.output(build.dense(build.flatten(build.max_pool2d(value, 1, 1)), 3, weight))
        case _:
            build.output(build.conv2d(value, 3, 2, 1, 0, weight))
            build.output(build.max_pool2d(value, 2, 2))
    return dataflow(build.done())


@pytest.mark.parametrize("seed", range(12))
def test_equal_to_brute_force_on_random_graphs(seed: int) -> None:
    """Budgets between the least and the most that the combinations need of each resource."""
    graph = small_graph(seed)
    _, need = every_combination(graph)
    assert len(need) > 100
    rng = np.random.default_rng(seed)
    low, high = need.min(axis=0), np.quantile(need, 0.6, axis=0)
    limits = low + rng.uniform(0, 1, (8, 4)) ** 2 * (high - low)
    assert check(graph, [Budget(*map(int, np.ceil(limit))) for limit in limits]) > 1


def test_monotone_in_budget_and_interval() -> None:
    """More of a resource never makes a design slower; a slower target never makes it dearer."""
    graph = dataflow(meeting_graph(0))
    for name in ("lut", "ff", "dsp"):
        intervals = []
        for share in range(4, 11):
            most = {"lut": 3000, "ff": 3000, "dsp": 40, "bram": 20}
            try:
                budget = Budget(**most | {name: most[name] * share // 10})
                intervals.append(FoldingSearch(graph, PART, budget).best()[0])
            except ModelRefused:
                intervals.append(1 << 30)
        assert intervals == sorted(intervals, reverse=True) and intervals[-1] < 1 << 30
    search = FoldingSearch(graph, PART, Budget(5000, 5000, 40, 20))
    least, _ = search.best()
    prices = [price(np.array(row(search.total(search.for_interval(t)[1])))) for t in search.intervals if t >= least]
    assert len(prices) > 5 and prices == sorted(prices, reverse=True)
    again = FoldingSearch(graph, PART, Budget(5000, 5000, 40, 20))
    assert search.best() == again.best()  # of one price always the same


def test_lanes_that_divide_nothing_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five inputs, seven outputs, twelve multiplier blocks and no other multipliers. Of lanes that divide their
    channels, 5 x 1 take 7 steps and 1 x 7 take 5; padded ones, 5 x 2 or 3 x 4, take 4."""

    def resources(self: object, node: Node, decision: Decision, device: object) -> Resources:
        return Resources(lut=10**6 * (decision.folding.multiplier == "lut"), dsp=decision.folding.multipliers)

    for op in ("mvu", "requantize"):
        monkeypatch.setattr(type(hardware(op)), "resources", resources)
    graph = dense(1, 5, 7)
    interval, foldings = FoldingSearch(graph, PART, Budget(100_000, 100_000, 12, 100)).best()
    assert interval == 4
    assert {f.multipliers for f in foldings.values()} == {10, 0}


def test_a_target_takes_the_cheapest_foldings_that_reach_it() -> None:
    graph = convolution(5, 3, 2)
    search = FoldingSearch(graph, PART, BUDGETS[0])
    for target in (120, 300, 2000):
        interval, foldings = search.for_interval(target)
        assert interval == target
        assert max(cycles(n, f) for n, f in foldings.items()) <= target
    slow = sum((search.resources(n, f) for n, f in search.for_interval(2000)[1].items()), Resources())
    fast = sum((search.resources(n, f) for n, f in search.for_interval(120)[1].items()), Resources())
    assert slow.lut < fast.lut


def test_looking_for_something_cheaper_may_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval is the least all the same, and what is found fits; it costs no less than the cheapest."""
    monkeypatch.setattr(selection, "MOST_SUMS", 0)
    for graph in GRAPHS:
        interval, need = every_combination(graph)
        for budget in BUDGETS:
            fits = (need <= row(budget)).all(axis=1)
            if not fits.any():
                continue
            search = FoldingSearch(graph, PART, budget)
            found, foldings = search.best()
            total = search.total(foldings)
            assert found == interval[fits].min()
            assert not budget.shortages(total)
            cheapest = (need[fits & (interval <= found)] @ search.price).min()
            assert np.array(row(total)) @ search.price >= cheapest


def test_a_target_no_core_can_reach_is_refused() -> None:
    """All windows of an image, all of their products and all of their pixels in a beat: one frame per cycle."""
    graph = convolution(5, 3, 2)
    with pytest.raises(ModelRefused) as raised:
        FoldingSearch(graph, PART, BUDGETS[0]).for_interval(0)
    assert str(raised.value) == (
        "error: node 'conv2d0_window' (sliding_window): the target must be at least 1 cycles per frame, not 0 "
        "[reachable-interval]\n  remedy: ask for fewer frames per second"
    )


def stub_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every core costs 10 LUTs for each lane at its output, and 2 DSPs per multiplier; what is in between costs
    nothing. A frame takes as ever."""

    def resources(self: object, node: Node, decision: Decision, device: object) -> Resources:
        return Resources(lut=10 * decision.folding.output_lanes, dsp=2 * decision.folding.multipliers)

    for op in ("mvu", "requantize"):
        monkeypatch.setattr(type(hardware(op)), "resources", resources)
    for op in ("width_converter", "frame_sync"):
        monkeypatch.setattr(type(hardware(op)), "resources", lambda *_: Resources())


def test_a_target_that_does_not_fit_is_refused_with_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 outputs of 6 inputs: 24 products. 2 cycles need 12 multipliers and 2 lanes behind them: 24 DSPs, 40 LUTs.

    9 DSPs are 4 multipliers, so 6 cycles; 29 LUTs are 2 lanes in all, so 1 output at a time, 4 cycles at the least.
    """
    stub_costs(monkeypatch)
    search = FoldingSearch(dense(1, 6, 4), PART, Budget(29, 1000, 9, 20))
    with pytest.raises(ModelRefused) as raised:
        search.for_interval(2)
    assert str(raised.value) == (
        "error: model 'random': lut must be at most 29, not 40, at 2 cycles per frame (11 too many; largest: node "
        "'dense0_mvu' (mvu) with 20, at least 20) [device-budget]\n"
        "  remedy: ask for fewer frames per second: 8 cycles per frame fit\n"
        "error: model 'random': dsp must be at most 9, not 24, at 2 cycles per frame (15 too many; largest: node "
        "'dense0_mvu' (mvu) with 24, at least 24) [device-budget]\n"
        "  remedy: ask for fewer frames per second: 8 cycles per frame fit"
    )


def test_a_model_that_fits_at_no_rate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slowest: one multiplier (2 DSPs), one lane at both cores (20 LUTs), 24 cycles."""
    stub_costs(monkeypatch)
    search = FoldingSearch(dense(1, 6, 4), PART, Budget(19, 1000, 1, 20))
    remedy = (
        "  remedy: a budget of lut=20, ff=1000, dsp=2, bram=20 suffices at 24 cycles per frame: "
        "request it with --budget"
    )
    for ask in (search.best, lambda: search.for_interval(24)):
        with pytest.raises(ModelRefused) as raised:
            ask()
        assert str(raised.value) == (
            "error: model 'random': lut must be at most 19, not 20, at 24 cycles per frame (1 too many; largest: node "
            f"'dense0_mvu' (mvu) with 10, at least 10) [device-budget]\n{remedy}\n"
            "error: model 'random': dsp must be at most 1, not 2, at 24 cycles per frame (1 too many; largest: node "
            f"'dense0_mvu' (mvu) with 2, at least 2) [device-budget]\n{remedy}"
        )


@pytest.mark.parametrize(
    ("budget", "short", "enough"),
    [
        # one multiplier and two lanes are the least of all; a resource alone is raised where that helps
        (Budget(19, 1000, 156, 20), ["lut"], Budget(20, 1000, 156, 20)),
        (Budget(5000, 1000, 0, 20), ["dsp"], Budget(5000, 1000, 2, 20)),
        (Budget(0, 0, 0, 0), ["lut", "dsp"], Budget(20, 0, 2, 0)),
    ],
)
def test_what_is_enough(
    monkeypatch: pytest.MonkeyPatch, budget: Budget, short: list[str], enough: Budget
) -> None:
    stub_costs(monkeypatch)
    search = FoldingSearch(dense(1, 6, 4), PART, budget)
    found, need, _ = search.enough(24)
    assert (found, [name for name, _, _ in budget.shortages(need)]) == (enough, short)


def test_where_either_would_do_the_cheaper_one_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A multiplier of 2 DSPs, or of 100 look-up tables: with none of either, 2 of 156 DSPs are more of the part than
    100 of its 83,640 look-up tables; with 99 look-up tables one is enough."""
    stub_costs(monkeypatch)

    def resources(self: object, node: Node, decision: Decision, device: object) -> Resources:
        if decision.folding.multiplier == "dsp":
            return Resources(dsp=2 * decision.folding.multipliers)
        return Resources(lut=100 * decision.folding.multipliers)

    monkeypatch.setattr(type(hardware("mvu")), "resources", resources)
    monkeypatch.setattr(type(hardware("requantize")), "resources", lambda *_: Resources())
    graph = dense(1, 6, 4)
    for lut, dsp in ((0, 0), (99, 1)):
        enough, _, _ = FoldingSearch(graph, PART, Budget(lut, 0, dsp, 0)).enough(24)
        assert enough == Budget(100, 0, dsp, 0)


@pytest.mark.parametrize("seed", range(9))
def test_no_queue_costs_the_slowest_core_a_cycle(seed: int) -> None:
    """Random chains and branches: the interval is that of the slowest core, and within the target."""
    quantized = random_graph(seed)
    for share, slower in ((8, 1), (2, 1 + seed % 3)):
        budget = Budget(PART.lut // share, PART.ff // share, PART.dsp // share, PART.bram // share)
        scheduled = schedule(dataflow(quantized), PART, budget)
        if slower > 1:
            target = slower * scheduled.initiation_interval
            scheduled = schedule(dataflow(quantized), PART, budget, target)
            assert scheduled.initiation_interval <= target
        slowest = max(hardware(n.op).cycles(n, scheduled.plan[n].folding) for n in scheduled.graph.nodes)
        assert scheduled.initiation_interval == slowest


@pytest.mark.parametrize("seed", range(7))
def test_no_queue_costs_interval_where_streams_meet(seed: int) -> None:
    for share in (2, 1):
        budget = Budget(PART.lut // share, PART.ff // share, PART.dsp // share, PART.bram // share)
        scheduled = schedule(dataflow(meeting_graph(seed)), PART, budget)
        slowest = max(hardware(n.op).cycles(n, scheduled.plan[n].folding) for n in scheduled.graph.nodes)
        assert scheduled.initiation_interval == slowest


def test_where_blocks_are_scarce_requantizers_leave_them_to_products() -> None:
    """A layer with 128 products and 16 results per pixel, and 16 multiplier blocks: results that are scaled by tables
    in block RAM leave all of them to the layer."""
    build = Builder(np.random.default_rng(3))
    value = build.conv2d(build.input((8, 16, 16), U8), 16, 1, 1, 0, I8)
    build.output(build.requantize(value, U8))
    graph = dataflow(build.done())
    (node,) = (node for node in graph.nodes if node.op == "requantize")
    (slow, _), (fast, found) = (
        FoldingSearch(graph, PART, Budget(1500, 9000, 16, blocks)).best() for blocks in (0, 20)
    )
    assert found[node].multiplier == "table"
    assert fast < slow


def test_what_suffices_exactly_is_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Multipliers in blocks need 10 look-up tables and 100 flip-flops, others 20 and 50. Of 10 and 40 only flip-flops
    are short; raising both would cost 20 less."""
    stub_costs(monkeypatch)

    def resources(self: object, node: Node, decision: Decision, device: object) -> Resources:
        return Resources(lut=10, ff=100) if decision.folding.multiplier == "dsp" else Resources(lut=20, ff=50)

    monkeypatch.setattr(type(hardware("mvu")), "resources", resources)
    monkeypatch.setattr(type(hardware("requantize")), "resources", lambda *_: Resources())
    graph = dense(1, 6, 4)
    for budget, sufficient in (((10, 40), (10, 100)), ((9, 40), (20, 50)), ((19, 50), (20, 50)), ((10, 99), (10, 100))):
        enough, _, _ = FoldingSearch(graph, PART, Budget(*budget, 0, 0)).enough(24)
        assert enough == Budget(*sufficient, 0, 0)
