"""Masks of attention: constants of minus infinity, or of a number like it, that Softmax turns into shares of nothing.

No integer of a few bits is as small, and a range that held it would leave one step for all scores. In the model to be
quantized such an element becomes one that is enough below all scores that were met, and the range ends there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, facts_of
from hwflow.onnxspec.graphs.operator_names import ADD
from hwflow.quantization.calibration import Range, calibrate
from hwflow.quantization.sessions import Arrays

LEAST = -9999.0
"""An element at or below it is a mask's."""

BELOW = 8.0
"""How far below the least score a masked one is: its share is e^-8 (3 in 10,000) of the least one."""


@dataclass(frozen=True)
class _Mask:
    """Input ``index`` of ``node`` is the mask's constant; ``scores`` is the value that it masks."""

    node: onnx.NodeProto
    index: int
    scores: str


def bound_masks(model: onnx.ModelProto, frames: Sequence[Arrays]) -> dict[str, Range]:
    """Change the constants of masks in ``model``; return the ranges of the masked values, from the scores on
    ``frames``."""
    masks = _masks(model.graph)
    scores = calibrate(model, frames, list(dict.fromkeys(m.scores for m in masks))) if masks else {}
    constants = {i.name: i for i in model.graph.initializer}
    ranges: dict[str, Range] = {}
    for mask in masks:
        low, high = scores[mask.scores]
        least = low - BELOW
        values = numpy_helper.to_array(constants[mask.node.input[mask.index]])
        bounded = np.where(values <= LEAST, least - high if mask.node.op_type == ADD else least, values)
        name = f"{mask.node.input[mask.index]}_of_{mask.node.name}"
        model.graph.initializer.append(numpy_helper.from_array(bounded.astype(values.dtype), name))
        mask.node.input[mask.index] = name
        ranges[mask.node.output[0]] = least, high
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
        facts = facts_of(STANDARD_DOMAIN, node.op_type)
        streams = [name for name in node.input if name not in constants]
        places = [k for k, name in enumerate(node.input) if name in masked]
        selects = facts.elementwise and facts.accumulates and not facts.affine
        if len(streams) == 1 and len(places) == 1 and (node.op_type == ADD or selects):
            found.append(_Mask(node, places[0], streams[0]))
    return found
