"""Convert a graph's cores, beginning before FIFO depths are known."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from hwflow.codegen.common import linked
from hwflow.codegen.modules import TOP, CoreModule, Job, core_module, weight
from hwflow.codegen.verilog_names import identifiers
from hwflow.cores.beat_movers import PLUMBING
from hwflow.ir.graph import Graph, Node
from hwflow.processes import Work


class Conversion:
    """Makes modules of the cores of a scheduled graph, here and by ``executor``."""

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor = executor
        self._work: Work[Hashable, Job, CoreModule] = Work(core_module, executor, weight)

    def begin(self, graph: Graph) -> None:
        """Let the executor begin with the cores of a graph whose foldings are chosen and only FIFO depths are open.
        :meth:`modules` converts again those whose name or line buffers have changed."""
        names = identifiers([node.name for node in graph.nodes])
        nodes = [(node, names[node.name]) for node in graph.nodes]
        self._work.begin(_jobs([(node, instance) for node, instance in nodes if _is_of_the_search(node)]))

    def modules(self, nodes: Sequence[tuple[Node, str]]) -> list[CoreModule]:
        """Return the modules of these nodes, all of a graph, each with the name of its instance."""
        made = zip(self._work.results(_jobs(nodes)).values(), nodes, strict=True)
        return linked([_with_depth(module, node) for module, (node, _) in made], self._executor)


def _jobs(nodes: Sequence[tuple[Node, str]]) -> dict[Hashable, Job]:
    """Return the jobs by all that may change during buffer sizing."""
    return {
        (node, instance, node.attributes.get("rows")): (_without_depth(node), instance, f"{TOP}.{instance}")
        for node, instance in nodes
    }


def _is_of_the_search(node: Node) -> bool:
    """Tell whether a node has one queue, on whose depth nothing else in its core depends."""
    return node.op not in PLUMBING and len(node.outputs) == 1


def _without_depth(node: Node) -> Node:
    return replace(node, attributes=node.attributes | {"depths": [None]}) if _is_of_the_search(node) else node


def _with_depth(module: CoreModule, node: Node) -> CoreModule:
    depth = node.attributes["depths"][0]
    return replace(module, common={name: common.with_depth(depth) for name, common in module.common.items()})
