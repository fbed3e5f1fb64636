"""Trees side by side, a row a cycle.

Folding: input_lanes and output_lanes are all features and all targets; part: 0; multiplier: "table" where tables are of
several trees, in block RAMs.
"""

from __future__ import annotations

from functools import cached_property

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.memories.rom import lies_in_block
from hdl_lib.trees.parallel_trees import ParallelTrees
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Folding, Implementation, MemoryFile, Resources
from hwflow.cores.requantizers.requantizer_core import table
from hwflow.cores.timing import Timing, beat_by_beat
from hwflow.cores.trees.decisions import Decisions
from hwflow.cores.trees.leaf_tables import LeafTable, leaf_tables
from hwflow.ir.graph import Node, Scratch
from hwflow.ir.node_attributes import Aggregate, TreeEnsembleAttributes


class _Known:
    """What takes a while to find, by whether tables are of several trees."""

    def __init__(self, node: Node[TreeEnsembleAttributes]) -> None:
        self.tables: dict[bool, list[LeafTable]] = Scratch()


class ParallelDecisions(Implementation[TreeEnsembleAttributes]):
    steady = registered_ends = True

    def __init__(self, node: Node[TreeEnsembleAttributes], folding: Folding) -> None:
        super().__init__(node, folding)
        self.decisions = node.once(Decisions)
        self.rows = int(node.inputs[0].typed.shape[0])
        self.joint = folding.multiplier == ProductForm.TABLE

    @classmethod
    def foldings(cls, node: Node[TreeEnsembleAttributes]) -> list[Folding]:
        """Return the useful foldings, cheapest first."""
        if node.once(Decisions).trees is None:
            return []
        lanes = int(node.inputs[0].typed.shape[1]), node.attributes.targets
        return [Folding(*lanes, multiplier=kind) for kind in (ProductForm.TABLE, ProductForm.NONE)]

    @property
    def tables(self) -> list[LeafTable]:
        known = self.node.once(_Known).tables
        if self.joint not in known:
            known[self.joint] = leaf_tables(self.decisions, in_block=self.joint)
        return known[self.joint]

    @property
    def _levels(self) -> list[int]:
        return [tree.levels for tree in self.decisions.trees or []]

    @cached_property
    def _in_block(self) -> bool:
        """Tell whether some table lies in block RAM."""
        return any(lies_in_block(table.width, len(table.words)) for table in self.tables)

    @cached_property
    def _addends(self) -> list[list[tuple[int, int, int]]]:
        """Return least, greatest and shift of each table's values, for each target."""
        found: list[list[tuple[int, int, int]]] = [[] for _ in range(self.node.attributes.targets)]
        for each in self.tables:
            for field in each.lookup.fields:
                found[field.target].append((field.low, field.high, field.shift))
        return found

    def cycles(self) -> int:
        return self.rows

    def timing(self) -> Timing:
        most = max(map(len, self._addends))
        return beat_by_beat(self.rows, ParallelTrees.latency_of(max(self._levels), most, in_block=self._in_block))

    def resources(self, decision: Decision, family: str) -> Resources:
        node = self.node
        return costs.parallel_trees(
            family, rank=node.inputs[0].typed.element.bits, tests=self.decisions.tests,
            trees=[(tree.root, tree.levels) for tree in self.decisions.trees or []],
            tables=[(each.words, each.width) for each in self.tables], in_block=self._in_block, addends=self._addends,
            result=node.outputs[0].typed.element.bits, extremes=node.attributes.aggregate != Aggregate.SUM,
            depth=decision.depth,
        )

    def build(self, depth: int, name: str) -> Built:
        node, files = self.node, list[MemoryFile]()
        tables = [
            table(f"{name}_leaves_{number}", each.words, each.width, files) for number, each in enumerate(self.tables)
        ]
        core = ParallelTrees(
            shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element),
            features=self.folding.input_lanes, targets=node.attributes.targets, tests=self.decisions.tests,
            trees=[tree.root for tree in self.decisions.trees or []], levels=self._levels,
            lookups=[each.lookup for each in self.tables], tables=tables, in_block=self._in_block,
            aggregate=node.attributes.aggregate.value, depth=depth,
        )
        return Built(core, [core.i], [core.o], files)
