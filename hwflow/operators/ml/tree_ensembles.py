"""Ensembles of decision trees: features become ranks among the trees' thresholds, trees compare ranks.

A float feature enters hardware as an integer in the order of the floats (:mod:`hwflow.numerics.float_keys`), so that no
quantizer is needed and every comparison is exact. Leaf values are multiples of a power of two, and so are their sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hwflow.frontend.context import Lowering, Refusal, made, reals, refuse
from hwflow.frontend.error_bounds import Bound
from hwflow.frontend.frames import axes
from hwflow.frontend.views import Functions, HostInput, Integers, Reals, View, as_array, as_reals, fractions
from hwflow.ir.graph import Value
from hwflow.ir.node_attributes import Aggregate, RequantizeAttributes, TreeEnsembleAttributes
from hwflow.numerics.float_keys import FARTHEST, KEY_BITS, first_keys, key_range
from hwflow.numerics.functions.piecewise import PassedCuts
from hwflow.numerics.requantizers.stages import StepStage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.onnxspec.clauses.ml import tree_lists, tree_tables
from hwflow.onnxspec.reference import framewise, runtime_differences, tree_walk
from hwflow.onnxspec.resolving.resolved_model import Attribute, OnnxNode
from hwflow.onnxspec.shapes.dialects import Inputs, Result, ShapeError
from hwflow.operators.ml import tree_definitions, tree_errors
from hwflow.operators.ml.absorbed import absorbed, picked
from hwflow.operators.ml.ensembles import (
    BoolArray,
    Ensemble,
    Floats,
    IntArray,
    Malformed,
    base_values,
    of_named_nodes,
    of_positions,
)
from hwflow.operators.ml.post_transforms import TRANSFORMS_ALLOWED
from hwflow.operators.ml.ranked_nodes import CutNodes, cut_nodes, limits
from hwflow.operators.ml.tree_values import MOST_BITS, Leaves, TooFine, ends, leaves_of
from hwflow.operators.ml.wide_sums import longest
from hwflow.operators.quantizers.quantizers import Quantization, graph_input, requantize
from hwflow.operators.record import ML, Operator, attributes
from hwflow.types import Interval, IntType

_AGGREGATES = {"SUM": Aggregate.SUM, "AVERAGE": Aggregate.SUM, "MIN": Aggregate.MIN, "MAX": Aggregate.MAX}


def regressor(state: Lowering, node: OnnxNode) -> View:
    """Lower TreeEnsembleRegressor."""
    name = str(node.attributes.get("aggregate_function", "SUM"))
    try:
        ensemble = of_named_nodes(node.attributes, "target")
        base = base_values(node.attributes)
    except Malformed as malformed:
        raise _malformed(node, malformed) from malformed
    return _lowered(state, node, ensemble, name, base)


def by_position(state: Lowering, node: OnnxNode) -> View:
    """Lower TreeEnsemble."""
    names = ("AVERAGE", "SUM", "MIN", "MAX")
    try:
        trees = of_positions(node.attributes)
    except Malformed as malformed:
        raise _malformed(node, malformed) from malformed
    number = node.integer("aggregate_function", 1)
    return _lowered(state, node, trees, names[number] if 0 <= number < len(names) else str(number), np.zeros(0))


def _lowered(state: Lowering, node: OnnxNode, trees: Ensemble, aggregate: str, base: Floats) -> Reals:
    targets = node.integer("n_targets", 1)
    if aggregate not in _AGGREGATES:
        known = ", ".join(_AGGREGATES)
        raise _malformed(node, Malformed(f"aggregate_function must be one of {known}, not {aggregate}"))
    if targets < 1 or ((trees.leaf_target < 0) | (trees.leaf_target >= targets)).any():
        raise _malformed(node, Malformed(f"targets of leaves must be from 0 to {targets - 1}"))
    if len(base) not in (0, 1, targets):
        raise _malformed(node, Malformed(f"base_values must have {targets} numbers, not {len(base)}"))
    if len(base) and not np.isfinite(base).all():
        raise _malformed(node, Malformed("base_values must be finite"))
    base = np.broadcast_to(base, (targets,)) if len(base) else base
    ranked = _ranked(state, node, cut_nodes(trees))
    nodes = ranked.nodes
    within = aggregate == "SUM"
    leaves = _leaves(node, trees, base if within else np.zeros(0), targets, aggregate)
    roots = np.append(nodes.roots, ~(len(leaves.start) - 2)) if within and len(base) else nodes.roots
    made_of = TreeEnsembleAttributes(
        nodes.feature, ranked.limit, ranked.missing, ranked.apart, nodes.true, nodes.false, roots,
        leaves.start, leaves.target, leaves.value, targets, _AGGREGATES[aggregate],
    )
    interval = ends(leaves, trees.leaf_tree)
    result = state.add(node, [ranked.value], made_of, bound=Bound(interval))
    state.reach[result] = max(-interval.lo, interval.hi)
    scale = leaves.unit / trees.trees if aggregate == "AVERAGE" else leaves.unit
    offset = fractions(0) if within or not len(base) else as_array(-fractions(base) / scale)
    return made(result, (targets,), fractions(scale), offset, node)


def _leaves(node: OnnxNode, trees: Ensemble, base: Floats, targets: int, aggregate: str) -> Leaves:
    """Return the leaves' values as integers; those of a minimum or maximum each for every target."""
    add = _AGGREGATES[aggregate] == Aggregate.SUM
    try:
        leaves = leaves_of(trees, base, add=add)
    except TooFine as fine:
        two = longest(trees.trees)  # of two ensembles, for features of floats
        most = two if add and fine.bits > two else MOST_BITS
        what = "sums of the leaves' values" if add else f"values of leaves under aggregate_function {aggregate}"
        raise refuse(
            node, "leaf-values", f"{what} must have at most {most} bits, not {fine.bits}: values of very different "
            "size are multiples of a very small number",
            "round the values of the leaves to multiples of a larger one, 2**-20 for example",
        ) from fine
    except ValueError as infinite:
        raise _malformed(node, Malformed(f"values of leaves must be finite, not {infinite}")) from infinite
    if not add:
        named = np.diff(leaves.start)[: len(trees.leaf_start) - 1]
        if (named < targets).any():
            raise refuse(
                node, "leaf-targets", f"each leaf must name all {targets} targets where aggregate_function is "
                f"{aggregate}, not {int(named.min())}: what targets are that no tree names is not defined",
                "give each target an ensemble of its own",
            )
    return leaves


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Features' ranks as a stream, the nodes that compare them with ``limit``, which of them hold for NaN
    (``missing``), and NaN's rank by feature, -1 where it has none of its own (``apart``)."""

    value: Value
    nodes: CutNodes
    limit: IntArray
    missing: BoolArray
    apart: IntArray


def _ranked(state: Lowering, node: OnnxNode, nodes: CutNodes) -> _Ranked:
    """Make ranks of the features, and comparisons with them of the nodes."""
    shape = state.frame_shape(node.inputs[0])
    if len(state.model.values[node.inputs[0]].shape) != 2:
        raise refuse(
            node, "feature-axis", f"the input must be [frames, features], not have "
            f"{len(state.model.values[node.inputs[0]].shape)} axes", "reshape it",
        )
    features = shape[0]
    if ((nodes.feature < 0) | (nodes.feature >= features)).any():
        most = int(nodes.feature.max())
        raise _malformed(node, Malformed(f"features must be from 0 to {features - 1}, those of the input, not {most}"))
    view = state.view(node.inputs[0])
    if isinstance(view, HostInput):
        return _of_floats(state, node, nodes, features)
    if isinstance(view, Integers):
        view = as_reals(view, node.inputs[0])
    elif not isinstance(view, Reals):
        view = reals(state, node, 0)
    return _of_reals(state, node, nodes, features, view)


def _of_floats(state: Lowering, node: OnnxNode, nodes: CutNodes, features: int) -> _Ranked:
    """Rank features that the host holds, by keys of their numbers."""
    name, nodes, features = _picked(state, node.inputs[0], nodes, features)
    found = absorbed(state, name)
    if found is not None:
        name = found.source
    dtype = state.model.values[name].dtype
    if dtype not in KEY_BITS:
        raise refuse(
            node, "feature-type", f"features must be {', '.join(KEY_BITS)} or integers of at most 32 bits, not "
            f"{dtype}", "cast them to float32",
        )
    bound, nan = np.where(np.isnan(nodes.bound), 0.0, nodes.bound), dtype.startswith("float")
    if not nan and (np.isfinite(bound) & (np.abs(bound) >= FARTHEST)).any():
        raise refuse(
            node, "feature-type", f"thresholds of int64 features must be less than 2**62, not "
            f"{bound[np.argmax(np.abs(bound))]}", "cast the features to float64",
        )
    interval = Interval(*key_range(dtype))
    nodes, cut = (nodes, first_keys(bound, nodes.strict, dtype)) if found is None else found.pulled(nodes, features)
    name, nodes, features = _picked(state, name, nodes, features)
    limit, ranks = limits(nodes, cut, features, least=interval.lo, most=interval.hi - nan, nan=nan)
    functions = []
    for rank in ranks:
        starts, values = [interval.lo, *rank.cuts.tolist()], [*range(len(rank.cuts) + 1)]
        if rank.missing >= 0:
            starts, values = [*starts, interval.hi], [*values, rank.missing]
        functions.append(StepFunction(interval.lo, interval.hi, starts[1:], values))
    keys = keyed_input(state, name, dtype)
    shared = {f: (StepStage(f),) for f in functions}
    value = state.add(node, [keys.value], RequantizeAttributes(0, tuple(shared[f] for f in functions)), origin="")
    apart = np.array([rank.missing for rank in ranks], np.int64)
    return _Ranked(value, nodes, limit, nodes.missing & (apart >= 0)[nodes.feature], apart)


def _picked(state: Lowering, name: str, nodes: CutNodes, features: int) -> tuple[str, CutNodes, int]:
    """Return what features ``name`` are picked from, and nodes that ask for its features, of that number."""
    found = picked(state, name)
    if found is None:
        return name, nodes, features
    source, places = found
    return source, replace(nodes, feature=places[nodes.feature]), state.frame_shape(source)[0]


def keyed_input(state: Lowering, name: str, dtype: str) -> Integers:
    """Return the hardware input of the keys of a tensor that the host holds, one for all its readers."""
    for port in state.inputs:
        if port.floats and port.value.origin == name:
            element = port.value.typed.element
            return Integers(port.value, port.value.typed.shape, element.min, element.max)
    interval = Interval(*key_range(dtype))
    result = graph_input(state, name, name, IntType(KEY_BITS[dtype], True), interval=interval)
    state.inputs[-1].floats = dtype
    return result


def _of_reals(state: Lowering, node: OnnxNode, nodes: CutNodes, features: int, view: Reals) -> _Ranked:
    """Rank features that integers represent: the cuts passed are one more function of each."""
    order = np.lexsort((nodes.strict, nodes.bound))
    bound, strict = nodes.bound[order], nodes.strict[order]
    new = np.append(True, (bound[1:] != bound[:-1]) | (strict[1:] != strict[:-1]))[: len(order)]
    place = np.zeros(len(order), np.int64)
    place[order] = np.cumsum(new) - 1
    distinct = list(zip(bound[new].tolist(), strict[new].tolist(), strict=True))
    infinite = np.isinf(nodes.bound)
    cut = np.where(infinite, np.where(nodes.bound < 0, -1, len(distinct)), place)
    limit, ranks = limits(nodes, cut, features, least=-1, most=len(distinct) - 1, nan=False)
    functions: Functions = np.empty(features, dtype=object)
    functions[:] = [PassedCuts(tuple((Fraction(v), s) for v, s in (distinct[k] for k in r.cuts))) for r in ranks]
    most = max((len(r.cuts) for r in ranks), default=0)
    counted = replace(view, functions=(*view.functions, functions))
    levels = Quantization(fractions(1), fractions(0), 0, most)
    value = requantize(state, node, counted, levels, origin="")
    return _Ranked(value, nodes, limit, np.zeros(len(limit), bool), np.full(features, -1))


def _malformed(node: OnnxNode, error: Malformed) -> Refusal:
    return refuse(node, "tree-ensemble", str(error), "export the model again")


def _results(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Sequence[Result]:
    """Infer a number for each target: of float, or since version 5 of the features' type."""
    (x,) = inputs
    if x is None or len(x.shape) != 2:
        raise ShapeError(f"the input must be [frames, features], not {'absent' if x is None else [*x.shape]}")
    targets = attributes.get("n_targets", 1)
    assert isinstance(targets, int), "of the schema"
    return (((x.shape[0], targets), x.dtype if "tree_roots" in attributes else "float32"),)


_LIMITS = (
    "features of float16, float32, float64, int64 without a quantizer, or any quantized ones; thresholds, leaves and "
    f"sums exact, of at most {MOST_BITS} bits; every mode, NaN, every aggregate; "
    f"{TRANSFORMS_ALLOWED}"
)
RECORDS = (
    Operator(
        tree_definitions.ENSEMBLE, domains=ML, lower=by_position, definition=tree_definitions.ensemble,
        honours=attributes(
            "aggregate_function", "tree_roots", "nodes_hitrates", "nodes_missing_value_tracks_true", "nodes_modes",
            "leaf_weights", "leaf_targetids", "nodes_falsenodeids", "n_targets", "nodes_trueleafs", "nodes_featureids",
            "nodes_splits", "nodes_falseleafs", "nodes_truenodeids", "membership_values", post_transform=(0,),
        ),
        limits=_LIMITS, becomes=("requantize", "tree_ensemble"), quantized=True, frames=axes.IMAGE, tame=True,
        framewise=framewise.always, results=_results, mended=tree_walk.ENSEMBLE, error=tree_errors.ensemble,
        clauses=tree_tables.ENSEMBLE,
        differences=(runtime_differences.NUMBERS, runtime_differences.ONE_TARGET, runtime_differences.UNEQUAL),
    ),
    Operator(
        tree_definitions.REGRESSOR, domains=ML, lower=regressor, definition=tree_definitions.regressor,
        honours=attributes(
            "aggregate_function", "base_values", "base_values_as_tensor", "n_targets", "nodes_falsenodeids",
            "nodes_featureids", "nodes_hitrates", "nodes_hitrates_as_tensor", "nodes_missing_value_tracks_true",
            "nodes_modes", "nodes_nodeids", "nodes_treeids", "nodes_truenodeids", "nodes_values",
            "nodes_values_as_tensor", "target_ids", "target_nodeids", "target_treeids", "target_weights",
            "target_weights_as_tensor", post_transform=("NONE",),
        ),
        limits=_LIMITS, becomes=("requantize", "tree_ensemble"), quantized=True, frames=axes.IMAGE, tame=True,
        framewise=framewise.always, results=_results, mended=tree_walk.REGRESSOR, error=tree_errors.regressor,
        clauses=tree_lists.REGRESSOR,
        differences=(runtime_differences.ONE_TARGET, runtime_differences.BASE, runtime_differences.UNEQUAL),
    ),
    Operator(
        "TreeEnsembleClassifier", domains=ML, definition=tree_definitions.classifier, quantized=True,
        defined=f"{TRANSFORMS_ALLOWED}; labels that are strings are the host's",
        clauses=tree_lists.CLASSIFIER,
        differences=(runtime_differences.TWO_CLASSES, runtime_differences.UNNAMED, runtime_differences.UNEQUAL),
    ),
)
