"""Lower bounds of a model's resources, whatever its foldings.

Under any weights of the resources, a design costs at least the sum of the cheapest folding of each node: all that is
left out (queues, width converters) only adds to it. If a budget is worth less, no design fits it. Two kinds of weights
are the most useful:

- Bits of tables and line buffers, which lie in block RAM, look-up tables or flip-flops. - Look-up tables, with a
multiplier block as so many of them: products are made of one or the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from functools import cached_property
from typing import Any

import numpy as np

from hwflow.cores.costs import FAMILIES
from hwflow.cores.operator import Resources
from hwflow.ir.graph import Graph, IntArray, Node
from hwflow.schedule.search.exploration import explore_foldings
from hwflow.schedule.search.folding_search import RESOURCES, Budget, Chip

LUT_BITS = 16  # bits of memory in a look-up table
BLOCK_WEIGHTS = tuple(1 << k for k in range(13))  # look-up tables that a multiplier block counts as


class Bounds:
    """Lower bounds of the resources of a graph on a device."""

    def __init__(self, graph: Graph, device: Chip, executor: Executor | None = None) -> None:
        self._nodes = dict(zip(graph.nodes, explore_foldings(graph, device, executor), strict=True))
        self.table_bits = _weights(lut=LUT_BITS, ff=1, bram=block_bits(device))

    @cached_property
    def intervals(self) -> list[int]:
        """Return the cycles per frame of all foldings, ascending from the fastest that the slowest node can reach."""
        fastest = max(int(each.cycles.min()) for each in self._nodes.values())
        found: IntArray = np.unique(np.concatenate([each.cycles for each in self._nodes.values()]))
        return [int(cycles) for cycles in found if cycles >= fastest]

    def least_bits(self) -> Mapping[Node, int]:
        """Return the least bits of tables, line buffers and registers of each node; a block RAM counts in full."""
        return {node: self._least(node, self.table_bits, None) for node in self._nodes}

    def least_of(self, node: Node, resource: str) -> int:
        """Return the least of a resource that a node takes at any folding."""
        return self._least(node, _weights(**{resource: 1}), None)

    def held_bits(self, budget: Budget) -> int:
        """Return the bits that a budget holds, counted in the same way."""
        return worth(budget, self.table_bits)

    def missing_luts(self, budget: Budget, interval: int | None) -> int:
        """Return a lower bound of the missing look-up tables at ``interval`` (None: at any), all multiplier blocks
        used; 0 if no bound exceeds the budget."""
        least = [self._missing(budget, _weights(lut=1, dsp=block), interval) for block in BLOCK_WEIGHTS]
        bits = self._missing(budget, self.table_bits, interval)
        return max(0, *least, -(-bits // LUT_BITS))

    def _missing(self, budget: Budget, prices: IntArray, interval: int | None) -> int:
        return sum(self._least(node, prices, interval) for node in self._nodes) - worth(budget, prices)

    def _least(self, node: Node, prices: IntArray, interval: int | None) -> int:
        found = self._nodes[node]
        needs = found.needs if interval is None else found.needs[found.cycles <= interval]
        return int((needs @ prices).min())

    def least_interval(self, budget: Budget) -> int | None:
        """Return the least interval that no bound excludes; None if all are excluded. Shortages fall as the interval
        grows."""
        low, high = 0, len(self.intervals)
        while low < high:
            middle = (low + high) // 2
            if self.missing_luts(budget, self.intervals[middle]):
                low = middle + 1
            else:
                high = middle
        return self.intervals[low] if low < len(self.intervals) else None

    def about_enough(self, interval: int | None = None) -> Resources:
        """Return a budget that should hold a design: small foldings, and a quarter more for queues and converters."""
        total = np.zeros(len(RESOURCES), dtype=np.int64)
        for found in self._nodes.values():
            needs = found.needs if interval is None else found.needs[found.cycles <= interval]
            total += needs[(needs @ _EVEN).argmin()]
        return Resources(*(-(-5 * int(n) // 4) for n in total))


def _weights(**of: int) -> IntArray:
    """Return the weights of the resources; those not named weigh 0."""
    return np.array([of.get(name, 0) for name in RESOURCES], dtype=np.int64)


_EVEN = _weights(lut=1, ff=1, dsp=1, bram=100)


def worth(budget: Budget, prices: IntArray) -> int:
    """Return the weighted sum of a budget's resources."""
    return sum(int(getattr(budget, name)) * int(price) for name, price in zip(RESOURCES, prices, strict=True))


def block_bits(device: Chip) -> int:
    """Return the bits of a block RAM."""
    return max(words * width for words, width in FAMILIES[device.family].bram_shapes)


def weight_bits(node: Node) -> int:
    """Return the bits of a node's weights, each as wide as the widest."""
    weights: Any = getattr(node.attributes, "weights", None)
    if not isinstance(weights, np.ndarray) or not weights.size:
        return 0
    low, high = int(weights.min()), int(weights.max())
    return int(weights.size) * (max(high, -low - 1).bit_length() + (low < 0))
