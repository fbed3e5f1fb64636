"""Decide which layers have their weights in memory outside, and for how many vectors each row of them is fetched.

A layer inside needs block RAM for its weights. Outside it needs it for the vectors that share a fetch, and for their
results until they are in order; and each of its words passes the memory's port once a group of vectors. So each layer
has an option inside that costs no bandwidth, and one for each size of groups: of one option for every layer, those are
taken that fetch the fewest words within the block RAM that the rest of the design leaves. That is a knapsack with
choices; it is solved exactly, with sizes in quarters of a block RAM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from hwflow.cores.external.weight_memory import lanes_for, words_of
from hwflow.cores.matrix.dot_products import weight_type
from hwflow.ir.graph import Graph, Node
from hwflow.passes.fetch_weights import groups_of, may_be_fetched
from hwflow.schedule.search.bounds import Bounds, block_bits, weight_bits
from hwflow.schedule.search.folding_search import Budget, Chip

MOST_WORDS = 1 << 21
"""Words that are fetched in a frame, at the most: schedules hold some hundred bytes of each."""

_PARTS = 4  # of a block RAM: the unit of sizes
_SHARES = (0.9, 0.7, 0.5, 0.3, 0.15, 0.05)  # of what the bounds leave: queues and foldings take some of it
_QUEUE_BLOCKS = 1  # of a layer's prefetch queue
_MOST_GROUPS = 24  # sizes that are considered for a layer, greatest first
_HALVES = 2  # of a memory that is written while it is read
_NEVER = np.iinfo(np.int64).max // 4


@dataclass(frozen=True)
class _Option:
    """``group``: vectors that share a fetch (0: the weights are inside); ``size`` in parts of a block RAM; ``words``
    that pass the port in a frame."""

    group: int
    size: int
    words: int


def exceeds_block_ram(graph: Graph, device: Chip) -> bool:
    """Tell whether the weights have more bits than all block RAM of a part."""
    return sum(map(weight_bits, graph.nodes)) > device.bram * block_bits(device)


def choices(
    graph: Graph, device: Chip, budget: Budget, width: int, *, everything: bool = False,
    executor: Executor | None = None,
) -> Iterator[Mapping[str, int]]:
    """Yield for a memory with words of ``width`` bits the groups of the nodes whose weights lie outside, by name
    (:func:`hwflow.passes.fetch_weights.fetch_weights`): choices that leave more and more block RAM to what the bounds
    do not count. ``everything``: of all layers that may."""
    bounds = Bounds(graph, device, executor)
    least = bounds.least_bits()
    candidates = [node for node in graph.nodes if may_be_fetched(node, width)]
    others = sum(bits for node, bits in least.items() if node not in candidates)
    block = block_bits(device)
    options = [_options(node, least[node], width, block, everything=everything) for node in candidates]
    seen: list[Mapping[str, int]] = []
    for share in _SHARES:
        room = int(_PARTS * (budget.bram * share - others / block))
        chosen = _fewest_words(options, max(0, room))
        if chosen is None or sum(option.words for option in chosen) > MOST_WORDS:
            continue
        groups = {node.name: option.group for node, option in zip(candidates, chosen, strict=True) if option.group}
        if groups and groups not in seen:
            seen.append(groups)
            yield groups
    least_room = [min(each, key=lambda option: (option.size, option.words)) for each in options]
    groups = {node.name: option.group for node, option in zip(candidates, least_room, strict=True) if option.group}
    if groups and groups not in seen and sum(option.words for option in least_room) <= MOST_WORDS:
        yield groups


def _options(node: Node, inside: int, width: int, block: int, *, everything: bool) -> list[_Option]:
    """Return a node's options of which none is larger than another that fetches no more words."""
    weights, bits = node.attributes.weights, weight_type(node).bits
    words = words_of(weights.shape, lanes_for(width, [bits]))
    vectors, outputs = node.outputs[0].typed.shape
    held = weights.shape[1] * node.inputs[0].typed.element.bits
    results = outputs * node.outputs[0].typed.element.bits
    found = [] if everything else [_Option(0, _size(inside, block), 0)]
    for group in groups_of(node)[:_MOST_GROUPS]:
        size = _size(_HALVES * group * held, block) + _QUEUE_BLOCKS * _PARTS
        size += _size(_HALVES * group * results, block) if group > 1 else 0
        option = _Option(group, size, words * (vectors // group))
        if not found or option.size < found[-1].size:
            found.append(option)
    return found


def _size(bits: int, block: int) -> int:
    return -(-_PARTS * bits // block)


def _fewest_words(options: list[list[_Option]], room: int) -> list[_Option] | None:
    """Return an option of each that fetch the fewest words in all and take no more than ``room``; None if all are too
    large."""
    best = np.zeros(room + 1, dtype=np.int64)  # fewest words of the layers so far, by the room that they may take
    taken = []
    for some in options:
        now = np.full(room + 1, _NEVER, dtype=np.int64)
        which = np.zeros(room + 1, dtype=np.int64)
        for number, option in enumerate(some):
            if option.size > room:
                continue
            words = np.full(room + 1, _NEVER, dtype=np.int64)
            words[option.size :] = np.minimum(_NEVER, best[: room + 1 - option.size] + option.words)
            better = words < now
            now[better], which[better] = words[better], number
        best = now
        taken.append(which)
    if best[room] >= _NEVER:
        return None
    chosen: list[_Option] = []
    for some, which in zip(reversed(options), reversed(taken), strict=True):
        chosen.append(some[int(which[room])])
        room -= chosen[-1].size
    return chosen[::-1]
