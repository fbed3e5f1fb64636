"""Trees walked node by node, in units that each have several walks in flight.

Folding: input_lanes, a part of a row; output_lanes, all targets or, where no tree has several, one after the other;
part: the units.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from hdl_lib.trees.tree_units import TreeWalk, slots_of
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Folding, Implementation, MemoryFile, Resources, beats
from hwflow.cores.requantizers.requantizer_core import table
from hwflow.cores.timing import Process, Timing, Wait, every
from hwflow.cores.trees.forest import Forest, Groups, Memories
from hwflow.ir.graph import Node, Scratch
from hwflow.ir.node_attributes import Aggregate, TreeEnsembleAttributes

MOST_UNITS = 512


class _Known:
    """What takes a while to find, by folding."""

    def __init__(self, node: Node[TreeEnsembleAttributes]) -> None:
        self.groups: dict[tuple[int, int, bool], Groups] = Scratch()
        self.memories: dict[Folding, Memories] = Scratch()


class TreeWalks(Implementation[TreeEnsembleAttributes]):
    def __init__(self, node: Node[TreeEnsembleAttributes], folding: Folding) -> None:
        super().__init__(node, folding)
        self.forest = node.once(Forest)
        self.rows = int(node.inputs[0].typed.shape[0])
        self.units, self.lanes = folding.part, folding.input_lanes
        self.serial = folding.output_lanes < node.attributes.targets
        self.slots = slots_of(self.lanes)

    @classmethod
    def foldings(cls, node: Node[TreeEnsembleAttributes]) -> list[Folding]:
        """Return the useful foldings, cheapest first: each number of units that takes fewer cycles than the one
        before, with the fewest lanes that keep up."""
        forest, targets = node.once(Forest), node.attributes.targets
        found = []
        for output_lanes in {1 if forest.of_one_target else targets, targets}:
            best, units = 0, 1
            while units <= MOST_UNITS:
                folding = Folding(1, output_lanes, part=units)
                walked = cls(node, folding).walked
                if not best or walked < best:
                    found.append(cls._fed(node, folding, walked))
                    best = walked
                if len(cls(node, folding).groups.rounds) <= (targets if output_lanes < targets else 1):
                    break
                units += max(1, units // 4)
        return sorted(found, key=lambda folding: (folding.part, folding.output_lanes))

    @classmethod
    def _fed(cls, node: Node[TreeEnsembleAttributes], folding: Folding, walked: int) -> Folding:
        """Return the folding with as many lanes as bring a row while one is walked."""
        features = node.once(Forest).features
        lanes = next(n for n in costs.useful_lanes(features) if n == features or -(-features // n) <= walked)
        return Folding(lanes, folding.output_lanes, part=folding.part)

    @cached_property
    def groups(self) -> Groups:
        known, key = self.node.once(_Known).groups, (self.units, self.slots, self.serial)
        if key not in known:
            known[key] = self.forest.groups(self.units, self.slots, serial=self.serial)
        return known[key]

    @property
    def memories(self) -> Memories:
        known = self.node.once(_Known).memories
        if self.folding not in known:
            known[self.folding] = self.forest.memories(self.groups, self.lanes, serial=self.serial)
        return known[self.folding]

    @property
    def walked(self) -> int:
        """Return the steps of a row."""
        return self.slots * int(self.groups.rounds.sum())

    @property
    def _beats(self) -> int:
        """Return the beats of a row."""
        return beats((1, self.forest.features), self.lanes)

    def _circuit(self) -> int:
        """Return the cycles per frame of writing and using a half, one after the other: each has every other row."""
        lags = TreeWalk.WRITE_LAG + TreeWalk.RELEASE_LAG
        return -(-self.rows * (self._beats + self.walked - 2 + lags) // 2)

    def cycles(self) -> int:
        return max(self.rows * max(self.walked, self._beats), self._circuit())

    def timing(self) -> Timing:
        groups, rows = self.groups, every(self.rows)
        first = self.slots * (groups.rounds.cumsum() - groups.rounds)[groups.ends]
        makes = (rows[:, None] * self.walked + first).reshape(-1)
        writer = Process(
            self.rows * self._beats, {0: every(self.rows * self._beats)}, {},
            (Wait(1, (rows - 1) * self.walked - 1, TreeWalk.RELEASE_LAG, self._beats),),
        )
        walker = Process(
            self.rows * self.walked, {}, {0: makes},
            (Wait(0, (rows + 1) * self._beats - 1, TreeWalk.WRITE_LAG, self.walked),),
        )
        latency = TreeWalk.latency_of(self.units, self.lanes, int(groups.rounds[-1]))
        return Timing((writer, walker), (latency,), self._circuit())

    def resources(self, decision: Decision, family: str) -> Resources:
        """Return the resources, from the words of the memories once the folding is chosen."""
        node, groups, forest = self.node, self.groups, self.forest
        nodes: Sequence[Sequence[int] | int]
        leaves: Sequence[Sequence[int] | int]
        if decision.provisional:
            record, values, nodes, leaves = forest.estimated(groups, self.lanes, serial=self.serial)
        else:
            found = self.memories
            record, values, nodes, leaves = found.record, found.values, found.nodes, found.leaves
        return costs.tree_walk(
            family, record, rank=node.inputs[0].typed.element.bits, features=forest.features, lanes=self.lanes,
            nodes=nodes, leaves=leaves, values=values, result=node.outputs[0].typed.element.bits,
            groups=list(zip(groups.rounds.tolist(), groups.ends.tolist(), strict=True)),
            extremes=node.attributes.aggregate != Aggregate.SUM, depth=decision.depth,
        )

    def build(self, depth: int, name: str) -> Built:
        memories, groups, node = self.memories, self.groups, self.node
        files: list[MemoryFile] = []
        nodes = [
            table(f"{name}_nodes_{unit}", words, memories.record.width, files)
            for unit, words in enumerate(memories.nodes)
        ]
        leaves = [
            table(f"{name}_leaves_{unit}", words, memories.leaf_bits, files)
            for unit, words in enumerate(memories.leaves)
        ]
        core = TreeWalk(
            shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element),
            features=self.forest.features, lanes=self.lanes, record=memories.record, nodes=nodes, leaves=leaves,
            values=[(value.lo, value.hi) for value in memories.values], rounds=groups.rounds.tolist(),
            ends=groups.ends.tolist(), aggregate=node.attributes.aggregate.value, depth=depth,
            missing=node.attributes.missing_rank.tolist() if self.forest.missing else (),
        )
        return Built(core, [core.i], [core.o], files)
