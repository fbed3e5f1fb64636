"""Random graphs of every kind of operator that moves, joins, windows or multiplies."""

from __future__ import annotations

from math import prod

import numpy as np

from hwflow.cores.logical.index_map import FILL
from hwflow.ir.graph import Graph, Value
from hwflow.ir.integer_functions import Extreme
from hwflow.types import IntType
from tests.schedule.graphs import Builder

MOST_ELEMENTS = 400  # of a frame: what is larger only takes longer to simulate
BYTE, WEIGHT = IntType(8, False), IntType(5, True)


class Mixer:
    """Grows a graph: ``values`` are images [C, H, W] of bytes; every step makes one of some of them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.build = Builder(self.rng)
        shape = (int(self.rng.integers(1, 5)), int(self.rng.integers(3, 7)), int(self.rng.integers(3, 7)))
        self.values = [self.build.input(shape, BYTE)]
        self.steps = [self.convolve, self.convolve, self.pool, self.move, self.move, self.join, self.join, self.widen]

    def below(self, bound: int) -> int:
        """0 to ``bound`` - 1."""
        return int(self.rng.integers(bound))

    def any_value(self) -> Value:
        """A value, a late one more often."""
        return self.values[max(self.below(len(self.values)), self.below(len(self.values)))]

    def to_bytes(self, value: Value) -> Value:
        return self.build.requantize(value, BYTE, per_channel=bool(self.below(2)))

    def convolve(self) -> Value | None:
        source = self.any_value()
        channels, height, width = source.typed.shape
        groups = [g for g in range(1, channels + 1) if channels % g == 0][-1 - self.below(2) if channels > 1 else 0]
        kernel = (1 + self.below(min(3, height)), 1 + self.below(min(3, width)))
        each = 1 if groups == channels and self.below(2) else 1 + self.below(2)
        weights = self.rng.integers(WEIGHT.min, WEIGHT.max + 1, (groups * each, channels // groups, *kernel))
        pads = tuple(self.below(k) for k in kernel * 2)
        result = self.build.node(
            "conv2d", source, weights=weights, groups=groups, strides=(1 + self.below(2), 1 + self.below(2)),
            pads=pads, dilations=(1, 1), pad_value=self.below(3),
        )
        return self.to_bytes(result)

    def pool(self) -> Value | None:
        source = self.any_value()
        kernel = tuple(1 + self.below(min(3, size)) for size in source.typed.shape[1:])
        window = {
            "kernel": kernel, "strides": (1 + self.below(2), 1 + self.below(2)), "pads": (0,) * 4, "dilations": (1, 1),
        }
        if self.below(2):
            return self.build.node("max_pool2d", source, **window)
        return self.to_bytes(self.build.node("sum_pool2d", source, **window, pad_value=0))

    def move(self) -> Value | None:
        source = self.any_value()
        shape = source.typed.shape
        index = np.arange(prod(shape)).reshape(shape)
        axis = self.below(3)
        match self.below(6):
            case 0:  # backwards, every other
                index = np.flip(index, axis)
            case 1:
                index = index.take(range(self.below(shape[axis]), shape[axis], 1 + self.below(2)), axis)
            case 2:
                pads = [(self.below(2), self.below(3)) if a == axis else (0, 0) for a in range(3)]
                index = np.pad(index, pads, constant_values=FILL)
            case 3:
                index = np.repeat(index, 2, axis)
            case 4:
                index = index.take(self.rng.integers(0, shape[axis], 1 + self.below(5)), axis)
            case _:
                index = index.transpose(self.rng.permutation(3))
        if index.size > MOST_ELEMENTS:
            return None
        return self.build.node("reindex", source, index=np.ascontiguousarray(index), fill=self.below(4))

    def join(self) -> Value | None:
        first = self.any_value()
        shape = first.typed.shape
        axis = self.below(3)

        def agree(other: tuple[int, ...]) -> bool:
            return all(a == b for place, (a, b) in enumerate(zip(shape, other, strict=True)) if place != axis)

        second = next(v for v in self.values if agree(v.typed.shape))
        if second.typed.shape != shape or self.below(2):
            return self.build.node("concat", first, second, axis=axis)
        match self.below(3):
            case 0:
                return self.to_bytes(self.build.node("product", first, second, offsets=(self.below(3), 0)))
            case 1:
                multipliers = ((1 + self.below(5),), (-1 - self.below(5),))
                return self.to_bytes(
                    self.build.node("scaled_add", first, second, axis=0, multipliers=multipliers)
                )
            case _:
                return self.build.node(
                    "elementwise", first, second, function=Extreme(bool(self.below(2))), constants=(None, None),
                    wrap=None,
                )

    def widen(self) -> Value | None:
        source = self.any_value()
        size = prod(source.typed.shape)
        if size > 150:
            return None
        flat = self.build.node("reshape", source, shape=(size,))
        dense = self.build.dense(flat, 2 * (1 + self.below(4)), WEIGHT)
        return self.build.node("reshape", self.to_bytes(dense), shape=(2, dense.typed.shape[0] // 2, 1))

    def grown(self) -> Graph:
        count = 3 + self.below(4)
        while len(self.values) <= count:
            made = self.steps[self.below(len(self.steps))]()
            if made is not None and prod(made.typed.shape) <= MOST_ELEMENTS:
                self.values.append(made)
        nodes = self.build.graph.nodes
        used = {value for node in nodes for value in node.inputs}
        for node in nodes:
            (value,) = node.outputs
            if value not in used or (value in self.values and self.below(6) == 0):
                self.build.output(value)
        return self.build.done()


def mixed_graph(seed: int) -> Graph:
    """Three to six steps of convolutions (grouped too), pools, moves, joins and dense layers, of values at any place
    behind the input; what nothing reads is an output, and some more."""
    return Mixer(seed).grown()
