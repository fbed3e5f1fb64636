"""Foldings drawn at random fit together: lanes of parts of pixels, of whole pixels and of vectors, in simulation."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.boards import find_board
from hwflow.cores.logical.image_windows import Clipping
from hwflow.cores.operator import Folding
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Graph, Node, Value
from hwflow.schedule.queues import make_room, size_queues
from hwflow.schedule.schedule import Schedule, planned, schedule
from hwflow.schedule.search.folding_search import Budget
from hwflow.schedule.throughput.evaluate import evaluate
from hwflow.types import IntType
from tests.schedule.graphs import Builder, dataflow, meeting_graph, random_graph
from tests.schedule.simulation import FRAMES, check_simulated

PART = find_board("ulx3s_85f").part
MOST_PRODUCTS = 120  # of one core: what is larger only takes longer to simulate


def folded_at_random(graph: Graph, seed: int, *, clipped: bool = False) -> Schedule:
    """Any folding of each core, wide ones as likely as narrow ones; windows ``clipped`` wherever that is offered."""
    rng = np.random.default_rng(seed)
    foldings: dict[Node, Folding] = {}
    sent: dict[Value, tuple[int, ...]] = {}  # shapes of streams
    for node in graph.nodes:
        found = [f for f in hardware(node.op).foldings(node, PART) if f.multipliers <= MOST_PRODUCTS]
        if clipped and any(f.clipped for f in found):
            found = [f for f in found if f.clipped]
        chosen = {f: hardware(node.op).as_chosen(node, f)[0] for f in found}
        taken = sent.get(node.inputs[0], node.inputs[0].typed.shape)
        found = [f for f in found if chosen[f].inputs[0].typed.shape == taken]
        lanes = sorted({f.input_lanes for f in found})
        wanted = lanes[int(rng.integers(len(lanes)))]
        choice = [f for f in found if f.input_lanes == wanted]
        foldings[node] = choice[int(rng.integers(len(choice)))]
        sent.update((v, o.typed.shape) for v, o in zip(node.outputs, chosen[foldings[node]].outputs, strict=True))
    plan = planned(graph, foldings)
    size_queues(plan, PART, make_room(plan))
    return Schedule(plan, evaluate(plan, FRAMES), {})


@pytest.mark.parametrize("seed", [5, 6, 9])  # frames of up to 300 cycles
def test_random_foldings(seed: int) -> None:
    quantized = random_graph(seed) if seed % 2 else meeting_graph(seed // 2)
    check_simulated(quantized, folded_at_random(dataflow(quantized), seed))


def dense_network() -> Graph:
    build = Builder(np.random.default_rng(0))
    element, weight = IntType(6, False), IntType(6, True)
    value = build.input((16,), IntType(6, True))
    for outputs in (24, 12, 5):
        value = build.requantize(build.dense(value, outputs, weight), element, per_channel=False)
    build.output(value)
    return build.done()


def conv_network() -> Graph:
    build = Builder(np.random.default_rng(1))
    element, weight = IntType(4, False), IntType(3, True)
    value = build.conv2d(build.input((1, 4, 4), element), 3, 3, 1, 1, weight)
    value = build.max_pool2d(build.requantize(value, element, per_channel=True), 2, 2)
    build.output(build.requantize(build.dense(build.flatten(value), 3, weight), element, per_channel=False))
    return build.done()


def padded_network() -> Graph:
    """Convolutions with padding on all sides, of a stride of one and of two."""
    build = Builder(np.random.default_rng(3))
    element, weight = IntType(4, False), IntType(3, True)
    value = build.conv2d(build.input((2, 5, 4), element), 4, 3, 1, 1, weight)
    value = build.conv2d(build.requantize(value, element, per_channel=True), 3, 3, 2, 1, weight)
    build.output(build.requantize(value, element, per_channel=False))
    return build.done()


def joined_network() -> Graph:
    """Three ways of unlike channels, joined channel by channel."""
    build = Builder(np.random.default_rng(2))
    element, weight = IntType(4, False), IntType(3, True)
    start = build.input((2, 4, 4), element)
    ways = [build.requantize(build.conv2d(start, n, 1, 1, 0, weight), element, per_channel=False) for n in (3, 1)]
    build.output(build.conv2d(build.node("concat", *ways, start, axis=0), 2, 1, 1, 0, weight))
    return build.done()


@pytest.mark.parametrize("interval", [1, 4, 16])
def test_channels_of_several_pixels_side_by_side(interval: int) -> None:
    """16 pixels, of which every beat has 16, 4 or one."""
    quantized = joined_network()
    scheduled = schedule(dataflow(quantized), PART, Budget(PART.lut, PART.ff, PART.dsp, PART.bram), interval)
    assert scheduled.initiation_interval == interval
    (joined,) = (node for node in scheduled.graph.nodes if node.op == "stream_concat")
    assert [v.typed.shape[1] for v in joined.inputs] == [3, 1, 2]
    assert scheduled.plan[joined].folding.output_lanes == 16 // interval * 6
    check_simulated(quantized, scheduled)


@pytest.mark.parametrize("interval", [1, 3, 8])
def test_a_convolutional_network(interval: int) -> None:
    """Whole images per beat, several windows per beat, whole windows."""
    quantized = conv_network()
    scheduled = schedule(dataflow(quantized), PART, Budget(PART.lut, PART.ff, PART.dsp, PART.bram), interval)
    assert scheduled.initiation_interval <= interval
    check_simulated(quantized, scheduled)


@pytest.mark.parametrize("gap", [0.0, 0.4])
def test_a_dense_network_of_a_frame_a_cycle(gap: float) -> None:
    quantized = dense_network()
    scheduled = schedule(dataflow(quantized), PART, Budget(PART.lut, PART.ff, PART.dsp, PART.bram), 1)
    assert scheduled.initiation_interval == 1
    check_simulated(quantized, scheduled, gap=gap)


@pytest.mark.parametrize(("seed", "gap"), [(0, 0.0), (1, 0.0), (2, 0.4)])
def test_clipped_windows(seed: int, gap: float) -> None:
    """A stream of windows without their taps in the padding, and products with it, for any lanes."""
    quantized = padded_network()
    scheduled = folded_at_random(dataflow(quantized), seed, clipped=True)
    clips = [getattr(node.attributes, "clipping", Clipping.NONE) for node in scheduled.plan.cores]
    assert clips.count(Clipping.CLIPPED) == 4 and Clipping.OFFERED not in clips
    check_simulated(quantized, scheduled, gap=gap)
