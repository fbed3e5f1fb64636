"""When layers of constant weights are offered, at the bounds, and what they count of their weights, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from hwflow.cores.matrix.constant_mvu import (
    BLOCK,
    MOST_BLOCKS,
    MOST_DIGITS,
    ConstantBlockMvu,
    ConstantNetworkMvu,
    _Matrix,
)


def weights(rows):
    """The data of a layer of these weights, as far as they alone say it."""
    matrix = _Matrix.__new__(_Matrix)
    matrix.weights = np.array(rows)
    return matrix


def test_what_is_counted():
    # 7 = 8 - 1, 5 = 4 + 1, -6 = -8 + 2, 23 = 16 + 8 - 1 = 32 - 8 - 1: the fewest digits
    matrix = weights([[0, 1, -4, 7], [5, -6, 23, 64]])
    assert matrix.digits == 0 + 1 + 1 + 2 + 2 + 2 + 3 + 1
    assert matrix.blocks == 4  # 7, 5, -6, 23


@pytest.mark.parametrize(
    ("bits", "weight_bits", "blocks", "vectors", "offered"),
    [
        (8, 8, 10, 1, False), (8, 8, 10, 2, True), (8, 8, 0, 2, False), (8, 8, 1, 2, True),
        (BLOCK, 8, 10, 2, True), (BLOCK + 1, 8, 10, 2, False), (8, BLOCK, 10, 2, True), (8, BLOCK + 1, 10, 2, False),
        (8, 8, MOST_BLOCKS // 2, 2, True), (8, 8, MOST_BLOCKS // 2 + 1, 2, False), (8, 8, MOST_BLOCKS // 4, 4, True),
        (8, 8, MOST_BLOCKS // 4 + 1, 4, False),
    ],
)  # fmt: skip
def test_blocks_are_offered_for_several_vectors(bits, weight_bits, blocks, vectors, offered):
    matrix = SimpleNamespace(x=SimpleNamespace(bits=bits), weight_bits=weight_bits, blocks=blocks)
    assert ConstantBlockMvu._offered(matrix, vectors) == offered


def test_networks_are_offered_up_to_a_size():
    offered = [ConstantNetworkMvu._offered(SimpleNamespace(digits=MOST_DIGITS // 4), v) for v in (1, 2, 4, 5)]
    assert offered == [True, True, True, False]
