"""Trees walked node by node, in units that each have several walks in flight.

Folding: input_lanes, a part of a row; output_lanes, all targets or, where no tree has several, one after the other;
part: the units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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


def fed(features: int, walked: int) -> int:
    """Return the fewest lanes that bring a row while one is walked."""
    return next(n for n in costs.useful_lanes(features) if n == features or -(-features // n) <= walked)


def _circuit(core: type[TreeWalk], rows: int, row_beats: int, walked: int) -> int:
    """Return the cycles per frame of writing and using a half, one after the other: each has every other row."""
    return -(-rows * (row_beats + walked - 2 + core.WRITE_LAG + core.RELEASE_LAG) // 2)


def walk_cycles(core: type[TreeWalk], rows: int, row_beats: int, walked: int) -> int:
    """Return the cycles per frame of a ``core``: ``row_beats`` and ``walked`` steps a row."""
    return max(rows * max(walked, row_beats), _circuit(core, rows, row_beats, walked))


def walk_timing(
    core: type[TreeWalk], rows: int, row_beats: int, slots: int, groups: Groups, latency: int
) -> Timing:
    """Return the timing of a ``core``, which gives a result so long after the first step of the group that ends it."""
    each, walked = every(rows), slots * int(groups.rounds.sum())
    first = slots * (groups.rounds.cumsum() - groups.rounds)[groups.ends]
    makes = (each[:, None] * walked + first).reshape(-1)
    writer = Process(
        rows * row_beats, {0: every(rows * row_beats)}, {},
        (Wait(1, (each - 1) * walked - 1, core.RELEASE_LAG, row_beats),),
    )
    walker = Process(
        rows * walked, {}, {0: makes}, (Wait(0, (each + 1) * row_beats - 1, core.WRITE_LAG, walked),),
    )
    return Timing((writer, walker), (latency,), _circuit(core, rows, row_beats, walked))


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
        self.units, self.lanes = folding.units, folding.input_lanes
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
                folding = Folding(1, output_lanes, units=units)
                walked = cls(node, folding).walked
                if not best or walked < best:
                    found.append(replace(folding, input_lanes=fed(forest.features, walked)))
                    best = walked
                if len(cls(node, folding).groups.rounds) <= (targets if output_lanes < targets else 1):
                    break
                units += max(1, units // 4)
        return sorted(found, key=lambda folding: (folding.units, folding.output_lanes))

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

    def cycles(self) -> int:
        return walk_cycles(TreeWalk, self.rows, self._beats, self.walked)

    def timing(self) -> Timing:
        latency = TreeWalk.latency_of(self.units, self.lanes, int(self.groups.rounds[-1]))
        return walk_timing(TreeWalk, self.rows, self._beats, self.slots, self.groups, latency)

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
