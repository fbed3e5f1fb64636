"""Clauses of tree ensembles whose nodes are lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwflow.onnxspec.clauses.ml.node_reading import CLASSES, INPUTS, LENGTHS, TREES, VALUES
from tests.onnxspec.build import value
from tests.onnxspec.clauses.ml.ml_models import CORRECT, DOUBLE, FLOAT, INPUT, INT64, LISTS, TREES_AGAIN, twin, vector
from tests.onnxspec.clauses.twins import Twin, check

# Node 0 of tree 7 compares feature 0 with 2; its children are the leaves 1 and 2.
REG = {
    "nodes_treeids": [7, 7, 7],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "nodes_values": [2.0, 0.0, 0.0],
    "target_treeids": [7, 7],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [10.0, 20.0],
    "n_targets": 1,
}
# Two such trees.
TWO = {
    **{name: entries * 2 for name, entries in REG.items() if isinstance(entries, list)},
    "nodes_treeids": [7, 7, 7, 8, 8, 8],
    "target_treeids": [7, 7, 8, 8],
    "n_targets": 1,
}
# Node 0 has the children 1 and 2, node 1 the children 3 and 4; 2, 3 and 4 are leaves.
DEEP = {
    "nodes_treeids": [7] * 5,
    "nodes_nodeids": [0, 1, 2, 3, 4],
    "nodes_featureids": [0, 1, 0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 3, 0, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0],
    "nodes_values": [2.0, 1.0, 0.0, 0.0, 0.0],
    "target_treeids": [7] * 3,
    "target_nodeids": [2, 3, 4],
    "target_ids": [0] * 3,
    "target_weights": [1.0, 2.0, 3.0],
    "n_targets": 1,
}
CLS = {
    **{name: entries for name, entries in REG.items() if name.startswith("nodes")},
    "class_treeids": [7, 7, 7],
    "class_nodeids": [1, 2, 2],
    "class_ids": [0, 1, 2],
    "class_weights": [1.0, 2.0, 3.0],
    "classlabels_int64s": [5, 6, 9],
}
ONE_SCORE = {**CLS, "class_ids": [0, 0, 0], "class_weights": [1.0, -2.0, 0.5], "classlabels_int64s": [5, 6]}
ONE_MEANING = (
    "one score of two classes must mean the same everywhere, but with post_transform {} negative the second class is "
    "that above {} by onnx's reference, which is followed here, and above {} by onnxruntime"
)
MEANT = "if the latter is meant, as exporters of scikit-learn do, compute the class of a regressor's score"
TWO_CLASSES = [value("y", ["N"], INT64), value("z", ["N", 2])]
CLASS_OUTPUTS = [value("y", ["N"], INT64), value("z", ["N", 3])]


TWINS = [
    twin(
        "missing lists", VALUES, "TreeEnsembleRegressor", REG,
        {"nodes_modes": None, "target_ids": None, "nodes_values": None},
        [
            ("attribute 'nodes_modes' must have entries, but it is missing", "give 'nodes_modes'"),
            ("attribute 'target_ids' must have entries, but it is missing", "give 'target_ids'"),
            (
                "exactly one of 'nodes_values', 'nodes_values_as_tensor' must have entries, not none",
                "give them in one of them",
            ),
        ],
    ),
    twin(
        "missing lists v1", VALUES, "TreeEnsembleRegressor", REG,
        {"nodes_values": None},
        [
            ("attribute 'nodes_values' must have entries, but it is missing", "give 'nodes_values'"),
        ],
        version=1,
    ),
    twin(
        "empty list", VALUES, "TreeEnsembleRegressor", REG,
        {"nodes_modes": []},
        [
            ("attribute 'nodes_modes' must have entries, but it is empty", "give 'nodes_modes'"),
        ],
    ),
    twin(
        "both", VALUES, "TreeEnsembleRegressor", REG,
        {"nodes_values_as_tensor": vector([2.0, 0.0, 0.0])},
        [
            (
                "exactly one of 'nodes_values', 'nodes_values_as_tensor' must have entries, not both",
                "remove all but one of them",
            ),
        ],
    ),
    twin(
        "both base", VALUES, "TreeEnsembleRegressor", {**REG, "base_values": [1.0]},
        {"base_values_as_tensor": vector([2.0])},
        [
            (
                "exactly one of 'base_values', 'base_values_as_tensor' must have entries, not both",
                "remove all but one of them",
            ),
        ],
    ),
    twin(
        "float tensor", VALUES, "TreeEnsembleRegressor",
        {**REG, "nodes_values": None, "nodes_values_as_tensor": vector([2.0, 0, 0])},
        {"nodes_values_as_tensor": vector([2.0, 0.0, 0.0], FLOAT)},
        [
            (
                "'nodes_values_as_tensor' must be of type float64, not float32",
                "write the values to 'nodes_values'", "warning",
            ),
        ],
    ),
    twin(
        "int tensor", VALUES, "TreeEnsembleRegressor",
        {**REG, "nodes_values": None, "nodes_values_as_tensor": vector([2.0, 0, 0])},
        {"nodes_values_as_tensor": vector([2, 0, 0], INT64)},
        [
            ("'nodes_values_as_tensor' must be of type float64, not int64", CORRECT),
        ],
    ),
    twin(
        "2-d tensor", VALUES, "TreeEnsembleRegressor",
        {**REG, "target_weights": None, "target_weights_as_tensor": vector([2.0, 0])},
        {"target_weights_as_tensor": vector([2.0, 0.0], DOUBLE, [1, 2])},
        [
            ("'target_weights_as_tensor' must have one axis, not 2", CORRECT),
        ],
    ),
    twin(
        "transform", VALUES, "TreeEnsembleRegressor", REG,
        {"post_transform": "SIGMOID"},
        [
            ("'post_transform' must be one of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT, not 'SIGMOID'", CORRECT),
        ],
    ),
    twin(
        "aggregate", VALUES, "TreeEnsembleRegressor", {**REG, "aggregate_function": "MAX"},
        {"aggregate_function": "MEAN"},
        [
            ("'aggregate_function' must be one of AVERAGE, SUM, MIN, MAX, not 'MEAN'", CORRECT),
        ],
    ),
    twin(
        "lengths", LENGTHS, "TreeEnsembleRegressor", REG,
        {"nodes_truenodeids": [1, 0], "nodes_missing_value_tracks_true": [1]},
        [
            (
                "the lists of nodes must be equally long, but 'nodes_treeids' has 3 entries and 'nodes_truenodeids' "
                "2, 'nodes_missing_value_tracks_true' 1",
                LISTS,
            ),
        ],
    ),
    twin(
        "tensor length", LENGTHS, "TreeEnsembleRegressor",
        {**REG, "nodes_values": None, "nodes_values_as_tensor": vector([2.0, 0, 0])},
        {"nodes_values_as_tensor": vector([2.0, 0])},
        [
            (
                "the lists of nodes must be equally long, but 'nodes_treeids' has 3 entries and "
                "'nodes_values_as_tensor' 2",
                LISTS,
            ),
        ],
    ),
    twin(
        "hitrates", LENGTHS, "TreeEnsembleRegressor", {**REG, "nodes_hitrates": [1.0, 1.0, 1.0]},
        {"nodes_hitrates": [1.0, 1.0]},
        [
            (
                "'nodes_hitrates' must have an entry for each of the 3 nodes, not 2",
                "leave it out: no result depends on it", "warning",
            ),
        ],
    ),
    twin(
        "weights", LENGTHS, "TreeEnsembleRegressor", REG,
        {"target_weights": [1.0, 2.0, 3.0]},
        [
            (
                "the lists of leaf weights must be equally long, but 'target_treeids' has 2 entries and "
                "'target_weights' 3",
                LISTS,
            ),
        ],
    ),
    twin(
        "base", LENGTHS, "TreeEnsembleRegressor", {**REG, "base_values": [1.0]},
        {"base_values": [1.0, 2.0, 3.0]},
        [
            ("'base_values' must have 0 or 1 entries (1 target), not 3", LISTS),
        ],
    ),
    twin(
        "one base", LENGTHS, "TreeEnsembleRegressor", {**REG, "n_targets": 2, "base_values": [1.0, 1.0]},
        {"base_values": [1.0]},
        [
            (
                "'base_values' must have 0 or 2 entries (2 targets), not 1",
                "give a base value for each target", "warning",
            ),
        ],
    ),
    twin(
        "mode", TREES, "TreeEnsembleRegressor", REG,
        {"nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_MEMBER"]},
        [
            (
                "the mode of a node must be one of BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, "
                "BRANCH_NEQ, LEAF, not 'BRANCH_MEMBER' at node 2 of tree 7",
                "choose one of these modes",
            ),
        ],
    ),
    twin(
        "feature", TREES, "TreeEnsembleRegressor", {**REG, "nodes_featureids": [0, -2, -2]},
        {"nodes_featureids": [-1, -2, -2]},
        [
            ("the feature of a node must be at least 0, not -1 at node 0 of tree 7", TREES_AGAIN),
        ],
    ),
    twin(
        "missing flag", TREES, "TreeEnsembleRegressor", {**REG, "nodes_missing_value_tracks_true": [1, 5, 0]},
        {"nodes_missing_value_tracks_true": [2, 5, 0]},
        [
            ("'nodes_missing_value_tracks_true' must be 0 or 1, not 2 at node 0 of tree 7", TREES_AGAIN),
        ],
    ),
    twin(
        "id twice", TREES, "TreeEnsembleRegressor", REG,
        {"nodes_nodeids": [0, 1, 1], "target_nodeids": [1, 1], "nodes_falsenodeids": [1, 0, 0]},
        [
            (
                "node ids must be unique in a tree, but a node before has the id of node 1 of tree 7 too",
                "number the nodes of each tree from 0",
            ),
            (
                "a leaf must have a weight, but node 1 of tree 7 has none: it adds nothing",
                "give it the weight 0 (onnx's reference evaluator fails at such a leaf)", "warning",
            ),
        ],
    ),
    twin(
        "apart", TREES, "TreeEnsembleRegressor", TWO,
        {
            "nodes_treeids": [7, 8, 7, 7, 8, 8],
            "nodes_nodeids": [0, 0, 1, 2, 1, 2],
            "nodes_modes": ["BRANCH_LEQ"] * 2 + ["LEAF"] * 4,
            "nodes_truenodeids": [1, 1, 0, 0, 0, 0],
            "nodes_falsenodeids": [2, 2, 0, 0, 0, 0],
        },
        [
            (
                "the nodes of a tree must be listed together, but node 1 of tree 7 comes after nodes of other trees (1 "
                "more tree too): onnxruntime takes it for the first of a further tree",
                "sort the nodes by their trees", "warning",
            ),
        ],
    ),
    twin(
        "numbers", TREES, "TreeEnsembleRegressor", REG,
        {"nodes_nodeids": [0, 1, 9], "nodes_falsenodeids": [9, 0, 0], "target_nodeids": [1, 9]},
        [
            (
                "the node ids of a tree of 3 nodes must be 0 to 2, but there is node 9 of tree 7",
                "number the nodes of each tree from 0", "warning",
            ),
        ],
    ),
    twin(
        "child", TREES, "TreeEnsembleRegressor", REG,
        {"nodes_truenodeids": [8, 0, 0], "nodes_falsenodeids": [-1, 0, 0]},
        [
            ("'nodes_truenodeids' must be the id of a node of the same tree, not 8 at node 0 of tree 7", TREES_AGAIN),
            ("'nodes_falsenodeids' must be the id of a node of the same tree, not -1 at node 0 of tree 7", TREES_AGAIN),
        ],
    ),
    twin(
        "cycle", TREES, "TreeEnsembleRegressor", DEEP,
        {"nodes_falsenodeids": [2, 0, 0, 0, 0]},
        [
            (
                "a tree must have no cycle, but nodes 0 -> 1 -> 0 of tree 7 are one",
                "correct the children of these nodes",
            ),
        ],
    ),
    twin(
        "own child", TREES, "TreeEnsembleRegressor", DEEP,
        {"nodes_truenodeids": [1, 1, 0, 0, 0]},
        [
            (
                "a tree must have no cycle, but node 1 of tree 7 is its own child",
                "correct the children of these nodes",
            ),
            (
                "a tree must have one root, but nodes 0, 3 of tree 7 are not children of any node",
                "remove the nodes that the first one does not lead to",
            ),
            (
                "a node must be the child of one node, but node 1 of tree 7 is that of 2",
                "copy the nodes below for each of them (evaluators take them as they are)", "warning",
            ),
        ],
    ),
    twin(
        "roots", TREES, "TreeEnsembleRegressor", DEEP,
        {"nodes_falsenodeids": [2, 3, 0, 0, 0]},
        [
            (
                "a tree must have one root, but nodes 0, 4 of tree 7 are not children of any node",
                "remove the nodes that the first one does not lead to",
            ),
        ],
    ),
    twin(
        "late root", TREES, "TreeEnsembleRegressor", REG,
        {
            "nodes_nodeids": [1, 2, 0],
            "nodes_modes": ["LEAF", "LEAF", "BRANCH_LEQ"],
            "nodes_truenodeids": [0, 0, 1],
            "nodes_falsenodeids": [0, 0, 2],
        },
        [
            (
                "the root of a tree must be its first node, but node 1 of tree 7 is listed first and the root is "
                "node 0",
                "write the root before the other nodes of its tree: evaluators begin at the first",
            ),
        ],
    ),
    twin(
        "two parents", TREES, "TreeEnsembleRegressor", DEEP,
        {"nodes_falsenodeids": [3, 4, 0, 0, 0]},
        [
            (
                "a tree must have one root, but nodes 0, 2 of tree 7 are not children of any node",
                "remove the nodes that the first one does not lead to",
            ),
            (
                "a node must be the child of one node, but node 3 of tree 7 is that of 2",
                "copy the nodes below for each of them (evaluators take them as they are)", "warning",
            ),
        ],
    ),
    twin(
        "shared", TREES, "TreeEnsembleRegressor", {**DEEP},
        {
            "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "LEAF", "LEAF"],
            "nodes_truenodeids": [1, 3, 3, 0, 0],
            "nodes_falsenodeids": [2, 4, 4, 0, 0],
            "target_nodeids": [3, 3, 4],
        },
        [
            (
                "a node must be the child of one node, but node 3 of tree 7 is that of 2",
                "copy the nodes below for each of them (evaluators take them as they are)", "warning",
            ),
            (
                "a node must be the child of one node, but node 4 of tree 7 is that of 2",
                "copy the nodes below for each of them (evaluators take them as they are)", "warning",
            ),
        ],
    ),
    twin(
        "weight of none", TREES, "TreeEnsembleRegressor", REG,
        {"target_treeids": [7, 9], "target_nodeids": [4, 2]},
        [
            (
                "a leaf weight must be that of a node, but weight 0 is that of node 4 of tree 7, which does not "
                "exist",
                TREES_AGAIN,
            ),
            (
                "a leaf weight must be that of a node, but weight 1 is that of node 2 of tree 9, which does not "
                "exist",
                TREES_AGAIN,
            ),
            (
                "a leaf must have a weight, but node 1 of tree 7 has none: it adds nothing",
                "give it the weight 0 (onnx's reference evaluator fails at such a leaf)", "warning",
            ),
            (
                "a leaf must have a weight, but node 2 of tree 7 has none: it adds nothing",
                "give it the weight 0 (onnx's reference evaluator fails at such a leaf)", "warning",
            ),
        ],
    ),
    twin(
        "weight of branch", TREES, "TreeEnsembleRegressor", REG,
        {"target_nodeids": [0, 2]},
        [
            (
                "a leaf weight must be that of a leaf, but weight 0 is that of node 0 of tree 7, which is none",
                "remove the weight: it is never added", "warning",
            ),
            (
                "a leaf must have a weight, but node 1 of tree 7 has none: it adds nothing",
                "give it the weight 0 (onnx's reference evaluator fails at such a leaf)", "warning",
            ),
        ],
    ),
    twin(
        "targets", CLASSES, "TreeEnsembleRegressor", REG,
        {"target_ids": [0, 1]},
        [
            ("'target_ids' must be 0 (1 target), not 1 at entry 1, at node 2 of tree 7", CORRECT),
        ],
    ),
    twin(
        "n_targets", CLASSES, "TreeEnsembleRegressor", REG,
        {"n_targets": None},
        [
            ("'n_targets' must be at least 1, but it is missing", "give the number of targets"),
        ],
    ),
    twin(
        "n_targets 0", CLASSES, "TreeEnsembleRegressor", REG,
        {"n_targets": 0},
        [
            ("'n_targets' must be at least 1, but it is 0", "give the number of targets"),
        ],
    ),
    twin(
        "classes", CLASSES, "TreeEnsembleClassifier", CLS,
        {"class_ids": [0, -1, 3]},
        [
            ("'class_ids' must be 0 to 2 (3 classes), not -1 at entry 1, at node 2 of tree 7", CORRECT),
            ("'class_ids' must be 0 to 2 (3 classes), not 3 at entry 2, at node 2 of tree 7", CORRECT),
        ],
        outputs=CLASS_OUTPUTS,
    ),
    twin(
        "one score, negative", CLASSES, "TreeEnsembleClassifier", {**ONE_SCORE, "post_transform": "LOGISTIC"},
        {"post_transform": "NONE"}, [(ONE_MEANING.format("NONE where a weight is", "1/2", "0"), MEANT, "warning")],
        outputs=TWO_CLASSES,
    ),
    twin(
        "one score, positive", CLASSES, "TreeEnsembleClassifier", {**ONE_SCORE, "post_transform": "LOGISTIC"},
        {"class_weights": [0.5, 0.0, 0.25]},
        [(ONE_MEANING.format("LOGISTIC where no weight is", "0", "1/2"), MEANT, "warning")], outputs=TWO_CLASSES,
    ),
    twin(
        "labels", VALUES, "TreeEnsembleClassifier", CLS,
        {"classlabels_strings": ["a", "b", "c"]},
        [
            (
                "exactly one of 'classlabels_int64s', 'classlabels_strings' must have entries, not both",
                "remove all but one of them",
            ),
        ],
        outputs=CLASS_OUTPUTS,
    ),
    twin(
        "no labels", VALUES, "TreeEnsembleClassifier", CLS,
        {"classlabels_int64s": None},
        [
            (
                "exactly one of 'classlabels_int64s', 'classlabels_strings' must have entries, not none",
                "give the labels in one of them",
            ),
        ],
        outputs=CLASS_OUTPUTS,
    ),
    twin(
        "labels twice", CLASSES, "TreeEnsembleClassifier", CLS,
        {"classlabels_int64s": [5, 6, 5]},
        [
            (
                "the entries of 'classlabels_int64s' must be distinct, but 5 is there twice: results do not tell "
                "these classes apart",
                "remove all but one of them", "warning",
            ),
        ],
        outputs=CLASS_OUTPUTS,
    ),
    twin(
        "features", INPUTS, "TreeEnsembleRegressor", REG,
        {"nodes_featureids": [2, 9, 9]},
        [
            ("the feature of a node must be 0 to 1 (input 'x' has 2), not 2 at node 0 of tree 7", INPUT),
        ],
    ),
]


@pytest.mark.parametrize("case", TWINS, ids=str)
def test_twins(case: Twin, tmp_path: Path) -> None:
    check(case, tmp_path)
