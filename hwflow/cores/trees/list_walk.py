"""Trees walked node by node, whose leaves are lists of targets and values.

Folding: input_lanes, a part of a row; output_lanes: all targets; part: the units; multiplier: "table".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.trees.list_walk import ListWalk
from hdl_lib.trees.tree_units import slots_of
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Folding, Implementation, MemoryFile, Resources, beats
from hwflow.cores.requantizers.requantizer_core import table
from hwflow.cores.timing import Timing
from hwflow.cores.trees.forest import Groups
from hwflow.cores.trees.leaf_lists import ListForest, ListMemories
from hwflow.cores.trees.tree_walks import MOST_UNITS, fed, walk_cycles, walk_timing
from hwflow.ir.graph import Node, Scratch
from hwflow.ir.node_attributes import Aggregate, TreeEnsembleAttributes


class _Known:
    """What takes a while to find, by folding."""

    def __init__(self, node: Node[TreeEnsembleAttributes]) -> None:
        self.groups: dict[tuple[int, int], Groups] = Scratch()
        self.memories: dict[Folding, ListMemories[Sequence[int]]] = Scratch()


class ListWalks(Implementation[TreeEnsembleAttributes]):
    def __init__(self, node: Node[TreeEnsembleAttributes], folding: Folding) -> None:
        super().__init__(node, folding)
        self.forest = node.once(ListForest)
        self.rows = int(node.inputs[0].typed.shape[0])
        self.units, self.lanes = folding.units, folding.input_lanes
        self.slots = slots_of(self.lanes)

    @classmethod
    def foldings(cls, node: Node[TreeEnsembleAttributes]) -> list[Folding]:
        """Return the useful foldings, cheapest first: each number of units that takes fewer cycles than the one before.
        There are none of a single target, whose leaves are values, and of extremes."""
        targets = node.attributes.targets
        if targets == 1 or node.attributes.aggregate != Aggregate.SUM:
            return []
        found, best, units = [], 0, 1
        while units <= MOST_UNITS:
            folding = Folding(1, targets, units=units, multiplier=ProductForm.TABLE)
            core = cls(node, folding)
            if not best or core.walked < best:
                best = core.walked
                found.append(replace(folding, input_lanes=fed(core.forest.features, best)))
            if len(core.groups.rounds) == 1:
                break
            units += max(1, units // 4)
        return found

    @cached_property
    def groups(self) -> Groups:
        known, key = self.node.once(_Known).groups, (self.units, self.slots)
        if key not in known:
            known[key] = self.forest.groups(*key)
        return known[key]

    @property
    def memories(self) -> ListMemories[Sequence[int]]:
        known = self.node.once(_Known).memories
        if self.folding not in known:
            known[self.folding] = self.forest.memories(self.groups, self.lanes)
        return known[self.folding]

    @property
    def walked(self) -> int:
        """Return the steps of a row."""
        return self.slots * int(self.groups.rounds.sum())

    @property
    def _beats(self) -> int:
        """Return the beats of a row."""
        return beats((1, self.forest.features), self.lanes)

    @property
    def _longest(self) -> int:
        """Return the entries of the longest list of the last group."""
        return int(self.forest.longest[self.groups.trees[-1]].max())

    def cycles(self) -> int:
        return walk_cycles(ListWalk, self.rows, self._beats, self.walked)

    def timing(self) -> Timing:
        latency = ListWalk.result_latency(
            self.units, self.lanes, int(self.groups.rounds[-1]), self._longest,
            dictionary=self.forest.has_dictionary(self.units),
        )
        return walk_timing(ListWalk, self.rows, self._beats, self.slots, self.groups, latency)

    def resources(self, decision: Decision, family: str) -> Resources:
        """Return the resources, from the words of the memories once the folding is chosen."""
        node, groups, forest = self.node, self.groups, self.forest
        found: ListMemories[int] | ListMemories[Sequence[int]] = self.memories if not decision.provisional else (
            forest.estimated(groups, self.lanes)
        )
        return costs.list_walk(
            family, found.record, rank=node.inputs[0].typed.element.bits, features=forest.features, lanes=self.lanes,
            nodes=found.nodes, bases=found.bases, base_bits=found.base_bits, entries=found.entries,
            entry_bits=found.entry_bits, dictionary=found.dictionary, value_bits=found.value_bits,
            values=forest.values, result=node.outputs[0].typed.element.bits,
            groups=list(zip(groups.rounds.tolist(), groups.ends.tolist(), strict=True)), longest=self._longest,
            depth=decision.depth,
        )

    def build(self, depth: int, name: str) -> Built:
        memories, groups, node = self.memories, self.groups, self.node
        files: list[MemoryFile] = []
        nodes, bases, entries, dictionary = (
            [table(f"{name}_{kind}_{unit}", words, width, files) for unit, words in enumerate(tables)]
            for kind, tables, width in (
                ("nodes", memories.nodes, memories.record.width), ("bases", memories.bases, sum(memories.base_bits)),
                ("leaves", memories.entries, sum(memories.entry_bits)),
                ("values", memories.dictionary, memories.value_bits),
            )
        )
        core = ListWalk(
            shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element),
            features=self.forest.features, lanes=self.lanes, record=memories.record, nodes=nodes, bases=bases,
            base_bits=memories.base_bits, entries=entries, dictionary=dictionary,
            values=[(value.lo, value.hi) for value in self.forest.values], rounds=groups.rounds.tolist(),
            longest=self._longest, depth=depth,
            missing=node.attributes.missing_rank.tolist() if self.forest.missing else (),
        )
        return Built(core, [core.i], [core.o], files)
