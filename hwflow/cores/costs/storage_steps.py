"""The depths at which a queue's storage is full: registers by entries, look-up tables by rows, block RAM by blocks."""

from __future__ import annotations

from hdl_lib.memories.storage import REGISTER_DEPTH, StorageStyle
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import block_queue, cells, cheapest_style, queue

_ROWS = 16  # entries of a look-up table; of fewer, half a row has shorter addresses
_LEAST_IN_BLOCKS = 9  # bits of an address


def storage_steps(
    family: str, width: int, least: int, enough: int, *, in_block: bool = False, scarce: bool = False
) -> list[int]:
    """Return depths that ascend, from ``least`` to one that is at least ``enough``: each the greatest that its storage
    holds, and none whose storage costs as much as a greater one's. ``width``: bits of an entry;
    ``in_block``: the queue lies in block RAM, whatever its depth; ``scarce``: as :func:`cheapest_style` takes it."""
    deepest = max(least, enough)
    depths = [*range(1, REGISTER_DEPTH + 1), _ROWS // 2, _ROWS]
    while depths[-1] < deepest:
        # Without memories of look-up tables each entry takes as much as the others: a sixteenth at the most is spare.
        table = FAMILIES[family].lutram is not None
        depths.append(depths[-1] + (_ROWS if table else 1 << depths[-1].bit_length() - _ROWS.bit_length()))
    depths += [(1 << address) + 1 for address in range(_LEAST_IN_BLOCKS, deepest.bit_length() + 1)]
    ascending = sorted(depth for depth in depths if depth >= least)
    enough_at = next(index for index, depth in enumerate(ascending) if depth >= deepest)
    steps: list[tuple[int, int]] = []
    for index, depth in enumerate(ascending):
        cost = _storage(family, width, depth, in_block, scarce)
        if index > enough_at and steps[-1][1] < cost:
            break
        while steps and steps[-1][1] >= cost:
            steps.pop()
        steps.append((depth, cost))
    return [depth for depth, _ in steps]


def _storage(family: str, width: int, depth: int, in_block: bool, scarce: bool) -> int:
    """Return look-up tables and flip-flops, with those that block RAMs count as."""
    in_block = in_block or cheapest_style(family, width, depth, scarce=scarce) == StorageStyle.BLOCK
    return cells((block_queue if in_block else queue)(family, width, depth), family, scarce=scarce)
