"""Nodes of trees as comparisons of ranks.

What a node asks of a feature changes at finitely many *cuts*: where x > v begins, or x >= v. A feature's rank is the
number of cuts of all trees that it has passed, so each cut is decided once, and a node that has passed few cuts asks
whether a rank is below a limit. Nodes that ask for equal numbers become two or more such nodes, which share subtrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hwflow.operators.ml.ensembles import BoolArray, Ensemble, Floats, IntArray, Mode


@dataclass(frozen=True, eq=False)
class CutNodes:
    """Binary nodes: true where ``feature`` has not passed the cut ``bound``, ``strict`` where x > bound passes it, else
    x >= bound; NaN as a bound: no number is true. ``missing``: whether NaN is. The others as of :class:`Ensemble`."""

    feature: IntArray
    bound: Floats
    strict: BoolArray
    missing: BoolArray
    true: IntArray
    false: IntArray
    roots: IntArray


def cut_nodes(ensemble: Ensemble) -> CutNodes:
    """Write what nodes ask as comparisons with one cut each; nodes come before those to which they lead."""
    nan = np.isnan(ensemble.value) & (ensemble.mode != Mode.MEMBER)  # no number is below, above or equal to it
    simple = np.isin(ensemble.mode, (Mode.LEQ, Mode.LT, Mode.GTE, Mode.GT)) | nan
    turned = np.where(nan, ensemble.mode == Mode.NEQ, np.isin(ensemble.mode, (Mode.GTE, Mode.GT)))
    lists = [_chain(ensemble, int(node)) for node in np.flatnonzero(~simple)]
    sizes = np.ones(len(simple), np.int64)
    sizes[~simple] = [len(nodes) for nodes in lists]
    starts = np.append(0, np.cumsum(sizes))
    total = int(starts[-1])

    def moved(lead: IntArray) -> IntArray:
        return np.where(lead < 0, lead, starts[np.maximum(lead, 0)])

    feature, bound = np.repeat(ensemble.feature, sizes), np.zeros(total)
    strict, missing = np.zeros(total, bool), np.zeros(total, bool)
    leads = [np.zeros(total, np.int64) for _ in range(2)]
    true, false = moved(ensemble.true), moved(ensemble.false)
    place = starts[:-1][simple]
    bound[place] = ensemble.value[simple]
    strict[place] = np.isin(ensemble.mode, (Mode.LEQ, Mode.GT))[simple]
    missing[place] = (ensemble.tracks_true ^ turned)[simple]
    leads[0][place], leads[1][place] = np.where(turned, (false, true), (true, false))[:, simple]
    for node, chain in zip(np.flatnonzero(~simple), lists, strict=True):
        start, ends = int(starts[node]), {_TRUE: int(true[node]), _FALSE: int(false[node])}
        for offset, link in enumerate(chain):
            here = start + offset
            bound[here], strict[here], missing[here] = link.bound, link.strict, link.missing
            for lead, to in zip(leads, (link.below, link.above), strict=True):
                lead[here] = ends[to] if to < 0 else start + to
    return CutNodes(feature, bound, strict, missing, leads[0], leads[1], moved(ensemble.roots))


_TRUE, _FALSE = -1, -2


@dataclass
class _Link:
    """A node of a chain. ``below`` and ``above`` the cut: the offset of another node, or an end."""

    bound: float
    strict: bool
    missing: bool
    below: int
    above: int


def _chain(ensemble: Ensemble, node: int) -> list[_Link]:
    """Return the nodes of a search for a number among those of a set."""
    mode = ensemble.mode[node]
    if mode == Mode.MEMBER:
        members = ensemble.members[ensemble.member_start[node] : ensemble.member_start[node + 1]]
    else:
        members = ensemble.value[node : node + 1]
    inside, outside = (_FALSE, _TRUE) if mode == Mode.NEQ else (_TRUE, _FALSE)
    nan = _TRUE if ensemble.tracks_true[node] else _FALSE
    numbers = np.unique(members)  # both zeros are one
    if not len(numbers):
        return [_Link(np.nan, False, nan == _TRUE, _TRUE, _FALSE)]
    cuts = [(float(number), strict) for number in numbers for strict in (False, True)]
    links: list[_Link] = []

    def search(low: int, high: int) -> int:
        """Search among the cuts ``low`` to ``high - 1``: where the number of passed ones is known, it is an end."""
        if low == high:
            return inside if low % 2 else outside
        middle, place = (low + high) // 2, len(links)
        bound, strict = cuts[middle]
        links.append(_Link(bound, strict, False, 0, 0))
        links[place].below = search(low, middle)
        links[place].above = search(middle + 1, high)
        if middle == len(cuts) - 1:  # the last one that NaN, which passes all, meets
            links[place].missing = links[place].above != nan
        return place

    search(0, len(cuts))
    return links


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks of one feature. ``cuts``: those it may pass, in rising order, as integers of its carrier or places in a
    list of cuts; ``missing``: the rank of NaN where it is one of its own, else -1."""

    cuts: IntArray
    missing: int


def limits(
    nodes: CutNodes, cut: IntArray, features: int, *, least: int, most: int, nan: bool
) -> tuple[IntArray, list[Ranks]]:
    """Return each node's limit, and the ranks of each of so many features.

    ``cut``: the nodes' cuts as integers in their order; those up to ``least`` are passed by all numbers, those above
    ``most`` by none. ``nan``: whether a feature may be NaN, which passes all cuts. A node is true for ranks below its
    limit.
    """
    result = np.zeros(len(cut), np.int64)
    never = np.isnan(nodes.bound) | (cut <= least)
    always = ~never & (cut > most)
    order = np.argsort(nodes.feature, kind="stable")
    ends = np.searchsorted(nodes.feature[order], np.arange(features + 1))
    ranks = []
    for first, end in pairwise(ends.tolist()):
        here = order[first:end]
        between = here[~never[here] & ~always[here]]
        cuts, place = np.unique(cut[between], return_inverse=True)
        result[between] = place.reshape(-1) + 1
        result[here[always[here]]] = len(cuts) + 1
        apart = nan and bool(nodes.missing[here].any() or always[here].any())
        ranks.append(Ranks(cuts, len(cuts) + 1 if apart else -1))
    return result, ranks
