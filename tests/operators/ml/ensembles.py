"""Random ensembles of trees as ONNX models, and their results in exact rationals."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isnan
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
ONNX_TYPES = {
    "float16": TensorProto.FLOAT16, "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64, "int32": TensorProto.INT32, "uint8": TensorProto.UINT8,
}


@dataclass
class Leaf:
    """What a leaf adds: (target, value)."""

    adds: list[tuple[int, float]]


@dataclass
class Branch:
    mode: str
    feature: int
    value: float
    tracks: bool
    true: Branch | Leaf
    false: Branch | Leaf
    members: list[float] = field(default_factory=list)


Tree = Branch | Leaf


def grown(rng: random.Random, depth: int, values: Sequence[Sequence[float]], leaf: Any, modes: Sequence[str]) -> Tree:
    """Grow a tree with thresholds from ``values`` of each feature; ``leaf()`` makes leaves."""
    if depth == 0 or rng.random() < 0.15:
        return Leaf(leaf())
    feature = rng.randrange(len(values))
    sides = [grown(rng, depth - 1, values, leaf, modes) for _ in range(2)]
    members = rng.sample(list(values[feature]), min(3, len(values[feature])))
    value = rng.choice(values[feature])
    return Branch(rng.choice(modes), feature, value, rng.random() < 0.5, *sides, members)


def reached(tree: Tree, row: Sequence[Any]) -> Leaf:
    """Walk a tree as the specification says."""
    while isinstance(tree, Branch):
        x = row[tree.feature]
        if isinstance(x, float) and isnan(x):
            holds = tree.tracks
        else:
            holds = {
                "LEQ": x <= tree.value, "LT": x < tree.value, "GTE": x >= tree.value, "GT": x > tree.value,
                "EQ": x == tree.value, "NEQ": x != tree.value, "MEMBER": x in tree.members,
            }[tree.mode]
        tree = tree.true if holds else tree.false
    return tree


def totals(
    trees: Sequence[Tree], row: Sequence[Any], targets: int, aggregate: str, base: Sequence[float]
) -> list[Fraction]:
    """Return the exact result of a row."""
    adds: list[list[Fraction]] = [[] for _ in range(targets)]
    for tree in trees:
        for target, value in reached(tree, row).adds:
            adds[target].append(Fraction(value))
    join = {"SUM": sum, "AVERAGE": lambda v: sum(v) / Fraction(len(trees)), "MIN": min, "MAX": max}[aggregate]
    return [Fraction(join(v)) + Fraction(base[k] if base else 0) for k, v in enumerate(adds)]


def named_attributes(trees: Sequence[Tree], kind: str) -> dict[str, Any]:
    """Write trees as attributes of the operators up to version 3."""
    names = ("nodeids", "treeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    nodes: dict[str, list[Any]] = {f"nodes_{name}": [] for name in (*names, "missing_value_tracks_true")}
    leaves: dict[str, list[Any]] = {f"{kind}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}

    def add(tree: Tree, number: int) -> int:
        node = sum(1 for t in nodes["nodes_treeids"] if t == number)
        at = len(nodes["nodes_nodeids"])
        inner = isinstance(tree, Branch)
        row = (node, number, tree.feature, f"BRANCH_{tree.mode}", tree.value, 0, 0, int(tree.tracks)) if inner else (
            node, number, 0, "LEAF", 0.0, 0, 0, 0)
        for column, value in zip(nodes.values(), row, strict=True):
            column.append(value)
        if isinstance(tree, Branch):
            nodes["nodes_truenodeids"][at] = add(tree.true, number)
            nodes["nodes_falsenodeids"][at] = add(tree.false, number)
        else:
            for target, value in tree.adds:
                for column, each in zip(leaves.values(), (number, node, target, value), strict=True):
                    column.append(each)
        return node

    for number, tree in enumerate(trees):
        add(tree, number)
    return nodes | leaves


def placed_attributes(trees: Sequence[Tree], dtype: str) -> dict[str, Any]:
    """Write trees, whose leaves add to one target each, as attributes of version 5."""
    rows: list[list[Any]] = []
    leaves: list[tuple[int, float]] = []
    members: list[list[float]] = []
    roots = []

    def add(tree: Tree) -> tuple[int, int]:
        if isinstance(tree, Leaf):
            leaves.append(tree.adds[0])
            return len(leaves) - 1, 1
        mode = (*MODES, "MEMBER").index(tree.mode)
        at = len(rows)
        rows.append([tree.feature, mode, tree.value, int(tree.tracks)])
        members.append(tree.members if tree.mode == "MEMBER" else [])
        rows[at] += [*add(tree.true), *add(tree.false)]
        return at, 0

    for tree in trees:
        if isinstance(tree, Leaf):
            leaf, _ = add(tree)
            roots.append(len(rows))
            rows.append([0, 0, 0.0, 0, leaf, 1, leaf, 1])
            members.append([])
        else:
            roots.append(add(tree)[0])
    feature, mode, value, tracks, true, true_leaf, false, false_leaf = zip(*rows, strict=True)
    kind = ONNX_TYPES[dtype]
    sets = [number for row, each in zip(rows, members, strict=True) if row[1] == 6 for number in (*each, float("nan"))]

    def tensor(name: str, values: Sequence[Any], of: int) -> onnx.TensorProto:
        array = np.array(values, helper.tensor_dtype_to_np_dtype(of))
        return helper.make_tensor(name, of, [len(values)], array.tolist())

    result = {
        "nodes_featureids": feature, "nodes_modes": tensor("modes", mode, TensorProto.UINT8),
        "nodes_splits": tensor("splits", value, kind), "nodes_missing_value_tracks_true": tracks,
        "nodes_truenodeids": true, "nodes_trueleafs": true_leaf, "nodes_falsenodeids": false,
        "nodes_falseleafs": false_leaf, "tree_roots": roots, "leaf_targetids": [target for target, _ in leaves],
        "leaf_weights": tensor("weights", [number for _, number in leaves], kind),
    }
    return result | ({"membership_values": tensor("members", sets, kind)} if sets else {})


def model_of(
    op_type: str, attributes: dict[str, Any], features: int, outputs: Sequence[tuple[str, int, Sequence[Any]]], *,
    dtype: str = "float32", version: int = 3,
) -> onnx.ModelProto:
    """Return a model of one node of ai.onnx.ml: input "x" [N, features], outputs (name, type, shape of a frame)."""
    node = helper.make_node(op_type, ["x"], [name for name, _, _ in outputs], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph(
        [node], "trees", [helper.make_tensor_value_info("x", ONNX_TYPES[dtype], ["N", features])],
        [helper.make_tensor_value_info(name, kind, ["N", *shape]) for name, kind, shape in outputs],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
