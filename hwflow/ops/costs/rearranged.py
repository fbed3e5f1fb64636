"""Frames in another order."""

from __future__ import annotations

from math import ceil

from hdl_lib.rearrange import RearrangePlan
from hwflow.ops.costs.basics import bits, count_up, loop
from hwflow.ops.costs.memory import asynchronous_memory, filled_rom, in_block_ram, queue
from hwflow.ops.operator import Resources


def rearrange(family: str, plan: RearrangePlan, lanes: int, source: int, result: int, depth: int) -> Resources:
    """A buffer, the loops of its addresses and their tables, counts of beats, a queue. ``source``, ``result``: bits of
    an element before and behind."""
    width, rows, walk = lanes * source, max(2, plan.rows), plan.walk
    block = in_block_ram(family, rows, width)
    store = Resources(ff=2 * width, bram=block) if block else asynchronous_memory(family, rows, width)
    store += Resources(ff=0 if block else 3 * width)
    address, count = bits(rows - 1), bits(plan.rows + plan.beats + plan.skipped)
    total = store + count_up(plan.rows) + queue(family, lanes * result, depth)
    moves = 0
    for axis in walk.axes:
        total += loop(axis.count)
        if axis.table:
            known = [0 if at is None else at for at in axis.table]
            width = 1 + bits(max(map(abs, known))) + (min(known) < 0)
            words = [(1 << width - 1) | at & ((1 << width - 1) - 1) for at in known]
            total += filled_rom(family, words, width) + count_up(axis.count)
        else:
            moves += axis.stride != 0
    strided = bits(plan.beats - 1) if moves else 0
    total += Resources(lut=(2 * ceil(strided / 2) + strided * min(moves, 3)) if moves else 0, ff=strided)
    if walk.tables:
        levels = walk.latency - 2
        total += Resources(lut=strided * levels, ff=2 * strided + levels * (bits(plan.beats) + 1))
    wraps = plan.rows & (plan.rows - 1) != 0
    total += Resources(lut=(3 + 2 * wraps) * address, ff=3 * address)
    total += Resources(lut=5 * count + (lanes * result if plan.has_holes else 0), ff=2 * count + 2)
    if len(plan.phases) > 1:
        total += Resources(lut=3 * len(plan.phases) + bits(max(p.count for p in plan.phases)) * 2, ff=count)
    delays = 2 * walk.latency + 6 + (walk.latency + 1) * bits(max(p.released for p in plan.phases))
    return total + Resources(ff=delays)
