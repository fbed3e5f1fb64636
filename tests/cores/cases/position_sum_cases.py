"""Cases of sums with weights by position."""

from __future__ import annotations

import numpy as np

from hwflow.cores.operator import Folding
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, IntType, TensorType
from tests.cores.harness import Case

I8, I12, U1, U4, U8 = IntType(8, True), IntType(12, True), IntType(1, False), IntType(4, False), IntType(8, False)

TWICE = [[4, 0], *[[1, 3], [3, 1]] * 2, [0, 4]]
"""An axis of three elements made twice as long, linear, in quarters."""

CUBIC = [[-9, 71, 253, -27], [-27, 253, 71, -9]]
"""The inner elements of an axis made twice as long, cubic with a coefficient of -0.5625, in 288ths."""

DEEP = np.random.default_rng(1).integers(-256, 256, (64, 4)).tolist()
"""So many positions that a table of their weights is as large as a block RAM."""


def _corners(node: Node) -> IntArray:
    """Each element at the end of its interval at which its product is least, then greatest, for each of the rows."""
    source, weights, repeat = node.inputs[0].typed, node.attributes.weights, node.attributes.repeat
    rounds = source.shape[0] // (weights.size * repeat)
    turned = np.tile(np.repeat(weights, repeat, axis=0), (rounds, 1)).reshape(-1, 1)
    ranges = source.channel_intervals(1)
    low, high = (np.array([getattr(r, end) for r in ranges]) for end in ("lo", "hi"))
    return np.stack([np.where(turned < 0, a, b) for a, b in ((high, low), (low, high))])


def _case(
    name: str, weights: list[list[int]], repeat: int, channels: int, element: IntType, lanes: tuple[int, ...], *,
    rounds: int = 1, kinds: tuple[str, ...] = ("lut",), intervals: tuple[Interval, ...] = (),
) -> Case:
    table = np.array(weights)
    source = TensorType((table.size * repeat * rounds, channels), element, element.interval)
    if intervals:
        source = TensorType.of(source.shape, intervals, 1)
    foldings = tuple(Folding(n, n, n, kind) for n in lanes for kind in kinds)
    return Case(name, "position_sum", {"weights": table, "repeat": repeat}, source, foldings, _corners)


POSITION_SUM = [
    _case("rows", TWICE, 5, 3, I8, (1, 2, 3)),
    _case("columns", TWICE, 1, 4, U8, (1, 4), rounds=3),
    _case("in_memory", TWICE, 2, 7, I8, (1,), rounds=2),
    _case("cubic", CUBIC, 3, 2, I8, (1, 2), kinds=("dsp", "lut")),
    _case("cubic_columns", CUBIC, 1, 3, I12, (3,), rounds=4, kinds=("dsp", "lut")),
    _case("bits", [[1, 2, 1]], 4, 2, U1, (2,)),
    _case("one_channel", [[2, 0], [1, 1]], 1, 1, U4, (1,), rounds=3),
    _case("deep", DEEP, 1, 4, I8, (2,), kinds=("dsp", "lut")),
    _case("intervals", TWICE, 2, 2, I8, (2,), intervals=(Interval(-3, 5), Interval(0, 100))),
]
