"""The least initiation interval that fits a budget, and the cheapest folding of each node for it.

For a target interval each node's cheapest folding is taken by itself (lanes that differ from its neighbours' cost a
width converter). Where that exceeds the budget, the combinations of all nodes' foldings are searched: those that no
other undercuts in every resource, node by node. So whether an interval is feasible is decided exactly, it is monotone
in the interval, and the least one is a binary search over the intervals that some folding of some node has.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.errors import Finding, ModelRefused
from hwflow.ir.graph import Graph, Node
from hwflow.ops import costs
from hwflow.ops.operator import Device, Folding, Resources
from hwflow.ops.registry import hardware


@dataclass(frozen=True)
class Budget:
    """What a design may use at most."""

    lut: int
    ff: int
    dsp: int
    bram: int

    def shortages(self, need: Resources) -> list[tuple[str, int, int]]:
        """(resource, needed, there is) for each resource that does not suffice."""
        pairs = (
            ("lut", need.lut, self.lut),
            ("ff", need.ff, self.ff),
            ("dsp", need.dsp, self.dsp),
            ("bram", need.bram, self.bram),
        )
        return [(name, wanted, there) for name, wanted, there in pairs if wanted > there]


_PROVISIONAL_DEPTH = 4  # beats a queue is taken to hold before depths are computed
_WIDEST = 200  # partial combinations followed; 1,000 gave nothing better on the networks tried, in four times the time


class FoldingSearch:
    """Foldings of one dataflow graph on one device."""

    def __init__(self, graph: Graph, device: Device, budget: Budget) -> None:
        self._graph, self._device, self._budget = graph, device, budget
        self._cost: dict[tuple[Node, Folding], Resources] = {}
        self._prices: dict[tuple[Any, ...], float] = {}
        self._options = {
            node: [(f, hardware(node.op).cycles(node, f)) for f in hardware(node.op).foldings(node, device)]
            for node in graph.nodes
        }

    @cached_property
    def intervals(self) -> list[int]:
        """Every interval worth asking for, ascending; none is below what each node can reach at its fastest."""
        floor = max(min(c for _, c in options) for options in self._options.values())
        return sorted({c for options in self._options.values() for _, c in options if c >= floor})

    def best(self) -> tuple[int, dict[Node, Folding]]:
        """The least feasible interval with its foldings. Raises :class:`ModelRefused` if not even the slowest fits."""
        index = bisect_left(range(len(self.intervals)), True, key=lambda i: self._choose(self.intervals[i])[1] == [])
        if index == len(self.intervals):
            slowest = self.intervals[-1]
            raise ModelRefused(
                self._refusal(slowest, self._choose(slowest)[1], "use a larger board or a smaller model")
            )
        interval = self.intervals[index]
        return interval, self._choose(interval)[0]

    def for_interval(self, interval: int) -> tuple[int, dict[Node, Folding]]:
        """The cheapest foldings of at most ``interval`` cycles. Raises :class:`ModelRefused` if there are none."""
        if interval < self.intervals[0]:
            slow = max(self._options, key=lambda n: min(c for _, c in self._options[n]))
            raise ModelRefused(
                Finding(
                    "reachable-interval",
                    f"node '{slow.name}' ({slow.op})",
                    f"the target must be at least {self.intervals[0]} cycles a frame, not {interval}",
                    "ask for fewer frames a second",
                )
            )
        foldings, shortages = self._choose(interval)
        if shortages:
            best, _ = self.best()
            raise ModelRefused(
                self._refusal(interval, shortages, f"ask for fewer frames a second: {best} cycles a frame fit")
            )
        return interval, foldings

    def resources(self, node: Node, folding: Folding) -> Resources:
        key = (node, folding)
        if key not in self._cost:
            depths = [_PROVISIONAL_DEPTH] * len(node.outputs)
            self._cost[key] = hardware(node.op).resources(node, folding, depths, self._device)
        return self._cost[key]

    def _refusal(self, interval: int, shortages: list[tuple[str, int, int]], remedy: str) -> list[Finding]:
        return [
            Finding(
                "device-budget",
                f"model '{self._graph.name}'",
                f"{name} must be at most {there}, not {wanted}, at {interval} cycles a frame",
                remedy,
            )
            for name, wanted, there in shortages
        ]

    def _choose(self, interval: int) -> tuple[dict[Node, Folding], list[tuple[str, int, int]]]:
        """Foldings of at most ``interval`` cycles and what they lack: nothing if any foldings fit."""
        fast = {node: [f for f, cycles in options if cycles <= interval] for node, options in self._options.items()}
        foldings: dict[Node, Folding] = {}
        consumers = self._graph.consumers()
        for node in reversed(self._graph.nodes):
            wanted = [foldings[c].input_lanes for v in node.outputs for c, _ in consumers[v]]
            foldings[node] = min(fast[node], key=lambda f: self._price(node, f, wanted))
        total = Resources()
        for node, folding in foldings.items():
            total += self.resources(node, folding)
        shortages = self._budget.shortages(total)
        if not shortages:
            return foldings, []
        combination = self._combination(fast)
        return (foldings, shortages) if combination is None else (combination, [])

    def _combination(self, fast: dict[Node, list[Folding]]) -> dict[Node, Folding] | None:
        """The cheapest combination that fits, or None. Exact while no more than ``_WIDEST`` partial combinations are
        left that neither exceed the budget nor are undercut; beyond that the dearest are dropped."""
        nodes = list(fast)
        costs_of = [np.array([self._row(node, f) for f in fast[node]]) for node in nodes]
        limits = np.array([self._budget.lut, self._budget.ff, self._budget.dsp, self._budget.bram, np.inf])
        rest = np.cumsum([c.min(axis=0) for c in costs_of[::-1]], axis=0)[::-1]
        rest = np.vstack([rest[1:], np.zeros(5)])
        front, picks = np.zeros((1, 5)), np.zeros((1, 0), dtype=np.int64)
        for options, later in zip(costs_of, rest, strict=True):
            kept = _undercut_by_none(options)
            sums = (front[:, None, :] + options[None, kept, :]).reshape(-1, 5)
            chosen = np.column_stack([np.repeat(picks, len(kept), axis=0), np.tile(kept, len(front))])
            possible = (sums + later <= limits).all(axis=1)
            sums, chosen = sums[possible], chosen[possible]
            best = _undercut_by_none(sums)
            best = best[np.argsort(sums[best, 4], kind="stable")][:_WIDEST]
            front, picks = sums[best], chosen[best]
        if not len(front):
            return None
        return {node: fast[node][int(k)] for node, k in zip(nodes, picks[0], strict=True)}

    def _row(self, node: Node, folding: Folding) -> tuple[float, ...]:
        need = self.resources(node, folding)
        return need.lut, need.ff, need.dsp, need.bram, self._price(node, folding, [])

    def _price(self, node: Node, folding: Folding, consumer_lanes: list[int]) -> float:
        """Share of the device the folding and its width converters take."""
        key = (node, folding, *consumer_lanes)
        if key not in self._prices:
            self._prices[key] = self._share(node, folding, consumer_lanes)
        return self._prices[key]

    def _share(self, node: Node, folding: Folding, consumer_lanes: list[int]) -> float:
        bits = node.outputs[0].typed.element.bits
        need = self.resources(node, folding)
        for lanes in consumer_lanes:
            if lanes != folding.output_lanes:
                bridge = Folding(folding.output_lanes, lanes)
                need += costs.width_converter(self._device.family, bits, bridge, _PROVISIONAL_DEPTH)
        budget = self._budget
        # Products prefer DSPs while there are enough: a DSP weighs as much as the look-up tables that would replace it.
        return (
            need.lut / max(1, budget.lut)
            + need.ff / max(1, budget.ff)
            + 0.2 * need.dsp / max(1, budget.dsp)
            + 0.5 * need.bram / max(1, budget.bram)
        )


def _undercut_by_none(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Indices of the rows that no other row equals or undercuts in every column (of equal rows the first)."""
    left = np.lexsort(rows.T[::-1])  # whatever undercuts a row comes before it
    kept = []
    while len(left):
        kept.append(left[0])
        left = left[(rows[left] < rows[left[0]]).any(axis=1)]
    return np.array(kept, dtype=np.int64)
