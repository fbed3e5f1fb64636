"""Graphs whose ways part and meet again: residual blocks, one after the other and one in the other, and a U."""

from __future__ import annotations

import numpy as np

from hwflow.ir.graph import Graph, Value
from hwflow.types import IntType
from tests.schedule.graphs import Builder

KINDS = ("one", "two", "nested", "u")


class _Skips(Builder):
    element, weight = IntType(6, False), IntType(3, True)

    def conv(self, source: Value, outputs: int, kernel: int, stride: int = 1) -> Value:
        result = self.conv2d(source, outputs, kernel, stride, kernel // 2, self.weight)
        return self.requantize(result, self.element, per_channel=False)

    def add(self, one: Value, other: Value) -> Value:
        total = self.node("scaled_add", one, other, axis=0, multipliers=((3,), (5,)))
        return self.requantize(total, self.element, per_channel=False)

    def block(self, source: Value) -> Value:
        channels = source.typed.shape[0]
        return self.add(self.conv(self.conv(source, channels, 3), channels, 3), source)


def skip_graph(kind: str, seed: int = 0) -> Graph:
    """``kind``: a residual block; two of them, the second at half the rows and columns with a convolution on its short
    way; one around the other; or a U: three levels, each way down a pool or strides, what comes up joined channel by
    channel."""
    build = _Skips(np.random.default_rng(seed))
    start = build.conv(build.input((2, 6, 6), build.element), 3, 3)
    match kind:
        case "one":
            value = build.block(start)
        case "two":
            value = build.block(start)
            way = build.conv(build.conv(value, 4, 3, 2), 4, 3)
            value = build.add(way, build.conv(value, 4, 1, 2))
        case "nested":
            inner = build.conv(build.block(build.conv(start, 3, 3)), 3, 1)
            value = build.add(inner, start)
        case "u":
            middle = build.conv(build.max_pool2d(start, 2, 2), 4, 3)
            deep = build.node("concat", build.conv(build.conv(middle, 2, 3), 3, 3), middle, axis=0)
            joined = build.node("concat", build.conv(deep, 2, 3), build.conv(start, 3, 3, 2), axis=0)
            value = build.conv(joined, 3, 3)
        case _:
            raise ValueError(f"kind must be one of {KINDS}, not {kind!r}")
    build.output(value)
    return build.done()
