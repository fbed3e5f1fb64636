"""Classes and transforms behind ensembles of trees, in operators of ai.onnx.

The specification does not say what one score means for two classes. onnx's reference has 1 less the score for the
first class with post_transform NONE and PROBIT, else the negative score; so the second class is chosen above 1/2, or
above 0. (onnxruntime has 1 less the score wherever all weights are positive.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined, Use
from hwflow.onnxspec.graphs.attribute_values import python_attributes
from hwflow.operators.ml.ensembles import Ensemble, Floats, base_values, floats_of, of_named_nodes, of_positions
from hwflow.operators.ml.labels import Labels, both_sides
from hwflow.operators.ml.ml_operands import DOUBLE, cast, integers
from hwflow.operators.ml.post_transforms import LOGISTIC, NONE, PROBIT, SOFTMAX, SOFTMAX_ZERO, transformed
from hwflow.operators.ml.wide_sums import attributes_of, is_wide, one_target_each, parts
from hwflow.operators.record import ML

REGRESSOR = "TreeEnsembleRegressor"
ENSEMBLE = "TreeEnsemble"

_BY_NUMBER = (NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT)
"""Transforms since version 5 of ai.onnx.ml."""

_OF_CLASSES, _OF_TARGETS = "class_", "target_"


def regressor(use: Use) -> onnx.FunctionProto | None:
    """Return the ensemble and its transform; None where it has none."""
    call = Call.of(use)
    transform = str(call.attribute("post_transform", NONE))
    body = DialectWriter(call)
    name = str(call.attribute("aggregate_function", "SUM"))
    if name in ("SUM", "AVERAGE") and call.kind(0) in ("float32", "float64"):
        attributes = python_attributes(use.node, None)
        base = base_values(attributes)
        trees = len(set(call.attribute("nodes_treeids", None) or [])) + bool(len(base))
        if is_wide(np.append(floats_of(attributes, "target_weights"), base), trees):
            found = of_named_nodes(attributes, "target")
            sums = _wide(body, found, base, call.integer("n_targets", 1), average=name == "AVERAGE")
            if sums:
                scores = body.let(f"Cast <to = {onnx.TensorProto.FLOAT}> ({sums})")
                return _returned(body, transformed(body, scores, transform), version=5)
    if transform == NONE:
        return None
    scores = _again(body, REGRESSOR, {a.name: a for a in use.node.attribute if a.name != "post_transform"})
    return _returned(body, transformed(body, scores, transform))


def ensemble(use: Use) -> onnx.FunctionProto | None:
    """Return the ensemble and its transform; None where it has none."""
    call = Call.of(use)
    number = call.integer("post_transform")
    if not 0 <= number < len(_BY_NUMBER):
        raise Undefined(f"post_transform must be 0 to {len(_BY_NUMBER) - 1}, not {number}", "correct the attribute")
    body, kind, aggregate = DialectWriter(call), call.kind(0), call.integer("aggregate_function", 1)
    attributes = python_attributes(use.node, None)
    if aggregate in (0, 1) and is_wide(floats_of(attributes, "leaf_weights"), len(call.attribute("tree_roots", [0]))):
        found = of_positions(attributes)
        sums = _wide(body, found, np.zeros(0), call.integer("n_targets", 1), average=aggregate == 0)
        if sums:
            scores = cast(body, sums, DOUBLE, kind)
            return _returned(body, transformed(body, scores, _BY_NUMBER[number], kind), version=5)
    if number == 0:
        return None
    scores = _again(body, ENSEMBLE, {a.name: a for a in use.node.attribute if a.name != "post_transform"})
    return _returned(body, transformed(body, scores, _BY_NUMBER[number], call.kind(0)), version=5)


def classifier(use: Use) -> onnx.FunctionProto:
    """Return the label of the greatest score, and the scores: those of an ensemble with a target for each class."""
    call = Call.of(use)
    body = DialectWriter(call)
    labels = Labels.of(call, "classlabels_int64s")
    ids = integers(call, "class_ids")
    if len(labels) < 2:
        raise Undefined(f"classlabels must be at least 2, not {len(labels)}", "give the label of every class")
    if any(not 0 <= each < len(labels) for each in set(ids)):
        raise Undefined(
            f"class_ids must be from 0 to {len(labels) - 1}, not {min(ids)} to {max(ids)}", "correct the attribute"
        )
    two = len(labels) == 2 and len(set(ids)) <= 1
    attributes: dict[str, Any] = {}
    for attribute in use.node.attribute:
        name = attribute.name
        if name not in ("post_transform", "classlabels_int64s", "classlabels_strings"):
            attributes[name.replace(_OF_CLASSES, _OF_TARGETS, 1) if name.startswith(_OF_CLASSES) else name] = attribute
    attributes["n_targets"] = 1 if two else len(labels)
    if two:
        attributes[f"{_OF_TARGETS}ids"] = [0] * len(ids)
        base = [float(v) for v in call.attribute("base_values", None) or []]
        attributes |= {"base_values": [base[min(ids[:1] or [0])]]} if len(base) == 2 else {}
    raw = _again(body, REGRESSOR, attributes)
    transform = str(call.attribute("post_transform", NONE))
    if not two:
        scores = transformed(body, raw, transform)
        return _returned(body, labels.greatest(body, scores if transform == SOFTMAX_ZERO else raw), scores)
    fraction = transform in (NONE, PROBIT)
    each = _rest(body, raw) if fraction else both_sides(body, raw)
    scores = transformed(body, each, transform)
    if transform == SOFTMAX_ZERO:
        return _returned(body, labels.greatest(body, scores), scores)
    above = body.let(f"Greater ({raw}, {body.number(0.5 if fraction else 0.0)})")
    return _returned(body, labels.chosen(body, above, labels.values[1], labels.values[0]), scores)


def _wide(body: DialectWriter, found: Ensemble, base: Floats, targets: int, *, average: bool) -> str:
    """Add two ensembles whose sum is the wide sum of one, of float64; return it. Empty where that is impossible."""
    apart = one_target_each(found, targets)
    if apart is None:
        return ""
    x = cast(body, body.argument(0), body.call.kind(0), DOUBLE)
    scores = []
    for values in parts(apart.leaf_value, found.trees + 1):
        attributes: dict[str, Any] = {**attributes_of(apart, values), "n_targets": targets}
        for name, value in attributes.items():
            if isinstance(value, np.ndarray):
                attributes[name] = onnx.numpy_helper.from_array(value, name)
        scores.append(_again(body, ENSEMBLE, attributes, x))
    result = body.let(f"Add ({scores[0]}, {scores[1]})")
    if average:
        result = body.let(f"Div ({result}, {body.number(float(found.trees), DOUBLE)})")
    return body.let(f"Add ({result}, {body.number(base, DOUBLE)})") if len(base) else result


def _rest(body: DialectWriter, score: str) -> str:
    """Return the scores of two classes, [frames, 2], of that of the second, [frames, 1]: it and the rest of 1."""
    return body.let(f"Concat <axis = 1> ({body.let(f'Sub ({body.number(1.0)}, {score})')}, {score})")


def _again(body: DialectWriter, op_type: str, attributes: dict[str, Any], features: str = "") -> str:
    """Add an ensemble without a transform, of the input or other ``features``; return its result."""
    name = f"scores_{len(body.nodes)}"
    node = helper.make_node(op_type, [features or body.argument(0)], [name], domain=ML[0])
    for key, value in attributes.items():
        attribute = value if isinstance(value, onnx.AttributeProto) else helper.make_attribute(key, value)
        node.attribute.add().CopyFrom(attribute)
        node.attribute[-1].name = key
    body.nodes.append(node)
    return name


def _returned(body: DialectWriter, *results: str, version: int = 3) -> onnx.FunctionProto:
    """Return the definition; ``version``: of ai.onnx.ml, that of the ensemble in it."""
    function = body.returned(*results)
    function.opset_import.append(helper.make_opsetid(ML[0], version))
    return function


