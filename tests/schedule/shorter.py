"""Plans with a queue that is a step of its storage shorter."""

from __future__ import annotations

from dataclasses import replace

from hwflow.cores.beat_movers import FifoAttributes
from hwflow.cores.costs.storage_steps import storage_steps
from hwflow.cores.operator import Decision
from hwflow.ir.graph import Node
from hwflow.schedule.plan import Plan


def a_step_shorter(plan: Plan, node: Node, index: int) -> Decision | None:
    """What is decided for a node, with less depth for one of its queues, on an ECP5; None if there is no less."""
    decided = plan[node]
    width = decided.folding.output_lanes * node.outputs[index].typed.element.bits
    in_block = isinstance(node.attributes, FifoAttributes)
    *less, depth = storage_steps("ecp5", width, 1, decided.depths[index], in_block=in_block)
    assert depth == decided.depths[index]
    return replace(decided, depths=(*decided.depths[:index], less[-1], *decided.depths[index + 1 :])) if less else None


def shorten_deepest(plan: Plan, *operators: str) -> None:
    """Take a step from the deepest queue of nodes of these operators."""
    nodes = [node for node in plan.graph.nodes if node.op in operators]
    node = max(nodes, key=lambda node: max(plan[node].depths))
    shorter = a_step_shorter(plan, node, plan[node].depths.index(max(plan[node].depths)))
    assert shorter is not None
    plan[node] = shorter
