"""Move tables of weights, and of what requantizers multiply by and add, from look-up tables to block RAM, where a
design takes much of a part and leaves block RAMs.

A table of look-up tables has a wire of each address bit to every bit of its words, and wires are what large designs run
out of: DS-CNN with 57,600 look-up tables, 10,000 of them such tables, was not routed on an LFE5U-85F.
"""

from __future__ import annotations

from dataclasses import replace

from hwflow.cores.operator import Decision, Resources
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Node
from hwflow.schedule.plan import Plan
from hwflow.schedule.search.folding_search import Chip

MUCH = 0.5  # of a part's look-up tables or flip-flops
_LEAST = 64  # look-up tables that a block RAM must replace


def with_moved_tables(plan: Plan, device: Chip, room: int) -> Plan:
    """Return a plan in which the tables of which a block RAM replaces most look-up tables lie in block RAM, as long as
    there is ``room``: block RAMs. Timing stays as it is."""
    found: list[tuple[float, int, int, Node, Decision]] = []
    for node in plan.cores:
        decision = plan[node]
        moved = replace(decision, folding=replace(decision.folding, in_block=True))
        now, then = plan.resources(node, device), hardware(node.op).resources(node, moved, device)
        blocks, saved = then.bram - now.bram, now.lut - then.lut
        if blocks > 0 and saved >= _LEAST * blocks and then.dsp <= now.dsp:
            found.append((saved / blocks, len(found), blocks, node, moved))
    decisions = dict(plan.decisions)
    for _, _, blocks, node, moved in sorted(found, key=lambda each: (-each[0], each[1])):
        if blocks <= room:
            decisions[node] = moved
            room -= blocks
    return Plan(plan.graph, decisions)


def takes_much(resources: Resources, device: Chip) -> bool:
    """Tell whether a design takes much of a part."""
    return resources.lut > MUCH * device.lut or resources.ff > MUCH * device.ff
