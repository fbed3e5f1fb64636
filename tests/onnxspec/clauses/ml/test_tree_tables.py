"""Clauses of the tree ensemble of version 5."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwflow.onnxspec.clauses.ml.node_reading import CLASSES, INPUTS, LENGTHS, TREES, VALUES
from tests.onnxspec.build import value
from tests.onnxspec.clauses.ml.ml_models import (
    CORRECT,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INPUT,
    INT64,
    LISTS,
    TREES_AGAIN,
    U8,
    twin,
    vector,
)
from tests.onnxspec.clauses.twins import Twin, check

# Node 0: feature 0 <= 2, then leaf 0, else node 1; node 1: feature 1 < 1, then leaf 1, else leaf 2.
ENS = {
    "nodes_featureids": [0, 1],
    "nodes_modes": vector([0, 1], U8),
    "nodes_splits": vector([2.0, 1.0], FLOAT),
    "nodes_truenodeids": [0, 1],
    "nodes_trueleafs": [1, 1],
    "nodes_falsenodeids": [1, 2],
    "nodes_falseleafs": [0, 1],
    "tree_roots": [0],
    "leaf_targetids": [0, 0, 0],
    "leaf_weights": vector([1.0, 2.0, 3.0], FLOAT),
    "n_targets": 1,
}
MEM = {
    **ENS,
    "nodes_modes": vector([6, 6], U8),
    "membership_values": vector([1.0, 2.0, float("nan"), 3.0, float("nan")], FLOAT),
}
HALVES = {
    "nodes_splits": [2.0, 1.0],
    "leaf_weights": [1.0, 2.0, 3.0],
    "membership_values": [1.0, 2.0, float("nan"), 3.0, float("nan")],
}
# Two trees, of the nodes 0 and 1 and of the nodes 2 and 3.
TWO = {
    "nodes_featureids": [0] * 4,
    "nodes_modes": vector([0] * 4, U8),
    "nodes_splits": vector([1.0] * 4, FLOAT),
    "nodes_truenodeids": [1, 0, 3, 1],
    "nodes_trueleafs": [0, 1, 0, 1],
    "nodes_falsenodeids": [0, 1, 0, 1],
    "nodes_falseleafs": [1] * 4,
    "tree_roots": [0, 2],
    "leaf_targetids": [0, 0],
    "leaf_weights": vector([1.0, 2.0], FLOAT),
    "n_targets": 1,
}


TWINS = [
    twin(
        "transform", VALUES, "TreeEnsemble", ENS,
        {"post_transform": 5},
        [
            (
                "'post_transform' must be 0 (NONE), 1 (SOFTMAX), 2 (LOGISTIC), 3 (SOFTMAX_ZERO) or 4 (PROBIT), not 5",
                CORRECT,
            ),
        ],
        version=5,
    ),
    twin(
        "aggregate", VALUES, "TreeEnsemble", ENS,
        {"aggregate_function": -1},
        [
            ("'aggregate_function' must be 0 (AVERAGE), 1 (SUM), 2 (MIN) or 3 (MAX), not -1", CORRECT),
        ],
        version=5,
    ),
    twin(
        "modes type", VALUES, "TreeEnsemble", ENS,
        {"nodes_modes": vector([0, 1], INT64)},
        [
            ("'nodes_modes' must be of type uint8, not int64", CORRECT),
        ],
        version=5,
    ),
    twin(
        "types", VALUES, "TreeEnsemble", MEM,
        {"membership_values": vector([1.0, 2.0, float("nan"), 3.0, float("nan")], DOUBLE)},
        [
            (
                "thresholds, members and weights must be of one type, not 'nodes_splits' float32, 'leaf_weights' "
                "float32, 'membership_values' float64",
                CORRECT,
            ),
        ],
        version=5,
    ),
    twin(
        "axes", VALUES, "TreeEnsemble", ENS,
        {"nodes_splits": vector([1.0, 2.0], FLOAT, [2, 1])},
        [
            ("'nodes_splits' must have one axis, not 2", CORRECT),
        ],
        version=5,
    ),
    twin(
        "nodes", LENGTHS, "TreeEnsemble", ENS,
        {"nodes_trueleafs": [1]},
        [
            (
                "the lists of nodes must be equally long, but 'nodes_featureids' has 2 entries and "
                "'nodes_trueleafs' 1",
                LISTS,
            ),
        ],
        version=5,
    ),
    twin(
        "leaves", LENGTHS, "TreeEnsemble", ENS,
        {"leaf_targetids": [0, 0]},
        [
            (
                "the lists of leaves must be equally long, but 'leaf_targetids' has 2 entries and 'leaf_weights' 3",
                LISTS,
            ),
        ],
        version=5,
    ),
    twin(
        "hit", LENGTHS, "TreeEnsemble", {**ENS, "nodes_hitrates": vector([1.0, 1.0], FLOAT)},
        {"nodes_hitrates": vector([1.0], FLOAT)},
        [
            (
                "'nodes_hitrates' must have an entry for each of the 2 nodes, not 1",
                "leave it out: no result depends on it",
            ),
        ],
        version=5,
    ),
    twin(
        "mode", TREES, "TreeEnsemble", ENS,
        {"nodes_modes": vector([0, 7], U8)},
        [
            ("the mode of a node must be 0 to 6, not 7 at node 1 of tree 0", "choose one of these modes"),
        ],
        version=5,
    ),
    twin(
        "feature", TREES, "TreeEnsemble", ENS,
        {"nodes_featureids": [0, -1]},
        [
            ("the feature of a node must be at least 0, not -1 at node 1 of tree 0", TREES_AGAIN),
        ],
        version=5,
    ),
    twin(
        "flags", TREES, "TreeEnsemble", {**ENS, "nodes_missing_value_tracks_true": [1, 0]},
        {"nodes_trueleafs": [1, 2], "nodes_falseleafs": [0, -1], "nodes_missing_value_tracks_true": [1, 3]},
        [
            ("'nodes_trueleafs' must be 0 or 1, not 2 at node 1 of tree 0", TREES_AGAIN),
            ("'nodes_falseleafs' must be 0 or 1, not -1 at node 1 of tree 0", TREES_AGAIN),
            ("'nodes_missing_value_tracks_true' must be 0 or 1, not 3 at node 1 of tree 0", TREES_AGAIN),
        ],
        version=5,
    ),
    twin(
        "root", TREES, "TreeEnsemble", ENS,
        {"tree_roots": [0, 2]},
        [
            ("the root of a tree must be a node, 0 to 1, not 2 in tree 1", TREES_AGAIN),
        ],
        version=5,
    ),
    twin(
        "children", TREES, "TreeEnsemble", ENS,
        {"nodes_truenodeids": [3, 1], "nodes_falsenodeids": [-1, 2]},
        [
            ("'nodes_truenodeids' must be a leaf, 0 to 2, not 3 at node 0 of tree 0", TREES_AGAIN),
            ("'nodes_falsenodeids' must be a node, 0 to 1, not -1 at node 0 of tree 0", TREES_AGAIN),
        ],
        version=5,
    ),
    twin(
        "cycle", TREES, "TreeEnsemble", TWO,
        {"nodes_truenodeids": [1, 0, 3, 2], "nodes_trueleafs": [0, 1, 0, 0]},
        [
            (
                "a tree must have no cycle, but nodes 2 -> 3 -> 2 of tree 1 are one",
                "correct the children of these nodes",
            ),
        ],
        version=5,
    ),
    twin(
        "own", TREES, "TreeEnsemble", ENS,
        {"nodes_falsenodeids": [1, 1], "nodes_falseleafs": [0, 0]},
        [
            (
                "a tree must have no cycle, but node 1 of tree 0 is its own child",
                "correct the children of these nodes",
            ),
        ],
        version=5,
    ),
    twin(
        "cycle nowhere", TREES, "TreeEnsemble", TWO,
        {"tree_roots": [0], "nodes_truenodeids": [1, 0, 3, 2], "nodes_trueleafs": [0, 1, 0, 0]},
        [
            ("a node must be in a tree, but no root leads to node 2", "remove the node", "warning"),
            ("a node must be in a tree, but no root leads to node 3", "remove the node", "warning"),
        ],
        version=5,
    ),
    twin(
        "twice", TREES, "TreeEnsemble", TWO,
        {"nodes_truenodeids": [1, 0, 1, 1]},
        [
            (
                "a node must be at one place of a tree, but node 1 of tree 0 is at 2",
                "copy the nodes below for each of them (evaluators take them as they are)", "warning",
            ),
            ("a node must be in a tree, but no root leads to node 3", "remove the node", "warning"),
        ],
        version=5,
    ),
    twin(
        "no set of float16", TREES, "TreeEnsemble",
        {**MEM, **{name: vector(entries, FLOAT16) for name, entries in HALVES.items()}},
        {"membership_values": vector([1.0, float("nan")], FLOAT16)},
        [
            (
                "'membership_values' must have a set for each node of mode 6 (BRANCH_MEMBER), 2 in all, not 1: node 1 "
                "of tree 0 has none",
                "write the members of each such node, and NaN behind them",
            ),
        ],
        version=5, inputs=[value("x", ["N", 2], FLOAT16)], outputs=[value("y", ["N", 1], FLOAT16)],
    ),
    twin(
        "no set", TREES, "TreeEnsemble", MEM,
        {"membership_values": vector([1.0, 2.0, float("nan")], FLOAT)},
        [
            (
                "'membership_values' must have a set for each node of mode 6 (BRANCH_MEMBER), 2 in all, not 1: node "
                "1 of tree 0 has none",
                "write the members of each such node, and NaN behind them",
            ),
        ],
        version=5,
    ),
    twin(
        "no sets", TREES, "TreeEnsemble", MEM,
        {"membership_values": None},
        [
            (
                "'membership_values' must have a set for each node of mode 6 (BRANCH_MEMBER), 2 in all, not 0: node "
                "0 of tree 0 has none",
                "write the members of each such node, and NaN behind them",
            ),
        ],
        version=5,
    ),
    twin(
        "sets too many", TREES, "TreeEnsemble", ENS,
        {"membership_values": vector([1.0, 2.0, float("nan")], FLOAT)},
        [
            (
                "'membership_values' must have a set for each node of mode 6 (BRANCH_MEMBER), 0 in all, not 1",
                "write the members of each such node, and NaN behind them",
            ),
        ],
        version=5,
    ),
    twin(
        "open", TREES, "TreeEnsemble", MEM,
        {"membership_values": vector([1.0, 2.0, float("nan"), 3.0], FLOAT)},
        [
            (
                "the last set of 'membership_values' must end with NaN, but it ends with 3.0",
                "add NaN (onnx's reference evaluator refuses the node without it)", "warning",
            ),
        ],
        version=5,
    ),
    twin(
        "targets", CLASSES, "TreeEnsemble", ENS,
        {"leaf_targetids": [0, 1, -1]},
        [
            ("'leaf_targetids' must be 0 (1 target), not 1 at leaf 1 of node 1 of tree 0", CORRECT),
            ("'leaf_targetids' must be 0 (1 target), not -1 at leaf 2 of node 1 of tree 0", CORRECT),
        ],
        version=5,
    ),
    twin(
        "n_targets", CLASSES, "TreeEnsemble", ENS,
        {"n_targets": None},
        [
            ("'n_targets' must be at least 1, but it is missing", "give the number of targets"),
        ],
        version=5,
    ),
    twin(
        "features", INPUTS, "TreeEnsemble", ENS,
        {"nodes_featureids": [0, 2]},
        [
            ("the feature of a node must be 0 to 1 (input 'x' has 2), not 2 at node 1 of tree 0", INPUT),
        ],
        version=5,
    ),
]


@pytest.mark.parametrize("case", TWINS, ids=str)
def test_twins(case: Twin, tmp_path: Path) -> None:
    check(case, tmp_path)
