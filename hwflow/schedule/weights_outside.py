"""Decide which layers have their weights in memory outside, and for how many vectors each row of them is fetched.

A layer inside needs block RAM for its weights. Outside it needs it for the vectors that share a fetch, and for their
results until they are in order; and each of its words passes the memory's port once a group of vectors. So each layer
has an option inside that costs no bandwidth, and one for each size of groups: of one option for every layer, those are
taken that fetch the fewest words within the block RAM that the rest of the design leaves. That is a knapsack with
choices; it is solved exactly, with sizes in quarters of a block RAM. How much the rest leaves depends on its foldings,
which move memories between block RAM and look-up tables: so the room is found by bisection, with a search of foldings.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from hwflow.cores.external.weight_memory import MemoryTiming, lanes_for, words_of
from hwflow.cores.matrix.dot_products import weight_type
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Graph, Node
from hwflow.passes.outside.fetch_weights import (
    Known,
    fetch_weights,
    groups_of,
    may_be_fetched,
    quantizer_of,
    window_of,
)
from hwflow.schedule.search.bounds import Bounds, block_bits, weight_bits
from hwflow.schedule.search.folding_search import Budget, Chip, FoldingSearch

_PARTS = 4  # of a block RAM: the unit of sizes
_SHARE = 0.94  # of the block RAM: queues take some of it
_STEPS = 48  # from what the bounds leave at the most to nothing
_QUEUE_PARTS = 1  # of a layer's prefetch queue, which lies in look-up tables where block RAM is scarce
_MOST_GROUPS = 24  # sizes that are considered for a layer, greatest first
_HALVES = 2  # of a memory that is written while it is read
_COMPARED = 3  # choices whose intervals are looked at
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


def fewest_words(graph: Graph, device: Chip, budgets: Sequence[Budget], timing: MemoryTiming) -> int:
    """Return a lower bound of the words that pass a memory in a frame, if as many weights as must be lie there: of the
    choice with all the block RAM that other nodes need not have."""
    _, options, most = _problem(graph, device, budgets, timing.chip.width, None, everything=False)
    found = _fewest_words(options, most)
    return _NEVER if found is None else sum(option.words for option in found)


def choices(
    graph: Graph, device: Chip, budgets: Sequence[Budget], timing: MemoryTiming, *, everything: bool = False,
    interval: int | None = None, fastest: bool = False, executor: Executor | None = None, known: Known | None = None,
) -> Iterator[Mapping[str, int]]:
    """Yield for a memory the groups of the nodes whose weights lie outside, by name
    (:func:`hwflow.passes.outside.fetch_weights.fetch_weights`): first the choice with the fewest words for which there
    are foldings within one of the ``budgets``, of equal block RAM (with at most ``interval`` cycles a frame), then
    those that leave more and more block RAM to what a search of foldings does not know. If ``fastest``, the fastest of
    the first few comes first: with little room bursts are short, and take more of the memory's time than
    words that are fetched once more. ``everything``: of all layers that may; ``known``: of layers that are fetched, for
    who fetches them as chosen. Where nothing fits, the one choice takes the least block RAM."""
    candidates, options, most = _problem(graph, device, budgets, timing.chip.width, executor, everything=everything)
    smallest = [min(each, key=lambda option: (option.size, option.words)) for each in options]

    def chosen(step: int) -> Mapping[str, int]:
        """Return the choice of one of the steps from the greatest room to none."""
        found = _fewest_words(options, most * (_STEPS - step) // _STEPS) or smallest
        return {node.name: option.group for node, option in zip(candidates, found, strict=True) if option.group}

    within = [replace(budget, bram=int(_SHARE * budget.bram)) for budget in budgets]
    known = {} if known is None else known
    searches: list[FoldingSearch] = []  # the latest one, which others share what they look at with

    def overflows(step: int) -> bool:
        try:
            fetch_weights(graph, chosen(step), timing, known)
        except ModelRefused:  # the memory is too small
            return True
        return False

    def searched(groups: Mapping[str, int]) -> Iterator[FoldingSearch]:
        fetched = fetch_weights(graph, groups, timing, known)
        searches[:] = [FoldingSearch(fetched, device, within[0], executor, searches[0] if searches else None)]
        yield from (searches[0].within(budget) for budget in within)

    def fits(step: int) -> bool:
        groups = chosen(step)
        return bool(groups) and any(search.is_feasible(interval) for search in searched(groups))

    def least(groups: Mapping[str, int]) -> int:
        return min(search.least() if search.is_feasible() else _NEVER for search in searched(groups))

    last = _STEPS  # the more lies outside, the less the memory has room for it
    if overflows(last):
        last = max(0, bisect_left(range(_STEPS), True, key=overflows) - 1)
    first = 0
    if overflows(0) or not fits(0):
        first = last if not last or not fits(last) else bisect_left(range(last), True, lo=1, key=fits)
    seen: list[Mapping[str, int]] = []
    for step in dict.fromkeys(min(first + (1 << k) - 1, last) for k in range(_STEPS)):
        groups = chosen(step)
        if groups and groups not in seen:
            seen.append(groups)
    compared = seen[:_COMPARED] if fastest and len(seen) > 1 else []
    yield from (*sorted(compared, key=least), *seen[len(compared) :])


def _problem(
    graph: Graph, device: Chip, budgets: Sequence[Budget], width: int, executor: Executor | None, *, everything: bool
) -> tuple[list[Node], list[list[_Option]], int]:
    """Return the nodes whose weights may lie outside, the options of each, and the greatest room for these."""
    bounds = Bounds(graph, device, executor)
    inside = bounds.least_bits()
    candidates = [node for node in graph.nodes if may_be_fetched(node, width)]
    others = sum(bounds.least_of(node, "bram") for node in graph.nodes if node not in candidates)
    block = block_bits(device)
    producers, consumers = graph.producers(), graph.consumers()
    options = [
        _options(
            node, inside[node], width, block, producers.get(node.inputs[0]), quantizer_of(node, consumers),
            everything=everything,
        )
        for node in candidates
    ]
    return candidates, options, max(0, int(_PARTS * (_SHARE * budgets[0].bram - others)))


def _options(
    node: Node, inside: int, width: int, block: int, producer: Node | None, quantizer: Node | None, *, everything: bool
) -> list[_Option]:
    """Return a node's options of which none is larger than another that fetches no more words. ``producer``: of its
    vectors; ``quantizer``: that reads its results."""
    weights, bits = node.attributes.weights, weight_type(node).bits
    words = words_of(weights.shape, lanes_for(width, [bits]))
    vectors, outputs = node.outputs[0].typed.shape
    results = outputs * (quantizer or node).outputs[0].typed.element.bits
    found = [] if everything else [_Option(0, _size(inside, block), 0)]
    for group in groups_of(node)[:_MOST_GROUPS]:
        again = window_of(node, group, producer) is not None  # then rows of weights are held, else vectors
        held = bits if again else group * node.inputs[0].typed.element.bits
        size = _size(_HALVES * weights.shape[1] * held, block) + _QUEUE_PARTS
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
