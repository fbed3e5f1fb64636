"""Small models of ai.onnx.ml, which the fuzzer damages beside those of fuzz_seeds.py."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from tests.onnxspec.build import model, node, value

ML = "ai.onnx.ml"
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def pipeline() -> onnx.ModelProto:
    """Features imputed, scaled and joined, and three models of them; version 3."""
    trees = {
        "nodes_treeids": [0, 0, 0, 1], "nodes_nodeids": [0, 1, 2, 0], "nodes_featureids": [1, 0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0, 0],
        "nodes_falsenodeids": [2, 0, 0, 0], "nodes_values": [0.5, 0.0, 0.0, 0.0],
        "class_treeids": [0, 0, 1], "class_nodeids": [1, 2, 0], "class_ids": [0, 1, 2],
        "class_weights": [1.0, 2.0, 3.0], "classlabels_strings": ["a", "b", "c"], "post_transform": "SOFTMAX",
    }  # fmt: skip
    vectors = {
        "classlabels_ints": [0, 1], "vectors_per_class": [1, 1], "support_vectors": [0.0] * 6,
        "coefficients": [1.0, -1.0], "rho": [0.5], "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0],
    }  # fmt: skip
    nodes = [
        node("Imputer", ["x"], ["i"], domain=ML, imputed_value_floats=[1.0, 2.0], replaced_value_float=float("nan")),
        node("Scaler", ["i"], ["s"], domain=ML, offset=[1.0], scale=[0.5]),
        node("FeatureVectorizer", ["s", "u"], ["f"], domain=ML, inputdimensions=[2, 1]),
        node("TreeEnsembleClassifier", ["f"], ["label", "scores"], domain=ML, **trees),
        node("ZipMap", ["scores"], ["map"], domain=ML, classlabels_strings=["a", "b", "c"]),
        node("SVMClassifier", ["f"], ["side", "margin"], domain=ML, **vectors),
        node("LinearRegressor", ["f"], ["y"], domain=ML, coefficients=[1.0] * 6, targets=2, intercepts=[0.0, 1.0]),
    ]
    kind = helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(FLOAT, []))
    outputs = [
        value("label", ["N"], STRING), helper.make_value_info("map", helper.make_sequence_type_proto(kind)),
        value("side", ["N"], INT64), value("margin", ["N", None]), value("y", ["N", 2]),
    ]  # fmt: skip
    return model(nodes, [value("x", ["N", 2]), value("u", ["N", 1])], outputs, opsets={"": 21, ML: 3})


def ensemble() -> onnx.ModelProto:
    """Labels encoded, and an ensemble with sets of members; version 5."""
    trees = {
        "nodes_featureids": [0, 1], "nodes_modes": helper.make_tensor("m", TensorProto.UINT8, [2], [0, 6]),
        "nodes_splits": helper.make_tensor("s", FLOAT, [2], [0.5, 0.0]), "nodes_truenodeids": [1, 1],
        "nodes_trueleafs": [0, 1], "nodes_falsenodeids": [0, 2], "nodes_falseleafs": [1, 1], "tree_roots": [0],
        "leaf_targetids": [0, 1, 0], "leaf_weights": helper.make_tensor("w", FLOAT, [3], [1.0, 2.0, 3.0]),
        "n_targets": 2, "aggregate_function": 1,
        "membership_values": helper.make_tensor("v", FLOAT, [3], [1.0, 2.0, float("nan")]),
    }  # fmt: skip
    nodes = [
        node("TreeEnsemble", ["x"], ["y"], domain=ML, **trees),
        node("LabelEncoder", ["t"], ["n"], domain=ML, keys_strings=["a", "b"], values_int64s=[3, 4], default_int64=-1),
        node("OneHotEncoder", ["n"], ["h"], domain=ML, cats_int64s=[3, 4]),
        node("ArrayFeatureExtractor", ["y", "k"], ["e"], domain=ML),
    ]
    return model(
        nodes,
        [value("x", ["N", 2]), value("t", ["N"], STRING)],
        [value("h", ["N", 2]), value("e", ["N", 1])],
        {"k": helper.make_tensor("k", INT64, [1], [1])},
        opsets={"": 21, ML: 5},
    )
