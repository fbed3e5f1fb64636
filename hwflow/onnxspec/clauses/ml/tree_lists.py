"""The clauses of the tree ensembles whose nodes are lists: classifier and regressor, versions 1, 3 and 5."""

from __future__ import annotations

from collections.abc import Iterator

from hwflow.display import show
from hwflow.errors import Severity
from hwflow.onnxspec.clauses.ml import listed_trees
from hwflow.onnxspec.clauses.ml.class_labels import class_labels, label_count
from hwflow.onnxspec.clauses.ml.listed_nodes import FEATURES, NODE_IDS, NODES, TRACKS, node_lists, votes_prefix
from hwflow.onnxspec.clauses.ml.node_reading import (
    CLASSES,
    INPUTS,
    LENGTHS,
    VALUES,
    Check,
    Fault,
    NodeReading,
    OperatorClauses,
    below,
    counted,
    equally_long,
    first_faults,
    legal_text,
    of_length,
    one_of,
    post_transform,
    present,
)

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


def alternatives(name: str, since: int) -> tuple[str, ...]:
    """Return the attributes that may hold a list of floats: from version 3 on there is a tensor, too."""
    return (name,) if since < 3 else (name, f"{name}_as_tensor")


def of_floats(r: NodeReading, name: str) -> tuple[str, int]:
    """Return the name and length of a list of floats, in whichever attribute it is."""
    held = next((n for n in alternatives(name, r.since) if r.length(n)), name)
    return held, r.length(held)


def _given(r: NodeReading) -> Iterator[Fault]:
    """Check that the lists of nodes and of votes are there, each in one attribute."""
    votes = votes_prefix(r)
    yield from present(r, (*NODES, *(f"{votes}_{part}" for part in ("treeids", "nodeids", "ids"))))
    for name in ("nodes_values", f"{votes}_weights"):
        names = alternatives(name, r.since)
        yield from one_of(r, names) if len(names) > 1 else present(r, names)
    for name in ("nodes_hitrates", "base_values"):
        names = alternatives(name, r.since)
        if len(names) > 1 and all(map(r.length, names)):
            yield from one_of(r, names)


def _tensors(r: NodeReading) -> Iterator[Fault]:
    """Check that the tensors that stand for lists are vectors of doubles."""
    if r.since < 3:
        return
    for name in ("nodes_values", "nodes_hitrates", "base_values", f"{votes_prefix(r)}_weights"):
        tensor = r.tensor(f"{name}_as_tensor")
        if tensor is None:
            continue
        shown = show(f"{name}_as_tensor")
        if tensor.type not in ("float64", "float32"):
            yield Fault(VALUES, f"{shown} must be of type float64, not {tensor.type}")
        elif tensor.type == "float32":
            yield Fault(
                VALUES, f"{shown} must be of type float64, not float32", f"write the values to {show(name)}",
                Severity.WARNING,
            )
        if len(tensor.dims) != 1:
            yield Fault(VALUES, f"{shown} must have one axis, not {len(tensor.dims)}")


def _lengths(r: NodeReading) -> Iterator[Fault]:
    """Check that parallel lists are equally long; those that may be left out are as long where they are there."""
    values, _ = of_floats(r, "nodes_values")
    yield from equally_long(r, (*NODES, values, TRACKS), "the lists of nodes")
    hitrates, length = of_floats(r, "nodes_hitrates")
    if length and r.length(NODE_IDS) and length != r.length(NODE_IDS):
        yield Fault(
            LENGTHS, f"{show(hitrates)} must have an entry for each of the {r.length(NODE_IDS)} nodes, not {length}",
            "leave it out: no result depends on it", Severity.WARNING,
        )


def _vote_lengths(r: NodeReading) -> Iterator[Fault]:
    votes = votes_prefix(r)
    weights, _ = of_floats(r, f"{votes}_weights")
    yield from equally_long(
        r, (f"{votes}_treeids", f"{votes}_nodeids", f"{votes}_ids", weights), "the lists of leaf weights"
    )


def _results(r: NodeReading) -> Iterator[Fault]:
    """Check that weights are those of classes or targets that exist, and base values as many as these."""
    votes = votes_prefix(r)
    if votes == "class":
        count, what = label_count(r, LABELS), "class"
    else:
        stated = r.integer("n_targets")
        if stated is None or stated < 1:
            found = "missing" if stated is None else str(stated)
            yield Fault(CLASSES, f"'n_targets' must be at least 1, but it is {found}", "give the number of targets")
            return
        count, what = stated, "target"
    counts = counted(count, what)
    ids = r.ints(f"{votes}_ids")
    tree_ids, node_ids = r.ints(f"{votes}_treeids"), r.ints(f"{votes}_nodeids")

    def text(entry: int) -> str:
        place = ""
        if len(tree_ids) == len(node_ids) == len(ids):
            place = f", at node {node_ids[entry]} of tree {tree_ids[entry]}"
        name = show(f"{votes}_ids")
        return f"{name} must be {below(count)} ({counts}), not {ids[entry]} at entry {entry}{place}"

    yield from first_faults(CLASSES, (ids < 0) | (ids >= count), text)
    base, length = of_floats(r, "base_values")
    if length == 1 and votes == "class" and count == 2 and len(ids) and (ids == ids[0]).all():
        return  # the weights of two classes may be those of one
    for fault in of_length(base, length, (0, count), counts):
        if length == 1:  # exporters write one for all
            yield fault._replace(severity=Severity.WARNING, remedy=f"give a base value for each {what}")
        else:
            yield fault


def _one_score(r: NodeReading) -> Iterator[Fault]:
    """Check that one score of two classes means the same to onnx's reference and to onnxruntime; the specification is
    silent."""
    ids = r.ints("class_ids")
    if label_count(r, LABELS) != 2 or not len(ids) or (ids != ids[0]).any():
        return
    name, _ = of_floats(r, "class_weights")
    tensor = r.tensor(name) if name.endswith("_as_tensor") else None
    negative = bool(((r.floats(name) if tensor is None else tensor.elements()) < 0).any())
    transform = r.text("post_transform", "NONE")
    share = transform in ("NONE", "PROBIT")
    if share != negative:
        return
    places = ("1/2", "0") if share else ("0", "1/2")
    why = "a weight is negative" if negative else "no weight is negative"
    yield Fault(
        CLASSES,
        f"one score of two classes must mean the same everywhere, but with post_transform {transform} where {why} the "
        f"second class is that above {places[0]} by onnx's reference, which is followed here, and above {places[1]} by "
        "onnxruntime",
        "if the latter is meant, as exporters of scikit-learn do, compute the class of a regressor's score",
        Severity.WARNING,
    )


def _known_features(r: NodeReading) -> Iterator[Fault]:
    nodes, features, count = node_lists(r), r.ints(FEATURES), r.features()
    yield from first_faults(
        INPUTS,
        nodes.branch & (features >= count),
        lambda node: f"the feature of a node must be {below(count)} ({r.input(0)} has {count}), not {features[node]} "
        f"at {nodes.place(node)}",
    )


LABELS = ("classlabels_int64s", "classlabels_strings")
aggregate = legal_text("aggregate_function", "SUM", AGGREGATES)
_COMMON: tuple[Check, ...] = (
    _given, _tensors, _lengths, _vote_lengths, post_transform, listed_trees.modes, listed_trees.feature_ids,
    listed_trees.missing_values, listed_trees.unique_ids, listed_trees.children, listed_trees.tree_shape,
    listed_trees.leaf_weights, _results,
)  # fmt: skip
CLASSIFIER = OperatorClauses((*_COMMON, class_labels(LABELS, needed=True), _one_score), (_known_features,))
REGRESSOR = OperatorClauses((*_COMMON, aggregate, listed_trees.sequential_ids), (_known_features,))
