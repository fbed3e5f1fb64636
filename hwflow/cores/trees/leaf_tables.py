"""Tables of what leaves give, of one tree or of several whose ways together are an address of a block RAM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdl_lib.trees.parallel_trees import Field, Lookup
from hwflow.cores.memory_words import pack_words
from hwflow.cores.trees.decisions import Decisions
from hwflow.ir.graph import IntArray
from hwflow.ir.node_attributes import Aggregate

BLOCK_ADDRESS = 9  # bits of the address of a block RAM's widest words


@dataclass(frozen=True, eq=False)
class LeafTable:
    """A table and its words."""

    lookup: Lookup
    words: Sequence[int]

    @property
    def width(self) -> int:
        return sum(field.shape.width for field in self.lookup.fields)


def leaf_tables(decisions: Decisions, *, in_block: bool) -> list[LeafTable]:
    """Return the tables, those of the least values first, so that values of a kind are added. ``in_block``: of several
    trees with the same targets, as long as the address is one of a block RAM's widest words."""
    trees = decisions.trees or []
    groups = _groups(decisions) if in_block else [[number] for number in range(len(trees))]
    columns = [_columns(decisions, group) for group in groups]
    summed = decisions.ensemble.aggregate == Aggregate.SUM
    bases = dict(decisions.base)
    for each in columns:
        for target, values in each.items():
            if summed:  # what all have is added once
                bases[target] += int(values.min())
                values -= values.min()
    if summed:
        columns = [{target: values for target, values in each.items() if values.any()} for each in columns]
        _add(bases, columns, 1 << sum(trees[number].levels for number in groups[0]))
    tables = []
    for group, each in zip(groups, columns, strict=True):
        fields, words = [], []
        for target, values in each.items():
            shift = _zeros(values) if summed else 0
            fields.append(Field(target, int(values.min()), int(values.max()), shift))
            words.append(values >> shift)
        if fields:
            widths = [field.shape.width for field in fields]
            tables.append(LeafTable(Lookup(tuple(group), tuple(fields)), pack_words(np.stack(words, axis=1), widths)))
    return sorted(tables, key=lambda table: max(field.high - field.low for field in table.lookup.fields))


def _groups(decisions: Decisions) -> list[list[int]]:
    """Deal trees to tables: those of the most levels first, each to the first table with the same targets that has room
    for its way."""
    trees = decisions.trees or []
    groups: list[list[int]] = []
    open_: dict[tuple[int, ...], list[tuple[int, int]]] = {}  # by targets: levels that are left, group
    for number in sorted(range(len(trees)), key=lambda number: -trees[number].levels):
        levels, targets = trees[number].levels, tuple(trees[number].values)
        left = open_.setdefault(targets, [])
        place = next((k for k, (room, _) in enumerate(left) if room >= levels), None)
        if place is None:
            groups.append([number])
            left.append((_address(levels) - levels, len(groups) - 1))
        else:
            room, group = left[place]
            groups[group].append(number)
            left[place] = (room - levels, group)
        open_[targets] = [(room, group) for room, group in left if room > 0]
    return groups


def _address(levels: int) -> int:
    """Return the bits of the address of trees of so many levels: those of a block RAM's widest words, or one more where
    twice as many trees then share twice as many blocks, so that fewer values are added."""
    return BLOCK_ADDRESS + ((BLOCK_ADDRESS + 1) // levels >= 2 * (BLOCK_ADDRESS // levels))


def _columns(decisions: Decisions, group: Sequence[int]) -> dict[int, IntArray]:
    """Return for each target what the trees of a group give together, [ways]."""
    trees = decisions.trees or []
    join = {Aggregate.SUM: np.add, Aggregate.MIN: np.minimum, Aggregate.MAX: np.maximum}[decisions.ensemble.aggregate]
    found = {target: values.copy() for target, values in trees[group[0]].values.items()}
    for number in group[1:]:
        for target, values in trees[number].values.items():
            found[target] = join(values[:, np.newaxis], found[target]).reshape(-1)
    return found


def _add(bases: dict[int, int], columns: list[dict[int, IntArray]], ways: int) -> None:
    """Add each target's base to the values with the widest range, or to the first table, of so many ``ways``."""
    for target, base in bases.items():
        own = [each for each in columns if target in each]
        if own:
            chosen = max(own, key=lambda each: int(each[target].max()))
            chosen[target] = chosen[target] + base
        else:
            columns[0][target] = np.full(ways, base)


def _zeros(values: IntArray) -> int:
    """Return the low bits that are 0 in all values; none if all are 0."""
    together = int(np.bitwise_or.reduce(values))
    return (together & -together).bit_length() - 1 if together else 0
