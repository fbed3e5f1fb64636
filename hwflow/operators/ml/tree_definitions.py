"""Classes and transforms behind ensembles of trees, in operators of ai.onnx.

The specification does not say what one score means for two classes. onnx's reference has 1 less the score for the
first class with post_transform NONE and PROBIT, else the negative score; so the second class is chosen above 1/2, or
above 0. (onnxruntime has 1 less the score wherever all weights are positive.)
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx import helper

from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined, Use
from hwflow.operators.ml.labels import Labels, both_sides
from hwflow.operators.ml.ml_operands import integers
from hwflow.operators.ml.post_transforms import LOGISTIC, NONE, PROBIT, SOFTMAX, SOFTMAX_ZERO, transformed
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
    if transform == NONE:
        return None
    body = DialectWriter(call)
    scores = _again(body, REGRESSOR, {a.name: a for a in use.node.attribute if a.name != "post_transform"})
    return _returned(body, transformed(body, scores, transform))


def ensemble(use: Use) -> onnx.FunctionProto | None:
    """Return the ensemble and its transform; None where it has none."""
    call = Call.of(use)
    number = call.integer("post_transform")
    if number == 0:
        return None
    if not 0 <= number < len(_BY_NUMBER):
        raise Undefined(f"post_transform must be 0 to {len(_BY_NUMBER) - 1}, not {number}", "correct the attribute")
    body = DialectWriter(call)
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


def _rest(body: DialectWriter, score: str) -> str:
    """Return the scores of two classes, [frames, 2], of that of the second, [frames, 1]: it and the rest of 1."""
    return body.let(f"Concat <axis = 1> ({body.let(f'Sub ({body.number(1.0)}, {score})')}, {score})")


def _again(body: DialectWriter, op_type: str, attributes: dict[str, Any]) -> str:
    """Add an ensemble without a transform; return its result."""
    name = f"scores_{len(body.nodes)}"
    node = helper.make_node(op_type, [body.argument(0)], [name], domain=ML[0])
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


