"""Foldings of a matrix-vector unit: which are offered, and what they reach."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hwflow.cores.matrix.folded_mvu import BlockMvu
from hwflow.cores.operator import Folding
from hwflow.cores.registry import OPERATORS, hardware
from hwflow.ir.graph import Node, Value
from hwflow.types import IntType, TensorType
from tests.attributes import attributes_of

I8 = IntType(8, True)
FAMILY = type("Family", (), {"family": "ecp5", "clock_mhz": None})()

# (vectors, outputs, pixels per vector, channels) of ResNet-8 for CIFAR-10 (MLPerf Tiny): a convolution of 3 x 3, three
# blocks of two (the later ones with stride 2, and a convolution of 1 x 1 beside them), a dense layer.
RESNET8 = [
    (1024, 16, 9, 3), (1024, 16, 9, 16), (1024, 16, 9, 16), (256, 32, 9, 16), (256, 32, 9, 32), (256, 32, 1, 16),
    (64, 64, 9, 32), (64, 64, 9, 64), (64, 64, 1, 32), (1, 10, 1, 64),
]
MULTIPLIERS = 156


def mvu(vectors: int, outputs: int, pixels: int, channels: int) -> Node:
    source = Value("x", TensorType((vectors * pixels, channels), I8, I8.interval))
    rng = np.random.default_rng(outputs)
    weights = rng.integers(-128, 128, (outputs, pixels * channels))
    attributes = attributes_of("mvu", weights=weights, pixels_per_vector=pixels)
    operator = OPERATORS["mvu"]
    (type_,) = operator.infer(attributes, [source.typed])
    return Node("mvu", [source], [Value("y", type_)], attributes)


def blocks(nodes: list[Node], usable: Callable[[Folding], bool]) -> Callable[[int], int]:
    """Multiplier blocks of all nodes at an interval, from the foldings that they offer."""
    operator = hardware("mvu")
    offered = []
    for node in nodes:
        options = [f for f in operator.foldings(node, FAMILY) if f.multiplier == "dsp" and usable(f)]
        offered.append([(operator.cycles(node, f), f.multipliers) for f in options])

    def total(interval: int) -> int:
        least = [[count for cycles, count in each if cycles <= interval] for each in offered]
        return sum(min(counts, default=10**9) for counts in least)

    return total


def by_formula(interval: int) -> int:
    """The same from the shapes: PE outputs and SIMD of all K elements per step take ceil(M / PE) * ceil(K / SIMD)."""
    total = 0
    for vectors, outputs, pixels, channels in RESNET8:
        elements, steps = pixels * channels, interval // vectors
        counts = [-(-elements // (steps // -(-outputs // pe))) * pe for pe in range(1, outputs + 1)
                  if steps // -(-outputs // pe)]
        total += min(counts, default=10**9)
    return total


def least(total: Callable[[int], int]) -> int:
    """The least interval that so many multipliers reach."""
    return bisect_left(range(200_000), True, key=lambda interval: interval > 0 and total(interval) <= MULTIPLIERS)


def test_resnet8() -> None:
    """With lanes of pixels alone, surplus lanes in each pixel's last beat cost an interval of 92,160."""
    nodes = [mvu(*layer) for layer in RESNET8]
    assert least(by_formula) == least(blocks(nodes, lambda folding: True)) == 84_992
    assert least(blocks(nodes, lambda folding: not folding.whole_vector)) == 92_160


@pytest.mark.parametrize("layer", [*RESNET8, (4, 3, 9, 5), (2, 6, 4, 7), (3, 5, 2, 1)])
def test_each_is_undercut_by_none_of_pixels(layer: tuple[int, int, int, int]) -> None:
    node, operator = mvu(*layer), hardware("mvu")
    vector = layer[2] * layer[3]
    options = [f for f in operator.foldings(node, FAMILY) if f.multiplier == "dsp" and f.input_lanes <= vector]
    whole = [f for f in options if f.whole_vector]
    for folding in whole:
        assert layer[3] % folding.input_lanes and folding.input_lanes < layer[3]
        cycles = operator.cycles(node, folding)
        others = [f for f in options if operator.cycles(node, f) <= cycles and f.multipliers <= folding.multipliers]
        assert all(f.whole_vector for f in others)
    assert bool(whole) == (layer[2] > 1 and layer[3] > 3)


def test_a_vector_of_two_pixels() -> None:
    """Two pixels of three channels by two lanes: three beats for the vector, not two for each pixel."""
    node, folding = mvu(2, 1, 2, 3), Folding(2, 1, 2, "dsp", whole_vector=True)
    node.attributes = replace(node.attributes, weights=np.array([[1, 2, 3, 4, 5, 6]]))
    operator = hardware("mvu")
    assert operator.cycles(node, folding) == 6
    assert operator.input_view(node, (4, 3), 2, whole_vector=True) == (2, 6)
    assert operator.input_view(node, (4, 3), 2) == (4, 3)
    assert BlockMvu(node, folding).weight_words().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert BlockMvu(node, Folding(2, 1, 2, "dsp")).weight_words().tolist() == [[1, 2], [3, 0], [4, 5], [6, 0]]
