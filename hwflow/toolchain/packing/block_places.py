"""Place multiplier blocks if a design uses most of a part's.

nextpnr's analytic placer first lets blocks overlap, then legalizes them one after the other: if all of a part's blocks
are used, the last ones end far from their neighbours (a DS-CNN with 153 blocks: wire length 87,000 tiles before
legalization, 294,000 after). So they are placed here, all at once, and the placer puts the rest around them (118,000).
Block RAMs have room between each other; nextpnr does better with those.

The weight between two blocks is the conductance between them if every net is a star of resistors: movable cells then
stand where they pull least, so that only blocks are left to place. Simulated annealing minimizes weight times distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwflow.toolchain.packing.netlist import PORT, Netlist

Floats = NDArray[np.float64]

BLOCK = "MULT18X18D"
SHARE = 0.5  # of a part's blocks: with fewer there is room for nextpnr to find places
CLUSTER = 32  # cells at most that go together because one feeds nothing but the other
WIDEST = 200  # pins of a net at most: what more read stands everywhere
STEPS = 12  # of what flows, from net to cell and on; more of them change little
MOVES = 1_000_000
HOT, COLD = 0.3, 0.0006  # times the mean pull at a block: temperature at first, and at last


@dataclass(frozen=True)
class Site:
    """A site for a block: nextpnr's name, its column and row."""

    name: str
    column: int
    row: int


def _sites(rows: Sequence[int], left: int, right: int) -> list[Site]:
    """Return sites in groups of four, 9 columns apart, ``left`` before the middle of the part, ``right`` after it."""
    columns = (*(4 + 9 * k for k in range(left)), *(6 + 9 * k for k in range(left, left + right)))
    return [Site(f"X{x + k}/Y{y}/MULT18_{k}", x + k, y) for y in rows for x in columns for k in (0, 1, 4, 5)]


SITES: Mapping[str, Sequence[Site]] = {
    "25F": _sites((13,), 3, 4),
    "45F": _sites((22, 46), 4, 5),
    "85F": _sites((10, 34, 58), 7, 6),
}
"""Sites by the end of the device's name: where nextpnr 0.11 puts the blocks of a netlist that has all of them."""


def place_blocks(netlist: Netlist, device: str) -> int:
    """Place each multiplier block on ``device``; return the number placed: none if the part is not known, or the design
    takes at most :data:`SHARE` of its blocks."""
    sites = SITES.get(device.rpartition("-")[2], ())
    blocks = list(netlist.cells(BLOCK))
    if not SHARE * len(sites) < len(blocks) <= len(sites):
        return 0
    for name, site in zip(blocks, arrange(pulls(netlist, blocks), sites), strict=True):
        netlist.attributes(name)["BEL"] = site.name
    return len(blocks)


def pulls(netlist: Netlist, blocks: Sequence[str]) -> Floats:
    """Return the weights between blocks, [blocks, blocks]."""
    cluster = _clusters(netlist, blocks)
    nets: dict[tuple[int, ...], int] = {}  # with how many nets have the same pins
    for net in netlist.nets():
        pins = tuple(sorted({cluster[cell] for cell in net if cell != PORT}))
        if 1 < len(pins) <= WIDEST:
            nets[pins] = nets.get(pins, 0) + 1
    if not nets:
        return np.zeros((len(blocks), len(blocks)))
    degree = np.array([len(pins) for pins in nets])
    weight = np.repeat(np.array([*nets.values()], float), degree)
    of_net = np.repeat(np.arange(len(nets)), degree)
    of_cell = np.concatenate([*nets])
    first_pin = np.concatenate(([0], np.cumsum(degree)[:-1]))
    by_cell = np.argsort(of_cell, kind="stable")
    cells, first_by_cell = np.unique(of_cell[by_cell], return_index=True)
    flow_in = np.add.reduceat(weight[by_cell], first_by_cell)[:, None]
    level = np.zeros((max(len(set(cluster.values())), len(blocks)), len(blocks)))  # of each cell, with one block at 1
    fixed = np.eye(len(blocks))
    total = level.copy()
    for _ in range(STEPS):
        level[: len(blocks)] = fixed
        on_net = np.add.reduceat(level[of_cell], first_pin, axis=0) / degree[:, None]
        total[cells] = np.add.reduceat((on_net[of_net] * weight[:, None])[by_cell], first_by_cell, axis=0)
        level[cells] = total[cells] / flow_in
    flow = total[: len(blocks)]
    np.fill_diagonal(flow, 0.0)
    return (flow + flow.T) / 2


def _clusters(netlist: Netlist, blocks: Sequence[str]) -> dict[str, int]:
    """Return the number of each cluster of cells that are placed together; those of the blocks come first, in order."""
    leader: dict[str, str] = {}
    size: dict[str, int] = {}
    apart = {*blocks, PORT}

    def find(cell: str) -> str:
        while leader.setdefault(cell, cell) != cell:
            leader[cell] = leader[leader[cell]]
            cell = leader[cell]
        return cell

    for cells in netlist.nets():
        pair = set(cells)
        if len(pair) == 2 and not pair & apart:
            one, other = sorted(find(cell) for cell in pair)
            if one != other and size.get(one, 1) + size.get(other, 1) <= CLUSTER:
                leader[other] = one
                size[one] = size.get(one, 1) + size.get(other, 1)
    numbers = {name: number for number, name in enumerate(blocks)}
    result = {}
    for cells in netlist.nets():
        for cell in cells:
            if cell != PORT:
                result[cell] = numbers.setdefault(find(cell), len(numbers))
    return result


def arrange(pull: Floats, sites: Sequence[Site]) -> list[Site]:
    """Return a site for each block."""
    columns, rows = np.array([(site.column, site.row) for site in sites]).T
    distance = (np.abs(columns[:, None] - columns) + np.abs(rows[:, None] - rows)).astype(float)
    order = np.lexsort((rows, columns))  # from left to right
    site = np.zeros(len(pull), int)
    site[_in_line(pull)] = order[np.linspace(0, len(sites) - 1, len(pull)).round().astype(int)]
    _anneal(pull, distance, site)
    return [sites[place] for place in site]


def _in_line(pull: Floats) -> NDArray[Any]:
    """Return the blocks in the order of a one-dimensional spectral placement."""
    sums = pull.sum(1) + 1e-9
    _, vectors = np.linalg.eigh((np.diag(sums) - pull) / np.sqrt(np.outer(sums, sums)))
    return np.argsort(vectors[:, min(1, len(pull) - 1)] / np.sqrt(sums), kind="stable")


def _anneal(pull: Floats, distance: Floats, site: NDArray[Any]) -> None:
    """Move and swap blocks among the sites by simulated annealing."""
    count = len(site)
    holder = np.full(len(distance), -1)
    holder[site] = np.arange(count)
    to_block = distance[:, site].copy()  # from each site
    mean = float((pull * distance[np.ix_(site, site)]).sum()) / count
    temperatures = mean * HOT * (COLD / HOT) ** (np.arange(MOVES) / MOVES)
    for block, target, limit in _random_moves(count, len(distance), temperatures):
        old, other = site[block], holder[target]
        if target == old:
            continue
        nearer = to_block[target] - to_block[old]
        loss = float(pull[block] @ nearer)
        if other >= 0:
            loss += 2 * pull[block, other] * distance[old, target] - float(pull[other] @ nearer)
        if loss > limit:
            continue
        site[block], holder[target], holder[old] = target, block, other
        to_block[:, block] = distance[:, target]
        if other >= 0:
            site[other] = old
            to_block[:, other] = distance[:, old]


def _random_moves(blocks: int, sites: int, temperatures: Floats) -> Iterator[tuple[int, int, float]]:
    """Yield for each temperature a block, a site for it, and the loss up to which the move is accepted."""
    random = np.random.default_rng(0)
    count = len(temperatures)
    limits = random.exponential(size=count) * temperatures
    moves = random.integers(0, blocks, count), random.integers(0, sites, count), limits
    return zip(*(column.tolist() for column in moves), strict=True)
