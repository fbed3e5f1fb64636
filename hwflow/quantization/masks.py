"""Masks of attention: minus infinity, or a number like it, that Softmax turns into shares of nothing; constants, or
computed of what tells which elements count.

No integer of a few bits is as small, and a range that held it would leave one step for all scores. In the model to be
quantized such an element becomes one that is enough below all scores that were met, and the range ends there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, OperatorFacts, facts_of
from hwflow.onnxspec.graphs.operator_names import MAX
from hwflow.quantization.calibration import Range, calibrate
from hwflow.quantization.sessions import Arrays

LEAST = -9999.0
"""An element at or below it is a mask's."""

BELOW = 8.0
"""How far below the least score a masked one is: its share is e^-8 (3 in 10,000) of the least one."""


@dataclass(frozen=True)
class _Mask:
    """Input ``index`` of ``node`` is the mask; ``scores`` is the value that it masks."""

    node: onnx.NodeProto
    index: int
    scores: str


def bound_masks(model: onnx.ModelProto, frames: Sequence[Arrays]) -> dict[str, Range]:
    """Change the masks in ``model``; return the ranges of masks and of masked values, from the scores on
    ``frames``."""
    constants = {i.name: i for i in model.graph.initializer}
    masks = [*_masks(model.graph), *_computed(model, frames)]
    order = {id(node): place for place, node in enumerate(model.graph.node)}
    masks.sort(key=lambda mask: order[id(mask.node)])
    scores = calibrate(model, frames, list(dict.fromkeys(m.scores for m in masks))) if masks else {}
    ranges: dict[str, Range] = {}
    limits: dict[str, onnx.NodeProto] = {}
    for mask in masks:
        low, high = ranges.get(mask.scores, scores[mask.scores])
        least = low - BELOW
        name = mask.node.input[mask.index]
        bound = least - high if _facts(mask.node).adds else least
        limited = f"{name}_of_{mask.node.name}"
        if name in constants:
            values = numpy_helper.to_array(constants[name])
            bounded = np.where(values <= LEAST, bound, values)
            model.graph.initializer.append(numpy_helper.from_array(bounded.astype(values.dtype), limited))
        else:
            model.graph.initializer.append(numpy_helper.from_array(np.array(bound, np.float32), f"{limited}_least"))
            limits[mask.node.name] = onnx.helper.make_node(MAX, [name, f"{limited}_least"], [limited], limited)
            ranges[limited] = bound, 0.0
        mask.node.input[mask.index] = limited
        ranges[mask.node.output[0]] = least, high
    if limits:
        nodes = [part for node in model.graph.node for part in (limits.get(node.name), node) if part is not None]
        kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del model.graph.node[:]
        model.graph.node.extend(kept)
    return ranges


def _masks(graph: onnx.GraphProto) -> list[_Mask]:
    """Return the sums with masks, and what selects between scores and a mask, by constants."""
    masked = {
        i.name for i in graph.initializer
        if i.data_type == onnx.TensorProto.FLOAT and (numpy_helper.to_array(i) <= LEAST).any()
    }
    constants = {i.name for i in graph.initializer}
    found = []
    for node in graph.node:
        selects = _selects(node)
        streams = [name for name in node.input[1 if selects else 0 :] if name not in constants]
        places = [k for k, name in enumerate(node.input) if name in masked]
        if len(streams) == 1 and len(places) == 1 and (_facts(node).adds or selects):
            found.append(_Mask(node, places[0], streams[0]))
    return found


def _facts(node: onnx.NodeProto) -> OperatorFacts:
    return facts_of(STANDARD_DOMAIN, node.op_type)


def _selects(node: onnx.NodeProto) -> bool:
    facts = _facts(node)
    return facts.elementwise and facts.accumulates and not facts.affine


def _computed(model: onnx.ModelProto, frames: Sequence[Arrays]) -> list[_Mask]:
    """Return the sums of scores and of masks that no matrix product is in front of."""
    constants = {i.name for i in model.graph.initializer}
    makers = {name: node for node in model.graph.node for name in node.output}
    plain_values: dict[str, bool] = {}
    for node in model.graph.node:  # in order: the quantizer sorts them
        linear = _facts(node).weights is not None
        plain = not linear and all(plain_values.get(name, True) for name in node.input)
        plain_values.update(dict.fromkeys(node.output, plain))
    pairs = [
        (node, k) for node in model.graph.node if _facts(node).adds and constants.isdisjoint(node.input)
        for k in range(2) if node.input[k] in makers and plain_values[node.input[k]]
        and not plain_values.get(node.input[1 - k], True)
    ]
    met = calibrate(model, frames, list(dict.fromkeys(node.input[k] for node, k in pairs))) if pairs else {}
    ends = ((mask, *met[mask[0].input[mask[1]]]) for mask in pairs)
    return [_Mask(node, k, node.input[1 - k]) for (node, k), low, high in ends if low <= LEAST and high <= 0]
