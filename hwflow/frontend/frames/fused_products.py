"""The batching rule of onnxruntime's FusedMatMul, see :mod:`hwflow.frontend.frames.axes`."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from hwflow.frontend.frames.axes import BatchingRule
from hwflow.frontend.frames.frame_model import Build
from hwflow.onnxspec.graphs.operator_names import MAT_MUL, MUL
from hwflow.onnxspec.resolving.resolved_model import OnnxNode


def order_of(node: OnnxNode, operand: str, rank: int) -> list[int]:
    """Return the order of the axes that operand "A" or "B" is multiplied in: ``transBatchA`` brings the first axis
    before the last one, ``transA`` then swaps the last two."""
    axes = list(range(rank))
    if node.integer(f"transBatch{operand}") and rank > 2:
        axes = [*axes[1:-1], 0, axes[-1]]
    if node.integer(f"trans{operand}") and rank > 1:
        axes[-2:] = axes[:-3:-1]
    return axes


def _independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    rank = len(build.shape(node.result))
    for place, operand in enumerate("AB"):
        name = node.inputs[place]
        own = len(build.shape(name))
        if own > 2 and order_of(node, operand, own)[0] != 0:
            return False
        if not build.is_fixed(name) and not own == rank > 2:
            return False
        if build.is_fixed(name) and own == rank > 2:
            first = build.first(name)
            if first is None:
                return False
            copy.input[place] = first
    return True


def _batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Rewrite it as a MatMul, behind Transposes, and a Mul by alpha."""
    rank = len(build.shape(node.result))
    names = []
    for place, operand in enumerate("AB"):
        name = node.inputs[place]
        own = len(build.shape(name))
        order = order_of(node, operand, own)
        if not build.is_fixed(name):
            if not own == rank > 1:
                return False
            order = [0, *(axis + 1 for axis in order)]
        if order != list(range(len(order))):
            name = build.transposed(name, order)
        if build.is_fixed(node.inputs[place]) and own == rank > 2:
            name = build.reshaped(name, (1, *(build.shape(node.inputs[place])[axis] for axis in order)))
        names.append(name)
    copy.op_type, copy.domain = MAT_MUL, ""
    del copy.attribute[:], copy.input[:]
    copy.input.extend(names)
    alpha = node.attributes.get("alpha", 1.0)
    assert isinstance(alpha, int | float)
    if alpha != 1:
        result, copy.output[0] = copy.output[0], build.fresh(node.result)
        factor = build.add(node.result, np.array(alpha, dtype=np.float32), build.resolved.values[node.result].dtype)
        build.after.append(helper.make_node(MUL, [copy.output[0], factor], [result]))
    return True


FUSED = BatchingRule(_independent, _batched)
