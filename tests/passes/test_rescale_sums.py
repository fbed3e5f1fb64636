"""Sums with short multipliers mean what they meant, on every pair of inputs; what cannot be shortened stays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hwflow.cores.requantizers.requantizer_core import form_of
from hwflow.ir.graph import Graph, Node
from hwflow.numerics.functions.piecewise import Relu
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.passes.rescale_sums import rescale_sums
from hwflow.types import IntType
from hwflow.verify import golden
from tests.schedule.graphs import Builder, dataflow

I8, U8, I5, I16 = IntType(8, True), IntType(8, False), IntType(5, True), IntType(16, True)
LONG = (11863283, 15099495)


def stage(total: int, zero_point: int = 0, scale: float = 1.0) -> tuple[QuantizerStage]:
    """Sums of ``total`` in size to 8 bits, with a Relu before an odd zero point."""
    multiplier = Fraction(float(np.float32(scale * 180 / total)))
    functions = (Relu(),) if zero_point % 2 else ()
    return (QuantizerStage(multiplier, Fraction(3), functions, Fraction(1), zero_point, -128, 127),)


def graph_of(
    elements: tuple[IntType, IntType], channels: int, multipliers: tuple, stages: tuple, axis: int = 0
) -> Graph:
    """Images of one row that hold every pair of values, for each channel."""
    build = Builder(np.random.default_rng(0))
    shape = (channels, 1, 4)
    total = build.node("scaled_add", *(build.input(shape, e) for e in elements), axis=axis, multipliers=multipliers)
    build.output(build.node("requantize", total, axis=axis, stages=stages))
    return build.done()


def every_pair(graph: Graph) -> dict[str, np.ndarray]:
    """All pairs of the two inputs' values, the same in every channel."""
    ranges = [port.value.typed.interval for port in graph.inputs]
    grids = np.meshgrid(*(np.arange(r.lo, r.hi + 1) for r in ranges), indexing="ij")
    channels = graph.inputs[0].shape[0]
    return {
        port.name: np.repeat(grid.reshape(-1, 1, 1, 4), channels, axis=1)
        for port, grid in zip(graph.inputs, grids, strict=True)
    }


def sum_of(graph: Graph) -> Node:
    (node,) = [n for n in graph.nodes if n.op == "scaled_add"]
    return node


def longest(graph: Graph) -> int:
    return max(abs(int(m)) for values in sum_of(graph).attributes.multipliers for m in values).bit_length()


@pytest.mark.parametrize(
    ("multipliers", "stages"),
    [
        (((LONG[0],), (LONG[1],)), (stage(128 * sum(LONG)),)),
        (((LONG[0],), (-LONG[1],)), (stage(128 * sum(LONG), 5),)),
        (((LONG[0], 9395241), (LONG[1],)), (stage(128 * sum(LONG), 4),)),
        (((LONG[0],), (LONG[1],)), (stage(128 * sum(LONG)), stage(128 * sum(LONG), 0, 0.7))),
        (((LONG[0],), (-LONG[1],)), (stage(-128 * sum(LONG)),)),
    ],
    ids=["plain", "difference", "multipliers_per_channel", "stages_per_channel", "falling"],
)
def test_every_pair_keeps_its_value(multipliers, stages) -> None:
    graph = graph_of((I8, I8), 2, multipliers, stages)
    short = rescale_sums(graph)
    assert longest(graph) >= 24
    assert longest(short) <= 22
    inputs = every_pair(graph)
    (expected,) = golden.evaluate(graph, inputs).values()
    (found,) = golden.evaluate(short, inputs).values()
    assert np.array_equal(found, expected)
    assert len(np.unique(expected)) > 100
    assert [n.sources for n in short.nodes] == [n.sources for n in graph.nodes]


def test_what_follows_is_a_plain_shift() -> None:
    graph = dataflow(graph_of((I8, I8), 2, ((LONG[0],), (LONG[1],)), (stage(128 * sum(LONG)),)))
    (requantize,) = [n for n in graph.nodes if n.op == "requantize"]
    form = form_of(requantize)
    assert isinstance(form, MultiplyAddShift)
    assert set(form.multipliers) == {1}


@pytest.mark.parametrize(
    ("elements", "multipliers", "why"),
    [
        ((I8, I8), ((3,), (5,)), "short already"),
        ((I16, I16), ((LONG[0],), (LONG[1],)), "2**32 pairs"),
    ],
)
def test_what_stays(elements, multipliers, why) -> None:
    reach = max(-elements[0].min, -elements[1].min) * sum(m[0] for m in multipliers)
    graph = graph_of(elements, 1, multipliers, (stage(reach),))
    assert sum_of(rescale_sums(graph)).attributes.multipliers == multipliers, why


def test_a_sum_with_two_readers_stays() -> None:
    build = Builder(np.random.default_rng(1))
    inputs = [build.input((1, 1, 4), I5) for _ in range(2)]
    total = build.node("scaled_add", *inputs, axis=0, multipliers=((LONG[0],), (LONG[1],)))
    for zero_point in (0, 2):
        build.output(build.node("requantize", total, axis=0, stages=(stage(16 * sum(LONG), zero_point),)))
    graph = build.done()
    assert sum_of(rescale_sums(graph)).attributes.multipliers == ((LONG[0],), (LONG[1],))


def test_the_graph_itself_stays_as_it_is() -> None:
    graph = graph_of((I5, I5), 1, ((LONG[0],), (LONG[1],)), (stage(16 * sum(LONG)),))
    assert longest(rescale_sums(graph)) < 24
    assert sum_of(graph).attributes.multipliers == ((LONG[0],), (LONG[1],))
