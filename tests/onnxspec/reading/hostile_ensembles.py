"""Ensembles of trees made to hurt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

from tests.onnxspec.build import model, node, value
from tests.onnxspec.reading import wire

ML = "ai.onnx.ml"
INTS, STRINGS, FLOATS = AttributeProto.INTS, AttributeProto.STRINGS, AttributeProto.FLOATS


def _ensemble(op_type: str, lists: Mapping[str, Any], version: int = 3) -> onnx.ModelProto:
    """A model of one ensemble, from x [N, 2] to y [N, 1]."""
    made = node(op_type, ["x"], ["y"], domain=ML, n_targets=1)
    for name, entries in lists.items():
        attribute = made.attribute.add(name=name)
        if isinstance(entries, TensorProto):
            attribute.type = AttributeProto.TENSOR
            attribute.t.CopyFrom(entries)
        elif name == "nodes_modes":
            attribute.type = STRINGS
            attribute.strings.extend(entries)
        elif name.endswith(("values", "weights")):
            attribute.type = FLOATS
            attribute.floats.extend(entries)
        else:
            attribute.type = INTS
            attribute.ints.extend(np.asarray(entries).tolist())
    return model([made], [value("x", ["N", 2])], [value("y", ["N", 1])], opsets={"": 21, ML: version})


def _regressor(trees: Sequence[int], ids: Any, true: Any, false: Any, leaves: int = 0) -> onnx.ModelProto:
    """A regressor whose nodes are all branches but for the last ``leaves``, each with a weight too."""
    count = len(ids)
    lists = {
        "nodes_treeids": trees, "nodes_nodeids": ids, "nodes_featureids": [0] * count,
        "nodes_modes": [b"BRANCH_LEQ"] * (count - leaves) + [b"LEAF"] * leaves,
        "nodes_truenodeids": true, "nodes_falsenodeids": false,
        "nodes_values": [0.0] * count,
        "target_treeids": trees, "target_nodeids": ids, "target_ids": [0] * count, "target_weights": [1.0] * count,
    }  # fmt: skip
    return _ensemble("TreeEnsembleRegressor", lists)


def _vectors(count: int) -> dict[str, TensorProto]:
    """The tensors of an ensemble of version 5 of ``count`` nodes and one leaf, all zeros."""
    sizes = (
        ("nodes_modes", TensorProto.UINT8, count, 1), ("nodes_splits", TensorProto.FLOAT, count, 4),
        ("leaf_weights", TensorProto.FLOAT, 1, 4),
    )  # fmt: skip
    return {
        name: TensorProto(data_type=kind, dims=[size], raw_data=bytes(size * width))
        for name, kind, size, width in sizes
    }


def tree_in_a_cycle() -> onnx.ModelProto:
    """300,000 nodes, each the child of the one before, the first that of the last."""
    count = 300_000
    after = (np.arange(count) + 1) % count
    return _regressor([0] * count, np.arange(count), after, after)


def trees_in_cycles() -> onnx.ModelProto:
    """100,000 trees, each a node that is its own child."""
    count = 100_000
    return _regressor(range(count), [0] * count, [0] * count, [0] * count)


def scattered_nodes() -> onnx.ModelProto:
    """200,000 nodes with random ids, of random trees, whose children do not exist."""
    rng = np.random.default_rng(1)
    trees, ids, true, false = rng.integers(-(2**62), 2**62, (4, 200_000))
    return _regressor(trees.tolist(), ids, true, false)


def table_in_a_cycle() -> onnx.ModelProto:
    """700,000 nodes of version 5: two cycles through half of them each, that both roots lead to."""
    count = 700_000
    after = (np.arange(count) + 2) % count
    none = np.zeros(count, np.int64)
    lists = {
        "nodes_featureids": none, "nodes_truenodeids": after, "nodes_falsenodeids": after[::-1].copy(),
        "nodes_trueleafs": none, "nodes_falseleafs": none, "tree_roots": [0, 1], "leaf_targetids": [0],
    }  # fmt: skip
    return _ensemble("TreeEnsemble", {**lists, **_vectors(count)}, version=5)


def ladder() -> onnx.ModelProto:
    """200,000 nodes, each with the next two as its children: in a tree of their own, 2**138,000 of them."""
    count = 200_000
    after = np.arange(count) + 1
    return _regressor([0] * count, np.arange(count), np.minimum(after, count - 1), np.minimum(after + 1, count - 1), 2)


def one_tree_many_times() -> onnx.ModelProto:
    """100,000 roots that are all the one node of a tree of 1,000 levels."""
    count = 1000
    after = np.minimum(np.arange(count) + 1, count - 1)
    last, none = (np.arange(count) == count - 1).astype(np.int64), np.zeros(count, np.int64)
    lists = {
        "nodes_featureids": none, "nodes_truenodeids": after * (1 - last), "nodes_falsenodeids": none,
        "nodes_trueleafs": last, "nodes_falseleafs": none + 1, "tree_roots": [0] * 100_000, "leaf_targetids": [0],
    }  # fmt: skip
    return _ensemble("TreeEnsemble", {**lists, **_vectors(count)}, version=5)


def many_ensembles() -> onnx.ModelProto:
    """5,000 ensembles of one node each, that is its own child."""
    one = _regressor([0], [0], [0], [0]).graph.node[0]
    nodes = []
    for number in range(5000):
        made = onnx.NodeProto()
        made.CopyFrom(one)
        made.output[0] = f"y{number}"
        nodes.append(made)
    return model(nodes, [value("x", ["N", 2])], [value("y0", ["N", 1])], opsets={"": 21, ML: 3})


def no_lists() -> onnx.ModelProto:
    """Every ensemble and model of ai.onnx.ml without any attribute."""
    schemas = {s.name: s for s in onnx.defs.get_all_schemas_with_history() if s.domain == ML}
    nodes = [
        node(name, ["x"] * schema.min_input, [f"{name}_{k}" for k in range(schema.min_output)], domain=ML)
        for name, schema in sorted(schemas.items())
    ]
    outputs = [value(name, None) for made in nodes for name in made.output]
    return model(nodes, [value("x", ["N", 2])], outputs, opsets={"": 21, ML: 5})


def ten_million_nodes() -> bytes:
    """A regressor of 10,000,000 nodes, without the lists of its children."""
    count = 10_000_000
    entries = {
        "nodes_treeids": (INTS, b"\x40\x00"), "nodes_nodeids": (INTS, b"\x40\x00"),
        "nodes_modes": (STRINGS, b"\x4a\x04LEAF"),
    }  # fmt: skip
    attributes = b""
    for name, (kind, entry) in entries.items():
        content = wire.field(1, name.encode()) + entry * count + wire.field(20, kind)
        attributes += wire.field(5, content)
    made = wire.field(1, b"x") + wire.field(2, b"y") + wire.field(4, b"TreeEnsembleRegressor") + attributes
    graph = wire.field(1, made + wire.field(7, ML.encode())) + wire.field(2, b"g")
    return wire.field(1, 10) + wire.field(7, graph) + wire.field(8, wire.field(1, ML.encode()) + wire.field(2, 3))


MODELS = (
    tree_in_a_cycle, trees_in_cycles, scattered_nodes, table_in_a_cycle, ladder, one_tree_many_times, many_ensembles,
    no_lists,
)  # fmt: skip
