"""Parts of a product that meet again come side by side: which graphs that holds for, and that nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.cores.loops.repeated import RepeatedAttributes
from hwflow.cores.matrix.dot_products import MvuAttributes
from hwflow.cores.streams.rearrange import RearrangeAttributes
from hwflow.passes import pipeline
from tests.agreement import same
from tests.models import Builder
from tests.simulated_model import check_simulated

WIDTH = 8
IN_ORDER = list(range(3 * WIDTH))
SIDE_BY_SIDE = [part * WIDTH + index for index in range(WIDTH) for part in range(3)]


def product(b: Builder, rows: int = 1, outputs: int = 3 * WIDTH) -> str:
    """The rows of ``x`` by different weights for each output, quantized by channel."""
    x = b.requantize(b.input("x", ["N", rows, 5]), 0.0625, 0, "int8")
    weights = np.random.default_rng(3).integers(-100, 101, (5, outputs))
    scales = [2.0 ** -(3 + output % 3) for output in range(outputs)]
    total = b.node("MatMul", x, b.weights(weights, 2.0**-6))
    return b.requantize(total, scales, [0] * outputs, "int8", axis=2)


def split(b: Builder, value: str, sizes: list[int]) -> list[str]:
    ends = np.cumsum([0, *sizes]).tolist()
    axis = b.constant([2], "int64")
    return [
        b.node("Slice", value, b.constant([first], "int64"), b.constant([last], "int64"), axis)
        for first, last in pairwise(ends)
    ]


def meet(b: Builder, parts: list[str]) -> str:
    """The first part gated by the second one, and the third one added."""
    gate = b.requantize(b.node("Sigmoid", parts[1]), 2.0**-8, 0, "uint8")
    product_ = b.requantize(b.node("Mul", parts[0], gate), 0.25, 0, "int8")
    return b.requantize(b.node("Add", product_, b.requantize(b.node("Tanh", parts[2]), 2.0**-7, 0, "int8")), 0.25)


def gated(b: Builder) -> None:
    b.output(meet(b, split(b, product(b), [WIDTH] * 3)))


def of_rows(b: Builder) -> None:
    b.output(meet(b, split(b, product(b, 4), [WIDTH] * 3)))


def of_one_row(b: Builder) -> None:
    """Rows of a product for several, as a sequence's steps take them."""
    axis, total = b.constant([1], "int64"), product(b, 2)
    rows = [b.node("Slice", total, b.constant([k], "int64"), b.constant([k + 1], "int64"), axis) for k in range(2)]
    b.output(*[meet(b, split(b, row, [WIDTH] * 3)) for row in rows])


def of_the_only_row(b: Builder) -> None:
    """The product in another shape, as a sequence's only step takes it."""
    row = b.node("Gather", product(b), b.constant(0, "int64"), axis=1)
    b.output(meet(b, split(b, b.node("Unsqueeze", row, b.constant([1], "int64")), [WIDTH] * 3)))


def split_twice(b: Builder) -> None:
    pair, last = split(b, product(b), [2 * WIDTH, WIDTH])
    b.output(meet(b, [*split(b, pair, [WIDTH] * 2), last]))


def two_products(b: Builder) -> None:
    """Both come in the order of what reads their sum."""
    h = b.requantize(b.input("h", ["N", 1, 5]), 0.0625, 0, "int8")
    weights = b.weights(np.random.default_rng(4).integers(-100, 101, (5, 3 * WIDTH)), 2.0**-6)
    other = b.requantize(b.node("MatMul", h, weights), 0.25, 0, "int8")
    b.output(meet(b, split(b, b.requantize(b.node("Add", product(b), other), 0.25, 0, "int8"), [WIDTH] * 3)))


def of_rounds(b: Builder) -> None:
    """Rows of a product that the rounds of a loop take, each added to a product of the state."""
    axis, total = b.constant([1], "int64"), product(b, 4)
    weights = b.weights(np.random.default_rng(4).integers(-100, 101, (WIDTH, 3 * WIDTH)), 2.0**-6)
    state = b.requantize(b.input("h", ["N", 1, WIDTH]), 0.25, 0, "int8")
    for k in range(4):
        row = b.node("Slice", total, b.constant([k], "int64"), b.constant([k + 1], "int64"), axis)
        other = b.requantize(b.node("MatMul", state, weights), 0.25, 0, "int8")
        state = meet(b, split(b, b.requantize(b.node("Add", row, other), 0.25, 0, "int8"), [WIDTH] * 3))
    b.output(state)


def unequal(b: Builder) -> None:
    parts = split(b, product(b), [WIDTH, 2 * WIDTH])
    axis, ends = b.constant([2], "int64"), (b.constant([0], "int64"), b.constant([WIDTH], "int64"))
    b.output(b.requantize(b.node("Add", parts[0], b.node("Slice", parts[1], *ends, axis)), 0.25, 0, "int8"))


def apart(b: Builder) -> None:
    """Parts that do not meet, as queries, keys and values."""
    b.output(*[b.requantize(part, 0.5, 0, "int8") for part in split(b, product(b), [WIDTH] * 3)])


def also_whole(b: Builder) -> None:
    """Something else reads the product, too."""
    total = product(b)
    b.output(meet(b, split(b, total, [WIDTH] * 3)), b.node("Concat", total, total, axis=1))


def orders(
    make: Callable[[Builder], None], folder: Path, passes: tuple[pipeline.Pass, ...] = pipeline.DATAFLOW
) -> list[list[int]]:
    """Return the order of outputs in which each product's stream comes. Results are those of the quantized graph."""
    b = Builder(19, 9)
    make(b)
    quantized = b.load(folder).quantized
    graph = pipeline.run(quantized, passes)
    rng = np.random.default_rng(1)
    same(quantized, graph, {port.name: rng.integers(-128, 128, (5, *port.shape)) for port in quantized.inputs})
    found = []
    for node in graph.nodes:
        if isinstance(node.attributes, MvuAttributes):
            carried = node.outputs[0].carried
            assert carried is not None
            found.append(carried.order.reshape(-1, carried.shape[-1])[0].tolist())
    return found


@pytest.mark.parametrize("make", [gated, of_rows, of_one_row, of_the_only_row, split_twice, two_products])
def test_side_by_side(make: Callable[[Builder], None], tmp_path: Path) -> None:
    found = orders(make, tmp_path)
    assert found == [SIDE_BY_SIDE] * len(found) != []


def test_rows_of_a_loop(tmp_path: Path) -> None:
    """What the body wants of a row is wanted of each of the rows outside."""
    assert orders(of_rounds, tmp_path, pipeline.FORMS[pipeline.ONCE]) == [SIDE_BY_SIDE]


@pytest.mark.parametrize("make", [unequal, apart, also_whole])
def test_in_their_own_order(make: Callable[[Builder], None], tmp_path: Path) -> None:
    assert orders(make, tmp_path) == [IN_ORDER]


@pytest.mark.parametrize("make", [gated, of_the_only_row])
def test_only_the_parts_are_rearranged(make: Callable[[Builder], None], tmp_path: Path) -> None:
    b = Builder(19, 9)
    make(b)
    graph = pipeline.run(b.load(tmp_path).quantized, pipeline.DATAFLOW)
    made = [node.outputs[0] for node in graph.nodes if isinstance(node.attributes, RearrangeAttributes)]
    assert [prod(value.typed.shape) for value in made] == [WIDTH] * 3


def test_a_loop_in_hardware(tmp_path: Path) -> None:
    b = Builder(19, 9)
    of_rounds(b)
    design = compile(b.load(tmp_path), "ulx3s_85f", fps=1e5, loops=pipeline.ONCE)
    check_simulated(design, stalls=(0.0, 0.5))
    loop = [node for node in design.schedule.graph.nodes if isinstance(node.attributes, RepeatedAttributes)]
    moved = [node for node in loop if isinstance(node.attributes.node.attributes, RearrangeAttributes)]
    assert {prod(node.outputs[0].typed.shape) for node in moved} == {4 * WIDTH}  # none is of all three parts


@pytest.mark.parametrize("fps", [None, 1e5])
def test_in_hardware(fps: float | None, tmp_path: Path) -> None:
    b = Builder(19, 9)
    gated(b)
    design = compile(b.load(tmp_path), "ulx3s_85f", fps=fps)
    check_simulated(design, stalls=(0.0, 0.5))
    # No part waits for another one: with parts one after the other the first two wait in queues of a part.
    depths = [depth for decision in design.schedule.plan.decisions.values() for depth in [decision.depth]]
    assert fps is None or max(depths) < WIDTH
