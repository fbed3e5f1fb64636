"""The clauses of the tree ensemble of version 5, whose nodes are the branches and whose leaves have lists of their
own. A tree is known by its number in ``tree_roots``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.ml.listed_nodes import FEATURES, MODES, TRACKS
from hwflow.onnxspec.clauses.ml.node_reading import (
    CLASSES,
    INPUTS,
    LENGTHS,
    MOST,
    TREES,
    VALUES,
    Check,
    Fault,
    NodeReading,
    OperatorClauses,
    Unreadable,
    below,
    counted,
    cycle_fault,
    equally_long,
    first_faults,
    present,
    stop,
)
from hwflow.onnxspec.clauses.ml.tree_shapes import Forest, Indices

CHILDREN = (("nodes_truenodeids", "nodes_trueleafs"), ("nodes_falsenodeids", "nodes_falseleafs"))
ROOTS, SPLITS, HITRATES = "tree_roots", "nodes_splits", "nodes_hitrates"
TARGETS, WEIGHTS, MEMBERS = "leaf_targetids", "leaf_weights", "membership_values"
_NODES = (FEATURES, MODES, SPLITS, *(name for pair in CHILDREN for name in pair))
_MEMBER = 6
_AGGREGATES = "0 (AVERAGE), 1 (SUM), 2 (MIN) or 3 (MAX)"
_TRANSFORMS = "0 (NONE), 1 (SOFTMAX), 2 (LOGISTIC), 3 (SOFTMAX_ZERO) or 4 (PROBIT)"


@dataclass(frozen=True)
class Branches:
    """The nodes, whose lists are equally long, and the number of leaves. ``named``: what the two lists of children
    say; ``leaf``: which children are leaves."""

    roots: Indices
    named: tuple[Indices, Indices]
    leaf: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    leaves: int

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self.named[0])

    @cached_property
    def legal_roots(self) -> Indices:
        """The roots that are nodes."""
        return self.roots[self.numbers]

    def wrong(self, side: int) -> NDArray[np.bool_]:
        """Return the nodes whose true (0) or false (1) child does not exist."""
        named = self.named[side]
        return (named < 0) | (named >= np.where(self.leaf[side], self.leaves, self.count))

    @cached_property
    def forest(self) -> Forest:
        """The branches without the leaves."""
        children = np.stack(
            [np.where(self.leaf[side] | self.wrong(side), -1, self.named[side]) for side in (0, 1)], axis=1
        )
        return Forest(children)

    @cached_property
    def tree(self) -> Indices:
        """By node the number of a tree that it is in, -1 for none."""
        return self.forest.owners(self.legal_roots)

    def place(self, node: int) -> str:
        """Return the node's name in messages."""
        tree = int(self.tree[node])
        return f"node {node} of no tree" if tree < 0 else f"node {node} of tree {self.numbers[tree]}"

    @cached_property
    def numbers(self) -> Indices:
        """The numbers of the trees whose roots are nodes."""
        return np.flatnonzero((self.roots >= 0) & (self.roots < self.count))


def _branches(r: NodeReading) -> Branches:
    """Return the nodes. Raises :class:`Unreadable` unless their lists have equally many entries."""
    found = r.kept.get("branches")
    if found is None:
        if len({r.length(name) for name in _NODES}) != 1 or not r.length(FEATURES):
            stop()
        (true, true_leaf), (false, false_leaf) = CHILDREN
        named = (r.ints(true), r.ints(false))
        leaf = (r.ints(true_leaf) != 0, r.ints(false_leaf) != 0)
        found = r.kept["branches"] = Branches(r.ints(ROOTS), named, leaf, r.length(TARGETS))
    assert isinstance(found, Branches)
    return found


def _given(r: NodeReading) -> Iterator[Fault]:
    yield from present(r, [name for name in (ROOTS, *_NODES, TARGETS, WEIGHTS) if r.given(name)])  # else NOD-33


def _lengths(r: NodeReading) -> Iterator[Fault]:
    yield from equally_long(r, (*_NODES, TRACKS), "the lists of nodes")
    yield from equally_long(r, (TARGETS, WEIGHTS), "the lists of leaves")
    length, nodes = r.length(HITRATES), r.length(FEATURES)
    if length and nodes and length != nodes:
        message = f"{show(HITRATES)} must have an entry for each of the {nodes} nodes, not {length}"
        yield Fault(LENGTHS, message, "leave it out: no result depends on it")


def _types(r: NodeReading) -> Iterator[Fault]:
    """Check that modes are uint8, and thresholds, members and weights of one type."""
    modes = r.tensor(MODES)
    if modes is not None and modes.type != "uint8":
        yield Fault(VALUES, f"{show(MODES)} must be of type uint8, not {modes.type}")
    types = {name: tensor.type for name in (SPLITS, WEIGHTS, MEMBERS) if (tensor := r.tensor(name)) is not None}
    if len(set(types.values())) > 1:
        every = ", ".join(f"{show(name)} {kind}" for name, kind in types.items())
        yield Fault(VALUES, f"thresholds, members and weights must be of one type, not {every}")
    for name in (MODES, SPLITS, WEIGHTS, MEMBERS, HITRATES):
        tensor = r.tensor(name)
        if tensor is not None and len(tensor.dims) != 1:
            yield Fault(VALUES, f"{show(name)} must have one axis, not {len(tensor.dims)}")


def _numbered(name: str, default: int, count: int, legal: str) -> Check:
    def check(r: NodeReading) -> Iterator[Fault]:
        number = r.integer(name, default)
        if number is not None and not 0 <= number < count:
            yield Fault(VALUES, f"{show(name)} must be {legal}, not {number}")

    return check


def _modes(r: NodeReading) -> Iterator[Fault]:
    nodes, tensor = _branches(r), r.tensor(MODES)
    modes = (tensor or stop()).elements()
    yield from first_faults(
        TREES,
        (modes < 0) | (modes > _MEMBER),
        lambda node: f"the mode of a node must be 0 to {_MEMBER}, not {modes[node]} at {nodes.place(node)}",
        "choose one of these modes",
    )


def _features(r: NodeReading) -> Iterator[Fault]:
    nodes, features = _branches(r), r.ints(FEATURES)
    yield from first_faults(
        TREES,
        features < 0,
        lambda node: f"the feature of a node must be at least 0, not {features[node]} at {nodes.place(node)}",
    )


def _flags(r: NodeReading) -> Iterator[Fault]:
    """Check that flags are 0 or 1."""
    nodes = _branches(r)
    for name in (*(leaf for _, leaf in CHILDREN), TRACKS):
        flags = r.ints(name)
        if len(flags) == nodes.count:
            yield from _wrong_flags(name, flags, nodes)


def _wrong_flags(name: str, flags: Indices, nodes: Branches) -> Iterator[Fault]:
    yield from first_faults(
        TREES,
        (flags != 0) & (flags != 1),
        lambda node: f"{show(name)} must be 0 or 1, not {flags[node]} at {nodes.place(node)}",
    )


def _roots(r: NodeReading) -> Iterator[Fault]:
    nodes = _branches(r)
    roots = nodes.roots
    yield from first_faults(
        TREES,
        (roots < 0) | (roots >= nodes.count),
        lambda tree: f"the root of a tree must be a node, {below(nodes.count)}, not {roots[tree]} in tree {tree}",
    )


def _children(r: NodeReading) -> Iterator[Fault]:
    """Check that children are nodes or leaves that exist."""
    nodes = _branches(r)
    for side, (name, _) in enumerate(CHILDREN):
        yield from _wrong_children(name, nodes, side)


def _wrong_children(name: str, nodes: Branches, side: int) -> Iterator[Fault]:
    def text(node: int) -> str:
        leaf = bool(nodes.leaf[side][node])
        kind, count = ("a leaf", nodes.leaves) if leaf else ("a node", nodes.count)
        return f"{show(name)} must be {kind}, {below(count)}, not {nodes.named[side][node]} at {nodes.place(node)}"

    yield from first_faults(TREES, nodes.wrong(side), text)


def _shape(r: NodeReading) -> Iterator[Fault]:
    """Check that there is no cycle, and every node is in one tree."""
    nodes = _branches(r)
    forest, reached = nodes.forest, nodes.tree >= 0
    walked = forest if reached.all() else Forest(np.where(reached[:, np.newaxis], forest.children, -1))
    cyclic = False
    for cycle in walked.cycles(MOST):
        cyclic = True
        home = nodes.place(cycle[0]).partition(" of ")[2] if cycle else ""
        yield cycle_fault(cycle, home, int)
    parents = forest.parents + np.bincount(nodes.legal_roots, minlength=nodes.count)
    if not cyclic:
        yield from first_faults(
            TREES,
            parents > 1,
            lambda node: f"a node must be at one place of a tree, but {nodes.place(node)} is at {parents[node]}",
            "copy the nodes below for each of them (evaluators take them as they are)",
            Severity.WARNING,
        )
    wrong = any(nodes.wrong(side).any() for side in (0, 1))
    if len(nodes.roots) == len(nodes.legal_roots) > 0 and not wrong:
        yield from first_faults(
            TREES,
            ~reached,
            lambda node: f"a node must be in a tree, but no root leads to node {node}",
            "remove the node",
            Severity.WARNING,
        )


def _members(r: NodeReading) -> Iterator[Fault]:
    """Check that there are as many sets of members as nodes that ask for one; NaN ends a set."""
    modes = (r.tensor(MODES) or stop()).elements()
    asking = int((modes == _MEMBER).sum())
    tensor = r.tensor(MEMBERS)
    values = np.zeros(0) if tensor is None else tensor.elements()
    ends = int(np.isnan(values).sum())
    open_end = bool(len(values)) and not np.isnan(values[-1])
    if ends + open_end != asking:
        place = ""
        if ends + open_end < asking and asking:
            node = int(np.flatnonzero(modes == _MEMBER)[ends + open_end])
            place = f": {_branches(r).place(node)} has none"
        yield Fault(
            TREES,
            f"{show(MEMBERS)} must have a set for each node of mode {_MEMBER} (BRANCH_MEMBER), {asking} in all, not "
            f"{ends + open_end}{place}",
            "write the members of each such node, and NaN behind them",
        )
    elif open_end:
        yield Fault(
            TREES, f"the last set of {show(MEMBERS)} must end with NaN, but it ends with {values[-1]}",
            "add NaN (onnx's reference evaluator refuses the node without it)", Severity.WARNING,
        )


def _targets(r: NodeReading) -> Iterator[Fault]:
    count, targets = r.integer("n_targets"), r.ints(TARGETS)
    if count is None or count < 1:
        found = "missing" if count is None else str(count)
        yield Fault(CLASSES, f"'n_targets' must be at least 1, but it is {found}", "give the number of targets")
        return
    yield from first_faults(
        CLASSES,
        (targets < 0) | (targets >= count),
        lambda leaf: f"{show(TARGETS)} must be {below(count)} ({counted(count, 'target')}), not {targets[leaf]} "
        f"at leaf {leaf}{_of_leaf(r, leaf)}",
    )


def _of_leaf(r: NodeReading, leaf: int) -> str:
    """Return the place of the first node that has this leaf for a message."""
    try:
        nodes = _branches(r)
    except Unreadable:
        return ""
    for side in (0, 1):
        at = np.flatnonzero(nodes.leaf[side] & (nodes.named[side] == leaf))
        if len(at):
            return f" of {nodes.place(int(at[0]))}"
    return ""


def _known_features(r: NodeReading) -> Iterator[Fault]:
    nodes, features, count = _branches(r), r.ints(FEATURES), r.features()
    yield from first_faults(
        INPUTS,
        features >= count,
        lambda node: f"the feature of a node must be {below(count)} ({r.input(0)} has {count}), not {features[node]} "
        f"at {nodes.place(node)}",
    )


ENSEMBLE = OperatorClauses(
    (
        _given, _lengths, _types, _numbered("aggregate_function", 1, 4, _AGGREGATES),
        _numbered("post_transform", 0, 5, _TRANSFORMS), _modes, _features, _flags, _roots, _children, _shape, _members,
        _targets,
    ),
    (_known_features,),
)  # fmt: skip
