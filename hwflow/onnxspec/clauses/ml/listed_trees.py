"""The shapes of the trees that lists give: one root, no cycle, children and weights of nodes that exist.

The evaluators begin at the first node of a tree in the lists (onnx 1.23.2, onnxruntime 1.32), so that must be its root.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.ml.listed_nodes import (
    BRANCHES,
    CHILDREN,
    FEATURES,
    MODES,
    TRACKS,
    UNKNOWN_CODE,
    Nodes,
    node_lists,
    votes_prefix,
)
from hwflow.onnxspec.clauses.ml.node_reading import MOST, TREES, Fault, NodeReading, counted, cycle_fault, first_faults
from hwflow.onnxspec.clauses.ml.tree_shapes import Forest, group_starts


def modes(r: NodeReading) -> Iterator[Fault]:
    nodes = node_lists(r)
    unknown = nodes.codes == UNKNOWN_CODE
    modes = r.strings(MODES) if unknown.any() else ()
    legal = ", ".join((*BRANCHES, "LEAF"))

    def text(node: int) -> str:
        found = show(modes[node].decode("utf-8", "replace"))
        return f"the mode of a node must be one of {legal}, not {found} at {nodes.place(node)}"

    yield from first_faults(TREES, unknown, text, "choose one of these modes")


def feature_ids(r: NodeReading) -> Iterator[Fault]:
    nodes, features = node_lists(r), r.ints(FEATURES)
    yield from first_faults(
        TREES,
        nodes.branch & (features < 0),
        lambda node: f"the feature of a node must be at least 0, not {features[node]} at {nodes.place(node)}",
    )


def missing_values(r: NodeReading) -> Iterator[Fault]:
    nodes, tracks = node_lists(r), r.ints(TRACKS)
    if len(tracks) != len(nodes.tree_ids):
        return
    yield from first_faults(
        TREES,
        nodes.branch & (tracks != 0) & (tracks != 1),
        lambda node: f"{show(TRACKS)} must be 0 or 1, not {tracks[node]} at {nodes.place(node)}",
    )


def unique_ids(r: NodeReading) -> Iterator[Fault]:
    """Check that the ids of nodes are unique in their tree."""
    nodes = node_lists(r)
    yield from first_faults(
        TREES,
        nodes.repeated,
        lambda node: f"node ids must be unique in a tree, but a node before has the id of {nodes.place(node)} too",
        "number the nodes of each tree from 0",
    )
    if not nodes.together:
        starts = group_starts(nodes.tree_ids)
        heads = nodes.tree_ids[starts]
        again = np.ones(len(heads), np.bool_)
        again[np.unique(heads, return_index=True)[1]] = False
        apart = starts[again]
        trees = np.unique(nodes.tree_ids[apart])
        more = f" ({counted(len(trees) - 1, 'more tree')} too)" if len(trees) > 1 else ""
        yield Fault(
            TREES,
            f"the nodes of a tree must be listed together, but {nodes.place(int(apart[0]))} comes after nodes of other "
            f"trees{more}: onnxruntime takes it for the first of a further tree",
            "sort the nodes by their trees",
            Severity.WARNING,
        )


def sequential_ids(r: NodeReading) -> Iterator[Fault]:
    """Check that the ids of a regressor's nodes are 0, 1, 2, ... in each tree, which no evaluator needs."""
    nodes = node_lists(r)
    if nodes.regular or nodes.repeated.any():
        return
    sizes = np.bincount(nodes.tree)
    wrong = (nodes.node_ids < 0) | (nodes.node_ids >= sizes[nodes.tree])
    yield from first_faults(
        TREES,
        wrong,
        lambda node: f"the node ids of a tree of {sizes[nodes.tree[node]]} nodes must be 0 to "
        f"{sizes[nodes.tree[node]] - 1}, but there is {nodes.place(node)}",
        "number the nodes of each tree from 0",
        Severity.WARNING,
    )


def children(r: NodeReading) -> Iterator[Fault]:
    """Check that the children of a node are nodes of its tree."""
    nodes = node_lists(r)
    for side, name in enumerate(CHILDREN):
        named = nodes.named[side]
        yield from first_faults(
            TREES,
            nodes.branch & (nodes.children[:, side] < 0),
            lambda node, name=name, named=named: (  # type: ignore[misc]  # mypy: defaults of a lambda
                f"{show(name)} must be the id of a node of the same tree, not {named[node]} at {nodes.place(node)}"
            ),
        )


def tree_shape(r: NodeReading) -> Iterator[Fault]:
    """Check that a tree has one root, its first node, no cycle, and no node with two parents."""
    nodes = node_lists(r)
    forest = Forest(nodes.children)
    sound = np.ones(len(nodes.first), np.bool_)  # the trees whose nodes are all there, and have a name each
    sound[nodes.tree[nodes.repeated | (nodes.codes == UNKNOWN_CODE)]] = False
    sound[nodes.tree[nodes.branch & (nodes.children < 0).any(axis=1)]] = False
    for cycle in forest.cycles(MOST):
        tree = f"tree {nodes.tree_ids[cycle[0]]}" if cycle else ""
        yield cycle_fault(cycle, tree, nodes.node_ids.__getitem__)
    roots = np.bincount(nodes.tree[forest.orphans], minlength=len(nodes.first))
    yield from _many_roots(nodes, forest, sound & (roots > 1))
    sound[nodes.tree[forest.unsorted]] = False
    lost = sound & (roots == 1) & ~forest.orphans[nodes.first]
    at = np.full(len(roots), -1, np.int64)
    at[nodes.tree[forest.orphans]] = np.flatnonzero(forest.orphans)
    yield from first_faults(
        TREES,
        lost,
        lambda tree: f"the root of a tree must be its first node, but {nodes.place(int(nodes.first[tree]))} is listed "
        f"first and the root is node {nodes.node_ids[at[tree]]}",
        "write the root before the other nodes of its tree: evaluators begin at the first",
    )
    several = forest.parents > 1
    parents = forest.parents
    yield from first_faults(
        TREES,
        several,
        lambda node: f"a node must be the child of one node, but {nodes.place(node)} is that of {parents[node]}",
        "copy the nodes below for each of them (evaluators take them as they are)",
        Severity.WARNING,
    )


def _many_roots(nodes: Nodes, forest: Forest, many: NDArray[np.bool_]) -> Iterator[Fault]:
    def text(tree: int) -> str:
        found = np.flatnonzero(forest.orphans & (nodes.tree == tree))
        shown = ", ".join(str(nodes.node_ids[node]) for node in found[:MOST])
        more = f" and {len(found) - MOST} more" if len(found) > MOST else ""
        return (
            f"a tree must have one root, but nodes {shown}{more} of tree {nodes.tree_ids[nodes.first[tree]]} are not "
            "children of any node"
        )

    yield from first_faults(TREES, many, text, "remove the nodes that the first one does not lead to")


def leaf_weights(r: NodeReading) -> Iterator[Fault]:
    """Check that weights are those of leaves."""
    votes, nodes = votes_prefix(r), node_lists(r)
    tree_ids, node_ids = r.ints(f"{votes}_treeids"), r.ints(f"{votes}_nodeids")
    if len(tree_ids) != len(node_ids) or not len(tree_ids):
        return
    at = nodes.find(nodes.tree_numbers(tree_ids), node_ids)
    yield from first_faults(
        TREES,
        at < 0,
        lambda entry: f"a leaf weight must be that of a node, but weight {entry} is that of node {node_ids[entry]} of "
        f"tree {tree_ids[entry]}, which does not exist",
    )
    yield from first_faults(
        TREES,
        (at >= 0) & nodes.branch[at],
        lambda entry: f"a leaf weight must be that of a leaf, but weight {entry} is that of "
        f"{nodes.place(int(at[entry]))}, which is none",
        "remove the weight: it is never added",
        Severity.WARNING,
    )
    without = nodes.leaf
    without[at[at >= 0]] = False
    yield from first_faults(
        TREES,
        without,
        lambda node: f"a leaf must have a weight, but {nodes.place(node)} has none: it adds nothing",
        "give it the weight 0 (onnx's reference evaluator fails at such a leaf)",
        Severity.WARNING,
    )
