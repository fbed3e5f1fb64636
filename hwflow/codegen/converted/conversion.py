"""Convert a plan's cores, beginning before FIFO depths are known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from concurrent.futures import Executor
from dataclasses import replace

from hwflow.codegen.converted.common import linked
from hwflow.codegen.converted.modules import CoreModule, Job, core_module, weight
from hwflow.codegen.emitted.packaging import TOP
from hwflow.cores.beat_movers import PLUMBING
from hwflow.cores.external.weight_memory import WeightMemoryAttributes
from hwflow.cores.operator import OPEN_DEPTH
from hwflow.cores.verilog_names import identifiers
from hwflow.ir.graph import Node
from hwflow.processes import Work
from hwflow.schedule.plan import Plan


class Conversion:
    """Converts the cores of a plan to modules, here and by ``executor``."""

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor = executor
        self._work: Work[Hashable, Job, CoreModule] = Work(core_module, executor, weight)

    def begin(self, plan: Plan) -> None:
        """Start converting the cores of a plan of which only FIFO depths are open. :meth:`modules` converts again those
        that have changed otherwise."""
        names = identifiers([node.name for node in plan.graph.nodes])
        nodes = {node: names[node.name] for node in plan.graph.nodes if _has_open_depth(node)}
        self._work.begin(_jobs(plan, nodes))

    def modules(self, plan: Plan, names: Mapping[Node, str]) -> list[CoreModule]:
        """Return the modules of these nodes, all of a plan's, named as their instances."""
        made = zip(self._work.results(_jobs(plan, names)).values(), names, strict=True)
        return linked([_with_depth(module, plan[node].depths[:1]) for module, node in made], self._executor)


def _jobs(plan: Plan, names: Mapping[Node, str]) -> dict[Hashable, Job]:
    """Return the conversion jobs, keyed by all that may change during buffer sizing."""
    jobs: dict[Hashable, Job] = {}
    for node, instance in names.items():
        decision, sent = plan[node], node
        if _has_open_depth(node):
            decision = replace(decision, depths=(OPEN_DEPTH,))
            # Nobody changes what is being sent.
            sent = replace(node, kept=dict(node.kept))
        jobs[node, instance, decision] = Job(sent, decision, instance, f"{TOP}.{instance}")
    return jobs


def _has_open_depth(node: Node) -> bool:
    """Tell whether a node has one queue, on whose depth nothing else in its core depends."""
    return not isinstance(node.attributes, (*PLUMBING, WeightMemoryAttributes)) and len(node.outputs) == 1


def _with_depth(module: CoreModule, depths: tuple[int, ...]) -> CoreModule:
    """Return the module of a core whose first output has that depth, if it has an output."""
    for depth in depths:
        return replace(module, common={name: common.with_depth(depth) for name, common in module.common.items()})
    return module
