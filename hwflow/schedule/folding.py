"""The least initiation interval that fits a budget, and the cheapest folding of each node for it.

For a target interval every node's cheapest folding is independent of the others but for the lanes at its streams
(mismatches cost a width converter). Feasibility is monotone in the interval, so the least one is a binary search over
the intervals that some folding of some node has.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

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
        pairs = (("lut", need.lut, self.lut), ("ff", need.ff, self.ff), ("dsp", need.dsp, self.dsp), ("bram", need.bram, self.bram))
        return [(name, wanted, there) for name, wanted, there in pairs if wanted > there]


_PROVISIONAL_DEPTH = 4  # beats a queue is taken to hold before depths are computed


class FoldingSearch:
    """Foldings of one dataflow graph on one device."""

    def __init__(self, graph: Graph, device: Device, budget: Budget) -> None:
        self._graph, self._device, self._budget = graph, device, budget
        self._cost: dict[tuple[Node, Folding], Resources] = {}
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
            raise ModelRefused(self._refusal(slowest, self._choose(slowest)[1], "use a larger board or a smaller model"))
        interval = self.intervals[index]
        return interval, self._choose(interval)[0]

    def for_interval(self, interval: int) -> tuple[int, dict[Node, Folding]]:
        """The cheapest foldings of at most ``interval`` cycles a frame. Raises :class:`ModelRefused` if there are none."""
        if interval < self.intervals[0]:
            slow = max(self._options, key=lambda n: min(c for _, c in self._options[n]))
            raise ModelRefused(
                Finding(
                    "reachable-interval", f"node '{slow.name}' ({slow.op})",
                    f"the target must be at least {self.intervals[0]} cycles a frame, not {interval}", "ask for fewer frames a second",
                )
            )
        foldings, shortages = self._choose(interval)
        if shortages:
            best, _ = self.best()
            raise ModelRefused(self._refusal(interval, shortages, f"ask for fewer frames a second: {best} cycles a frame fit"))
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
                "device-budget", f"model '{self._graph.name}'",
                f"{name} must be at most {there}, not {wanted}, at {interval} cycles a frame", remedy,
            )
            for name, wanted, there in shortages
        ]

    def _choose(self, interval: int) -> tuple[dict[Node, Folding], list[tuple[str, int, int]]]:
        foldings: dict[Node, Folding] = {}
        consumers = self._graph.consumers()
        for node in reversed(self._graph.nodes):
            wanted = [foldings[c].input_lanes for v in node.outputs for c, _ in consumers[v]]
            fast = [f for f, cycles in self._options[node] if cycles <= interval]
            if not fast:
                return {}, [("interval", interval, min(c for _, c in self._options[node]))]
            foldings[node] = min(fast, key=lambda f: self._price(node, f, wanted))
        total = Resources()
        for node, folding in foldings.items():
            total += self.resources(node, folding)
        total = self._move_products_to_luts(foldings, total)
        return foldings, self._budget.shortages(total)

    def _move_products_to_luts(self, foldings: dict[Node, Folding], total: Resources) -> Resources:
        """While DSPs are short, let the node whose products cost the fewest LUTs a DSP do without."""
        while total.dsp > self._budget.dsp:
            moves = []
            for node, folding in foldings.items():
                if folding.multiplier != "dsp":
                    continue
                other = Folding(folding.input_lanes, folding.output_lanes, folding.multipliers, "lut")
                if all(f != other for f, _ in self._options[node]):
                    continue
                before, after = self.resources(node, folding), self.resources(node, other)
                saved = before.dsp - after.dsp
                if saved > 0:
                    moves.append(((after.lut - before.lut) / saved, len(moves), node, other))
            if not moves:
                break
            _, _, node, other = min(moves)
            old, new = self.resources(node, foldings[node]), self.resources(node, other)
            total = Resources(
                total.lut - old.lut + new.lut, total.ff - old.ff + new.ff, total.dsp - old.dsp + new.dsp, total.bram - old.bram + new.bram
            )
            foldings[node] = other
        return total

    def _price(self, node: Node, folding: Folding, consumer_lanes: list[int]) -> float:
        """Share of the device the folding and its width converters take."""
        bits = node.outputs[0].typed.element.bits
        need = self.resources(node, folding)
        for lanes in consumer_lanes:
            if lanes != folding.output_lanes:
                bridge = Folding(folding.output_lanes, lanes)
                need += costs.width_converter(self._device.family, bits, bridge, _PROVISIONAL_DEPTH)
        budget = self._budget
        # Products prefer DSPs while there are enough: a DSP weighs as much as the look-up tables that would replace it.
        return (
            need.lut / max(1, budget.lut) + need.ff / max(1, budget.ff) + 0.2 * need.dsp / max(1, budget.dsp)
            + 0.5 * need.bram / max(1, budget.bram)
        )
