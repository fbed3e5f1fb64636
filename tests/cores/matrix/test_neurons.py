"""Truth tables of neurons against sums of products and a requantizer worked out in numpy."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hwflow.cores.matrix.neurons import NeuronTables, neuron_tables
from hwflow.cores.registry import OPERATORS
from hwflow.ir.graph import IntArray, Node, Value
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.types import Interval, TensorType
from tests.attributes import attributes_of

# Ranges that are no powers of two, of both signs, and a channel that never changes.
RANGES = [Interval(0, 2), Interval(-3, 1), Interval(-5, -2), Interval(0, 1), Interval(6, 6), Interval(-2, 4)]


def layer(weights: IntArray, scales: list[Fraction], low: int, high: int) -> list[Node]:
    """A matrix of vectors of :data:`RANGES` and a requantizer, with types inferred."""
    source = Value("x", TensorType.of((1, len(RANGES)), tuple(RANGES), 1))
    stages = tuple((QuantizerStage(scale, Fraction(0), (), Fraction(1), 0, low, high),) for scale in scales)
    nodes: list[Node] = []
    for op, given in (
        ("mvu", {"weights": weights, "pixels_per_vector": 1}), ("requantize", {"axis": 1, "stages": stages}),
    ):
        operator = OPERATORS[op]
        made = operator.derive(attributes_of(op, **given), [source.typed])
        (type_,) = operator.infer(made, [source.typed])
        nodes.append(Node(op, [source], [Value(f"{op}_y", type_)], made))
        source = nodes[-1].outputs[0]
    return nodes


def results(tables: NeuronTables, x: IntArray) -> IntArray:
    """What the tables make of vectors [n, inputs]: [n, outputs]."""
    bits = np.stack([x[:, element] >> bit & 1 for element, bit in tables.bits], axis=1)
    network = replace(tables.network, outputs=tuple(range(tables.network.inputs + len(tables.network.luts))))
    signals = network.evaluate(bits)
    columns = []
    for places, signed in tables.outputs:
        value = sum((signals[:, s] << place for place, s in enumerate(places)), np.zeros(len(x), dtype=np.int64))
        columns.append(value - (signals[:, places[-1]] << len(places)) if signed else value)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize(("low", "high"), [(0, 3), (-4, 3), (-1, 1), (2, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_random_sparse_neurons(seed: int, low: int, high: int) -> None:
    rng = np.random.default_rng(seed)
    weights = np.zeros((5, len(RANGES)), dtype=np.int64)
    for row in weights[:4]:  # the last neuron reads nothing
        row[rng.permutation(len(RANGES))[:4]] = rng.integers(-9, 10, 4)
    scales = rng.integers(1, 9, len(weights))
    matrix, requantizer = layer(weights, [Fraction(int(scale), 16) for scale in scales], low, high)
    tables = neuron_tables(matrix, requantizer)
    assert tables is not None
    x = np.stack([rng.integers(r.lo, r.hi, 500, endpoint=True) for r in RANGES], axis=1)
    expected = np.clip(np.rint(x @ weights.T * scales / 16), low, high)  # halves to even, exact: 16 is a power of two
    assert np.array_equal(results(tables, x), expected)
    assert neuron_tables(matrix, requantizer) is tables, "found once"


def test_equal_neurons_are_one() -> None:
    """And those that are constant none: the fifth channel never changes."""
    row = np.array([1, -2, 0, 3, 0, 0])
    alone = neuron_tables(*layer(row[None], [Fraction(1, 4)], 0, 3))
    fifth = np.array([0, 0, 0, 0, 5, 0])
    several = neuron_tables(*layer(np.stack([row, row, 0 * row, fifth]), [Fraction(1, 4)] * 4, 0, 3))
    assert alone is not None and several is not None
    assert several.network.size == alone.network.size > 0
    assert len(several.network.results) == len(alone.network.results)
    assert several.outputs[0] == several.outputs[1]


def test_thirteen_bits_are_too_many() -> None:
    """The ranges take 2, 3, 4, 1, 0 and 4 bits."""
    for read, there in (([1, 1, 1, 0, 1, 0], True), ([0, 1, 1, 1, 1, 1], True), ([1, 1, 1, 0, 0, 1], False)):
        assert (neuron_tables(*layer(np.array([read]), [Fraction(1, 4)], 0, 3)) is not None) is there
