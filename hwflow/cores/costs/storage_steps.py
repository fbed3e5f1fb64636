"""The depths at which a queue's storage is full: registers by entries, look-up tables by rows, block RAM by blocks."""

from __future__ import annotations

from hdl_lib.memories.storage import REGISTER_DEPTH
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import BLOCK_RAM_CELLS, block_queue, cheapest_style, queue

_ROWS = 16  # entries of a look-up table; of fewer, half a row has shorter addresses
_LEAST_IN_BLOCKS = 9  # bits of an address


def storage_steps(
    family: str, width: int, least: int, enough: int, *, in_block: bool = False, block_ram: int = BLOCK_RAM_CELLS
) -> list[int]:
    """Return depths that ascend, from ``least`` to one that is at least ``enough``: each the greatest that its storage
    holds, and none of more storage than a greater one. ``width``: bits of an entry;
    ``in_block``: the queue lies in block RAM, whatever its depth; ``block_ram``: as :func:`cheapest_style` takes it."""
    deepest = max(least, enough)
    depths = [*range(1, REGISTER_DEPTH + 1), _ROWS // 2, _ROWS]
    while depths[-1] < deepest:
        # Without memories of look-up tables each entry takes as much as the others: a sixteenth at the most is spare.
        table = FAMILIES[family].lutram is not None
        depths.append(depths[-1] + (_ROWS if table else 1 << depths[-1].bit_length() - _ROWS.bit_length()))
    depths += [(1 << address) + 1 for address in range(_LEAST_IN_BLOCKS, deepest.bit_length() + 1)]
    steps: list[tuple[int, int, int]] = []
    for depth in sorted(depth for depth in depths if depth >= least):
        block_rams, cells = _storage(family, width, depth, in_block, block_ram)
        while steps and steps[-1][1] >= block_rams and steps[-1][2] >= cells:
            steps.pop()
        steps.append((depth, block_rams, cells))
        if depth >= deepest:
            break
    return [depth for depth, _, _ in steps]


def _storage(family: str, width: int, depth: int, in_block: bool, block_ram: int) -> tuple[int, int]:
    """Return block RAMs, and look-up tables with flip-flops."""
    in_block = in_block or cheapest_style(family, width, depth, block_ram) == "block"
    storage = (block_queue if in_block else queue)(family, width, depth)
    return storage.bram, storage.lut + storage.ff
