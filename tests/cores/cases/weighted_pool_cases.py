"""Cases of weighted sums over groups of pixels."""

from __future__ import annotations

import numpy as np

from hwflow.cores.operator import Folding
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, IntType, TensorType
from tests.cores.harness import Case

I4, I8, U1, U4, U8 = IntType(4, True), IntType(8, True), IntType(1, False), IntType(4, False), IntType(8, False)


def _corners(node: Node) -> IntArray:
    """Each element at the end of its interval at which its product is least, then greatest, for each of the sets."""
    source, weights = node.inputs[0].typed, node.attributes.weights
    groups = source.shape[0] // weights.shape[1]
    ranges = source.channel_intervals(1)
    low, high = (np.array([getattr(r, end) for r in ranges]) for end in ("lo", "hi"))
    turned = np.tile(weights, (groups // weights.shape[0], 1, 1)).reshape(source.shape)
    return np.stack([np.where(turned < 0, a, b) for a, b in ((high, low), (low, high))])


def _case(
    name: str, groups: int, window: int, channels: int, element: IntType, weight: IntType, lanes: tuple[int, ...],
    *, sets: int = 1, kinds: tuple[str, ...] = ("dsp", "lut"), intervals: tuple[Interval, ...] = (), part: int = 0,
) -> Case:
    rng = np.random.default_rng(window)
    weights = rng.integers(weight.min, weight.max, (sets, window, channels), endpoint=True)
    source = TensorType((groups * window, channels), element, element.interval)
    if intervals:
        source = TensorType.of(source.shape, intervals, 1)
    foldings = tuple(Folding(n, n, n, kind, part if kind == "dsp" else 0) for n in lanes for kind in kinds)
    return Case(name, "weighted_pool", {"weights": weights}, source, foldings, _corners)


WEIGHTED_POOL = [
    _case("3x3", 4, 9, 3, I8, I8, (1, 2, 3)),
    _case("in_memory", 2, 4, 7, U8, I8, (1,)),
    _case("in_registers", 3, 4, 7, I8, I8, (2, 4)),
    _case("one_pixel", 3, 1, 5, I8, I4, (1, 2, 5)),
    _case("one_channel", 2, 6, 1, U4, I8, (1,)),
    _case("one_weight", 3, 1, 1, I8, I8, (1,)),
    _case("bits", 3, 4, 6, U1, I8, (2, 6), kinds=("lut",)),
    _case("in_turns", 6, 4, 3, U8, U4, (1, 2, 3), sets=3),
    _case("wide", 2, 3, 3, IntType(20, True), IntType(18, True), (2,), part=17, kinds=("dsp",)),
    _case("deep", 2, 9, 32, I8, I8, (2,)),
    _case("deep_bits", 2, 9, 32, U1, I8, (2,), kinds=("lut",)),
    _case("intervals", 2, 4, 2, I8, I8, (2,), intervals=(Interval(-3, 5), Interval(0, 100))),
]
