"""Engines in place of cores: the same integers, whatever the engine and its room."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import dataflow
from hwflow.boards import find_board
from hwflow.cores.engine.engine_layers import JoinedMaps
from hwflow.cores.engine.strips import fastest
from hwflow.cores.external.weight_memory import plan_of
from hwflow.cores.operator import Folding
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Graph
from hwflow.passes.outside.engine_parts import EnginePart, engine_part, engine_parts, sources
from hwflow.passes.outside.layers_in_turn import engine_of, layers_in_turn
from hwflow.passes.outside.queue_outside import queue_outside
from hwflow.verify.golden import evaluate
from tests.flow.test_layers_in_turn import deep
from tests.models import Builder


def convolution(b: Builder, rng, x: str, shape: tuple[int, ...], scale: float, zero: int = 128, **attributes) -> str:
    """A convolution with weights of this shape, and its requantizer."""
    y = b.node("Conv", x, b.weights(rng.integers(-127, 128, shape), 0.003), **attributes)
    return b.requantize(y, scale, zero)


def residual(scales: tuple[float, float], zero: int = 128) -> Builder:
    """A stem with strides, a residual block, a depthwise layer, means, and a layer over all of them."""
    rng = np.random.default_rng(1)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3, 9, 8]), 0.05, zero)
    x = convolution(b, rng, x, (6, 3, 3, 3), 0.04, zero, pads=[1, 1, 1, 1], strides=[2, 2])
    y = convolution(b, rng, x, (5, 6, 3, 3), 0.03, 17, pads=[1, 1, 1, 1])
    y = convolution(b, rng, y, (6, 5, 1, 1), scales[0], zero)
    x = b.requantize(b.node("Relu", b.node("Add", y, x)), scales[1], 0)
    x = convolution(b, rng, x, (6, 1, 3, 3), 0.02, zero, group=6, pads=[1, 1, 1, 1])
    x = b.node("Flatten", b.requantize(b.node("GlobalAveragePool", x), 0.0117, zero))
    b.output(b.requantize(b.node("MatMul", x, b.weights(rng.integers(-127, 128, (6, 4)), 0.01)), 0.02, 128))
    return b


def part_of(graph: Graph) -> EnginePart:
    part = engine_part(graph, sources(graph)[0])
    assert part is not None
    return part


@pytest.mark.parametrize("lanes", [2, 4, 6])
@pytest.mark.parametrize(
    ("scales", "zero"),
    [((0.0417, 0.0531), 128), ((0.04, 0.05), 128), ((0.04, 0.08), 0), ((0.03, 0.05), 131)],
    ids=["any scales", "scales with ties", "dyadic", "odd zero point"],
)
def test_the_same_integers(scales: tuple[float, float], zero: int, lanes: int, tmp_path: Path) -> None:
    graph = dataflow(residual(scales, zero).load(tmp_path).quantized)
    part = part_of(graph)
    assert len(part.network.layers) >= 2
    port = graph.inputs[0]
    ends = port.value.typed.interval
    x = {port.name: np.random.default_rng(5).integers(ends.lo, ends.hi + 1, (4, *port.shape))}
    (wanted,) = evaluate(graph, x).values()
    engine = engine_of(lanes, 1, 16)
    for words in (150, 400, 4000):
        order = fastest(part.network, engine, words, 1.0)
        if order is not None:
            made = layers_in_turn(graph, part, engine, order, None)
            assert sum(node.op == "layer_engine" for node in made.nodes) == 1
            np.testing.assert_array_equal(next(iter(evaluate(made, x).values())), wanted)
            found = order
    assert found.words(engine) <= 4000


def test_all_layers_are_taken(tmp_path: Path) -> None:
    graph = dataflow(residual((0.0417, 0.0531)).load(tmp_path).quantized)
    part = part_of(graph)
    assert part.nodes == frozenset(graph.nodes)
    layers = part.network.layers
    assert [layer.diagonal for layer in layers] == [False, False, False, True, True, False]
    assert [layer.added is not None for layer in layers] == [False, False, True, False, False, False]
    assert layers[4].window.kernel == (5, 4)  # means over all of a map


@pytest.mark.parametrize("zero", [0, 128, 200])
@pytest.mark.parametrize("lanes", [2, 4])
def test_maxima_are_layers(zero: int, lanes: int, tmp_path: Path) -> None:
    """Overlapping and padded windows, whole maps; behind sums of two maps, and with one that is added."""
    rng = np.random.default_rng(6)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3, 9, 8]), 0.05, 128)
    x = convolution(b, rng, x, (4, 3, 3, 3), 0.011, zero, pads=[1, 1, 1, 1])
    y = b.node("MaxPool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
    x = b.requantize(b.node("Add", y, x), 0.017, zero)
    x = b.node("MaxPool", x, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0])
    x = convolution(b, rng, x, (5, 4, 3, 3), 0.013, zero, pads=[1, 1, 1, 1])
    x = b.node("Flatten", b.node("GlobalMaxPool", x))
    b.output(b.requantize(b.node("MatMul", x, b.weights(rng.integers(-127, 128, (5, 4)), 0.01)), 0.02, 128))
    graph = dataflow(b.load(tmp_path).quantized)
    part = part_of(graph)
    assert part.nodes == frozenset(graph.nodes)
    layers = part.network.layers
    assert [layer.maximum for layer in layers] == [False, True, True, False, True, False]
    port = graph.inputs[0]
    ends = port.value.typed.interval
    image = {port.name: rng.integers(ends.lo, ends.hi + 1, (6, *port.shape))}
    (wanted,) = evaluate(graph, image).values()
    assert len(np.unique(wanted)) > 6
    engine = engine_of(lanes, 1, 16)
    few, many = 4 * max(map(engine.words, part.network.shapes)), 4000
    for words in (few, many):
        order = fastest(part.network, engine, words, 1.0)
        assert order is not None
        made = layers_in_turn(graph, part, engine, order, None)
        np.testing.assert_array_equal(next(iter(evaluate(made, image).values())), wanted)


def test_functions_of_elements(tmp_path: Path) -> None:
    """A table behind a convolution, behind a sum of two maps, and of a map that another layer reads, too."""
    rng = np.random.default_rng(4)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3, 6, 5]), 0.05, 128)
    x = convolution(b, rng, x, (4, 3, 3, 3), 0.011, 128, pads=[1, 1, 1, 1])
    x = b.requantize(b.node("HardSwish", x), 0.04, 40)
    y = b.requantize(b.node("LeakyRelu", x, alpha=0.1), 0.01, 60, "int8")
    x = b.requantize(b.node("Add", convolution(b, rng, y, (4, 4, 1, 1), 0.0417), x), 0.0531, 120)
    x = b.requantize(b.node("Sigmoid", x), 0.005, 0)
    b.output(convolution(b, rng, x, (3, 4, 3, 3), 0.01))
    graph = dataflow(b.load(tmp_path).quantized)
    part = part_of(graph)
    assert part.nodes == frozenset(graph.nodes)
    assert [layer.table is not None for layer in part.network.computed] == [True, True, True, False]
    assert [layer.maximum for layer in part.network.computed] == [False, True, False, False]
    port = graph.inputs[0]
    ends = port.value.typed.interval
    image = {port.name: rng.integers(ends.lo, ends.hi + 1, (5, *port.shape))}
    (wanted,) = evaluate(graph, image).values()
    assert len(np.unique(wanted)) > 10
    engine = engine_of(4, 1, 16)
    order = fastest(part.network, engine, 4000, 1.0)
    assert order is not None
    made = layers_in_turn(graph, part, engine, order, None)
    np.testing.assert_array_equal(next(iter(evaluate(made, image).values())), wanted)
    assert len(order.program(engine).tables) == 3


@pytest.mark.parametrize(("least", "bits", "factor"), [(-8, 4, 4), (-9, 8, 64)])
def test_maxima_beside_weights_of_few_bits(least: int, bits: int, factor: int, tmp_path: Path) -> None:
    """A max pool's weights have room in as many bits as all others do."""
    rng = np.random.default_rng(6)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3, 9, 8]), 0.05, 128)
    weights = rng.integers(-7, 8, (4, 3, 3, 3))
    weights[0, 0, 0, 0] = least
    x = b.requantize(b.node("Conv", x, b.weights(weights, 0.03), pads=[1, 1, 1, 1]), 0.021, 128)
    x = b.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = b.node("Flatten", b.requantize(b.node("GlobalAveragePool", x), 0.0117, 0))
    b.output(b.requantize(b.node("MatMul", x, b.weights(rng.integers(-7, 8, (4, 4)), 0.1)), 0.02, 128))
    graph = dataflow(b.load(tmp_path).quantized)
    part = part_of(graph)
    assert part.nodes == frozenset(graph.nodes)
    assert part.network.weight_bits == bits
    (pool,) = [layer for layer in part.network.computed if layer.maximum]
    assert set(pool.weights.flat) == {factor}
    engine = engine_of(4, 1, 16, weight_bits=bits)
    order = fastest(part.network, engine, 4000, 1.0)
    assert order is not None
    made = layers_in_turn(graph, part, engine, order, None)
    port = graph.inputs[0]
    ends = port.value.typed.interval
    image = {port.name: rng.integers(ends.lo, ends.hi + 1, (6, *port.shape))}
    (wanted,) = evaluate(graph, image).values()
    assert len(np.unique(wanted)) > 6
    np.testing.assert_array_equal(next(iter(evaluate(made, image).values())), wanted)
    (engine_node,) = [node for node in made.nodes if node.op == "layer_engine"]
    assert engine_node.attributes.program.weight_bits == bits


def test_rows_of_few_bits_are_whole_words() -> None:
    """Of four lanes with four bits: 16; else the weights are bytes."""
    found = [engine_of(lanes, 1, width, weight_bits=4).weight_bits for lanes, width in ((4, 16), (4, 32), (6, 16))]
    assert found == [4, 8, 8]
    assert engine_of(4, 1, 16, serial=True, weight_bits=4).weight_bits == 8


@pytest.mark.parametrize("lanes", [2, 4])
def test_joined_maps(lanes: int, tmp_path: Path) -> None:
    """Two maps that are joined, with a third one behind them; scaled, seen by windows of all kinds, and added."""
    rng = np.random.default_rng(8)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3, 8, 7]), 0.05, 128)
    x = convolution(b, rng, x, (3, 3, 3, 3), 0.012, pads=[1, 1, 1, 1])
    y = convolution(b, rng, x, (5, 3, 3, 3), 0.012, 0, pads=[1, 1, 1, 1])
    x = b.requantize(b.node("Concat", x, y, axis=1), 0.014, 100)
    y = convolution(b, rng, x, (8, 1, 3, 3), 0.006, group=8, pads=[1, 1, 1, 1])
    y = b.node("MaxPool", y, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
    z = b.requantize(b.node("Add", x, y), 0.016, 90)
    z = convolution(b, rng, z, (1, 8, 3, 3), 0.016, 90, pads=[1, 1, 1, 1])
    x = b.node("Concat", z, convolution(b, rng, z, (2, 1, 1, 1), 0.016, 90), axis=1)
    b.output(convolution(b, rng, x, (4, 3, 3, 3), 0.01))
    graph = dataflow(b.load(tmp_path).quantized)
    part = part_of(graph)
    assert part.nodes == frozenset(graph.nodes)
    assert sum(isinstance(layer, JoinedMaps) for layer in part.network.layers) == 2
    port = graph.inputs[0]
    ends = port.value.typed.interval
    image = {port.name: rng.integers(ends.lo, ends.hi + 1, (5, *port.shape))}
    (wanted,) = evaluate(graph, image).values()
    assert len(np.unique(wanted)) > 10
    order = fastest(part.network, engine_of(lanes, 1, 16), 4000, 1.0)
    assert order is not None
    made = layers_in_turn(graph, part, engine_of(lanes, 1, 16), order, None)
    np.testing.assert_array_equal(next(iter(evaluate(made, image).values())), wanted)


@pytest.mark.parametrize("lanes", [2, 4])
def test_enlarged_maps(lanes: int, tmp_path: Path) -> None:
    """A small map is enlarged and joined to a greater one; another one is added; two rows and three columns."""
    rng = np.random.default_rng(8)
    b = Builder(19, 9)

    def enlarged(x: str, down: int, across: int) -> str:
        nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return b.node("Resize", x, "", b.constant([1, 1, down, across]), **nearest)

    x = b.requantize(b.input("x", ["N", 3, 8, 6]), 0.05, 128)
    skip = convolution(b, rng, x, (5, 3, 3, 3), 0.012, pads=[1, 1, 1, 1])
    x = b.node("MaxPool", skip, kernel_shape=[2, 2], strides=[2, 2])
    x = convolution(b, rng, x, (3, 5, 3, 3), 0.012, pads=[1, 1, 1, 1])
    x = b.requantize(b.node("Concat", skip, enlarged(x, 2, 2), axis=1), 0.014, 100)
    skip = convolution(b, rng, x, (4, 8, 3, 3), 0.0417, pads=[1, 1, 1, 1])
    x = convolution(b, rng, skip, (4, 4, 3, 3), 0.012, pads=[1, 1, 1, 1], strides=[2, 1])
    x = b.requantize(b.node("Add", enlarged(x, 2, 1), skip), 0.0531, 90)
    x = enlarged(convolution(b, rng, x, (3, 4, 1, 1), 0.012), 2, 3)
    b.output(convolution(b, rng, x, (2, 3, 3, 3), 0.012, strides=[2, 2]))
    graph = dataflow(b.load(tmp_path).quantized)
    part = part_of(graph)
    assert part.nodes == frozenset(graph.nodes)
    spreads = [layer.spread for layer in part.network.computed if layer.spread != (1, 1)]
    assert spreads == [(2, 2), (2, 1), (2, 3)]
    port = graph.inputs[0]
    ends = port.value.typed.interval
    image = {port.name: rng.integers(ends.lo, ends.hi + 1, (5, *port.shape))}
    (wanted,) = evaluate(graph, image).values()
    assert len(np.unique(wanted)) > 10
    engine = engine_of(lanes, 1, 16)
    order = fastest(part.network, engine, 4000, 1.0)
    assert order is not None
    made = layers_in_turn(graph, part, engine, order, None)
    np.testing.assert_array_equal(next(iter(evaluate(made, image).values())), wanted)
    assert engine_of(4, 1, 16, serial=True).within(part.network, 156) is None


@pytest.mark.parametrize(("kind", "taken"), [("uint8", True), ("int8", False)])
def test_joined_maps_have_one_sign(kind: str, taken: bool, tmp_path: Path) -> None:
    """Elements of -128 to 127 beside those of 0 to 255 have nine bits: a part ends in front of them."""
    rng = np.random.default_rng(3)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3, 6, 6]), 0.05, 128)
    x = convolution(b, rng, x, (4, 3, 1, 1), 0.003)
    y = b.requantize(b.node("Conv", x, b.weights(rng.integers(-127, 128, (3, 4, 1, 1)), 0.003)), 0.003, 0, kind)
    x = b.node("Concat", convolution(b, rng, x, (3, 4, 1, 1), 0.003), y, axis=1)
    b.output(convolution(b, rng, x, (4, 6, 1, 1), 0.01))
    graph = dataflow(b.load(tmp_path).quantized)
    part = part_of(graph)
    assert (part.nodes == frozenset(graph.nodes)) is taken
    assert len(part.network.layers) == (5 if taken else 1)


def test_what_is_no_layer_ends_a_part(tmp_path: Path) -> None:
    """A function of sums that no multiplication is, for example."""
    rng = np.random.default_rng(2)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3, 8, 8]), 0.05, 128)
    x = b.node("Conv", x, b.weights(rng.integers(-127, 128, (4, 3, 3, 3)), 0.003), pads=[1, 1, 1, 1])
    x = b.requantize(b.node("HardSwish", x), 0.03, 20)
    x = convolution(b, rng, x, (5, 4, 3, 3), 0.04, pads=[1, 1, 1, 1])
    b.output(convolution(b, rng, x, (6, 5, 3, 3), 0.04))
    graph = dataflow(b.load(tmp_path).quantized)
    parts = [part for source in sources(graph) if (part := engine_part(graph, source)) is not None]
    assert sorted({len(part.network.layers) for part in parts}) == [1, 2]


def test_a_part_may_end_in_front_of_its_last_vectors(tmp_path: Path) -> None:
    """Two dense layers at the end are left out together; there is none without layers."""
    rng = np.random.default_rng(2)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3, 8, 8]), 0.05, 128)
    x = convolution(b, rng, x, (4, 3, 3, 3), 0.04, pads=[1, 1, 1, 1])
    x = b.node("Flatten", b.requantize(b.node("GlobalAveragePool", x), 0.0117, 128))
    for inputs, outputs in ((4, 6), (6, 5)):
        x = b.requantize(b.node("MatMul", x, b.weights(rng.integers(-127, 128, (inputs, outputs)), 0.01)), 0.02, 128)
    b.output(x)
    graph = dataflow(b.load(tmp_path).quantized)
    found = [[len(part.network.layers) for part in engine_parts(graph, source)] for source in sources(graph)]
    assert found[0] == [4, 2]
    assert all(len(counts) < 2 for counts in found[-2:])


def test_who_shares_the_memory_knows_its_plan(tmp_path: Path) -> None:
    """A queue there, too, makes the engine slower: its weights are no later than it counts with."""
    graph = dataflow(deep().load(tmp_path).quantized)
    timing = find_board("ulx3s_85f").memory_timing(Fraction(100_000_000))
    parts = [part for source in sources(graph) for part in engine_parts(graph, source)]
    part, engine = max(parts, key=lambda part: part.network.weights), engine_of(12, 1, 16)
    order = fastest(part.network, engine, 40_000, 1.0)
    assert order is not None
    alone = layers_in_turn(graph, part, engine, order, timing)
    beside = queue_outside(alone, {part.source.name: Fraction(1)}, timing)
    cycles = []
    for made in (alone, beside):
        nodes = {node.op: node for node in made.nodes}
        given, memory = nodes["layer_engine"].attributes, nodes["weight_memory"]
        assert given.planned == plan_of(memory)
        assert "memory_queue" not in nodes or nodes["memory_queue"].attributes.planned == given.planned
        assert hardware("weight_memory").cycles(memory, Folding(2, 2)) == given.pace.cycles
        cycles.append(given.pace.cycles)
    assert cycles[0] < cycles[1]
