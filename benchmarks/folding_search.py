"""How long the search for foldings takes, and what it finds: a Markdown table, one row per network and budget.

    python benchmarks/folding_search.py [MODEL.onnx ...]

Without models: networks of thirty layers with random weights. Seconds are of the processor: ``options`` to look at
every folding of every node once, ``search`` to find the least interval and the cheapest foldings for it. Resources are
those of the cost model (:mod:`hwflow.schedule.search.folding_search`), before queues are sized.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from hwflow.api.compiler import dataflow
from hwflow.boards import find_board
from hwflow.cores.registry import OPERATORS
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Attributes, Graph, Node, Port, Stage, Value, identity_order
from hwflow.ir.node_attributes import (
    Conv2dAttributes,
    DenseAttributes,
    RequantizeAttributes,
    ReshapeAttributes,
    ScaledAddAttributes,
)
from hwflow.loaded_model import load
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.passes import pipeline
from hwflow.schedule.search.folding_search import RESOURCES, Budget, FoldingSearch
from hwflow.types import IntType, TensorType

COLUMNS = (
    "network", "nodes", "foldings", "budget %", "interval", "multipliers", "LUT", "FF", "DSP", "BRAM", "options s",
    "search s",
)
SHARES = (40, 80, 100)  # percent of the part
U8, I8 = IntType(8, False), IntType(8, True)


class Network:
    """A quantized network, layer by layer."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self._random = np.random.default_rng(0)
        self._graph = Graph(name, Stage.QUANTIZED, [], [], [])
        self.value = Value("x", TensorType(shape, U8, U8.interval))
        self._graph.inputs.append(Port("x", self.value, shape, identity_order(shape)))

    def _node(self, op: str, attributes: Attributes, *sources: Value) -> Value:
        name = f"{op}{len(self._graph.nodes)}"
        operator, types = OPERATORS[op], [source.typed for source in sources]
        attributes = operator.derive(attributes, types)
        (type_,) = operator.infer(attributes, types)
        result = Value(f"{name}_y", type_)
        self._graph.nodes.append(Node(name, list(sources), [result], attributes, (name,)))
        return result

    def _requantized(self, value: Value) -> Value:
        reach = max(1, value.typed.interval.hi, -value.typed.interval.lo)
        scale = Fraction(float(np.float32(2 * U8.max / reach)))
        stage = (QuantizerStage(scale, Fraction(0), (), Fraction(1), 0, 0, U8.max),)
        return self._node("requantize", RequantizeAttributes(0, (stage,)), value)

    def conv(self, outputs: int, kernel: int, stride: int = 1) -> Value:
        shape = (outputs, self.value.typed.shape[0], kernel, kernel)
        weights = self._random.integers(I8.min, I8.max + 1, shape)
        attributes = Conv2dAttributes(weights, (stride, stride), (kernel // 2,) * 4, (1, 1), pad_value=0)
        self.value = self._requantized(self._node("conv2d", attributes, self.value))
        return self.value

    def dense(self, outputs: int) -> Value:
        flat = self._node("reshape", ReshapeAttributes((int(np.prod(self.value.typed.shape)),)), self.value)
        weights = self._random.integers(I8.min, I8.max + 1, (outputs, flat.typed.shape[0]))
        self.value = self._requantized(self._node("dense", DenseAttributes(weights), flat))
        return self.value

    def add(self, other: Value) -> Value:
        total = self._node("scaled_add", ScaledAddAttributes(0, ((3,), (5,))), self.value, other)
        self.value = self._requantized(total)
        return self.value

    def done(self) -> Graph:
        shape = self.value.typed.shape
        self._graph.outputs.append(Port("y", self.value, shape, identity_order(shape)))
        return pipeline.run(pipeline.run(self._graph, pipeline.QUANTIZED), pipeline.DATAFLOW)


def chain() -> Graph:
    """Build 26 convolutions of 3 x 3, four dense layers."""
    network = Network("conv and dense, 30 layers", (3, 32, 32))
    for layer in range(26):
        network.conv(8 << (layer // 9), 3, 2 if layer in (9, 18, 22) else 1)
    for outputs in (64, 48, 32, 10):
        network.dense(outputs)
    return network.done()


def separable() -> Graph:
    """Build MobileNet's pattern of layers (stride where it has one), its depthwise ones as dense 3 x 3 of few
    channels."""
    network = Network("MobileNet-like, 30 layers", (3, 48, 48))
    network.conv(8, 3, 2)
    for layer in range(14):
        network.conv(8, 3, 2 if layer in (1, 3, 5, 11) else 1)
        network.conv(min(128, 16 << (layer // 2)), 1)
    network.dense(10)
    return network.done()


def residual() -> Graph:
    """Build fifteen residual blocks of two convolutions."""
    network = Network("residual, 30 layers", (16, 16, 16))
    for _ in range(15):
        start = network.value
        network.conv(16, 3)
        network.conv(16, 3)
        network.add(start)
    return network.done()


def row(graph: Graph, share: int) -> Iterator[str]:
    part = find_board("ulx3s_85f").part
    begin = time.process_time()
    search = FoldingSearch(graph, part, Budget(*(getattr(part, name) * share // 100 for name in RESOURCES)))
    ready = time.process_time()
    yield from (graph.name, str(len(graph.nodes)), str(search.foldings), str(share))
    try:
        interval, foldings = search.best()
    except ModelRefused:
        yield from ("-",) * 6
    else:
        need = search.total(foldings)
        yield from (str(interval), str(sum(f.multipliers for f in foldings.values())))
        yield from (str(getattr(need, name)) for name in RESOURCES)
    yield from (f"{ready - begin:.2f}", f"{time.process_time() - ready:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="How long the search for foldings takes.")
    parser.add_argument("models", nargs="*", type=Path)
    arguments = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for make in [lambda path=path: dataflow(load(path).quantized) for path in arguments.models] or [
        chain, separable, residual
    ]:
        graph = make()
        for share in SHARES:
            print("| " + " | ".join(row(graph, share)) + " |", flush=True)


if __name__ == "__main__":
    main()
